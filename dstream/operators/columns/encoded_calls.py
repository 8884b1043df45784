"""Calls of functions for each distinct value of columns, and columns as `Encoded`."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dstream.base.copies import is_known_zone
from dstream.operators.columns.encoded import ENCODED_TYPES, Encoded
from dstream.operators.columns.strings import Strings, array_of_ints, numbers_of_array
from dstream.operators.columns.values import (
    Bools,
    Column,
    ConstantColumn,
    Floats,
    Ints,
    NotColumnar,
    PythonRaises,
    column_of,
    rows_at,
)

__all__ = [
    "as_encoded",
    "as_plain",
    "attribute_of_values",
    "by_distinct",
    "encoded_array",
    "encoded_results",
    "merged_values",
]


def by_distinct(function: Callable[..., Any], columns: Sequence[Column]) -> Column:
    """Return the results of a function without side effects, called once for each row of values that differs.

    Raises:
        NotColumnar: it raises, or its results or arguments are of other types than `ENCODED_TYPES`.
    """
    codes: NDArray[np.int64] | None = None
    places: list[Any] = []
    varying = [each for each in columns if not isinstance(each, ConstantColumn)]
    encoded = [as_encoded(each).compact() for each in varying]
    for each in encoded:
        codes, places = _paired(codes, places, each)
    assert codes is not None, "one column at least is no constant"
    rows = [iter([each.objects[place] for place in of]) for each, of in zip(encoded, places, strict=True)]
    arguments = [
        [each.value] * len(places[0]) if isinstance(each, ConstantColumn) else list(rows.pop(0)) for each in columns
    ]
    try:
        found = list(map(function, *arguments))
    except Exception as error:
        raise PythonRaises(f"Python raises {type(error).__name__}") from None
    return encoded_results(found, codes)


def _paired(codes: NDArray[np.int64] | None, places: list[Any], column: Encoded) -> tuple[NDArray[np.int64], list[Any]]:
    """Return codes for rows of values with those of one more column, and the places of the values of each code."""
    if codes is None:
        return column.codes, [list(range(len(column.objects)))]
    width = max(len(column.objects), 1)
    numbers, different = _numbered(codes * width + column.codes)
    before, own = np.divmod(different, width)
    return numbers, [*([of[place] for place in before.tolist()] for of in places), own.tolist()]


def _numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return a number for each value of an array, and the values by number."""
    encoded = array_of_ints(values).dictionary_encode()
    return numbers_of_array(encoded.indices).astype(np.int64), numbers_of_array(encoded.dictionary)


def as_encoded(column: Column) -> Encoded:
    """Return a column with the same values.

    Raises:
        NotColumnar: they are of other types than `ENCODED_TYPES`, or a NaN.
    """
    match column:
        case Encoded():
            return column
        case ConstantColumn(value, size):
            return Encoded(np.zeros(size, np.int64), [_checked(value)])
        case Bools(values):
            return Encoded(values.astype(np.int64), [False, True])
        case Ints(values):
            codes, different = _numbered(values)
            return Encoded(codes, different.tolist())
        case Floats(values):
            # By their bits: 0.0 and -0.0 are two values.
            codes, different = _numbered(values.view(np.int64))
            return Encoded(codes, list(map(_checked, different.view(np.float64).tolist())))
        case Strings():
            found = column.values.dictionary_encode()
            return Encoded(numbers_of_array(found.indices).astype(np.int64), found.dictionary.to_pylist())
    raise NotColumnar("values of other types than dates, numbers and strings")


def _checked(value: Any) -> Any:
    if type(value) not in ENCODED_TYPES or _has_own_zone(value) or _is_nan(value):
        raise NotColumnar(f"a {type(value).__name__}, or a NaN")
    return value


def _is_nan(value: Any) -> bool:
    # A signaling NaN of Decimal raises where it is compared.
    return value.is_nan() if type(value) is Decimal else bool(value != value)


def _has_own_zone(value: Any) -> bool:
    """Return whether a moment has a zone of a class of the user's, whose code may do anything."""
    zone = value.tzinfo if type(value) in (datetime.datetime, datetime.time) else None
    return zone is not None and not is_known_zone(type(zone))


def encoded_results(found: list[Any], codes: NDArray[np.int64]) -> Column:
    """Return results of Python, placed by codes: as a column of numbers or strings, if they are of one such type."""
    kinds = set(map(type, found))
    if len(kinds) == 1 and kinds <= _OF_COLUMNS:
        return rows_at(column_of(found), codes)
    return Encoded(codes, list(map(_checked, found)))


_OF_COLUMNS = frozenset({int, float, bool, str})


def as_plain(column: Column) -> Column:
    """Return values of one type of number or string, such as those of rows without None, as a column of these."""
    if not isinstance(column, Encoded):
        return column
    try:
        used = column.compact()
        return encoded_results(used.objects, used.codes)
    except NotColumnar:  # Ints of more than 64 bits.
        return column


def encoded_array(array: Any) -> Encoded:
    """Return an array of Arrow without nanoseconds as values and codes; a null is None.

    Raises:
        NotColumnar: Python has none of them.
    """
    import pyarrow as pa

    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    try:
        if not _is_repeated(whole):
            return Encoded(np.arange(len(whole)), list(map(_checked, _objects(whole))))
        found = whole.dictionary_encode("encode")
        objects = _objects(found.dictionary)
    except pa.ArrowException as error:
        raise NotColumnar(f"Arrow raises {type(error).__name__}") from None
    except (ValueError, OverflowError):  # The code that makes the items reports the one that fails.
        raise NotColumnar("a value that Python does not have") from None
    return Encoded(numbers_of_array(found.indices).astype(np.int64), list(map(_checked, objects)))


def _is_repeated(array: Any) -> bool:
    """Return whether the first values are often equal: to encode others costs more than it saves."""
    first = array.slice(0, _SAMPLE)
    return len(array) <= _SAMPLE or len(first.dictionary_encode("encode").dictionary) <= len(first) // 2


_SAMPLE = 512


def _objects(array: Any) -> list[Any]:
    """Return the values of an array; of NumPy where these are the same: Arrow takes ten times as long (pyarrow 26)."""
    import pyarrow as pa

    kind = array.type
    if array.null_count or not (pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)):
        found: list[Any] = array.to_pylist()
        return found
    is_date = pa.types.is_date32(kind)
    values = numbers_of_array(array.view(pa.int32() if is_date else pa.int64()))
    found = values.astype("M8[D]").tolist() if is_date else values.view(f"M8[{kind.unit}]").tolist()
    # What Python does not have is an int.
    if not set(map(type, found)) <= {datetime.date if is_date else datetime.datetime}:
        raise NotColumnar("a time that Python does not have")
    return found


def attribute_of_values(column: Encoded, name: str) -> Column:
    """Return `value.name` of each value, whose type has no code of a user's.

    Raises:
        NotColumnar: one of them has no such attribute, or a method of this name.
    """
    return by_distinct(lambda value: getattr(value, name), [column])


def merged_values(chosen: NDArray[np.bool_], first: Column, second: Column) -> Encoded:
    """Return a column with the values of `first` in the chosen rows, in order, and those of `second` in the others."""
    one, other = as_encoded(first), as_encoded(second)
    codes = np.empty(len(chosen), np.int64)
    codes[chosen] = one.codes
    codes[~chosen] = other.codes + len(one.objects)
    return Encoded(codes, [*one.objects, *other.objects])
