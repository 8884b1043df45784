"""`mapping(...)` over columns: its function, and then that of the collector behind it."""

from __future__ import annotations

import json
import math
import tracemalloc
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from collectors import (
    averaging,
    counting,
    filtering,
    grouping_by,
    mapping,
    max_by,
    summarizing,
    summing,
    teeing,
    to_list,
    to_set,
    top_n,
)
from dstream.engine.compiler.evaluation import collector_read
from dstream.operators.columns import collectors
from dstream.operators.columns.built_rows import BuiltRows
from dstream.operators.columns.entries import SharedRows
from dstream.operators.columns.group_numbers import gathered
from dstream.operators.columns.values import NotColumnar, column_of
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.spi import InColumns

_ITEMS = [(number % 3, number * 7 % 11 - 4) for number in range(40)]


def _with_a_variable(number: int) -> int:
    following = number + 1
    return following * following - number


_BEHIND = [
    counting(),
    summing(_with_a_variable),
    summing(lambda n: n + 1),
    averaging(lambda n: n / 8),
    summarizing(),
    mapping(lambda n: n - 3, summing(lambda n: n * n)),
    mapping(lambda n: (n, n % 4), top_n(3, key=itemgetter(1))),
    max_by(lambda n: n % 7),
    to_list(),
    to_set(),
    filtering(lambda n: n > 2, mapping(lambda n: (n, n / 4, None, f"{n}", n > 8), to_list())),
    filtering(lambda n: n > 100, to_list()),
    mapping(lambda n: {"n": n, "half": n / 2}, to_list()),
    mapping(lambda n: [str(n), n], to_list()),
    mapping(lambda n: f"{n},{n + 1}".split(","), to_list()),
    teeing(to_list(), mapping(lambda n: n / 4, to_set()), lambda first, second: (first, sorted(second))),
]


def _in_columns(collector: Any, *parts: list[Any], is_verified: bool = True) -> Any:
    read = collector_read(collector, is_verified=is_verified)[0]
    assert read.on_columns() is not None
    return read.finisher(collected(read, ColumnItems(iter(map(column_of, parts)))))


