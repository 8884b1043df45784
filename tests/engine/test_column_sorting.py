"""Sorted runs whose keys are numbers: ranks, batches, cuts and merges."""

from __future__ import annotations

import math
from operator import itemgetter

import numpy as np
import pytest

import dstream.operators.columns.ranks as column_sorting
import dstream.operators.columns.top as column_top
from dstream.base.memory import Bound
from dstream.base.pickling import dumps
from dstream.engine.tasks.readers import read_batches
from dstream.engine.tasks.rows import ITEMS, SAMPLE
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sorting import RouteByRange, SortAlone, SortRuns, merge_ranges
from dstream.errors import EngineError
from dstream.expressions import Argument, Constant, Indexed
from dstream.operators.columns.entries import Entries, JoinedRows, PassingRows, RowValues
from dstream.operators.columns.ranks import SortedBatch, ranks_of_items, run_in_order
from dstream.operators.columns.values import Ints, Strings, Tuples, column_of, items_of
from dstream.operators.rows.batches import loads
from dstream.operators.rows.blocks import ColumnItems, LazyRows, blocks_behind, given
from dstream.operators.rows.operations import operation
from dstream.plan.operations.sort_limit import Limit, Sorted, Top
from dstream.plan.steps import KeyInColumns

ITSELF = KeyInColumns(Argument(0), False)
BY_PYTHON = KeyInColumns(None, False)
INT64 = [-(2**63), -1, 0, 1, 2**63 - 1]
FLOATS = [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.5, math.inf, math.nan]


@pytest.mark.parametrize("keys", [INT64, FLOATS, [False, True]])
def test_ranks_have_the_order_of_keys(keys):
    """Also at the ends of 64 bits, around zero, and for NaN, which comes last."""
    assert (ranks_of_items(keys, None, False).values[1:] > ranks_of_items(keys, None, False).values[:-1]).all()
    assert (ranks_of_items(keys, None, True).values[1:] < ranks_of_items(keys, None, True).values[:-1]).all()


def test_equal_keys_have_one_rank():
    """0.0 and -0.0, and every NaN, whatever its sign and its bits."""
    zeros = ranks_of_items([0.0, -0.0], None, False).values.tolist()
    nans = ranks_of_items([math.nan, -math.nan, math.inf - math.inf], None, True).values.tolist()

    assert (len(set(zeros)), len(set(nans))) == (1, 1)


@pytest.mark.parametrize("keys", [[1, 2.0], [2**63], ["a"], [1, None], [True, 1]])
def test_other_keys_have_no_ranks(keys):
    """Numbers of several types, ints that need more than 64 bits, and what is no number."""
    assert ranks_of_items(keys, None, False) is None


def test_keys_that_are_no_numbers_make_no_column(monkeypatch):
    """The first one tells."""
    monkeypatch.setattr(column_sorting, "column_of", lambda keys: pytest.fail("a column of texts"))

    assert ranks_of_items(["a", "b"], None, False) is None


def batches_of(rows):
    """Return what the batches hold."""
    return [loads(row.payload) for row in rows if row.channel == ITEMS]


def test_runs_carry_the_ranks_of_their_items(task, step):
    """The items of a list stay objects, in the order of their keys; the sample is as without ranks."""
    items = [(number * 7 % 100, "x") for number in range(100)]
    rows = list(SortRuns(itemgetter(0), False, step, BY_PYTHON)(iter(items), task))
    batches = batches_of(rows)
    (sample,) = [row for row in rows if row.channel == SAMPLE]

    assert {type(batch) for batch in batches} == {SortedBatch}
    assert [item for batch in batches for item in batch.items()] == sorted(items)
    assert (sample.size, loads(sample.payload)[:2]) == (100, [(3, "x"), (9, "x")])


def test_columns_are_sorted_as_columns(task, step):
    """No item becomes an object where the key function is an expression."""
    (batch,) = batches_of(SortRuns(None, True, step, ITSELF)(ColumnItems(iter([column_of([3, 1, 2])])), task))

    assert isinstance(batch.block(), Ints)
    assert batch.items() == [3, 2, 1]


