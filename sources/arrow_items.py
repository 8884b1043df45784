"""Items of rows that stand in columns of Arrow: what their values are in Python, and which rows may stay columns."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol

from dstream.spi import ArrowRows
from dstream.values.fields import field_names, has_plain_fields, is_typed_dict
from sources.arrow_values import has_intervals, has_maps, unread_place, values_of
from sources.forms import Anything, Form, FormOfItem, Made, OneOf, OrAbsent, Record, Scalar, Whole
from sources.quick_makers import maker_of_rows

__all__ = ["Column", "ColumnsOfRows", "RowsMaker", "are_parts_plain", "names_read", "rows_maker"]

Column = Callable[[str], Any]
"""Gives the array of a column."""

RowsMaker = Callable[[Column, int, int], ArrowRows]
"""Gives rows in columns: of arrays, how many rows they are, and how many become items at a time."""


class ColumnsOfRows(Protocol):
    """What is known of columns before they are read."""

    def type_of(self, name: str) -> Any:
        """Return the type of a column."""
        ...

    def may_hold_nulls(self, name: str) -> bool:
        """Say whether a column may hold nulls."""
        ...


def names_read(form: FormOfItem | None, there: Sequence[str]) -> Sequence[str]:
    """Return those of some columns that items are made of: the fields of a class, in its order, or all of them."""
    return [name for name, *_ in form.fields if name in there] if isinstance(form, Record) else there


def are_parts_plain(form: FormOfItem | None) -> bool:
    """Say whether rows become items that hold the values of the columns, and run no code of a class."""
    return form is None or (isinstance(form, Record) and (is_typed_dict(form.kind) or _is_plain(form.kind)))


def _is_plain(kind: Any) -> bool:
    return isinstance(kind, type) and has_plain_fields(kind)


def rows_maker(form: FormOfItem | None, names: Sequence[str], columns: ColumnsOfRows) -> RowsMaker | None:
    """Return what gives rows in columns; None if one of the rows may be no item, or there are no columns.

    Args:
        form: that of the items, whose parts are plain; None for dictionaries.
        names: those of the columns that are read.
        columns: what is known of these.
    """
    names = names_read(form, names)
    ways = {} if form is None else _ways(form, names, columns)
    if ways is None or not names or any(has_intervals(columns.type_of(name)) for name in names):
        return None
    reached_by, made = _reached_by(form, names), partial(_items, form is not None, names, _maker(names, form))

    def rows(column: Column, size: int, most: int) -> ArrowRows:
        parts = {name: partial(_floats if ways.get(name) == "as floats" else _as_it_is, column, name) for name in names}
        return ArrowRows(size, parts, reached_by, partial(made, column), most)

    return rows


def _ways(form: FormOfItem, names: Sequence[str], columns: ColumnsOfRows) -> Mapping[str, _Way] | None:
    """Return what becomes of the values of each column; None if one of them may not fit."""
    assert isinstance(form, Record), "others have no parts"
    forms = {name: each for name, _, each, _ in form.fields}
    found: dict[str, _Way] = {}
    for name in names:
        way = _way(forms[name], columns.type_of(name), partial(columns.may_hold_nulls, name))
        if way is None:
            return None
        found[name] = way
    return found


_Way = Literal["as it is", "as floats"]


def _way(form: Form, kind: Any, may_hold_nulls: Callable[[], bool]) -> _Way | None:
    if isinstance(form, Anything):
        return None if has_maps(kind) else "as it is"  # A map that has a key twice is refused, with its row.
    if isinstance(form, OrAbsent):
        return _way(form.form, kind, may_hold_nulls)
    if isinstance(form, OneOf):
        return _way(form.forms[0], kind, lambda: False) if form.forms[1:] == (Scalar(type(None)),) else None
    import pyarrow as pa

    if isinstance(form, Whole) and pa.types.is_integer(kind):
        way: _Way | None = "as floats"
    else:
        own = float if isinstance(form, Whole) else form.kind if isinstance(form, Scalar | Made) else None
        fits = _FITTING.get(own)
        way = "as it is" if fits is not None and any(getattr(pa.types, each)(kind) for each in fits) else None
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
"""Which types of Arrow hold values of a class and no others, as functions of `pyarrow.types`."""


def _as_it_is(column: Column, name: str) -> Any:
    return column(name)


def _floats(column: Column, name: str) -> Any:
    """Return ints as floats; beyond 2**53 the nearest one is taken, as Python does."""
    import pyarrow as pa

    return column(name).cast(pa.float64(), safe=False)


def _reached_by(form: FormOfItem | None, names: Sequence[str]) -> frozenset[Literal["attribute", "key", "place"]]:
    if form is None or is_typed_dict(form.kind):
        return frozenset({"key"})
    kind: Any = form.kind
    are_all_there = issubclass(kind, tuple) and tuple(names) == field_names(kind)
    return frozenset({"attribute", "place"} if are_all_there else {"attribute"})


def _items(
    is_strict: bool, names: Sequence[str], make: Callable[[list[Any]], Iterable[Any]], column: Column, places: Any
) -> Iterable[Any]:
    """Return the items at some places.

    Raises:
        UnreadPlace: one of them holds a value that Python does not have.
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


def _maker(names: Sequence[str], form: FormOfItem | None) -> Callable[[list[Any]], Iterable[Any]]:
    """Return what makes items of columns."""
    return partial(_dictionaries, names) if form is None else partial(_made, maker_of_rows(form, names))


def _dictionaries(names: Sequence[str], columns: list[Any]) -> list[Any]:
    import pyarrow as pa

    found: list[Any] = pa.RecordBatch.from_arrays(columns, list(names)).to_pylist()
    return found


def _made(make: Callable[[Sequence[Any]], Any], columns: list[Any]) -> Iterator[Any]:
    return map(make, zip(*map(values_of, columns), strict=True))