@pytest.mark.parametrize("behind", _BEHIND)
@pytest.mark.parametrize("is_grouped", [False, True])
def test_mapping_gives_in_columns_what_it_gives(behind: Any, is_grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No item is made but by those that keep items, and to verify."""
    collector: Any = mapping(lambda item: item[1] * 2, behind)
    collector = grouping_by(itemgetter(0), collector) if is_grouped else collector
    expected = collector.collect(_ITEMS)

    assert repr(_in_columns(collector, _ITEMS[:30], _ITEMS[30:])) == repr(expected)
    monkeypatch.setattr(collectors, "given", lambda block: pytest.fail("the items"))
    assert repr(_in_columns(collector, _ITEMS, is_verified=False)) == repr(expected)


@pytest.mark.parametrize("is_verified", [False, True])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_what_is_only_counted_is_mapped(is_grouped: bool, is_verified: bool) -> None:
    """The function fails as it does item by item, though nobody looks at its results."""
    collector: Any = mapping(lambda item: 12 // item[1], counting())
    collector = grouping_by(itemgetter(0), collector) if is_grouped else collector

    with pytest.raises(ZeroDivisionError):
        _in_columns(collector, [(1, 3), (2, 0)], is_verified=is_verified)


def test_mapping_by_a_function_that_cannot_be_read_takes_items() -> None:
    """So does one before groups of first items."""
    for collector in (mapping(json.dumps, counting()), mapping(abs, grouping_by(lambda n: n % 2, max_by()))):
        assert collector_read(collector, is_verified=False)[0].on_columns() is None


@pytest.mark.parametrize("behind", [summing(lambda n: 1), top_n(3, key=lambda n: 1)])
def test_a_function_fails_also_if_nobody_looks_at_what_it_gives(behind: Any) -> None:
    """What is behind it gives the same for all items, and is asked for it all the same."""
    read = collector_read(mapping(lambda n: 1 // n, behind), is_verified=False)[0]
    assert read.on_columns() is not None

    with pytest.raises(ZeroDivisionError):
        collected(read, ColumnItems(iter([column_of([2, 1, 0])])))


def test_many_functions_one_behind_another_are_called() -> None:
    """As an expression they would have too many levels to be pickled."""
    collector: Any = summing(lambda n: n)
    for _ in range(80):
        collector = mapping(lambda n: n + 1, collector)

    assert collector_read(collector, is_verified=False)[0].on_columns() is None


@pytest.mark.parametrize("is_grouped", [False, True])
def test_lists_of_two_collectors_have_the_same_nan(is_grouped: bool) -> None:
    """They are equal then, and two lists of a NaN each are not."""
    lists: Any = mapping(lambda item: item[1], teeing(to_list(), to_list(), lambda one, other: one == other))
    collector: Any = grouping_by(itemgetter(0), lists) if is_grouped else lists
    items = [(1, math.nan), (1, 2.5)]

    assert _in_columns(collector, items, is_verified=False) == collector.collect(items)


def test_tuples_in_a_list_are_not_made_twice_of_a_nan() -> None:
    """A tuple equals itself, also with a NaN; another one with another NaN does not."""
    collector: Any = grouping_by(len, to_list())
    read, item = collector_read(collector, is_verified=False)[0], (1, math.nan)

    (found,) = collected(read, ColumnItems(iter([[item, item]]))).values()
    assert found[0] == found[1]


def test_objects_without_a_hash_are_put_into_a_set_one_by_one() -> None:
    """So the item that fails is the one to blame."""
    with pytest.raises(NotColumnar):
        gathered(column_of([(1, [2])]), InColumns("set"), is_alone=True)
    with pytest.raises(TypeError, match="unhashable"):
        _in_columns(grouping_by(len, mapping(lambda item: [item[1]], to_set())), [(1, 2)], is_verified=False)


def test_rows_of_a_join_are_put_into_a_list_one_by_one() -> None:
    """Several pairs share such a row, which a step may change."""
    shared: Any = SharedRows(None, np.arange(2))  # type: ignore[arg-type]

    with pytest.raises(NotColumnar):
        gathered(BuiltRows(dict, {"row": shared}, 2), InColumns("list"), is_alone=True)


def test_lists_of_two_collectors_have_the_same_object() -> None:
    """A change of it is visible in both."""
    several: Any = mapping(lambda item: [item[1]], teeing(to_list(), to_list(), lambda one, other: one[0] is other[0]))

    assert _in_columns(grouping_by(itemgetter(0), several), [(1, 2), (2, 3)], is_verified=False) == {1: True, 2: True}


def test_rows_that_do_not_pass_take_no_memory_of_a_long_string() -> None:
    """Each of them is beside the values that pass until these are put into lists."""
    items = [(0, "x" * 2**20), *((number, "") for number in range(1, 2**12))]
    values: Any = filtering(lambda item: item[0] == 0, mapping(itemgetter(1), to_list()))
    collector: Any = grouping_by(lambda item: 1, values)
    tracemalloc.start()

    assert _in_columns(collector, items, is_verified=False) == {1: [items[0][1]]}
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


def test_a_list_starts_with_the_items_of_blocks_before() -> None:
    """Items of a block that makes no column stay between the items of its neighbours."""
    collector: Any = grouping_by(itemgetter(0), mapping(itemgetter(1), to_list()))
    items = [(number % 2, number) for number in range(20)]
    read = collector_read(collector, is_verified=False)[0]
    blocks: Any = [column_of(items[:8]), iter(items[8:12]), column_of(items[12:])]

    assert read.finisher(collected(read, ColumnItems(iter(blocks)))) == collector.collect(items)
