"""`replace_all`: every entry gets another value, in parallel, in one commit."""

from __future__ import annotations

import threading

import pytest

from dstream.errors import NullElementError


def test_replace_all_gives_every_entry_another_value(make):
    """Made of the key and the value."""
    ages = make.map({"Ada": 36, "Alan": 41})

    assert ages.replace_all(lambda name, age: age + len(name)) is None
    assert ages == {"Ada": 39, "Alan": 45}


def test_replace_all_of_nothing(make):
    """An empty map stays empty."""
    ages = make.map()
    ages.replace_all(lambda name, age: 1 / 0)

    assert ages.is_empty()


@pytest.mark.parametrize("options", [{}, {"journal": True}, {"value_type": int, "strict": True, "buckets": 3}])
def test_replace_all_on_both_engines(engine, options):
    """The workers do it; with a journal each entry is one event."""
    numbers = engine.context.get_map(f"replaced-{len(options)}", **options)
    numbers.put_all((n, n) for n in range(50))
    since = numbers.store.journal_end() if "journal" in options else 0
    numbers.replace_all(lambda key, value: key * 100 + value)

    assert numbers == {n: n * 101 for n in range(50)}
    if "journal" in options:
        assert len(list(numbers.journal(since))) == 50


def test_replace_all_takes_values_that_change_while_it_runs(make):
    """The function runs again on an entry that another thread changed; a removed one stays away."""
    ages, started = make.map({"Ada": 36, "Alan": 41, "Grace": 85}), threading.Event()

    def write():
        ages["Ada"] = 1
        ages.update(New=5)
        del ages["Grace"]

    def older(name, age):
        if not started.is_set():
            started.set()
            writer = threading.Thread(target=write)
            writer.start()
            writer.join()
        return age + 1

    ages.replace_all(older)
    assert ages == {"Ada": 2, "Alan": 42, "New": 5}


def test_replace_all_refuses_none(make):
    """As Java's; the message names the map and the key, and how entries are removed."""
    ages = make.map({"Ada": 36})
    words = r"replace_all\(\) of map 'ages', lambda, on the key 'Ada': it gave None.*execute_on_entries"
    with pytest.raises(NullElementError, match=words):
        ages.replace_all(lambda name, age: None)

    assert ages == {"Ada": 36}


def test_a_failure_of_the_function_changes_nothing(make):
    """It passes through and says on which key it arose."""
    ages = make.map({"Ada": 0, "Alan": 1})
    with pytest.raises(ZeroDivisionError) as raised:
        ages.replace_all(lambda name, age: 1 / age)

    assert "in replace_all() of map 'ages', lambda, on the key 'Ada'; nothing was changed" in raised.value.__notes__
    assert ages == {"Ada": 0, "Alan": 1}


def test_replace_all_of_a_cache_is_a_use_and_leaves_out_what_expired(make):
    """The entries live on from now; those that are gone stay so."""
    sessions = make.cache({"Ada": 1}, ttl=60)
    sessions.store._clock.now += 40
    sessions["Alan"] = 2
    sessions.store._clock.now += 30
    sessions.replace_all(lambda name, value: value * 10)
    sessions.store._clock.now += 50

    assert sessions.copy() == {"Alan": 20}


def test_replace_all_refuses_what_is_no_function(make):
    """At the call."""
    with pytest.raises(TypeError, match="fn must be a function, not int"):
        make.map().replace_all(5)
