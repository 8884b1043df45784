"""Arrow columns as Python items: values, rows that Python cannot represent, rows that may remain columns.

Python lacks moments beyond the years 1 to 9999, long durations, nanoseconds, intervals and strings that are no UTF-8. A
map with a duplicate key is refused too, since a dictionary would drop a value.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

from dstream.schema.decoders import (
    Anything,
    DecodeError,
    Decoder,
    ItemDecoder,
    Made,
    OptionalDecoder,
    RecordDecoder,
    ScalarDecoder,
    UnionDecoder,
    Whole,
)
from dstream.schema.factories import maker_of_rows
from dstream.schema.record_decoders import Parsed
from dstream.schema.times import has_nanoseconds, in_microseconds, in_usual_layout, usual_type
from dstream.schema.types import scalar_of
from dstream.spi import ArrowRows
from dstream.values.fields import field_names, has_plain_fields, is_typed_dict

__all__ = [
    "Column",
    "ColumnsOfBatch",
    "ColumnsOfRows",
    "RowsMaker",
    "UnreadPlace",
    "UnreadRow",
    "are_parts_plain",
    "has_intervals",
    "has_maps",
    "names_read",
    "rows_maker",
    "rows_of_python",
    "unread_place",
    "values_of",
]


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row with a value that Python does not have, and the problem."""

    row: dict[str, Any]
    problem: DecodeError


class UnreadPlace(Exception):
    """The position of the first row that cannot become an item, and the row."""

    def __init__(self, place: int, unread: UnreadRow) -> None:
        super().__init__(f"row {place}: {unread.problem}")
        self.place = place
        self.unread = unread


def values_of(column: Any, *, is_strict: bool = True) -> list[Any]:
    """Return the values of a column without nanoseconds.

    Args:
        column: an array of Arrow.
        is_strict: maps are dictionaries, and lists of pairs otherwise.

    Raises:
        Exception: a value has no Python equivalent: any exception of pyarrow.
    """
    values: list[Any]
    if is_strict and has_maps(column.type):
        values = column.to_pylist(maps_as_pydicts="strict")
    else:
        values = column.to_pylist()
    if has_intervals(column.type) and any(map(_is_interval, values)):
        raise ValueError("months and days have no fixed length")
    return values


def has_maps(kind: Any) -> bool:
    """Return whether values of a type are maps, or contain some."""
    import pyarrow as pa

    fields = range(kind.num_fields)
    return pa.types.is_map(kind) or any(has_maps(kind.field(index).type) for index in fields)


def has_intervals(kind: Any) -> bool:
    """Return whether values of a type are intervals, or contain some."""
    return "month_day_nano_interval" in str(kind)


def _is_interval(value: Any) -> bool:
    import pyarrow as pa

    if isinstance(value, dict):
        return any(map(_is_interval, value.values()))
    return isinstance(value, pa.MonthDayNano) or (isinstance(value, list | tuple) and any(map(_is_interval, value)))


def rows_of_python(batch: Any, *, is_strict: bool) -> Iterator[list[list[Any]] | UnreadRow]:
    """Yield the values of each column, of a batch's rows in parts; an `UnreadRow` for each row that cannot be read.

    Args:
        batch: the rows.
        is_strict: as for `values_of`.
    """
    try:
        found = [values_of(column, is_strict=is_strict) for column in in_microseconds(batch).columns]
    # It does not concern the values, so no row is to blame.
    except MemoryError:
        raise
    # Arrow's errors name no row: halves are tried until each bad row is alone.
    except Exception:
        if batch.num_rows == 1:
            yield _unread(batch, is_strict)
        else:
            half = batch.num_rows // 2
            yield from rows_of_python(batch.slice(0, half), is_strict=is_strict)
            yield from rows_of_python(batch.slice(half), is_strict=is_strict)
    else:
        yield found


def _unread(row: Any, is_strict: bool) -> UnreadRow:
    shown: dict[str, Any] = {}
    problems: list[DecodeError] = []
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            [shown[name]] = values_of(in_microseconds(column), is_strict=is_strict)
        except Exception as error:
            shown[name] = _text(column, error)
            problems.append(DecodeError(_reason(column.type, error, shown[name]), name))
            problems[-1].__cause__ = error
    return UnreadRow(shown, problems[0])


def _text(column: Any, error: Exception) -> Any:
    """Return the value of a row, as Arrow shows it."""
    if isinstance(error, UnicodeDecodeError):
        return error.object
    if isinstance(error, KeyError) and has_maps(column.type):
        return column.to_pylist()[0]
    return " ".join(str(column).split()).removeprefix("[ ").removesuffix(" ]")


def _reason(kind: Any, error: Exception, text: Any) -> str:
    import pyarrow as pa

    if isinstance(error, UnicodeDecodeError):
        return f"a text that is no UTF-8 ({error.reason}), got {text!r}"
    if isinstance(error, pa.ArrowInvalid) and has_nanoseconds(kind):
        return f"times of Python have no nanoseconds, got {text}"
    if isinstance(error, KeyError) and has_maps(kind):
        return f"a map has a key twice: {text}"
    return f"Python has no such {kind}, got {text} ({error})"


