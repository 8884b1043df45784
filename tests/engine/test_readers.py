"""Readers: the rows of an earlier stage as items again."""

from __future__ import annotations

import operator

import pytest

from dstream.base.pickling import dumps
from dstream.engine.tasks.readers import (
    KeepRange,
    combine_groups,
    first_of_keys,
    in_place_order,
    read_batches,
    read_items,
    read_places,
)
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.failures import failure
from dstream.spi import Collector


def rows(*batches, source=0):
    """Return a row for each batch, with the number of items before it as its sequence."""
    made, before = [], 0
    for batch in batches:
        made.append(Row(0, source, before, ITEMS, len(batch), dumps(batch)))
        before += len(batch)
    return made


def test_items_and_batches_come_in_the_order_of_the_rows():
    """One item after another, or one list after another."""
    some = rows(["a", None], [], ["b"])

    assert (list(read_items(iter(some))), list(read_batches(iter(some)))) == (
        ["a", None, "b"],
        [["a", None], [], ["b"]],
    )


def test_places_carry_where_they_came_from():
    """The source partition stands beside the position."""
    assert list(read_places(iter(rows([(4, "x")], source=2)))) == [((2, 4), "x")]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ((0, None), "abcdefg"),
        ((0, 0), ""),
        ((2, None), "cdefg"),
        ((3, 5), "de"),
        ((0, 3), "abc"),
        ((6, 99), "g"),
        ((9, None), ""),
    ],
)
def test_a_range_is_kept_across_batches(span, expected):
    """Positions count over the rows of a partition, however they were cut."""
    assert "".join(KeepRange({0: span})(iter(rows("abc", "d", "efg")))) == expected


def test_a_partition_without_a_range_is_left_out():
    """Only the partitions that are named are kept."""
    both = [*rows("ab", source=1), *rows("cd", source=2)]

    assert list(KeepRange({2: (0, None)})(iter(both))) == ["c", "d"]


def test_first_of_keys_keeps_places(step, task):
    """The first pair of each key, with its place."""
    pairs = iter([((0, 0), 3), ((0, 1), 1), ((1, 0), 3.0)])

    assert list(first_of_keys(None, step, pairs, task)) == [((0, 0), 3), ((0, 1), 1)]


def test_in_place_order_restores_the_order(task):
    """Items go back to their places."""
    assert list(in_place_order(iter([((1, 0), "c"), ((0, 5), "b"), ((0, 2), "a")]), task)) == ["a", "b", "c"]


def test_combine_groups_finishes_each_group_once(step, task):
    """Containers are joined in the order of their sources; the finisher sees the whole group."""
    downstream = Collector(list, list.append, operator.add, tuple)
    batches = [(["k", "m"], [0, 1], [[1], [2]]), (["k"], [9], [[3]])]

    assert list(combine_groups(downstream, step, iter(batches), task)) == [(0, "k", (1, 3)), (1, "m", (2,))]


def test_a_combiner_that_fails_names_its_step(step, task):
    """The exception of a downstream collector is noted with the step of the collect."""
    downstream = Collector(int, operator.add, lambda left, right: left // right)

    with pytest.raises(ZeroDivisionError) as caught:
        list(combine_groups(downstream, step, iter([(["k"], [0], [1]), (["k"], [1], [0])]), task))
    assert failure(caught.value).step == step
