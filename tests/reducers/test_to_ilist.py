"""`to_ilist`: items appended, in order, all at once."""

from __future__ import annotations

import pytest

from reducers import to_ilist


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_to_ilist_keeps_encounter_order(ctx, partitions):
    """The list has the items as the stream has them, also with empty partitions."""
    numbers = ctx.stream(range(5), partitions).flat_map(lambda n: [n] * n)

    assert list(numbers.collect(to_ilist("l"))) == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]


def test_to_ilist_keeps_the_order_of_sorted(ctx):
    """What was sorted across partitions is in order."""
    assert list(ctx.stream([5, 3, 9, 1, 7], 3).sorted().collect(to_ilist("l"))) == [1, 3, 5, 7, 9]


def test_to_ilist_appends(ctx):
    """What the list had stays in front."""
    ctx.get_list("l").extend(["x", None])

    assert list(ctx.stream("ab", 2).collect(to_ilist("l"))) == ["x", None, "a", "b"]


def test_to_ilist_takes_none_and_any_type(ctx):
    """Items of several types and None come back as they were."""
    items = [None, 1, "a", 2.5, (1, None), [None], {"k": {1}}]

    assert list(ctx.stream(items, 3).collect(to_ilist("l"))) == items


def test_to_ilist_leaves_the_list_when_a_step_fails(ctx):
    """Nothing of a failed job is in the list."""
    ctx.get_list("l").append("before")
    with pytest.raises(ZeroDivisionError):
        ctx.stream([1, 2, 0, 4], 4).map(lambda n: 1 / n).collect(to_ilist("l"))

    assert list(ctx.get_list("l")) == ["before"]


def test_to_ilist_writes_once_for_each_job_of_a_name(ctx):
    """The items of a job that runs again are there once."""
    for _ in range(2):
        ctx.stream("ab", 2).collect(to_ilist("l", job="monday"))

    assert list(ctx.get_list("l")) == ["a", "b"]
