"""How collections are shown, and that showing them reads no more than is shown."""

from __future__ import annotations

import pytest

from dstream.errors import IllegalStateError
from tests.collections.stored import Clock, Spy


class Refusing:
    """Raises an error whenever it is called."""

    def __init__(self, error):
        self.error, self.asked = error, 0

    def __call__(self):
        self.asked += 1
        raise self.error


def test_the_repr_of_a_map(make):
    """Name, size, types, and up to five entries."""
    ages = make.map()
    assert repr(ages) == "IStreamMap('ages', 0 entries)"
    ages["Ada"] = 36
    assert repr(ages) == "IStreamMap('ages', 1 entry, str -> int: {'Ada': 36})"
    ages.update({str(n): n for n in range(9)})

    assert repr(ages).startswith("IStreamMap('ages', 10 entries, str -> int: {")
    assert repr(ages).endswith(", ...})")
    assert repr(ages).count(": ") == 6


def test_the_repr_of_a_list(make):
    """Name, size, type, and up to five items."""
    names = make.list()
    assert repr(names) == "IStreamList('names', 0 items)"
    names.extend([1, 2, 3, 4, 5])
    assert repr(names) == "IStreamList('names', 5 items, int: [1, 2, 3, 4, 5])"
    names.append(6)

    assert repr(names) == "IStreamList('names', 6 items, int: [1, 2, 3, 4, 5, ...])"


def test_the_repr_of_a_cache_does_not_count(make):
    """What expired is not shown; the size is exact where all is shown."""
    clock = Clock()
    sessions = make.cache({n: n for n in range(8)}, clock=clock, ttl=60)
    assert repr(sessions).startswith("IStreamCache('sessions', up to 8 entries")
    clock.now += 30
    sessions["new"] = 9
    clock.now += 30

    assert repr(sessions).startswith("IStreamCache('sessions', 1 entry")
    assert repr(sessions).endswith("{'new': 9})")


@pytest.mark.parametrize("kind", ["map", "list", "cache"])
def test_the_repr_of_a_destroyed_collection_says_so(make, kind):
    """It is no error to look at one."""
    collection = getattr(make, kind)(**{"ttl": 1} if kind == "cache" else {})
    collection.destroy()

    assert repr(collection).endswith(", destroyed)")
    assert f"{collection.name}&#x27;, destroyed</caption>" in collection._repr_html_()


@pytest.mark.parametrize("error", [IllegalStateError("no"), TypeError("no"), OSError("no")])
def test_a_collection_that_cannot_be_read_says_why(make, error):
    """A class that is not there, or a folder: looking at the handle is no error."""
    ages = make.map({"Ada": 36})
    ages.store.size = refuse = Refusing(error)

    assert (repr(ages), refuse.asked) == ("IStreamMap('ages', no)", 1)
    assert "&#x27;ages&#x27;, no</caption>" in ages._repr_html_()


def test_values_are_cut(make):
    """A long value does not fill the screen, and one whose repr fails does not fail the repr."""
    texts = make.list(["x" * 1000])

    assert len(repr(texts)) < 120
    assert "xxx..." in repr(texts)


@pytest.mark.parametrize(("show", "most"), [(repr, 5), (lambda c: c._repr_html_(), 10), (lambda c: c.head(3), 3)])
@pytest.mark.parametrize("kind", ["map", "list", "cache"])
def test_showing_reads_no_more_than_is_shown(make, kind, show, most):
    """However large the collection is."""
    collection = make.cache(ttl=60) if kind == "cache" else getattr(make, kind)()
    collection.extend(range(1000)) if kind == "list" else collection.update({n: n for n in range(1000)})
    spy = Spy(collection.store._store if kind == "cache" else collection.store)
    if kind == "cache":
        collection.store._store = spy
    else:
        collection._opened = spy
    show(collection)

    assert 0 < spy.given <= most


def test_the_views_ask_without_reading(make):
    """`len` and `in` do not walk over the entries."""
    ages = make.map({n: n for n in range(100)})
    ages._opened = spy = Spy(ages.store)
    keys, items = ages.keys(), ages.items()

    assert (len(keys), 5 in keys, (5, 5) in items, (5, 6) in items, bool(ages), len(ages.values())) == (
        100,
        True,
        True,
        False,
        True,
        100,
    )
    assert spy.given == 0


def test_iterating_opens_one_split_after_another(make):
    """What is not asked for is not read."""
    ages = make.map({n: n for n in range(1000)})
    ages._opened = spy = Spy(ages.store)
    next(iter(ages))

    assert spy.given == 1


def test_a_notebook_shows_a_table(make):
    """Ten rows, the caption as the repr, and dots for the rest; texts are escaped."""
    shown = make.map({f"<{n}>": n for n in range(12)})._repr_html_()

    assert shown.startswith("<table><caption>IStreamMap &#x27;ages&#x27;, 12 entries, str -&gt; int</caption>")
    assert shown.count("<tr><td>&#x27;&lt;") == 10
    assert '<tfoot><tr><td colspan="2">...</td></tr></tfoot>' in shown
    assert "..." not in make.list([1, 2])._repr_html_()


def test_head_prints_a_table(make, capsys):
    """The first items with their indices, or some entries."""
    make.list(["Ada", None, "Grace"]).head(2)
    assert capsys.readouterr().out.splitlines() == [
        "IStreamList 'names', 3 items, str",
        "index   item",
        "─────────────",
        "0       'Ada'",
        "1       None",
        "(the first 2 items; there are more)",
    ]
    make.map({"Ada": 36}).head()
    assert capsys.readouterr().out.splitlines()[3:] == ["'Ada'   36", "(1 entry)"]
    with pytest.raises(ValueError, match="n must not be negative: -1"):
        make.list().head(-1)


def test_types_are_those_of_what_is_held(local_context):
    """The first commit decides about a type, but values of other types are kept too."""
    items, entries = local_context.get_list("held then"), local_context.get_map("held then")
    items.append(1), entries.update({1: 1})
    items.clear(), entries.clear()
    items.extend(["a"]), entries.update({"a": "b"})

    assert repr(items) == "IStreamList('held then', 1 item, str: ['a'])"
    assert repr(entries) == "IStreamMap('held then', 1 entry, str -> str: {'a': 'b'})"
    items.append(2)
    assert repr(items) == "IStreamList('held then', 2 items, str | int: ['a', 2])"
