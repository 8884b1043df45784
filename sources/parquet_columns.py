"""Rows of Parquet in columns of Arrow: which row groups stand in some, and how items are made of them where needed."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from dstream.spi import ArrowRows
from dstream.values.fields import field_names, has_plain_fields, is_typed_dict
from sources.arrow_times import has_nanoseconds, in_microseconds
from sources.forms import Anything, Form, FormOfItem, Made, OneOf, Record, Scalar, Whole
from sources.parquet_reading import RowGroup, batches, opened_parquet, values_of
from sources.quick_makers import maker_of_rows

__all__ = ["are_parts_plain", "rows_of_group"]

_FIRST_ROWS, _ROWS = 4_096, 32_768
"""So many rows of numbers stay in the cache of a core. The first block is small, for who looks for one item."""
_GROUP_BYTES = 64 << 20
"""Columns of a row group are read as a whole up to so many bytes; the rows of a larger one come in batches."""

Column = Callable[[str], Any]
"""Gives the array of a column."""


def are_parts_plain(form: FormOfItem | None) -> bool:
    """Say whether rows become items that hold the values of the columns, and run no code of a class."""
    return form is None or (isinstance(form, Record) and (is_typed_dict(form.kind) or _is_plain(form.kind)))


def _is_plain(kind: Any) -> bool:
    return isinstance(kind, type) and has_plain_fields(kind)


def rows_of_group(
    parquet: Any, group: RowGroup, names: Sequence[str], form: FormOfItem | None
) -> Iterator[ArrowRows] | None:
    """Return the rows of a row group in columns; None if one of them may be no item, or there are no columns.

    Args:
        parquet: the open file.
        group: which one.
        names: those of the columns that items are made of.
        form: that of the items, whose parts are plain; None for dictionaries.
    """
    whole = _ColumnsOfGroup(parquet, group)
    ways = {} if form is None else _ways(form, names, whole)
    if ways is None or not names or not whole.has_times_of_python(names):
        return None
    make = _maker(names, form)
    if whole.bytes <= _GROUP_BYTES:
        return (
            _rows(partial(_slice, whole.column, start, size), size, group, names, form, ways, make)
            for start, size in _blocks(whole.rows)
        )
    return (
        _rows(batch.column, batch.num_rows, group, names, form, ways, make)
        for batch in batches(parquet, [group], names)
    )


class _ColumnsOfGroup:
    """The columns of a row group, each read when somebody asks for it.

    Attributes:
        rows: how many there are.
        bytes: how many the columns take without compression.
    """

    def __init__(self, parquet: Any, group: RowGroup) -> None:
        self._parquet = parquet
        self._group = group
        self._columns: dict[str, Any] = {}
        metadata = parquet.metadata.row_group(group.index)
        self.rows: int = metadata.num_rows
        self.bytes: int = metadata.total_byte_size

    def column(self, name: str) -> Any:
        """Return a column of all rows."""
        if name not in self._columns:
            if self._parquet.closed:  # Somebody has kept rows until the split was read.
                with opened_parquet(self._group.file) as parquet:
                    self._columns[name] = self._read(parquet, name)
            else:
                self._columns[name] = self._read(self._parquet, name)
        return self._columns[name]

    def _read(self, parquet: Any, name: str) -> Any:
        column = parquet.read_row_group(self._group.index, [name], use_threads=False).column(name)
        return in_microseconds(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())

    def has_times_of_python(self, names: Sequence[str]) -> bool:
        """Look into columns of nanoseconds whether all of them are whole microseconds; these columns are read."""
        import pyarrow as pa

        with_some = [name for name in names if has_nanoseconds(self.type_of(name))]
        if with_some and self.bytes > _GROUP_BYTES:
            return False
        try:
            for name in with_some:
                self.column(name)
        except pa.ArrowInvalid:
            return False
        return True

    def type_of(self, name: str) -> Any:
        """Return the type of a column."""
        return self._parquet.schema_arrow.field(name).type

    def may_hold_nulls(self, name: str) -> bool:
        """Say whether a column may hold nulls, from the metadata if these know."""
        if not self._parquet.schema_arrow.field(name).nullable:
            return False
        group = self._parquet.metadata.row_group(self._group.index)
        for each in map(group.column, range(group.num_columns)):
            if each.path_in_schema == name and each.statistics is not None and each.statistics.has_null_count:
                return bool(each.statistics.null_count)
        return bool(self.column(name).null_count)


def _ways(form: FormOfItem, names: Sequence[str], columns: _ColumnsOfGroup) -> dict[str, _Way] | None:
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
        return "as it is"
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


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    """Give where each block begins, and how many rows it has."""
    start, size = 0, _FIRST_ROWS
    while start < rows:
        yield start, min(size, rows - start)
        start, size = start + size, _ROWS


def _slice(column: Column, start: int, size: int, name: str) -> Any:
    return column(name).slice(start, size)


def _rows(
    column: Column,
    size: int,
    group: RowGroup,
    names: Sequence[str],
    form: FormOfItem | None,
    ways: Mapping[str, _Way],
    make: Callable[[list[Any]], Iterable[Any]],
) -> ArrowRows:
    parts = {name: partial(_floats if ways.get(name) == "as floats" else _as_it_is, column, name) for name in names}
    return ArrowRows(size, parts, _reached_by(form, names), partial(_items, column, names, make), group.batch_rows)


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
    column: Column, names: Sequence[str], make: Callable[[list[Any]], Iterable[Any]], places: Any
) -> Iterable[Any]:
    return make([ArrowRows.chosen(column(name), places) for name in names])


def _maker(names: Sequence[str], form: FormOfItem | None) -> Callable[[list[Any]], Iterable[Any]]:
    """Return what makes items of columns."""
    if form is None:
        return partial(_dictionaries, names)
    return partial(_made, maker_of_rows(form, names))


def _dictionaries(names: Sequence[str], columns: list[Any]) -> list[Any]:
    import pyarrow as pa

    found: list[Any] = pa.RecordBatch.from_arrays(columns, list(names)).to_pylist()
    return found


def _made(make: Callable[[Sequence[Any]], Any], columns: list[Any]) -> Iterator[Any]:
    return map(make, zip(*map(values_of, columns), strict=True))
