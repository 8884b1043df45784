"""Collectors below collectors, with lambdas: the items that a function makes arrive in the result with their type.

A line that mypy 2.4 cannot follow, where it says Any, is marked as such.
"""

from __future__ import annotations

import operator
from collections import Counter, deque
from types import MappingProxyType
from typing import Any, NamedTuple, assert_type

from collectors import (
    all_of,
    approx_count_distinct,
    averaging,
    averaging_int,
    bottom_n,
    collecting_and_then,
    concatenating,
    counting,
    filtering,
    flat_mapping,
    frequencies,
    grouping_by,
    grouping_by_concurrent,
    joining,
    linear_trend,
    mapping,
    max_by,
    min_by,
    partitioning_by,
    pick_any,
    quantiles,
    reducing,
    sorting,
    stddev,
    summarizing,
    summing,
    summing_double,
    summing_int,
    teeing,
    to_collection,
    to_concurrent_map,
    to_list,
    to_map,
    to_set,
    to_unmodifiable_list,
    to_unmodifiable_map,
    to_unmodifiable_set,
    top_n,
    variance,
)
from dstream import IStreamCache, IStreamList, IStreamMap, Optional, Stream
from dstream.gatherers import fold, scan
from dstream.values import SummaryStatistics
from reducers import grouping_by_to_icache, grouping_by_to_imap, replacing, to_file, to_icache, to_ilist, to_imap


class Ship(NamedTuple):
    """An item."""

    name: str
    masts: int


def made_of_items(ships: Stream[Ship]) -> None:
    """Below `mapping`, what is made of items is made of what the function gives."""
    assert_type(ships.collect(mapping(lambda ship: ship.name, to_list())), list[str])
    assert_type(ships.collect(mapping(lambda ship: ship.name, to_set())), set[str])
    assert_type(ships.collect(mapping(lambda ship: ship.name, to_unmodifiable_list())), tuple[str, ...])
    assert_type(ships.collect(mapping(lambda ship: ship.name, to_unmodifiable_set())), frozenset[str])
    assert_type(ships.collect(mapping(lambda ship: ship.name, frequencies())), Counter[str])
    assert_type(ships.collect(mapping(lambda ship: ship.name, to_collection(deque[str]))), deque[str])
    assert_type(ships.collect(mapping(lambda ship: ship.masts, top_n(2))), list[int])
    assert_type(ships.collect(mapping(lambda ship: ship.masts, top_n(2, lambda masts: -masts))), list[int])
    assert_type(ships.collect(mapping(lambda ship: ship.masts, bottom_n(2))), list[int])
    assert_type(ships.collect(mapping(lambda ship: ship.name, sorting())), list[str])
    assert_type(ships.collect(mapping(lambda ship: ship.name, sorting(str.lower))), list[str])
    assert_type(ships.collect(mapping(lambda ship: ship.masts, min_by())), Optional[int])
    assert_type(ships.collect(mapping(lambda ship: ship.name, max_by(lambda name: len(name)))), Optional[str])
    assert_type(ships.collect(mapping(lambda ship: ship.name, pick_any())), Optional[str])
    assert_type(ships.collect(mapping(str, to_list())), list[str])
    assert_type(ships.collect(mapping(lambda ship: (ship.name, ship.masts), to_list())), list[tuple[str, int]])


def made_of_other_things(ships: Stream[Ship]) -> None:
    """What is made of other things is so too."""
    assert_type(ships.collect(mapping(lambda ship: ship.name, counting())), int)
    assert_type(ships.collect(mapping(lambda ship: ship.name, approx_count_distinct())), int)
    assert_type(ships.collect(mapping(lambda ship: ship.name, joining(", "))), str)
    assert_type(ships.collect(mapping(lambda ship: ship.name, concatenating())), str)
    assert_type(ships.collect(mapping(lambda ship: ship.masts, summing())), int)
    assert_type(ships.collect(mapping(lambda ship: ship.masts / 2, summing())), float)  # type: ignore[assert-type]
    assert_type(ships.collect(mapping(lambda ship: ship.name, summing(len))), int)
    assert_type(ships.collect(mapping(lambda ship: ship.name, summing_int(lambda name: len(name)))), int)
    assert_type(ships.collect(mapping(lambda ship: ship.name, summing_double(lambda name: len(name)))), float)
    assert_type(ships.collect(mapping(lambda ship: ship.masts, averaging())), float)
    assert_type(ships.collect(mapping(lambda ship: ship.name, averaging_int(lambda name: len(name)))), float)
    assert_type(ships.collect(mapping(lambda ship: ship.masts, summarizing())), SummaryStatistics[int])
    assert_type(ships.collect(mapping(lambda ship: ship.masts, variance())), float)
    assert_type(ships.collect(mapping(lambda ship: ship.masts, stddev(lambda masts: masts / 2))), float)
    assert_type(ships.collect(mapping(lambda ship: ship.masts, quantiles([0.5]))), list[float])
    assert_type(ships.collect(mapping(lambda ship: ship.masts, linear_trend(lambda n: n, lambda n: n / 2))), float)
    assert_type(ships.collect(mapping(lambda ship: ship.name, reducing("", operator.add))), str)
    assert_type(ships.collect(mapping(lambda ship: ship.name, reducing(0, len, operator.add))), int)
    assert_type(ships.collect(mapping(lambda ship: ship.name, reducing(lambda a, b: max(a, b)))), Optional[str])  # type: ignore[assert-type]


