"""Groups of rows by keys of any columns: the keys, their order, and what containers get, are those of a dictionary."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest

from collectors import (
    averaging,
    bottom_n,
    counting,
    frequencies,
    grouping_by,
    max_by,
    min_by,
    summarizing,
    summing,
    top_n,
)
from dstream.base.memory import Bound
from dstream.engine.compiler.evaluation import collector_read
from dstream.errors import EngineError
from dstream.operators.columns import group_by
from dstream.operators.columns.collectors import first_of_groups, group_tables
from dstream.operators.columns.group_by import GroupedRows, RowGroups, groups_of_rows
from dstream.operators.columns.values import ConstantColumn, NotColumnar, column_of, shape_of
from dstream.operators.rows import group_tables as column_ends
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected, groups_of_table

_NAN = math.nan


def _shown(result: dict[Any, Any]) -> list[str]:
    """Return keys and values so that types, signs and NaN are told apart."""
    return [repr(each) for each in result.items()]


def _both(collector: Any, *parts: list[Any]) -> tuple[list[str], list[str]]:
    """Return what a collector makes of columns, and of items."""
    read = collector_read(collector, is_verified=False)[0]
    assert read.in_columns is not None
    blocks = ColumnItems(iter([column_of(part) for part in parts]))
    return _shown(read.finisher(collected(read, blocks))), _shown(
        collector.collect([x for part in parts for x in part])
    )


def _tables(collector: Any, *parts: Any) -> list[Any]:
    read = collector_read(collector, is_verified=False)[0]
    return list(group_tables(read, read.in_columns, iter([column_of(part) for part in parts]), Bound()))


_KEYS = [
    lambda x: x[1] / 2,
    lambda x: x[1] > 4,
    lambda x: (x[1], x[0] > 3),
    lambda x: (x[3], x[1] % 2, "one"),
    lambda x: "all",
    lambda x: ((x[1], 0.0), x[3]),
]
_DOWNSTREAMS = [counting(), summing(lambda x: x[1]), averaging(lambda x: x[2])]


@pytest.mark.parametrize("weight", [1, 2**18])
@pytest.mark.parametrize("downstream", _DOWNSTREAMS)
@pytest.mark.parametrize("key", _KEYS)
def test_keys_of_any_columns_make_groups(monkeypatch: pytest.MonkeyPatch, key, downstream, weight: int) -> None:
    """Floats, bools, texts, tuples of them, and one key for all; blocks one by one, and all together."""
    monkeypatch.setattr(group_by, "_MOST_WEIGHT", weight)
    monkeypatch.setattr(group_by, "_FEWEST_ROWS", 1)
    random = Random(5)
    items = [(n, random.randrange(8), random.choice((0.1, 2.5, -1e300)), random.choice("äbc")) for n in range(200)]
    collector: Any = grouping_by(key, downstream)

    found, expected = _both(collector, items[:50], items[50:])

    assert found == expected
    tables = _tables(collector, items[:50], items[50:])
    assert all(isinstance(each, RowGroups) for each in tables)
    assert len(tables) == (2 if weight == 1 else 1)


@pytest.mark.parametrize("downstream", [counting(), summing(lambda x: 1)])
@pytest.mark.parametrize("parts", list(permutations(([3, 1], ["b", "a"], [0.5, 1.0], iter))))
def test_keys_of_several_types_come_in_the_order_of_their_blocks(parts: tuple[Any, ...], downstream: Any) -> None:
    """Items held of a block are given before the groups of another kind, and before items one by one."""
    collector: Any = grouping_by(lambda x: x, downstream)
    read = collector_read(collector, is_verified=False)[0]
    beside = [b"c", "b", 3]
    blocks = ColumnItems(iter([iter(beside) if each is iter else column_of(each) for each in parts]))

    found = _shown(read.finisher(collected(read, blocks)))

    assert found == _shown(collector.collect([x for each in parts for x in (beside if each is iter else each)]))


@pytest.mark.parametrize("weight", [1, 2**18])
def test_floats_that_are_one_key_in_a_dictionary_are_one_group(monkeypatch: pytest.MonkeyPatch, weight: int) -> None:
    """0.0 and -0.0, and all NaN; the first form stays, also inside tuples, and across blocks."""
    monkeypatch.setattr(group_by, "_MOST_WEIGHT", weight)
    other = float("nan")
    items = [(-0.0, 1), (0.0, 2), (_NAN, 3), (1.0, 4), (other, 5), (0.0, 6), (-other, 7)] * 3
    collectors: list[Any] = [grouping_by(lambda x: x[0], summing(lambda x: x[1]))]
    collectors.append(grouping_by(lambda x: (x[0], 1), counting()))

    for collector in collectors:
        found, expected = _both(collector, items, items)

        assert found == expected
        assert len(found) == 3
        assert "-0.0" in found[0]


@pytest.mark.parametrize(
    "values", [[0.0, -0.0], [-0.0, 0.0], [_NAN, 1.0, math.inf], [math.inf, -math.inf], [1e308] * 2]
)
def test_statistics_of_floats_are_those_of_the_items_in_order(values: list[float]) -> None:
    """Of 0.0 and -0.0 the first one is the least; a NaN makes all of them NaN; sums are rounded once."""
    items = [(number % 2, value) for number, value in enumerate(value for value in values for _ in range(4))] * 3
    collector: Any = grouping_by(lambda x: x[0], summarizing(lambda x: x[1]))

    found, expected = _both(collector, items[:9], items[9:])

    assert found == expected


@pytest.mark.parametrize("keys", [(0.0, -0.0), (-0.0, 0.0), (_NAN, -_NAN), (-_NAN, _NAN)])
def test_numbers_of_keys_that_are_one_stay_in_order(keys: tuple[float, float]) -> None:
    """Of -0.0 and 0.0 the first one of both keys is the least."""
    one, other = keys
    items = [(one, 5.0), (other, 0.0), (one, -0.0)] * 3

    found, expected = _both(grouping_by(lambda x: x[0], summarizing(lambda x: x[1])), items)

    assert found == expected
    assert "min=0.0" in found[0]


def test_statistics_of_ints_are_exact() -> None:
    """Count, sum, least and greatest of each group; near the ends of 64 bits item by item."""
    random = Random(7)
    items = [(random.randrange(3), random.randrange(-(2**50), 2**50)) for _ in range(300)]
    collector: Any = grouping_by(lambda x: x[0], summarizing(lambda x: x[1]))

    found, expected = _both(collector, items[:100], items[100:])
    large = [(1, 2**63 - 1), (1, 2**62), (1, -(2**63)), (1, 5)] * 3
    one, other = _both(collector, large)

    assert found == expected
    assert one == other


def test_sums_that_fit_alone_and_not_together_are_added_apart() -> None:
    """Each block fits into 64 bits."""
    items = [((1, 2), 2**59)] * 7
    collector: Any = grouping_by(lambda x: x[0], summing(lambda x: x[1]))

    found, expected = _both(collector, items, items, items)

    assert found == expected
    assert [each.rows for each in _tables(collector, items, items, items)] == [14, 7]


@pytest.mark.parametrize("key", [1, (1, 2)])
@pytest.mark.parametrize("largest", [2**62, 2**63 - 1, -(2**63)])
def test_sums_of_a_block_that_need_more_than_64_bits_are_exact(key: Any, largest: int) -> None:
    """Its items are taken one by one."""
    found, expected = _both(grouping_by(lambda x: x[0], summing(lambda x: x[1])), [(key, largest)] * 4)

    assert found == expected


def test_sums_of_blocks_by_ints_that_fit_alone_are_added_apart() -> None:
    """Each block fits into 64 bits, all together do not."""
    parts = [[(1, 2**60)] * 7] * 3

    found, expected = _both(grouping_by(lambda x: x[0], summing(lambda x: x[1])), *parts)

    assert found == expected


def test_keys_stay_in_the_order_in_which_they_were_seen() -> None:
    """Blocks by ints, by floats, and by what has no shape, whichever comes first."""
    kinds: list[list[Any]] = [
        [1, 2.5, b"a"],
        [2.5, 1, b"a"],
        [b"a", 2.5, 1],
        [1, b"a", 2.5],
        [2.5, b"a", 1],
        [7, 2.5, False],
    ]
    for keys in kinds:
        parts = [[(key, number) for number in range(4)] for key in keys]
        found, expected = _both(grouping_by(lambda x: x[0], summing(lambda x: x[1])), *parts)

        assert found == expected


@pytest.mark.parametrize("keys", [range(9), "abcdefghi"])
def test_many_groups_become_objects_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch, keys: Any) -> None:
    """In order, and all of them."""
    monkeypatch.setattr(column_ends, "_MOST_GROUPS", 4)
    read: Any = collector_read(grouping_by(lambda x: x[0], counting()), is_verified=False)[0]
    (table,) = _tables(read, [(key, 1) for key in keys])

    assert [len(each) for each in groups_of_table(read, table)] == [4, 4, 1]
    assert [key for each in groups_of_table(read, table) for key in each] == list(keys)


@pytest.mark.parametrize("keys", [[None], [(1, None)], [2**70, 1], [b"a"], [(b"a", 1)]])
def test_other_keys_have_no_shape(keys: list[Any]) -> None:
    """Their items are taken one by one."""
    with pytest.raises(NotColumnar):
        shape_of(column_of([(each, 1) for each in keys]))


@pytest.mark.parametrize("value", [None, b"a", 1 + 0j, []])
def test_one_other_value_for_all_has_no_shape(value: Any) -> None:
    """A dictionary may refuse it."""
    with pytest.raises(NotColumnar):
        shape_of(ConstantColumn(value, 3))


def test_one_value_for_all_has_a_shape_of_its_own() -> None:
    """Blocks that have other values, types or signs are grouped apart."""
    values: list[Any] = ["a", "b", 1, 1.0, True, 0.0, -0.0]

    assert len({shape_of(ConstantColumn(each, 3)) for each in values}) == len(values)


def test_blocks_with_keys_of_several_types_are_grouped_apart() -> None:
    """The first form of keys that are equal stays, and so does the order in which keys were first seen."""
    parts = [[(1.0, 1)] * 6, [(True, 2)] * 6, [(1, 3), (0, 4)] * 6, [("one", 5)] * 6]
    collector: Any = grouping_by(lambda x: (x[0], 9), summing(lambda x: x[1]))

    found, expected = _both(collector, *parts)

    assert found == expected
    assert found[0].startswith("((1.0, 9)")


def test_many_keys_go_on_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly a key comes twice, the blocks behind are not grouped in columns."""
    monkeypatch.setattr(group_by, "_MOST_WEIGHT", 1)
    parts = [[(number + start, 0.5) for number in range(10)] for start in (0, 10, 20, 30)]
    collector: Any = grouping_by(lambda x: (x[0], 1), summing(lambda x: x[1]))

    found, expected = _both(collector, *parts)
    tables = _tables(collector, *parts)

    assert found == expected
    assert [isinstance(each, RowGroups) for each in tables] == [True, True, False]


