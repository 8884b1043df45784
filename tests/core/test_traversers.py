"""Traversers give one item after another, and None when there is none at the moment."""

from __future__ import annotations

import pytest

from dstream.core import AppendableTraverser, ResettableSingletonTraverser, Traverser, lazy, traverse
from dstream.errors import IllegalStateError


def all_of(traverser):
    """Return the items up to the first None, and check that it stays the end."""
    found = []
    while (item := traverser.next()) is not None:
        found.append(item)
    assert traverser.next() is None
    return found


def pausing(*parts):
    """Return a traverser that gives None between parts."""
    items = iter([item for part in parts for item in [*part, None]])

    class Pausing(Traverser):
        def next(self):
            return next(items, None)

    return Pausing()


# Jet's TraverserTest


def test_map_gives_what_the_function_makes():
    """Of each item."""
    assert all_of(traverse([1, 2, 3]).map(lambda n: n * 10)) == [10, 20, 30]


def test_map_leaves_out_none():
    """It goes on behind it."""
    assert all_of(traverse([1, 2, 3]).map(lambda n: None if n == 2 else n)) == [1, 3]


def test_filter_keeps_what_satisfies_the_predicate():
    """It goes on behind others."""
    assert all_of(traverse([1, 0, 2, 0]).filter(bool)) == [1, 2]


def test_take_while_ends_at_the_first_failure():
    """Also if later items would pass."""
    assert all_of(traverse([1, 2, 9, 3]).take_while(lambda n: n < 5)) == [1, 2]


def test_drop_while_begins_at_the_first_failure():
    """Also if later items would be dropped."""
    assert all_of(traverse([1, 2, 9, 3]).drop_while(lambda n: n < 5)) == [9, 3]


def test_append_gives_one_more():
    """Behind the last one."""
    assert all_of(traverse([1, 2]).append(3)) == [1, 2, 3]


def test_prepend_gives_one_before():
    """Also of none."""
    assert all_of(traverse([2, 3]).prepend(1)) == [1, 2, 3]
    assert all_of(traverse([]).prepend(1)) == [1]


def test_flat_map_gives_all_that_the_function_makes():
    """Of traversers and of what can be iterated; what makes nothing is passed over."""
    assert all_of(traverse([2, 0, 1]).flat_map(range)) == [0, 1, 0]
    assert all_of(traverse([2, 0, 1]).flat_map(lambda n: traverse(range(n)))) == [0, 1, 0]


def test_flat_map_goes_on_after_a_pause():
    """Nothing is lost of what comes behind it."""
    traverser = pausing("a", "bc").flat_map(lambda letter: [letter, letter.upper()])

    assert [traverser.next() for _ in range(8)] == ["a", "A", None, "b", "B", "c", "C", None]


def test_peek_sees_each_item():
    """When it is given, and no None."""
    seen = []
    traverser = traverse([1, 2]).peek(seen.append)

    assert seen == []
    assert all_of(traverser) == seen == [1, 2]


def test_on_first_none_calls_once():
    """At the first None, not at others."""
    calls = []
    traverser = traverse([1]).on_first_none(lambda: calls.append("end"))

    assert (traverser.next(), calls) == (1, [])
    assert (traverser.next(), traverser.next(), calls) == (None, None, ["end"])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda t: t.map(str.upper), ["A", None, "B"]),
        (lambda t: t.filter(str.islower), ["a", None, "b"]),
        (lambda t: t.take_while(str.islower), ["a", None, "b"]),
        (lambda t: t.drop_while(str.isupper), ["a", None, "b"]),
        (lambda t: t.append("x"), ["a", "x", "b"]),
        (lambda t: t.prepend("x"), ["x", "a", None]),
        (lambda t: t.peek(str), ["a", None, "b"]),
    ],
)
def test_a_pause_ends_nothing(made, expected):
    """What was made of a traverser that pauses goes on when it does."""
    traverser = made(pausing("a", "b"))

    assert [traverser.next() for _ in range(3)] == expected


# Jet's TraversersTest


@pytest.mark.parametrize("items", [[1, 2], (1, 2), iter([1, 2]), {1: 0, 2: 0}, range(1, 3), (n for n in (1, 2))])
def test_traverse_takes_what_can_be_iterated(items):
    """Of any kind."""
    assert all_of(traverse(items)) == [1, 2]