def divided(ships: Stream[Ship]) -> None:
    """Below `mapping`, groups and maps have the keys and the values that their functions give."""
    assert_type(ships.collect(mapping(lambda ship: ship.name, grouping_by(len))), dict[int, list[str]])  # type: ignore[assert-type]
    assert_type(ships.collect(mapping(lambda ship: ship.name, grouping_by(len, counting()))), dict[int, int])
    assert_type(  # type: ignore[assert-type]
        ships.collect(mapping(lambda ship: ship.name, grouping_by(lambda w: w[0], to_set()))), dict[str, set[str]]
    )
    assert_type(ships.collect(mapping(lambda ship: ship.name, grouping_by(lambda w: w[0], counting()))), dict[str, int])  # type: ignore[assert-type]
    assert_type(ships.collect(mapping(lambda ship: ship.name, grouping_by_concurrent(len, counting()))), dict[int, int])
    assert_type(ships.collect(mapping(lambda ship: ship.name, partitioning_by(str.isupper))), dict[bool, list[str]])
    assert_type(
        ships.collect(mapping(lambda ship: ship.name, partitioning_by(str.isupper, counting()))), dict[bool, int]
    )
    assert_type(  # type: ignore[assert-type]
        ships.collect(mapping(lambda ship: ship.name, to_map(lambda w: w[0], lambda w: len(w)))), dict[str, int]
    )
    assert_type(ships.collect(mapping(lambda ship: ship.name, to_concurrent_map(str.lower, len))), dict[str, int])
    assert_type(
        ships.collect(mapping(lambda ship: ship.name, to_unmodifiable_map(str, len))), MappingProxyType[str, int]
    )


def flattened(ships: Stream[Ship]) -> None:
    """Below `flat_mapping`, the same."""
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.name], to_list())), list[str])
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.masts], to_set())), set[int])
    assert_type(ships.collect(flat_mapping(lambda ship: ship.name.split(), top_n(2))), list[str])
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.masts], max_by())), Optional[int])
    assert_type(ships.collect(flat_mapping(lambda ship: (ship.masts,), frequencies())), Counter[int])
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.name], to_unmodifiable_list())), tuple[str, ...])
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.name], to_unmodifiable_set())), frozenset[str])
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.masts], summing())), int)
    assert_type(ships.collect(flat_mapping(lambda ship: [ship.name], counting())), int)


def nested(ships: Stream[Ship]) -> None:
    """Collectors below collectors below collectors."""
    assert_type(ships.collect(mapping(lambda ship: ship.masts, mapping(lambda n: n / 2, to_list()))), list[float])
    assert_type(ships.collect(mapping(lambda ship: ship.name, filtering(lambda name: name, to_set()))), set[str])  # type: ignore[assert-type]
    assert_type(ships.collect(mapping(lambda ship: ship.name, flat_mapping(lambda name: [name], to_list()))), list[str])  # type: ignore[assert-type]
    assert_type(
        ships.collect(grouping_by(lambda s: s.masts, mapping(lambda s: s.name, to_list()))), dict[int, list[str]]
    )
    assert_type(
        ships.collect(grouping_by(lambda s: s.masts, filtering(lambda s: s.name, to_set()))), dict[int, set[Ship]]
    )
    assert_type(ships.collect(grouping_by(lambda s: s.name, max_by(lambda s: s.masts))), dict[str, Optional[Ship]])
    assert_type(
        ships.collect(grouping_by(lambda s: s.name, grouping_by(lambda s: s.masts))), dict[str, dict[int, list[Ship]]]
    )
    assert_type(
        ships.collect(partitioning_by(lambda s: s.masts > 2, mapping(lambda s: s.name, to_set()))), dict[bool, set[str]]
    )
    assert_type(
        ships.collect(mapping(lambda ship: ship.name, collecting_and_then(to_list(), lambda found: len(found)))), int
    )
    assert_type(ships.collect(collecting_and_then(to_list(), lambda found: found[0])), Ship)
    assert_type(ships.collect(collecting_and_then(mapping(lambda s: s.name, to_list()), lambda names: names[0])), str)
    assert_type(
        ships.collect(teeing(mapping(lambda s: s.name, to_list()), counting(), lambda names, n: (names, n))),
        tuple[list[str], int],
    )
    assert_type(
        ships.collect(all_of(mapping(lambda s: s.name, to_set()), mapping(lambda s: s.masts, summing()))),
        tuple[set[str], int],
    )


