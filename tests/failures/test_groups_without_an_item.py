"""The finisher of a group is given what the group holds, which is no item: a failure names the group's key."""

from __future__ import annotations

from typing import Any

import pytest

import collectors as c
import dstream as ds
from dstream.errors import IllegalStateError
from dstream.failures import MISSING
from reducers import grouping_by_to_imap


def odd(number: int) -> bool:
    """Divide numbers into two groups."""
    return number % 2 == 1


def refuse(held: Any) -> Any:
    """Fail on the group of two items."""
    if len(held) == 2:
        raise LookupError("no such group")
    return held


BELOW = c.collecting_and_then(c.to_list(), refuse)
PLACES: dict[str, Any] = {
    "grouping_by": lambda s: s.collect(c.grouping_by(odd, BELOW)),
    "teeing": lambda s: s.collect(
        c.grouping_by(odd, c.teeing(c.to_list(), c.counting(), lambda held, _: refuse(held)))
    ),
    "of functions": lambda s: s.collect(c.grouping_by(odd, ds.Collector(list, list.append, list.extend, refuse))),
    "grouping_by_concurrent": lambda s: s.collect(c.grouping_by_concurrent(odd, BELOW)),
    "partitioning_by": lambda s: s.collect(c.partitioning_by(odd, BELOW)),
    "in a tuple": lambda s: s.collect(c.all_of(c.counting(), c.grouping_by(odd, BELOW))),
    "grouping_by_to_imap": lambda s: s.collect(grouping_by_to_imap("refused", odd, BELOW)),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_failing_finisher_names_the_key_of_its_group(engine, place):
    """What the finisher was given is no item of the stream, and cannot be replayed."""
    with pytest.raises(LookupError, match="no such group") as caught:
        PLACES[place](engine.stream([1, 2, 3], 2))
    known = ds.failure(caught.value)

    assert known.item is MISSING
    assert caught.value.__notes__[1].splitlines()[0].endswith(", in the group of the key True")
    with pytest.raises(IllegalStateError, match="in the group of the key True"):
        known.replay()


def test_a_failing_finisher_inside_of_groups_names_the_keys_of_both(local_context):
    """The outer key stands first."""
    with pytest.raises(LookupError) as caught:
        local_context.stream([1, 3, 1]).collect(c.grouping_by(odd, c.grouping_by(str, BELOW)))

    assert ds.failure(caught.value).given == "in the group of the key True, in the group of the key '1'"


def test_a_failing_finisher_of_the_whole_names_no_item(engine):
    """The list of all items is none of them."""
    with pytest.raises(LookupError) as caught:
        engine.stream([1, 2], 2).collect(BELOW)

    assert ds.failure(caught.value).item is MISSING
    assert " on the item " not in caught.value.__notes__[1]


def test_a_function_that_runs_at_the_end_names_its_item(engine):
    """A collector may call a function of single items only when a group is complete."""
    with pytest.raises(ValueError, match="invalid literal") as caught:
        engine.stream(["1", "x"], 2).collect(c.grouping_by(len, c.sorting(int)))

    assert ds.failure(caught.value).item == "x"
