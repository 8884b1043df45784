"""Rows of a table of the caller: a pandas DataFrame or an Arrow table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dstream.base.showing import repeated, shown
from dstream.connectors.memory import split_count
from dstream.errors import SourceError
from dstream.schema.arrow_decoders import (
    ColumnsOfBatch,
    UnreadPlace,
    UnreadRow,
    are_parts_plain,
    names_read,
    rows_maker,
    rows_of_python,
)
from dstream.schema.containers import MapType
from dstream.schema.decoders import DecodeError, ItemDecoder
from dstream.schema.factories import maker_of_rows
from dstream.schema.record_decoders import BINARY, OnMisread, form_of, missing_columns
from dstream.schema.times import in_microseconds
from dstream.schema.type_inference import Layout, types_of_fields
from dstream.spi import ArrowRows, InputSize, Misread
from dstream.values import BadRecord

__all__ = [
    "TableItems",
    "TableRows",
    "TableSplit",
    "fail",
    "items_of_table",
    "misread_row",
    "rows_of_table",
    "table_of",
]


def items_of_table(kind: Any, columns: Sequence[str], call: str) -> TableItems:
    """Return a function that makes a `kind` of each row of a table with these columns.

    Args:
        kind: a dataclass, a named tuple, a TypedDict, an attrs class or a pydantic model.
        columns: all columns.
        call: names the table in messages.

    Raises:
        TypeError: it is none of these, has a field of a type that no value of a table becomes, or one without a column
            and without a default.
    """
    form = form_of(kind, BINARY)
    if missing := missing_columns(form, columns):
        there = f"; there are {', '.join(columns)}" if columns else ""
        raise TypeError(f"{call}: the table has no column for {', '.join(missing)} of {form.expected}{there}")
    # A table needs a column to have a number of rows, also where no field is read from one.
    return TableItems(form, tuple(names_read(form, columns) or columns[:1]), call)


@dataclass(frozen=True, slots=True)
class TableItems:
    """Function that makes items of rows. It is sent to workers.

    Attributes:
        form: the class of each item.
        names: the names of the columns that are read.
        call: how the user has named the table.
    """

    form: ItemDecoder
    names: tuple[str, ...]
    call: str

    def made(
        self,
        batches: Iterable[Sequence[Sequence[Any]] | UnreadRow],
        first: int | None = None,
        misread: OnMisread | None = None,
    ) -> Iterator[Any]:
        """Yield the items of rows.

        Args:
            batches: the values of each column, as in Parquet, batch by batch.
            first: the number of the first row; None: rows have no order.
            misread: returns the replacement of a row that cannot become an item; None: it is an error.

        Raises:
            SourceError: a row becomes no item.
        """
        misread = misread or fail
        make, number = maker_of_rows(self.form, self.names), first
        for columns in batches:
            if isinstance(columns, UnreadRow):
                yield from misread(misread_row(self.call, number, columns.row, columns.problem))
                number = None if number is None else number + 1
                continue
            for values in zip(*columns, strict=True):
                try:
                    made = make(values)  # A failure would name the variable `item`, which is the previous one.
                except DecodeError as error:
                    row = dict(zip(self.names, values, strict=True))
                    yield from misread(misread_row(self.call, number, row, error))
                else:
                    yield made
                number = None if number is None else number + 1


def misread_row(call: str, number: int | None, row: dict[str, Any], problem: DecodeError) -> Misread:
    """Return the report on a row that becomes no item.

    Args:
        call: names the table.
        number: of the row, from 1; None: rows have no order.
        row: its values by their columns.
        problem: the error.
    """
    place = "" if number is None else f", row {number:,}"
    seen = problem.plain()

    def error() -> SourceError:
        found = SourceError(f"{call}{place}: {problem.message('column')}: {shown(row)}")
        found.__cause__ = seen
        return found

    return Misread(seen, lambda: BadRecord(call, number or 0, repr(row)), error)


def fail(misread: Misread) -> Iterable[Any]:
    """Raise the error of a bad row."""
    raise misread.error()


BATCH_ROWS = 8_192
"""The number of rows that are made dictionaries at a time."""
BLOCK_ROWS = 32_768
"""The number of rows of numbers that fit into the cache of a core."""
LARGEST_SPLIT = 16 << 20
"""The approximate limit of the bytes of a split, since it is sent as a whole."""


def table_of(frame: Any, kind: Any = None) -> Any:
    """Return a frame as a `pyarrow.Table` of its present values, with times in microseconds.

    Args:
        frame: a table, or a DataFrame.
        kind: the class of the rows, by which objects of pandas are dictionaries with their own keys.

    Raises:
        TypeError: it is no table, Arrow has no type for one of its columns, or a column has nanoseconds.
        ValueError: two columns have the same name.
    """
    # pyarrow takes about 200 ms to import, which only its users should pay for.
    import pyarrow as pa

    if _is_pandas(frame):
        _refuse_objects_with_nanoseconds(frame)
    try:
        table = _table_of_pandas(frame, kind) if _is_pandas(frame) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"this {type(frame).__name__} does not become an Arrow table: {error}") from error
    for column in table.schema:
        if getattr(column.type, "extension_name", "") in _CHANGED:
            raise TypeError(
                f"column {column.name!r} holds values of pandas that Arrow changes ({column.type}): make others of "
                "them before, such as texts with .astype(str)"
            )
    if twice := repeated(table.column_names):
        raise ValueError(f"the table has more than one column {twice}: rename them before")
    try:
        return in_microseconds(table)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TypeError(
            f"the table holds nanoseconds, which times of Python have not: {error}; round them before, such as with "
            '.dt.floor("us")'
        ) from error


def _table_of_pandas(frame: Any, kind: Any) -> Any:
    """Return a table in which dictionaries are maps where the fields of a class are annotated so.

    Arrow converts them to structs, in which each has the keys of all.
    """
    import pyarrow as pa

    known = types_of_fields(kind, Layout.TABLES, strict=False) if isinstance(kind, type) else {}
    maps: dict[Any, Any] = {}
    for name, found in known.items():
        # Where two columns have one name, `frame[name]` is a DataFrame; `table_of` refuses that later.
        column = frame[name] if isinstance(found, MapType) and list(frame.columns).count(name) == 1 else None
        if column is not None and column.dtype == object:
            values = [_without_nan(value) for value in column]
            maps[name] = found.refined(values).array(values)
    table = pa.Table.from_pandas(frame.drop(columns=list(maps)), preserve_index=False)
    if not maps:
        return table
    return pa.table({str(name): maps[name] if name in maps else table[str(name)] for name in frame.columns})


def _without_nan(value: Any) -> Any:
    # pandas has NaN where a column of objects has no value.
    return None if isinstance(value, float) and value != value else value


def _refuse_objects_with_nanoseconds(frame: Any) -> None:
    """Refuse Timestamps and Timedeltas of pandas in columns of objects, whose nanoseconds Arrow would truncate.

    Raises:
        TypeError: there is such a value.
    """
    # `infer_dtype` scans a column in C, so that only columns that may contain times are scanned in Python.
    from pandas.api.types import infer_dtype

    for name in dict.fromkeys(frame.columns):
        column = frame[name]
        for each in [column] if column.ndim == 1 else []:  # Two columns of one name are refused later.
            if each.dtype == object and infer_dtype(each, skipna=True) not in _WITHOUT_TIMES:
                found = next((value for value in each if _has_nanoseconds(value)), None)
                if found is not None:
                    raise TypeError(
                        f"column {name!r} holds nanoseconds, which times of Python have not: {found!r}; round them "
                        "before"
                    )


_WITHOUT_TIMES = frozenset({"string", "bytes", "boolean", "integer", "floating", "decimal", "complex", "date", "time"})


def _has_nanoseconds(value: Any) -> bool:
    if isinstance(value, list | tuple | set):
        return any(map(_has_nanoseconds, value))
    if isinstance(value, dict):
        return any(map(_has_nanoseconds, value.values()))
    if getattr(getattr(value, "dtype", None), "hasobject", False):
        return any(map(_has_nanoseconds, value.flat))
    # A Timestamp has `nanosecond`, a Timedelta `nanoseconds`; for NaT they are NaN.
    return bool(getattr(value, "nanosecond", 0) > 0 or getattr(value, "nanoseconds", 0) > 0)


_CHANGED = frozenset({"pandas.period", "pandas.interval"})
"""Arrow would convert a period to an int, and an interval to a dictionary of its ends."""


def _is_pandas(frame: object) -> bool:
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(frame).__mro__)


def rows_of_table(table: Any, kind: Any = None, call: str = "from_df(Table)") -> TableRows:
    """Return the rows of an Arrow table as a source, each as a dictionary or a `kind`.

    Raises:
        TypeError: as `items_of_table`.
    """
    if kind is None:
        return TableRows(table, None, call)
    made = items_of_table(kind, table.column_names, call)
    return TableRows(table.select(made.names), made, call)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableRows:
    """The rows of an Arrow table, in order: dictionaries, or objects made of them.

    **Parallelism**: as many splits as keep every core busy, and more of a table beyond 16 MiB for each of them.
    **Guarantee**: ordered; every row once.
    **On re-run**: the same rows.
    """

    table: Any
    made: TableItems | None = None
    call: str = "from_df(Table)"

    ordered = True
    bounded = True
    in_caller = False
    on_bad = "fail"
    into = None

    @property
    def has_columns(self) -> bool:
        """Return whether rows can be read in columns."""
        return _has_columns(self.table, self.made)

    @property
    def item_class(self) -> type | None:
        """The class of the items, if one was named."""
        return None if self.made is None else getattr(self.made.form, "kind", None)

    def count_splits(self, parallelism: int) -> int:
        """Return the number of splits."""
        return split_count(self.table.num_rows, None, max(parallelism, self.table.nbytes // LARGEST_SPLIT))

    def input_size(self) -> InputSize:
        """Return the number of rows."""
        return InputSize(self.table.num_rows, is_exact=True, is_held=True, is_near=True)

    def splits(self, parallelism: int) -> list[TableSplit]:
        """Cut the table into slices, which share its memory."""
        size, count = self.table.num_rows, self.count_splits(parallelism)
        borders = [size * index // count for index in range(count + 1)]
        return [
            TableSplit(self.table.slice(start, stop - start), self.made, start, self.call)
            for start, stop in itertools.pairwise(borders)
        ]


def _has_columns(table: Any, made: TableItems | None) -> bool:
    return bool(table.num_columns) and are_parts_plain(None if made is None else made.form)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableSplit:
    """A slice of a table, which travels without the rest of the table.

    Attributes:
        table: the rows.
        made: makes items of them; None: they are dictionaries.
        before: the number of earlier rows of the table.
        call: how the user has named the table.
    """

    table: Any
    made: TableItems | None
    before: int
    call: str

    def read(self) -> Iterator[Any]:
        """Yield the rows.

        Raises:
            SourceError: a row becomes no item.
        """
        return self._items(self.table, self.before, fail)

    def read_past(self, misread: OnMisread) -> Iterator[Any]:
        """Yield the rows, with the result of `misread` in place of a bad row, or raise its error."""
        return self._items(self.table, self.before, misread)

    def _items(self, rows: Any, before: int, misread: OnMisread) -> Iterator[Any]:
        values = (
            found
            for batch in rows.to_batches(max_chunksize=BATCH_ROWS)
            for found in rows_of_python(batch, is_strict=self.made is not None)
        )
        if self.made is not None:
            return self.made.made(values, before + 1, misread)
        return self._dictionaries(values, rows.schema.names, before + 1, misread)

    def _dictionaries(
        self, values: Iterable[list[list[Any]] | UnreadRow], names: list[str], number: int, misread: OnMisread
    ) -> Iterator[Any]:
        for found in values:
            if isinstance(found, UnreadRow):
                yield from misread(misread_row(self.call, number, found.row, found.problem))
                number += 1
            else:
                yield from (dict(zip(names, row, strict=True)) for row in zip(*found, strict=True))
                number += len(found[0])

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Any]] | None:
        """Return the rows in columns, and the items of those that are in none; None if a class does more."""
        return self._blocks() if _has_columns(self.table, self.made) else None

    def _blocks(self) -> Iterator[ArrowRows | Iterator[Any]]:
        import pyarrow as pa

        form = None if self.made is None else self.made.form
        before = self.before
        # No batch extends beyond a chunk, so a table of small chunks would make as many small blocks.
        for batch in self.table.combine_chunks().to_batches(max_chunksize=BLOCK_ROWS):
            columns = ColumnsOfBatch(batch)
            rows = rows_maker(form, batch.schema.names, columns)
            if rows is None:
                yield self._items(pa.Table.from_batches([batch]), before, fail)
            else:
                found = rows(columns.column, batch.num_rows, BATCH_ROWS)
                yield replace(found, items=partial(_chosen, self.call, before + 1, found.items))
            before += batch.num_rows

    def __reduce__(self) -> tuple[Any, ...]:
        import pyarrow as pa

        # The pickle of a slice has the buffers of the complete table (pyarrow 26), the IPC format only its rows.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return _received, (sink.getvalue().to_pybytes(), self.made, self.before, self.call)


def _chosen(call: str, first: int, items: Callable[[Any], Iterable[Any]], places: Any) -> Iterable[Any]:
    try:
        return items(places)
    except UnreadPlace as unread:
        row = unread.unread
        raise misread_row(call, first + unread.place, row.row, row.problem).error() from row.problem.plain()


def _received(data: bytes, made: TableItems | None, before: int, call: str) -> TableSplit:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        return TableSplit(stream.read_all(), made, before, call)