def test_tuples_of_many_different_values_are_told_apart() -> None:
    """The numbers of their members, multiplied, need more than 64 bits."""
    items = [(number,) * 9 for number in range(256)] + [(number, *(0,) * 8) for number in range(1, 256)]
    groups = GroupedRows.of(column_of(items * 2))

    assert len(groups.firsts) == len(set(items)) == 511
    assert groups.counts.tolist() == [2] * 511


def test_more_groups_than_16_bits_count() -> None:
    """Their numbers need more."""
    items = [(number % 70_000, 1) for number in range(150_000)]
    numbers: Any = column_of(range(150_000))
    groups = groups_of_rows(summing().on_columns(), column_of(items), (numbers,))  # type: ignore[arg-type]
    sums = Counter[Any]()
    for number, item in enumerate(items):
        sums[item] += number

    assert [(key, total) for key, total in zip(groups.keys, groups.found.columns[1], strict=True)] == list(sums.items())


def test_frequencies_of_tuples_are_counted_in_columns() -> None:
    """As those of ints and texts are."""
    items = [(n % 3, n % 2 == 0) for n in range(60)]

    found, expected = _both(frequencies(), items)

    assert found == expected


_KEYS_OF_RANKED = [lambda x: x[0], lambda x: (x[0] > 1, x[2]), lambda x: x[1], lambda x: x[2], lambda x: x[4]]
_RANKINGS = [min_by, max_by, lambda key: top_n(2, key), lambda key: bottom_n(3, key)]