def pairs(numbers: Stream[int]) -> None:
    """A value that a tuple of literals starts changes its places."""
    assert_type(Stream.iterate((0, 1), lambda p: (p[1], p[0] + p[1])), Stream[tuple[int, int]])
    assert_type(Stream.iterate((0, 1), lambda p: p[0] < 9, lambda p: (p[1], p[0] + p[1])), Stream[tuple[int, int]])
    assert_type(Stream.iterate((0, "", 1.5), lambda p: (p[0] + 1, p[1] + "a", p[2])), Stream[tuple[int, str, float]])
    assert_type(Stream.iterate(Ship("Pequod", 3), lambda ship: Ship(ship.name, ship.masts + 1)), Stream[Ship])
    assert_type(
        numbers.reduce((0, 0), lambda p, n: (p[0] + n, p[1] + 1), lambda p, q: (p[0] + q[0], p[1] + q[1])),
        tuple[int, int],
    )
    assert_type(numbers.gather(scan(lambda: (0, 1), lambda p, n: (p[1], p[0] + n))), Stream[tuple[int, int]])  # type: ignore[assert-type]
    assert_type(numbers.gather(fold(lambda: (0, 1), lambda p, n: (p[1], p[0] + n))), Stream[tuple[int, int]])  # type: ignore[assert-type]


def unknown(rows: Stream[dict[str, Any]]) -> None:
    """What comes out of rows of anything is anything, not nothing."""
    assert_type(rows.collect(mapping(lambda row: row["name"], to_list())), list[Any])
    assert_type(rows.collect(mapping(lambda row: row["name"], max_by())), Optional[Any])
    assert_type(
        rows.collect(grouping_by(lambda row: row["a"], mapping(lambda row: row["b"], to_set()))), dict[Any, set[Any]]
    )


def written(ships: Stream[Ship]) -> None:
    """Reducers take their types from their lambdas, and from what is downstream."""
    assert_type(ships.collect(to_imap("m", lambda s: s.name, lambda s: s.masts)), IStreamMap[str, int])
    assert_type(
        ships.collect(to_imap("m", lambda s: s.name, lambda s: s.masts, lambda a, b: a + b)), IStreamMap[str, int]
    )
    assert_type(ships.collect(to_icache("m", lambda s: s.name, lambda s: [s.masts])), IStreamCache[str, list[int]])
    assert_type(ships.map(lambda s: (s.name, s.masts)).collect(to_imap("m")), IStreamMap[str, int])
    assert_type(ships.collect(replacing(to_imap("m", lambda s: s.name, lambda s: s.masts))), IStreamMap[str, int])
    assert_type(ships.collect(to_ilist("l")), IStreamList[Ship])
    assert_type(ships.collect(to_file("f.csv", columns=Ship)), str)
    assert_type(ships.collect(to_file("f.txt", format="text", to_string=lambda s: s.name)), str)
    assert_type(ships.collect(replacing(to_ilist("l"))), IStreamList[Ship])
    assert_type(ships.collect(grouping_by_to_imap("m", lambda s: s.masts)), IStreamMap[int, list[Ship]])
    assert_type(ships.collect(grouping_by_to_icache("m", lambda s: s.masts, counting())), IStreamCache[int, int])
    assert_type(
        ships.collect(grouping_by_to_imap("m", lambda s: s.masts, mapping(lambda s: s.name, to_set()))),
        IStreamMap[int, set[str]],
    )
    assert_type(ships.map_multi(lambda ship, emit: emit(ship.name)), Stream[Any])  # pyright: ignore[reportAssertTypeFailure]
