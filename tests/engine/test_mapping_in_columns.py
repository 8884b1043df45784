"""`mapping(...)` over columns: its function, and then that of the collector behind it."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

import pytest

from collectors import averaging, counting, grouping_by, mapping, max_by, summarizing, summing, top_n
from dstream.engine.compiler.evaluation import collector_read
from dstream.operators.columns import collectors
from dstream.operators.columns.values import column_of
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected

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
