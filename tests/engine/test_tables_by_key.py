"""Tables of groups that have arrived are put together in memory up to the bound, and by way of disk beyond it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dstream.operators.rows.blocks as blocks
import dstream.operators.rows.group_tables as module
from collectors import counting, grouping_by, summing
from dstream.base.memory import Bound
from dstream.engine.compiler.evaluation import collector_read
from dstream.engine.tasks.readers import combine_groups
from dstream.engine.tasks.runtime import StageTask
from dstream.keys import stable_hash
from dstream.operators.columns.groups import (
    StringGroupTable,
    grouped,
    groups_of_texts,
    merged_text_tables,
    parts_by_bucket,
    with_texts_together,
)
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import Ints, column_of
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import Table, collected, tables_by_key
from dstream.plan.steps import Step

_STEP = Step("collect", None, 1, 1)
_COUNTED = collector_read(counting(), is_verified=False)[0]


class _Bounded(Bound):
    """A bound that leaves room for so many bytes that come."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.spills = 0

    def exceeded(self, coming: int = 0) -> bool:
        return coming > self.room

    def spilled(self) -> None:
        self.spills += 1


def _texts(keys: list[str]) -> Strings:
    return Strings(pa.array(keys, pa.string()), is_ascii=True)


def _table(first: int, *keys: str) -> StringGroupTable:
    return groups_of_texts(_texts(list(keys))).ranked(first)


def _ints(first: int, *keys: int) -> Table:
    column = column_of(list(keys))
    assert isinstance(column, Ints)
    return grouped(column).ranked(first)


def _words(tables: int, width: int) -> list[list[str]]:
    return [[f"{n % 97:0{width}d}" for n in range(start, start + 40)] for start in range(0, 40 * tables, 40)]


@pytest.mark.parametrize(("room", "most"), [(10_000, 2**30), (2**40, 1_500), (300, 2**30)])
def test_tables_beyond_the_bound_meet_by_their_keys(room: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a key is in one sequence, in the order in which it came; deep enough, and with many bytes of keys, too."""
    monkeypatch.setattr(module, "_MOST_BYTES", most)
    words = _words(30, 20)
    bound = _Bounded(room)

    parts, rest = tables_by_key(iter([_table(100 * n, *each) for n, each in enumerate(words)]), bound)
    merged = [merged_text_tables(tables) for tables in parts]

    assert list(rest) == []
    assert bound.spills > 1
    assert len(merged) > 1
    lines = list(chain.from_iterable(table.lines() for table in merged))
    assert len(lines) == 97
    assert dict(lines) == Counter(chain.from_iterable(words))
    ranks = {key: rank for table in merged for key, rank in zip(table.keys.tolist(), table.ranks.tolist(), strict=True)}
    assert ranks[words[0][3]] == 3


def test_ints_beyond_the_bound_meet_by_their_keys() -> None:
    """As texts do."""
    tables = [_ints(0, *range(-50, 50)), _ints(100, *range(50)), _ints(200, 2**62, -(2**63))]

    parts, rest = tables_by_key(iter(tables), _Bounded(0))

    found = Counter[int]()
    seen: set[int] = set()
    for part in parts:
        keys = {key for table in part for key, _ in table.lines()}
        assert seen.isdisjoint(keys)
        seen |= keys
        for table in part:
            found.update(dict(table.lines()))
    assert list(rest) == []
    assert found == Counter([*range(-50, 50), *range(50), 2**62, -(2**63)])


def test_lists_behind_tables_on_disk_leave_all_batches() -> None:
    """Each key as often as it came, in its order, tables first."""
    words = _words(6, 20)
    lists = [[words[0][0]], [9_999], [1]]
    batches: list[Any] = [*(_table(100 * n, *each) for n, each in enumerate(words)), lists]

    parts, rest = tables_by_key(iter(batches), _Bounded(6_000))
    *tables, last = rest

    assert list(parts) == []
    assert last is lists
    counts = Counter[str]()
    for table in tables:
        counts.update(dict(table.lines()))
    assert counts == Counter(chain.from_iterable(words))
    ranks = [
        rank
        for table in tables
        for key, rank in zip(table.keys.tolist(), table.ranks.tolist(), strict=True)
        if key == words[0][0]
    ]
    assert ranks == sorted(ranks)


def test_buckets_of_each_level_take_other_groups() -> None:
    """Groups that were in one bucket are spread over many at the next level."""
    table = _ints(0, *range(5_000))
    first = next(part for _, part in parts_by_bucket(table, 16, 0))

    assert [bucket for bucket, _ in parts_by_bucket(first, 16, 1)] == list(range(16))
    assert [bucket for bucket, _ in parts_by_bucket(table, 16, 3)] == list(range(16))


def test_long_texts_are_grouped_within_the_bound() -> None:
    """Of 50 MB of keys a task holds no third at a time, where its worker may have less than it occupies anyway."""
    most = 0

    def arriving() -> Iterator[Table]:
        nonlocal most
        for start in range(0, 24_000, 2_000):
            most = max(most, pa.total_allocated_bytes() - before)
            yield _table(start, *(f"{number:02048d}" for number in range(start, start + 2_000)))

    before = pa.total_allocated_bytes()
    found = sum(1 for _ in combine_groups(_COUNTED, _STEP, arriving(), StageTask(0, 1)))

    assert found == 24_000
    assert most < 16 * 2**20


def test_blocks_of_a_task_are_put_together_within_the_bound() -> None:
    """Where there is room for the groups of two blocks, these are; the others go on for themselves."""
    tables = [_table(0, "a", "b"), _table(0, "a", "c"), _table(0, "a", "d")]
    bound = _Bounded(tables[0].cost() + tables[1].cost() - 1)

    found = [list(table.lines()) for table in with_texts_together(iter(tables), bound)]

    assert found == [[("a", 2), ("b", 1), ("c", 1)], [("a", 1), ("d", 1)]]
    assert bound.spills == 1


def test_few_megabytes_of_keys_become_objects_at_a_time() -> None:
    """However many groups may."""
    table = _table(0, *(f"{number:0100000d}" for number in range(100)))

    sizes = [len(part) for part in table.parts(1_000)]

    assert sizes == [41, 41, 18]
    assert table.hashes().tolist() == [stable_hash(key) for key in table.keys.tolist()]
    assert table.hashes().dtype == np.int64


@pytest.mark.parametrize("value", [2, 1.5, 0.1, True, -0.0])
def test_a_number_that_all_strings_have_is_added_up_as_in_python(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts tell the sums of an int alone: 1.5 counted as often as there are items is no sum of ints."""
    monkeypatch.setattr(blocks, "_FEWEST", 1)
    summed = grouping_by(lambda word: word + "!", summing(lambda _: value))
    read = collector_read(summed, is_verified=False)[0]
    words = ["a", "b", "a", "é"] * 5

    found = read.finisher(collected(read, ColumnItems(iter([column_of(words)]))))
    assert read.in_columns is not None
    assert repr(found) == repr(summed.finisher(summed.accumulated(summed.supplier(), words)))
