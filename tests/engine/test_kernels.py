"""Kernels: what each node does to items that stand in one place."""

from __future__ import annotations

import math
import pickle
from itertools import count, islice

import pytest

from collectors import counting, grouping_by, to_list
from dstream.connectors.memory import Items
from dstream.errors import UnsupportedError
from dstream.failures import failure
from dstream.operators.rows.operations import operation
from dstream.operators.rows.spill import partial_groups, top_items
from dstream.plan import Distinct, DropWhile, Limit, Map, Read, Skip, Sorted, TakeWhile, Unordered, rewrite
from dstream.plan.operations.sort_limit import Top
from dstream.values.order import sort

SOURCE = Read(Items(()))


def is_small(n):
    """Say whether a number is small."""
    return n < 5


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Limit(SOURCE, 2), [3, 9]),
        (Skip(SOURCE, 2), [1, 3]),
        (TakeWhile(SOURCE, is_small), [3]),
        (DropWhile(SOURCE, is_small), [9, 1, 3]),
        (Distinct(SOURCE), [3, 9, 1]),
        (Sorted(SOURCE), [1, 3, 3, 9]),
        (Sorted(SOURCE, is_small, True), [3, 1, 3, 9]),
        (Map(Map(SOURCE, abs), str), ["3", "9", "1", "3"]),
    ],
)
def test_an_operation_does_what_its_node_says(task, node, expected):
    """The function can be pickled and runs the same after it travelled."""
    run = pickle.loads(pickle.dumps(operation(rewrite(node))))

    assert list(run(iter([3, 9, 1, 3]), task)) == expected


@pytest.mark.parametrize("make", [Distinct, lambda s: Limit(s, 9), lambda s: TakeWhile(s, bool), lambda s: Skip(s, 1)])
def test_operations_that_need_no_end_pull_item_by_item(task, make):
    """An endless input is no obstacle; nothing is pulled ahead."""
    items = count(1)
    result = operation(rewrite(make(SOURCE)))(items, task)

    assert len(list(islice(result, 3))) == 3
    assert next(items) in (4, 5)


@pytest.mark.parametrize("make", [Sorted, Distinct, TakeWhile, DropWhile])
def test_a_failing_function_names_its_step_and_item(task, make):
    """The exception of a key or predicate is noted with the step of its node."""
    run = operation(rewrite(make(SOURCE, lambda n: 1 // n)))

    with pytest.raises(ZeroDivisionError) as caught:
        list(run(iter([0, 1]), task))
    assert (failure(caught.value).item, failure(caught.value).step.position) == (0, 2)


def test_a_node_that_needs_no_work_has_no_operation():
    """A node without a handler names itself; nothing falls through."""
    with pytest.raises(UnsupportedError, match=r"\.unordered\(\)"):
        operation(rewrite(Unordered(SOURCE)))


@pytest.mark.parametrize("n", [0, 1, 3, 5000, 20_000])
@pytest.mark.parametrize("reverse", [False, True])
def test_top_items_are_those_of_a_stable_sort(n, reverse):
    """The first n in order, equal keys in encounter order, from more items than are held at once."""
    items = [(i * 37 % 11, i) for i in range(10_000)]
    expected = sorted(items, key=lambda item: item[0], reverse=reverse)[:n]

    assert list(top_items(items, n, lambda item: item[0], reverse)) == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_top_items_know_where_nan_stands(reverse):
    """Also where it comes after the first chunk."""
    items = [math.nan if number % 1700 == 0 else float(number * 37 % 10_007) for number in range(10_000, 0, -1)]
    expected = list(items)
    sort(expected, None, reverse)

    assert repr(list(top_items(items, 8, None, reverse))) == repr(expected[:8])


def test_top_of_no_items_asks_for_none():
    """`limit(0)` reads nothing."""
    assert list(top_items(iter(lambda: 1 // 0, None), 0, None, False)) == []


def test_top_has_its_own_operation(task):
    """`sorted().limit(n)` on one partition."""
    node = rewrite(Limit(Sorted(SOURCE, abs), 2))

    assert isinstance(node, Top)
    assert list(operation(node)(iter([3, -1, 1, 2]), task)) == [-1, 1]


def test_partial_groups_come_in_one_round_while_there_is_room(roomy):
    """All groups of the partition at once, in first-seen order."""
    rounds = list(partial_groups("abca", grouping_by(str, to_list()), roomy))

    assert [list(groups.items()) for groups in rounds] == [[("a", ["a", "a"]), ("b", ["b"]), ("c", ["c"])]]


def test_partial_groups_past_the_bound_come_in_several_rounds(full):
    """Each round gives what was grouped so far; together they hold every item."""
    rounds = list(map(dict, partial_groups(range(10_000), grouping_by(lambda n: n % 3, counting()), full)))

    assert len(rounds) > 2
    assert [sum(groups.get(key, 0) for groups in rounds) for key in range(3)] == [3334, 3333, 3333]


def test_partial_groups_let_go_of_a_round_before_the_next(full):
    """Whoever asks for the next round is done with the one before: two would be twice the memory."""
    rounds = partial_groups(range(10_000), grouping_by(lambda n: n % 3, counting()), full)
    first = next(rounds)

    assert first
    assert next(rounds)
    assert not first
