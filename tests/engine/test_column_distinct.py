"""Distinct numbers and strings in columns: the first of equal ones, where they meet, and back in their places."""

from __future__ import annotations

import math
from itertools import chain

import pytest

from dstream.engine.tasks.distinct import (
    RouteBack,
    RouteFirsts,
    RouteForward,
    back_in_order,
    distinct_in_task,
    first_of_each,
    first_of_forwarded,
    one_of_each,
    read_forwarded,
    read_placed,
)
from dstream.engine.tasks.readers import read_batches
from dstream.engine.tasks.runtime import StageTask
from dstream.errors import UnstableKeyError
from dstream.failures import failure, naming
from dstream.keys import canonical, stable_hash
from dstream.operators.columns.distinct import in_places, own_firsts, with_firsts
from dstream.operators.columns.values import Ints, column_of, items_of, stacked
from dstream.operators.rows.batches import loads
from dstream.operators.rows.blocks import ColumnItems, given
from dstream.plan.steps import Step
from dstream.values.bad_records import EncodedLines


@pytest.fixture(autouse=True)
def fixed_hashes(monkeypatch):
    """Workers run with a fixed hash seed."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")


def columns(*blocks):
    """Return items that stand in columns, but for iterators."""
    return ColumnItems(iter([column_of(block) if isinstance(block, list) else block for block in blocks]))


@pytest.mark.parametrize(
    ("items", "firsts"),
    [
        ([3, -1, 3, -(2**63), 2**61 - 2, -1], [3, -1, -(2**63), 2**61 - 2]),
        ([0.5, -0.0, math.nan, 0.0, -math.nan, 1e300], [0.5, -0.0, math.nan, 1e300]),
        ([True, False, True], [True, False]),
        (["b", "", "\u00e9", "b", "e\u0301", "a\0", "a", ""], ["b", "", "\u00e9", "e\u0301", "a\0", "a"]),
    ],
)
def test_first_ones_go_where_equal_keys_go(task, step, items, firsts):
    """Of 0.0 and -0.0 the first one stays, and of NaN; their targets are those of any other items that equal them."""
    rows = list(RouteFirsts(5, step, True)(columns(items), task))
    sent = {row.target: loads(row.payload).items() for row in rows}

    expected: dict[int, list[object]] = {}
    for item in firsts:
        expected.setdefault(stable_hash(canonical(item)) % 5, []).append(item)
    assert repr(sorted(sent.items())) == repr(sorted(expected.items()))


def test_ordered_items_go_back_to_their_places(step):
    """Whatever stands between columns: ints that are items, and others."""
    parts = [columns([5, 1], iter([2, "a"]), [1, 9]), columns([9, 4], [2])]
    rows = [
        row for number, items in enumerate(parts) for row in RouteFirsts(1, step, True)(items, StageTask(number, 1))
    ]
    firsts = first_of_each(step, read_placed(iter(rows)), StageTask(0, 1))
    back = RouteBack(2, 1)(firsts, StageTask(0, 1))

    assert list(back_in_order(read_batches(back), StageTask(0, 1))) == [5, 1, 2, "a", 9, 4]


def test_ordered_numbers_stay_columns(step):
    """From the source to the end no item becomes an object."""
    rows = [
        row for number in (0, 1) for row in RouteFirsts(1, step, True)(columns([7, number, 7]), StageTask(number, 1))
    ]
    firsts = first_of_each(step, read_placed(iter(rows)), StageTask(0, 1))
    found = back_in_order(read_batches(RouteBack(2, 2)(firsts, StageTask(0, 1))), StageTask(0, 1))
    (block,) = found.blocks()

    assert block.values.tolist() == [7, 0, 1]


def test_strings_stay_columns_and_long_ones_are_sent_in_parts(step, monkeypatch):
    """Each part has the places of its own rows."""
    monkeypatch.setattr("dstream.operators.columns.distinct._ROWS_OF_PART", 2)
    items = [columns(["a", "b", "a", "c", "d"]), columns(["e", "c"])]
    rows = [row for number, each in enumerate(items) for row in RouteFirsts(1, step, True)(each, StageTask(number, 1))]
    firsts = first_of_each(step, read_placed(iter(rows)), StageTask(0, 1))
    back = list(RouteBack(2, 1)(firsts, StageTask(0, 1)))
    (block,) = back_in_order(read_batches(iter(back)), StageTask(0, 1)).blocks()

    assert ([row.size for row in rows], [row.size for row in back]) == ([2, 2, 2], [2, 2, 1])
    assert block.tolist() == ["a", "b", "c", "d", "e"]


def test_few_bytes_of_strings_are_looked_at_together(step, task, monkeypatch):
    """A column of many would not fit into memory beside the others."""
    monkeypatch.setattr("dstream.engine.tasks.distinct._MOST_BYTES", 1)
    rows = list(RouteFirsts(1, step, True)(columns(["a"], ["a", "b"]), task))

    assert [loads(row.payload).places.tolist() for row in rows] == [[0], [1, 2]]


def test_numbers_of_several_types_are_one_item(task, step):
    """An int, a float and a bool that are equal."""
    rows = [row for items in ([1, 2], [1.0, 3.5], [True]) for row in RouteFirsts(1, step, False)(columns(items), task)]

    assert sorted(one_of_each(step, read_batches(iter(rows)), task)) == [1, 2, 3.5]


def test_values_come_in_the_order_of_sources_then_places() -> None:
    """A later source does not come first because its place is a smaller number."""
    found = in_places([column_of([((1, 2), 20), ((0, 5), 10)]), column_of([((0, 7), 11)])])

    assert found is not None
    assert items_of(found) == [10, 11, 20]


def test_stacked_ints_know_the_ends_of_all() -> None:
    """Not those of the first alone: arithmetic that follows trusts them."""
    found = stacked([column_of([1]), column_of([5, -3])])

    assert isinstance(found, Ints)
    assert (found.least, found.greatest) == (-3, 5)


def test_first_texts_know_whether_all_are_ascii() -> None:
    """Not those of the first column alone: methods of texts that follow work on bytes if they are."""
    for before, others in ((None, [["a"], ["\u00e9"]]), (column_of(["a"]), [["\u00e9"]])):
        found = with_firsts(before, [column_of(each) for each in others])

        assert found is not None
        assert [column.is_ascii for column in found] == [False, False]
    assert own_firsts([column_of(["a"])], [column_of(["\u00e9"])]).is_ascii is False


def test_lines_of_files_are_columns(step, task):
    """Unless they are few: NumPy takes longer to load than these."""
    lines = [EncodedLines(b"b\n\na\n", is_ascii=True), EncodedLines(b"a\nc\n", is_ascii=True)]
    few = EncodedLines(b"d\nd\n", is_ascii=True, are_few=True)
    rows = list(RouteFirsts(1, step, True)(ColumnItems(iter([*lines, few])), task))

    assert [type(loads(row.payload)).__name__ for row in rows] == ["FirstRows", "list"]
    assert [loads(row.payload) for row in rows][1] == [(5, "d")]


def forwarded(step, parts, key=None, memory=2**40):
    """Give the items of each target that the first items of partitions are sent forward to."""
    rows = [
        row
        for number, items in enumerate(parts)
        for row in RouteForward(key, len(parts), step)(items, StageTask(number, memory))
    ]
    rows.sort(key=lambda row: (row.target, row.source, row.sequence))
    for target in range(len(parts)):
        here = read_forwarded(row for row in rows if row.target == target)
        yield first_of_forwarded(key, step, here, StageTask(target, memory))


@pytest.mark.parametrize("memory", [1, 2**40])
def test_each_partition_gives_what_none_before_has(step, memory):
    """In order; a partition without items gives none, and 1 is the same item as 1.0."""
    parts = [columns([5, 1, 5], iter([2, "a"])), columns(), columns([1.0, 3.5]), columns(["b", "a", "b"])]
    found = [list(items) for items in forwarded(step, parts, memory=memory)]

    assert found == [[5, 1, 2, "a"], [], [3.5], ["b"]]


def test_strings_stay_columns_where_they_are_sent_forward(step, monkeypatch):
    """Also those that come in several parts, with rows that are in another one."""
    monkeypatch.setattr("dstream.operators.columns.distinct._ROWS_OF_PART", 1)
    monkeypatch.setattr("dstream.engine.tasks.distinct._MOST_ROWS", 1)
    parts = [columns(["a", "b", "a"], ["c", "a"]), columns(["c", "a", "d", "", "d"])]
    (first,), (second,) = [list(items.blocks()) for items in forwarded(step, parts)]

    assert (first.tolist(), second.tolist()) == (["a", "b", "c"], ["d", ""])


def test_a_partition_knows_its_rows_by_their_target(step):
    """Where several targets share a partition, each gives its own items."""
    rows = [row for number in (0, 1) for row in RouteForward(None, 2, step)(columns([number, 7]), StageTask(number, 1))]
    rows.sort(key=lambda row: (row.target, row.source))

    assert list(first_of_forwarded(None, step, read_forwarded(iter(rows)), StageTask(0, 2**40))) == [0, 7, 1]


def test_the_first_items_of_each_key_are_sent_forward(step):
    """The key function decides, in a partition and behind it."""
    found = [list(items) for items in forwarded(step, [iter(["to", "be", "sea"]), iter(["or", "seas"])], len)]

    assert found == [["to", "sea"], ["seas"]]


@pytest.mark.parametrize("memory", [1, 2**40])
def test_one_task_gives_the_first_of_equal_items_in_order(step, memory):
    """Of columns of one type together, of others, and of items behind them one by one."""
    items = columns([5, 1, 5], [1, 2], [2, 9, 5, 7], [1.0, 3.5], iter(["a", 2, "a"]), ["a", "b"])

    assert list(distinct_in_task(step, items, StageTask(0, memory))) == [5, 1, 2, 9, 7, 3.5, "a", "b"]


def test_one_task_looks_at_more_columns_each_time(step, monkeypatch):
    """Twice as many rows as were different by then, or more."""
    seen = []
    monkeypatch.setattr(
        "dstream.engine.tasks.distinct._with_firsts",
        lambda known, some: seen.append([len(each.values) for each in some]) or with_firsts(known, some),
    )
    items = columns(["a", "b", "c"], ["a", "a", "a"], ["d", "a", "a"], ["e"])

    assert list(distinct_in_task(step, items, StageTask(0, 2**40))) == ["a", "b", "c", "d", "e"]
    assert seen == [[3], [3, 3], [1]]


def test_items_before_a_failure_come_before_it(step):
    """A reader that stops early never gets there."""

    def blocks():
        yield column_of(["a", "b"])
        yield column_of(["c"])
        raise ValueError("a bad line")

    found = distinct_in_task(step, ColumnItems(blocks()), StageTask(0, 2**40))

    assert [next(found), next(found), next(found)] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="a bad line"):
        next(found)


def test_one_task_reads_no_column_that_is_not_wanted(step):
    """The first block is enough for a limit."""
    read = []
    blocks = (read.append(number) or column_of([number]) for number in range(9))

    assert next(distinct_in_task(step, ColumnItems(blocks), StageTask(0, 2**40))) == 0
    assert read == [0]


@pytest.mark.parametrize("blocks", [([1, 2], iter([3, [4]])), (iter([1, [4]]),), ([1, 2], ["a"], iter([[4]]))])
def test_a_failure_behind_columns_names_the_step(step, blocks):
    """Though whoever takes items out of blocks is another step."""
    found = distinct_in_task(step, columns(*blocks), StageTask(0, 2**40))
    with pytest.raises(UnstableKeyError) as error, naming(Step(".count()", None, 3, 3)):
        list(chain.from_iterable(map(given, found.blocks())))

    told = failure(error.value)
    assert told is not None
    assert (told.step, told.item) == (step, [4])


@pytest.mark.parametrize("memory", [0, 2**40])
def test_a_block_behind_columns_that_do_not_fit_together_comes_behind_them(step, memory):
    """As does a failure there."""

    def blocks(last):
        yield column_of([1, 2, 3])
        yield column_of(["a"])
        yield last() if callable(last) else last

    def fail():
        raise ValueError("a bad line")

    assert list(distinct_in_task(step, ColumnItems(blocks(iter([(4,), 1]))), StageTask(0, memory))) == [
        1,
        2,
        3,
        "a",
        (4,),
    ]
    with pytest.raises(ValueError, match="a bad line"):
        list(distinct_in_task(step, ColumnItems(blocks(fail)), StageTask(0, memory)))