def test_a_batch_that_no_border_divides_is_sent_as_it_is(task, step):
    """Its items are not looked at."""
    rows = [row for row in SortRuns(None, False, step, ITSELF)(iter(range(10)), task) if row.channel == ITEMS]
    (batch,) = batches_of(rows)
    route = RouteByRange(None, False, [column_sorting.dumps([20, 30, 40])], 3, step, ITSELF)
    broken = SortedBatch(batch.ranks, b"no pickle", batch.is_column)
    (sent,) = route(iter([broken]), task)

    assert (sent.target, sent.size, loads(sent.payload).data) == (0, 10, b"no pickle")


@pytest.mark.parametrize("reverse", [False, True])
def test_ranks_and_items_are_cut_at_the_same_places(task, step, reverse):
    """Behind equal keys: those of one run in columns and of one in items are in one range, in order."""
    items = sorted([1, 2, 2, 2, 3, 3, 4], reverse=reverse)
    route = RouteByRange(None, reverse, [column_sorting.dumps([1, 2, 3, 4])], 4, step, ITSELF)
    rows = [row for row in SortRuns(None, reverse, step, ITSELF)(iter(items), task) if row.channel == ITEMS]

    in_columns = [(row.target, row.size) for row in route(iter(batches_of(rows)), task)]

    assert in_columns == [(row.target, row.size) for row in route(iter([items]), task)]


@pytest.mark.parametrize("columns", [ITSELF, BY_PYTHON])
@pytest.mark.parametrize("last", [[2.5], [None], [2**64]])
def test_batches_of_several_kinds_are_merged_by_python(task, step, columns, last):
    """Ints of 64 bits that meet floats, longer ints or what cannot be compared: as if there were no ranks."""
    rows = []
    for items in ([3, 1, 2], last):
        rows += [row for row in SortRuns(None, False, step, columns)(iter(items), task) if row.channel == ITEMS]
    merged = merge_ranges(None, False, step, read_batches(iter(rows)), task)

    if last == [None]:
        with pytest.raises(TypeError, match="not supported between instances"):
            list(merged)
    else:
        assert list(merged) == sorted([1, 2, 3, *last])


def test_columns_of_many_runs_meet_as_columns(task, step, monkeypatch):
    """Also texts, and where the largest batches of all runs are more than a merge of lists may hold."""
    monkeypatch.setattr(column_sorting, "_MOST_HEADS", 0)
    blocks = iter([column_of([(2, "b"), (1, "c")]), column_of([(1, "é"), (0, "\n")])])
    by_number = KeyInColumns(Indexed(Argument(0), Constant(0)), False)
    rows = list(SortRuns(itemgetter(0), False, step, by_number)(ColumnItems(blocks), task))
    batches = read_batches(row for row in rows if row.channel == ITEMS)

    (merged,) = merge_ranges(itemgetter(0), False, step, batches, task).blocks()

    assert isinstance(merged, Tuples)
    assert items_of(merged) == [(0, "\n"), (1, "c"), (1, "é"), (2, "b")]
    assert not merged.members[1].is_ascii


def test_verify_compares_the_order(task, step, monkeypatch):
    """A wrong order is an error that names the step."""
    monkeypatch.setattr(column_sorting.np, "argsort", lambda values, kind: column_sorting.np.arange(len(values)))
    with pytest.raises(EngineError, match="columns give 3 where Python gives 1 for a run of 3 items"):
        list(SortRuns(None, False, step, KeyInColumns(Argument(0), True))(iter([3, 1, 2]), task))


def test_the_first_of_columns_are_those_of_a_stable_sort(task, step):
    """Block after block; of equal keys the items that came first."""
    top = Top(Limit(None, 0, step=step), 3, None, True, True, ITSELF, step=step)
    blocks = [column_of([1.0, -0.0, 2.0]), iter([2, 9]), column_of([2.0, math.nan, 2.0])]

    assert repr(list(operation(top)(ColumnItems(iter(blocks)), task))) == "[nan, 9, 2.0]"


@pytest.mark.parametrize(("before", "block", "first"), [(-1.5, [-2, 3], -2), (-2, [-2.5, 3.0], -2.5)])
def test_the_first_of_ints_and_floats_are_compared_by_python(task, step, before, block, first):
    """Their ranks do not have one order."""
    top = Top(Limit(None, 0, step=step), 1, None, False, True, ITSELF, step=step)

    assert list(operation(top)(ColumnItems(iter([iter([before]), column_of(block)])), task)) == [first]