def unread_place(columns: Iterable[Any], names: Iterable[str], places: Any, *, is_strict: bool) -> UnreadPlace | None:
    """Return the first row with a value that Python cannot represent, None if there is none.

    Args:
        columns: the values at these positions.
        names: the names of the columns.
        places: the positions of the rows: a slice, or an array.
        is_strict: as for `values_of`.
    """
    import pyarrow as pa

    done = 0
    for found in rows_of_python(pa.RecordBatch.from_arrays(list(columns), list(names)), is_strict=is_strict):
        if isinstance(found, UnreadRow):
            return UnreadPlace(places.start + done if isinstance(places, slice) else int(places[done]), found)
        done += len(found[0])
    return None


Column = Callable[[str], Any]
"""Returns the array of a column."""

RowsMaker = Callable[[Column, int, int], ArrowRows]
"""Function of arrays, the number of rows, and the number of items made at a time, that returns rows in columns."""


class ColumnsOfRows(Protocol):
    """The facts known of columns before they are read."""

    def type_of(self, name: str) -> Any:
        """Return the type of a column."""
        ...

    def may_hold_nulls(self, name: str) -> bool:
        """Return whether a column may contain nulls."""
        ...


class ColumnsOfBatch:
    """The columns of a batch, in layouts that all functions of Arrow support."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._columns: dict[str, Any] = {}

    def column(self, name: str) -> Any:
        """Return a column."""
        if name not in self._columns:
            self._columns[name] = in_usual_layout(self._batch.column(name))
        return self._columns[name]

    def type_of(self, name: str) -> Any:
        """Return the type of a column."""
        return usual_type(self._batch.schema.field(name).type)

    def may_hold_nulls(self, name: str) -> bool:
        """Return whether a column contains nulls."""
        return bool(self.column(name).null_count)


def names_read(form: ItemDecoder | None, there: Sequence[str]) -> Sequence[str]:
    """Return the columns that items are made of: the fields of a class, in its order, or all of them."""
    return [name for name, *_ in form.fields if name in there] if isinstance(form, RecordDecoder) else there


def are_parts_plain(form: ItemDecoder | None) -> bool:
    """Return whether rows become items that consist of the values of the columns, and run no code of a class."""
    return form is None or (isinstance(form, RecordDecoder) and (is_typed_dict(form.kind) or _is_plain(form.kind)))


def _is_plain(kind: Any) -> bool:
    return isinstance(kind, type) and has_plain_fields(kind)


def rows_maker(form: ItemDecoder | None, names: Sequence[str], columns: ColumnsOfRows) -> RowsMaker | None:
    """Return a reader of rows in columns; None if a row may be invalid, or there are no columns.

    Args:
        form: the decoder of the items, whose parts are plain; None for dictionaries.
        names: the names of the columns that are read.
        columns: their types, as far as known.
    """
    names = names_read(form, names)
    ways: Mapping[str, _Way] | None = dict.fromkeys(names, "as it is") if form is None else _ways(form, names, columns)
    if ways is None or not names or any(has_intervals(columns.type_of(name)) for name in names):
        return None
    reached_by, made = _reached_by(form, names), partial(_items, form is not None, names, _maker(names, form))
    kind: Any = form.kind if isinstance(form, RecordDecoder) and _is_plain(form.kind) else None

    def rows(column: Column, size: int, most: int) -> ArrowRows:
        parts = {name: partial(_PARTS[way], column, name) for name, way in ways.items()}
        return ArrowRows(size, parts, reached_by, partial(made, column), most, item_class=kind)

    return rows


def _ways(form: ItemDecoder, names: Sequence[str], columns: ColumnsOfRows) -> Mapping[str, _Way] | None:
    """Return the conversion of each column; None if a value may not fit."""
    assert isinstance(form, RecordDecoder), "others have no parts"
    forms = {name: each for name, _, each, _ in form.fields}
    found: dict[str, _Way] = {}
    for name in names:
        way = _way(forms[name], columns.type_of(name), partial(columns.may_hold_nulls, name))
        if way is None:
            return None
        found[name] = way
    return found


_Way = Literal["as it is", "as floats", "as texts", "as texts of dates", "as texts of times", "as texts of decimals"]
"""As strings, values are parsed for items, and as a column if Arrow has a type for the same values."""


def _way(form: Decoder, kind: Any, may_hold_nulls: Callable[[], bool]) -> _Way | None:
    if isinstance(form, Anything):
        return None if has_maps(kind) else "as it is"  # A map that has a key twice is refused, with its row.
    if isinstance(form, OptionalDecoder):
        return _way(form.form, kind, may_hold_nulls)
    if isinstance(form, UnionDecoder):
        # None is a member of the union, so that nulls need no check.
        return None if form.present is None else _way(form.present, kind, lambda: False)
    import pyarrow as pa

    if isinstance(form, Parsed):  # A caller with strings has checked that all of them can be parsed.
        way: _Way | None = _AS_TEXTS.get(form.kind, "as texts") if pa.types.is_string(kind) else None
    elif isinstance(form, Whole) and pa.types.is_integer(kind):
        way = "as floats"
    else:
        own = float if isinstance(form, Whole) else form.kind if isinstance(form, ScalarDecoder | Made) else None
        fits = _FITTING.get(own)
        way = "as it is" if fits is not None and any(getattr(pa.types, each)(kind) for each in fits) else None
    # Evaluated last, since it may read the column.
    return None if way is None or may_hold_nulls() else way


_FITTING: dict[type | None, tuple[str, ...]] = {
    int: ("is_integer",),
    float: ("is_float32", "is_float64"),
    bool: ("is_boolean",),
    str: ("is_string", "is_large_string"),
    bytes: ("is_binary", "is_large_binary", "is_fixed_size_binary"),
    decimal.Decimal: ("is_decimal",),
    datetime.date: ("is_date32",),
    datetime.datetime: ("is_timestamp",),
    datetime.time: ("is_time",),
    datetime.timedelta: ("is_duration",),
}
"""The types of Arrow whose values are exactly of a class, as functions of `pyarrow.types`."""


def _as_it_is(column: Column, name: str) -> Any:
    return column(name)


def _floats(column: Column, name: str) -> Any:
    """Return ints as floats, rounded to the nearest float beyond 2**53, as in Python."""
    import pyarrow as pa

    return column(name).cast(pa.float64(), safe=False)


def _nothing(column: Column, name: str) -> None:
    """Return None: the strings of the column have to be parsed."""


def _dates(column: Column, name: str) -> Any:
    import pyarrow as pa

    return column(name).cast(pa.date32())


def _datetimes(column: Column, name: str) -> Any:
    import pyarrow as pa

    return column(name).cast(pa.timestamp("us"))


def _decimals(column: Column, name: str) -> Any:
    """Return decimals; None if their numbers of decimal places differ, or one may be no decimal of Arrow."""
    import pyarrow as pa
    from pyarrow.compute import MatchSubstringOptions, call_function

    texts = column(name)
    lengths = call_function("binary_length", [texts])
    points = call_function("find_substring", [texts], MatchSubstringOptions("."))
    zero, one = (scalar_of(number, pa.int64()) for number in (0, 1))
    behind = call_function(
        "if_else", [call_function("less", [points, zero]), one, call_function("subtract", [lengths, points])]
    )
    scales = call_function("min_max", [behind]).as_py()
    # Too many digits result in a wrong number, without an error (pyarrow 26).
    longest = call_function("max", [lengths]).as_py()
    if scales["min"] is None or scales["min"] != scales["max"] or longest > _MOST_DIGITS:
        return None
    # Arrow has no -0.00.
    zeros = call_function("match_substring_regex", [texts], MatchSubstringOptions(r"\A-[0.]+\z"))
    if call_function("any", [zeros]).as_py():
        return None
    return texts.cast(pa.decimal128(_MOST_DIGITS, scales["min"] - 1))


_MOST_DIGITS = 38
_PARTS: Mapping[_Way, Callable[[Column, str], Any]] = {
    "as it is": _as_it_is,
    "as floats": _floats,
    "as texts": _nothing,
    "as texts of dates": _dates,
    "as texts of times": _datetimes,
    "as texts of decimals": _decimals,
}
_AS_TEXTS: Mapping[type, _Way] = {
    datetime.date: "as texts of dates",
    datetime.datetime: "as texts of times",
    decimal.Decimal: "as texts of decimals",
}


def _reached_by(form: ItemDecoder | None, names: Sequence[str]) -> frozenset[Literal["attribute", "key", "place"]]:
    if form is None or is_typed_dict(form.kind):
        return frozenset({"key"})
    kind: Any = form.kind
    are_all_there = issubclass(kind, tuple) and tuple(names) == field_names(kind)
    return frozenset({"attribute", "place"} if are_all_there else {"attribute"})


def _items(
    is_strict: bool, names: Sequence[str], make: Callable[[list[Any]], Iterable[Any]], column: Column, places: Any
) -> Iterable[Any]:
    """Return the items at `places`.

    Raises:
        UnreadPlace: an item has a value that Python cannot represent.
    """
    columns = [ArrowRows.chosen(column(name), places) for name in names]
    try:
        return make(columns)
    except MemoryError:
        raise
    except Exception as error:
        if unread := unread_place(columns, names, places, is_strict=is_strict):
            raise unread from error
        raise


def _maker(names: Sequence[str], form: ItemDecoder | None) -> Callable[[list[Any]], Iterable[Any]]:
    """Return a maker of items of columns."""
    return partial(_dictionaries, names) if form is None else partial(_made, maker_of_rows(form, names))


def _dictionaries(names: Sequence[str], columns: list[Any]) -> list[Any]:
    import pyarrow as pa

    found: list[Any] = pa.RecordBatch.from_arrays(columns, list(names)).to_pylist()
    return found


def _made(make: Callable[[Sequence[Any]], Any], columns: list[Any]) -> Iterator[Any]:
    return map(make, zip(*map(values_of, columns), strict=True))