@pytest.mark.parametrize("ranking", _RANKINGS)
@pytest.mark.parametrize("key", _KEYS_OF_RANKED)
def test_the_first_of_each_group_are_those_of_its_items(ranking, key) -> None:
    """NaN last, 0.0 beside -0.0, the first of equal ones; keys that are ints, floats, texts, tuples and bytes."""
    random = Random(11)
    ranks = [0.0, -0.0, _NAN, 1.5, -1.5, math.inf]
    parts: list[Any] = [range(4), ranks, "ab", range(9), [b"a", b"b"]]
    items = [tuple(map(random.choice, parts)) for _ in range(300)]
    for rank in (lambda x: x[1], lambda x: x[3] % 7):
        found, expected = _both(grouping_by(key, ranking(rank)), items[:40], items[40:])
        assert found == expected


def test_only_items_that_may_be_first_are_made() -> None:
    """Of each group its first row, which has its key, and the one with the least rank."""
    read: Any = collector_read(grouping_by(lambda x: x[0], min_by(lambda x: x[1])), is_verified=False)[0]
    items = [(-0.0, 5), (1.0, 2), (0.0, 3), (0.0, 3), (1.0, 2), (0.0, 4)]

    assert list(first_of_groups(read, read.in_columns, iter([column_of(items)]))) == [items[0], items[1], items[2]]


_VERIFIED = [min_by(lambda x: x[1]), averaging(lambda x: x[1] / 4)]


@pytest.mark.parametrize("downstream", _VERIFIED)
def test_verify_finds_groups_that_differ(downstream) -> None:
    """What columns make of a block is compared with what the functions make of it."""
    collector: Any = grouping_by(lambda x: x[0], downstream)
    read: Any = collector_read(collector, is_verified=True)[0]
    other: Any = collector_read(grouping_by(lambda x: x[0], max_by(lambda x: x[1])), is_verified=True)[0]
    if downstream.name.startswith("averaging"):
        other = collector_read(grouping_by(lambda x: x[0], averaging(lambda x: x[1] / 8)), is_verified=True)[0]
    wrong = replace(read, in_columns=replace(other.in_columns, same_as=read.accumulate_all))
    items = [(n % 2, -n) for n in range(40)]

    assert collected(read, ColumnItems(iter([column_of(items)]))) == collected(collector, iter(items))
    with pytest.raises(EngineError, match="columns give"):
        collected(wrong, ColumnItems(iter([column_of(items)])))