def test_rows_with_the_key_of_the_last_that_is_held_are_not_made(task, step, monkeypatch):
    """They would come behind it."""
    made = []
    monkeypatch.setattr(column_top, "items_of", lambda column: made.append(items_of(column)) or made[-1])
    top = Top(Limit(None, 0, step=step), 2, None, False, True, ITSELF, step=step)
    blocks = [column_of([3, 1, 2]), column_of([2, 2, 1, 5])]

    assert list(operation(top)(ColumnItems(iter(blocks)), task)) == [1, 1]
    assert made == [[1, 2], [1]]


class _Rows(LazyRows):
    """Rows whose items are texts."""

    def __init__(self, items):
        self.size = len(items)
        self.items = items

    def portions(self):
        yield self.items

    def at(self, places):
        return _Rows([self.items[place] for place in places])


@pytest.mark.parametrize("form", [lambda *members: Tuples(members, 3), lambda *members: Entries(members)])
def test_rows_that_are_not_made_are_sorted_as_items(form):
    """Those of Parquet hang on an open file, and may be large: they travel some at a time."""
    rows = form(Ints(np.array([3, 1, 2]), 1, 3), _Rows(["c", "a", "b"]))
    columns = KeyInColumns(Indexed(Argument(0), Constant(0)), True)

    found, _ = run_in_order(rows, itemgetter(0), False, columns, "sorted")

    assert found == [(1, "a"), (2, "b"), (3, "c")]


def test_rows_of_a_join_are_sorted_as_items():
    """Their pickle has an item for each, so that they travel some at a time."""
    values = RowValues([column_of(["c", "a", "b"])])
    rows = JoinedRows(PassingRows(np.array([3, 1, 2]), column_of([7, 8, 9])), np.arange(3), values, np.arange(3), False)

    found, _ = run_in_order(rows, None, False, KeyInColumns(Indexed(Argument(0), Constant(0)), False), "sorted")

    assert found == [(1, (8, "a")), (2, (9, "b")), (3, (7, "c"))]
    assert type(found) is list


def test_entries_of_columns_are_sorted_as_columns():
    """Their parts travel without an object for each."""
    rows = Entries((Ints(np.array([3, 1, 2]), 1, 3), Ints(np.array([7, 8, 9]), 7, 9)))

    found, _ = run_in_order(rows, None, False, KeyInColumns(Indexed(Argument(0), Constant(0)), False), "sorted")

    assert isinstance(found, Entries)
    assert items_of(loads(dumps(found))) == [(1, 8), (2, 9), (3, 7)]


def sorted_alone(blocks, step):
    """Return what the only task gives for blocks."""
    alone = SortAlone(None, False, step, ITSELF, (), operation(Sorted(Limit(None, 0, step=step), step=step)))
    return alone(ColumnItems(iter(blocks)), StageTask(0, 2**40))


def test_the_only_task_sorts_columns_as_columns(step):
    """All blocks together, in parts that fit into the cache of a core."""
    found = list(sorted_alone([column_of([3, 1] * 30_000), column_of([2, 0])], step).blocks())

    assert [type(each) for each in found] == [Ints, Ints]
    assert [item for each in found for item in items_of(each)] == [0, *[1] * 30_000, 2, *[3] * 30_000]


@pytest.mark.parametrize("other", [iter([2, 0]), [2, 0], column_of(["b", "a"])])
def test_the_only_task_sorts_items_one_by_one_behind_a_block_of_other_items(step, other):
    """Items, lists, and columns of another type than those before."""
    numbers = column_of(["d", "c"]) if isinstance(other, Strings) else column_of([3, 1])
    found = list(sorted_alone([numbers, other, numbers], step))

    assert found == sorted(found)
    assert len(found) == 6


def test_the_only_task_spills_what_is_too_much(step, monkeypatch):
    """Python sorts it, with what stands on disk."""
    monkeypatch.setattr(column_sorting, "column_in_order", lambda *_: pytest.fail("too much for one column"))
    monkeypatch.setattr(Bound, "exceeded", lambda *_: True)

    assert list(sorted_alone([column_of([3, 1]), column_of([2, 0])], step)) == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 7, 8, 9, 2**70])
def test_the_first_items_of_blocks_are_left_out(count):
    """Of columns, lists, and iterators, of which nobody knows how many items they give."""
    blocks = iter([column_of([0, 1]), [2, 3], column_of([4.5]), iter([5, 6]), column_of([7])])

    assert [item for each in blocks_behind(blocks, count) for item in given(each)] == [0, 1, 2, 3, 4.5, 5, 6, 7][count:]
