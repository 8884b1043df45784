"""Several collectors over columns, those of what passes, and groups within groups."""

from __future__ import annotations

import json
import math
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from collectors import all_of, averaging, counting, filtering, grouping_by, mapping, summarizing, summing, teeing
from dstream.base.memory import Bound
from dstream.engine.compiler.evaluation import collector_read
from dstream.errors import ColumnsDifferError
from dstream.operators.columns import collectors
from dstream.operators.columns.collectors import containers_of_table
from dstream.operators.columns.group_results import finished_tables
from dstream.operators.columns.groups import grouped, groups_of_texts
from dstream.operators.columns.values import Tuples, column_of, items_of, rows_at
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected

_ITEMS = [(number % 7, number * 7 % 11 - 4, number / 8 - 2) for number in range(80)]

_COMPOUND = [
    all_of(counting(), averaging(lambda item: item[1])),
    all_of(summing(lambda item: item[2]), counting(), summarizing(lambda item: item[1])),
    all_of(all_of(counting(), summing(lambda item: item[1])), averaging(lambda item: item[2]), finish=lambda *of: of),
    teeing(summing(lambda item: item[1]), counting(), lambda total, count: total / count),
    filtering(lambda item: item[1] > 2, all_of(counting(), averaging(lambda item: 12 // (item[1] - 2)))),
    filtering(lambda item: item[2] < 0, summing(lambda item: item[2])),
    mapping(lambda item: item[1] * 2, filtering(lambda n: n > 0, summarizing())),
    grouping_by(lambda item: item[1] % 3, counting()),
    grouping_by(lambda item: item[1] % 3 - 0.5, all_of(counting(), averaging(lambda item: item[2]))),
    all_of(counting(), grouping_by(itemgetter(1), grouping_by(lambda item: item[2] > 0, summing(itemgetter(0))))),
]


def _in_columns(collector: Any, *parts: list[Any], is_verified: bool = False) -> Any:
    read = collector_read(collector, is_verified=is_verified)[0]
    assert read.on_columns() is not None
    return read.finisher(collected(read, ColumnItems(iter(map(column_of, parts)))))


@pytest.mark.parametrize("is_grouped", [False, True])
@pytest.mark.parametrize("number", range(len(_COMPOUND)))
def test_compound_collectors_give_in_columns_what_they_give(
    number: int, is_grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No item is made, and equal results are found when both are compared."""
    collector: Any = _COMPOUND[number]
    collector = grouping_by(itemgetter(0), collector) if is_grouped else collector
    if collector.on_columns().finds == "groups" or is_grouped:
        assert repr(_in_columns(collector, _ITEMS[:50], _ITEMS[50:], is_verified=True)) == repr(
            collector.collect(_ITEMS)
        )
    monkeypatch.setattr(collectors, "given", lambda block: pytest.fail("the items"))
    assert repr(_in_columns(collector, _ITEMS[:50], _ITEMS[50:])) == repr(collector.collect(_ITEMS))


def test_keys_within_keys_are_those_of_a_dictionary() -> None:
    """The first of equal ones stays, and all NaN are one."""
    keys = [0.0, -0.0, math.nan, 1.0, -math.nan, -0.0]
    items = [(key, number % 2) for number, key in enumerate(keys * 4)]
    collector = grouping_by(lambda item: item[1], grouping_by(lambda item: item[0], counting()))

    assert repr(_in_columns(collector, items)) == repr(collector.collect(items))
    assert repr(_in_columns(collector, [(-0.0, 1)], items)) == repr(collector.collect([(-0.0, 1), *items]))


def test_sums_beyond_64_bits_are_those_of_python() -> None:
    """Of one part alone, also where another one fits."""
    items = [(number % 2, 2**61) for number in range(20)]
    collector = grouping_by(
        itemgetter(0), all_of(counting(), summing(itemgetter(1)), summing(lambda item: item[1] // 2))
    )

    assert _in_columns(collector, items)[0] == (10, 10 * 2**61, 10 * 2**60)


@pytest.mark.parametrize("key", [itemgetter(0), lambda item: item[0] / 2, itemgetter(2)])
def test_few_large_numbers_that_pass_are_those_of_python(key: Any) -> None:
    """Their sum fits into 64 bits; that of as many as there are rows would not."""
    items = [(number % 2, 2**61 if number == 5 else 0, "ab"[number % 2]) for number in range(20)]
    collector = grouping_by(key, filtering(itemgetter(1), summing(itemgetter(1))))

    assert _in_columns(collector, items) == collector.collect(items)
    assert _in_columns(collector, items, is_verified=True) == collector.collect(items)


def test_what_does_not_pass_is_not_evaluated() -> None:
    """The function behind would fail on it; on what passes it does, and names the item."""
    items = [(number % 3, number % 5) for number in range(30)]
    few = grouping_by(itemgetter(0), filtering(lambda item: item[1] != 0, summing(lambda item: 60 // item[1])))
    all_of_them = grouping_by(itemgetter(0), filtering(lambda item: item[1] < 9, summing(lambda item: 60 // item[1])))

    assert _in_columns(few, items) == few.collect(items)
    with pytest.raises(ZeroDivisionError):
        _in_columns(all_of_them, items)


def test_a_part_that_is_called_takes_all_parts_from_columns() -> None:
    """Each item goes to all of them."""
    assert collector_read(all_of(counting(), summing(json.loads)), is_verified=False)[0].on_columns() is None


def test_a_key_none_of_whose_items_pass_keeps_its_place() -> None:
    """With the results of nothing."""
    collector = grouping_by(
        itemgetter(0), filtering(lambda item: item[1] > 90, all_of(counting(), averaging(itemgetter(1))))
    )

    assert _in_columns(collector, [(1, 1), (2, 91), (1, 2)]) == {1: (0, 0.0), 2: (1, 91.0)}


def test_a_block_none_of_whose_rows_are_left_has_no_groups() -> None:
    """As behind a filter: a table of no groups is taken, too."""
    texts = column_of(["a", "b"])
    read = collector_read(grouping_by(lambda text: text, all_of(counting(), summing(len))), is_verified=False)[0]

    assert read.finisher(collected(read, ColumnItems(iter((rows_at(texts, np.arange(0)),))))) == {}
    table = groups_of_texts(rows_at(texts, np.arange(0)), column_of(range(0)))  # type: ignore[arg-type]
    assert containers_of_table(read.on_columns().downstream, list, table) == []


def test_groups_of_several_are_finished_in_columns() -> None:
    """As tuples of columns, unless a function of the user makes the result."""
    table = grouped(*(column_of(each) for each in ([7, 8, 7], [1, 2, 4], [0, 0, 1], [0, 0, 4])))  # type: ignore[arg-type]
    parts = counting(), summing(itemgetter(0)), filtering(bool, averaging(itemgetter(0)))
    (found,) = finished_tables(all_of(*parts), [table])  # type: ignore[misc]

    assert isinstance(found, Tuples)
    assert isinstance(found.members[2], Tuples)
    assert items_of(found) == [(0, 7, (2, 5, 4.0)), (1, 8, (1, 2, 0.0))]
    (found,) = finished_tables(all_of(*parts, finish=lambda *of: list(of)), [table])  # type: ignore[misc]
    assert list(found) == [(0, 7, [2, 5, 4.0]), (1, 8, [1, 2, 0.0])]


@pytest.mark.parametrize(("count", "sizes"), [(1, [8]), (3, [4, 4])])
def test_rows_of_many_numbers_are_grouped_sooner(count: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part has columns of its own, which take as much memory as the keys."""
    monkeypatch.setattr(collectors, "_MOST_NUMBERS", 16)
    parts = [summing(itemgetter(1)) for _ in range(count)]
    read = collector_read(grouping_by(itemgetter(0), all_of(*parts)), is_verified=False)[0]
    known: Any = read.on_columns()
    blocks = map(column_of, [[(1, 2), (2, 3)]] * 4)

    tables: Any = list(collectors.group_tables(read, known, iter(blocks), Bound()))
    assert [int(table.counts.sum()) for table in tables] == sizes


def test_verification_finds_a_wrong_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block whose sums are one too many."""
    collector = grouping_by(itemgetter(0), all_of(counting(), summing(itemgetter(1))))
    added_up = collectors._added_up
    monkeypatch.setattr(collectors, "_added_up", lambda found: added_up(column_of([n + 1 for n in items_of(found)])))

    with pytest.raises(ColumnsDifferError):
        _in_columns(collector, [(1, 2), (1, 3)], is_verified=True)
