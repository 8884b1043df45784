"""Numbers and values that columns give for each group, and the containers that take them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dstream.base.records import record
from dstream.operators.columns.built_rows import BuiltRows
from dstream.operators.columns.entries import Entries, check_unshared
from dstream.operators.columns.float_sums import FloatSums
from dstream.operators.columns.python_rows import has_nan
from dstream.operators.columns.strings import StringLists, Strings
from dstream.operators.columns.values import (
    Column,
    NotColumnar,
    Objects,
    Tuples,
    has_objects,
    items_of,
    rows_at,
    shape_of,
    size_of_column,
    stacked,
)
from dstream.spi import InColumns

__all__ = [
    "Found",
    "FoundFloats",
    "FoundLists",
    "FoundNumbers",
    "FoundOfParts",
    "FoundWithin",
    "gathered",
    "listed_at",
    "taken",
]


Int64s = NDArray[np.int64]


@record
class FoundNumbers:
    """Ints of each group: their count, and the sum, the least and the greatest one, as far as they are needed."""

    columns: tuple[Int64s, ...]


@record
class FoundFloats:
    """Floats of each group: their count and their sum."""

    counts: Int64s
    sums: FloatSums


@record
class FoundLists:
    """The values of each group in order: of lists and sets, floats whose order matters, or few numbers."""

    lists: list[list[Any]]


@record
class FoundOfParts:
    """Numbers of each group for several collectors."""

    parts: tuple[Found, ...]


@record
class FoundWithin:
    """Groups within groups, in the order in which their keys were first seen.

    Attributes:
        keys: of the inner groups.
        numbers: of the outer group in which each inner one is.
        found: of the inner groups.
    """

    keys: list[Any]
    numbers: list[int]
    found: Found


Found: TypeAlias = FoundNumbers | FoundFloats | FoundLists | FoundOfParts | FoundWithin
"""Numbers of each group for one collector."""


def taken(known: InColumns, containers: list[Any], found: Found) -> list[Any]:
    """Return the containers of groups, one after another, behind what is found of each group."""
    if not containers:  # Without groups the number of parts is unknown.
        return containers
    match found:
        case FoundOfParts(parts):
            columns = list(zip(*containers, strict=True))
            columns = [taken(*each) for each in zip(known.parts, map(list, columns), parts, strict=True)]  # type: ignore[misc]
            for container, *following in zip(containers, *columns, strict=True):
                container[:] = following
            return containers
        case FoundWithin(keys, numbers, inner):
            _take_within(known, containers, keys, numbers, inner)
            return containers
        case FoundLists(lists):
            assert known.take_all is not None, "what takes numbers takes lists of them"
            return list(map(known.take_all, containers, lists))
        case FoundFloats(counts, sums):
            assert known.take_floats is not None, "what adds floats up takes their sums"
            return list(map(known.take_floats, containers, counts.tolist(), sums.each()))
        case FoundNumbers(columns):
            assert known.take is not None, "what counts takes counts"
            return list(map(known.take, containers, *(each.tolist() for each in columns)))


def _take_within(known: InColumns, containers: list[Any], keys: list[Any], numbers: list[int], found: Found) -> None:
    assert known.downstream is not None, "groups have one"
    assert known.downstream.supplier is not None, "of groups within groups it is known"
    supplier = known.downstream.supplier
    outer = [containers[number] for number in numbers]
    inner = [groups[key] if key in groups else supplier() for groups, key in zip(outer, keys, strict=True)]
    for groups, key, container in zip(outer, keys, taken(known.downstream, inner, found), strict=True):
        groups[key] = container


def gathered(values: Column, known: InColumns, *, is_alone: bool) -> Column:
    """Return the values that a collector puts into lists or sets.

    Args:
        values: of the items.
        known: the collector.
        is_alone: no other collector gets the same items.

    Raises:
        NotColumnar: they are records of a source or of a join, or it is visible which of them are one object.
    """
    check_unshared(values)
    if isinstance(values, StringLists | BuiltRows) or type(values) is Entries:
        values = Objects(items_of(values))
    shape_of(values, are_keys=False)
    if has_objects(values) and (known.finds == "set" or not is_alone):
        raise NotColumnar("objects that may have no hash, or that several lists share")
    # Lists that share a NaN are equal, as are tuples that are one object; those of two NaN are not.
    if (isinstance(values, Tuples) or not is_alone) and has_nan(values):
        raise NotColumnar("a NaN that several lists or tuples may share")
    return values


def listed_at(column: Column, places: NDArray[np.intp], size: int) -> Column:
    """Return values of some rows, of which there is one or more, as a column of all rows, which has others elsewhere.

    Args:
        column: the values.
        places: their rows.
        size: the number of all rows.
    """
    if isinstance(column, Tuples):
        return Tuples(tuple(listed_at(each, places, size) for each in column.members), size)
    if isinstance(column, Strings):
        # The others are empty: a long string for each of them would take much memory.
        column = stacked([column, Strings(None, is_ascii=True, joined=b"\n")])
    chosen = np.full(size, size_of_column(column) - 1)
    chosen[places] = np.arange(len(places))
    return rows_at(column, chosen)