def test_traverse_gives_nothing_of_nothing():
    """Again and again."""
    assert all_of(traverse([])) == []


def test_traverse_returns_a_traverser_itself():
    """Its place is kept."""
    traverser = traverse("ab")
    traverser.next()

    assert traverse(traverser) is traverser
    assert list(traverser) == ["b"]


def test_traverse_reads_as_it_is_asked():
    """Not one item more."""
    items = iter("abc")

    assert traverse(items).next() == "a"
    assert next(items) == "b"


def test_traverse_refuses_a_none():
    """It would look like the end; Jet asserts this."""
    traverser = traverse([1, None, 2])

    assert traverser.next() == 1
    with pytest.raises(TypeError, match="list has a None, which would say that there is no item"):
        traverser.next()


def test_traverse_refuses_what_cannot_be_iterated():
    """At the call."""
    with pytest.raises(TypeError, match=r"traverse\(\) takes what can be iterated, not int"):
        traverse(3)


def test_lazy_makes_it_at_the_first_item():
    """And once."""
    calls = []
    traverser = lazy(lambda: calls.append("made") or "ab")

    assert calls == []
    assert all_of(traverser) == ["a", "b"]
    assert calls == ["made"]


@pytest.mark.parametrize("method", ["map", "filter", "flat_map", "take_while", "drop_while", "peek", "on_first_none"])
def test_methods_refuse_what_is_no_function(method):
    """At the call."""
    with pytest.raises(TypeError, match="must be a function, not int"):
        getattr(traverse([1]), method)(3)


@pytest.mark.parametrize("method", ["filter", "take_while", "drop_while", "peek", "on_first_none"])
def test_a_function_that_yields_is_refused_where_its_lines_would_not_run(method):
    """A generator is true, whatever it would have said."""
    with pytest.raises(TypeError, match="must give a result, and a function that yields gives a generator"):
        getattr(traverse([1]), method)(yielding)


def yielding(*given):
    """Yield no."""
    yield False


@pytest.mark.parametrize("method", ["append", "prepend"])
def test_methods_refuse_a_none(method):
    """At the call."""
    with pytest.raises(TypeError, match="a traverser gives no None"):
        getattr(traverse([1]), method)(None)


def test_a_traverser_without_next_says_so():
    """A subclass overrides it."""
    with pytest.raises(NotImplementedError, match=r"Traverser has no next\(\)"):
        Traverser().next()


# Jet's AppendableTraverserTest and ResettableSingletonTraverserTest


def test_an_appendable_traverser_gives_what_was_added():
    """In order; then nothing, until more is added."""
    traverser = AppendableTraverser()
    assert traverser.next() is None

    assert all_of(traverser.add(1).add(2)) == [1, 2]
    assert all_of(traverser.add(3)) == [3]


def test_an_appendable_traverser_may_be_given_again_and_again():
    """Jet: test_flatMapperUsage: a function fills it for each item, and returns the same one."""
    held = AppendableTraverser()

    assert all_of(traverse([10, 20]).flat_map(lambda n: held.add(n).add(n + 1))) == [10, 11, 20, 21]


def test_an_appendable_traverser_knows_whether_it_is_empty():
    """Before and behind its items; a None is none."""
    traverser = AppendableTraverser()

    assert traverser.is_empty()
    assert not traverser.add(1).is_empty()
    with pytest.raises(TypeError, match="a traverser gives no None"):
        traverser.add(None)


def test_a_singleton_gives_its_item_once():
    """And the next one when it has it."""
    traverser = ResettableSingletonTraverser()
    assert traverser.next() is None
    traverser.accept(1)
    assert all_of(traverser) == [1]
    traverser.accept(2)

    assert all_of(traverser) == [2]


def test_a_singleton_takes_none_for_nothing():
    """Jet: when_acceptNull_then_nextReturnsNull."""
    traverser = ResettableSingletonTraverser()
    traverser.accept(None)

    assert traverser.next() is None


def test_a_singleton_refuses_another_item():
    """The first one would be lost."""
    traverser = ResettableSingletonTraverser()
    traverser.accept(1)

    with pytest.raises(IllegalStateError, match="the item 1 is still there"):
        traverser.accept(2)
