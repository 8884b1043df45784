"""The sinks that look at items: what they let pass, and how a run fails."""

from __future__ import annotations

import math

import pytest

from dstream.spi import Sink
from dstream.testing import (
    assert_any_order,
    assert_collected,
    assert_collected_eventually,
    assert_contains,
    assert_ordered,
    items,
)


def said(stream, sink):
    """Return the message with which a run fails."""
    with pytest.raises(AssertionError) as caught:
        stream.collect(sink)
    return str(caught.value)


def test_items_in_order(engine):
    """The same items in the same order pass; others fail with the first difference and both lists."""
    numbers = engine.stream([3, 2, 1], partitions=3)

    assert numbers.collect(assert_ordered([3, 2, 1])) is None
    assert said(numbers, assert_ordered(iter([3, 1, 2]))) == (
        "at [1]: expected 1, got 2\n  expected 3 items: [3, 1, 2]\n  got 3 items: [3, 2, 1]"
    )


def test_items_in_any_order(engine):
    """Each as often, with or without a hash; the message says what is missing and what is too much."""
    lists = engine.stream([[1], [2], [1]], partitions=2).unordered()

    lists.collect(assert_any_order([[2], [1], [1]]))
    assert said(lists, assert_any_order([[1], [2], [2]])).startswith(
        "missing: [2]; unexpected: [1]\n  expected 3 items"
    )


def test_items_among_others(local_context):
    """At least as often; the message says what is missing."""
    numbers = local_context.stream([1, 2, 3, math.nan])

    numbers.collect(assert_contains([math.nan, 1]))
    numbers.collect(assert_contains([]))
    assert said(numbers, assert_contains([3, 3, 5])).startswith("missing: 3, 5\n  expected 3 items: [3, 3, 5]")


def test_types_count(local_context):
    """As in the other assertions of the kit."""
    assert "expected 1 (int), got True (bool)" in said(local_context.stream([True]), assert_ordered([1]))
    assert "missing: 1" in said(local_context.stream([1.0]), assert_contains([1]))


def test_a_function_sees_all_items(engine):
    """In encounter order, in the caller's process, once; none is a list too."""
    seen = []
    engine.stream(range(1500), partitions=3).collect(assert_collected(seen.append))
    engine.stream([], partitions=2).collect(assert_collected(seen.append))

    assert seen == [list(range(1500)), []]


def test_what_a_function_raises_fails_the_run(engine):
    """As it is, naming the call."""

    def check(found):
        assert len(found) == 3, f"there are {len(found)}"

    with pytest.raises(AssertionError, match="there are 2") as caught:
        engine.stream([1, 2]).collect(assert_collected(check))
    assert "collect(assert_collected(check))" in "\n".join(caught.value.__notes__)


def test_bounded_items_are_looked_at_when_all_are_there(local_context):
    """One that is satisfied passes, one that is not fails, without waiting."""

    def check(found):
        assert found == [1, 2]

    local_context.stream([1, 2]).collect(assert_collected_eventually(0.001, check))
    with pytest.raises(AssertionError):
        local_context.stream([1]).collect(assert_collected_eventually(3600, check))


def test_a_run_that_fails_is_not_looked_at(local_context):
    """The exception is that of the step."""
    with pytest.raises(ZeroDivisionError):
        local_context.stream([1, 0]).map(lambda n: 1 // n).collect(assert_ordered([]))


def test_wrong_arguments_are_refused_at_the_call():
    """Before anything runs."""
    with pytest.raises(TypeError, match="fn must be a function, not list"):
        assert_collected([1])
    with pytest.raises(TypeError, match="a function that yields"):
        assert_collected(lambda found: (yield))
    for seconds in 0, -1, math.nan, True, "5":
        with pytest.raises(ValueError, match="seconds must be a number above 0"):
            assert_collected_eventually(seconds, print)


def test_they_are_sinks(local_context):
    """With the source of the kit they make a whole run."""
    local_context.read(items("b", "a")).sorted().collect(assert_ordered(["a", "b"]))

    labels = [
        assert_ordered([1]),
        assert_contains("ab"),
        assert_collected(print),
        assert_collected_eventually(1, print),
    ]
    assert all(isinstance(each, Sink) for each in labels)
    assert [each.label for each in labels] == [
        "assert_ordered([1])",
        "assert_contains(['a', 'b'])",
        "assert_collected(print)",
        "assert_collected_eventually(1, print)",
    ]
