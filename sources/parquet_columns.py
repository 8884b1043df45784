"""Rows of Parquet in columns of Arrow: which row groups stand in some, and when their columns are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dstream.spi import ArrowRows
from sources.arrow_items import Column, RowsMaker, rows_maker
from sources.arrow_layouts import in_usual_layout, usual_type
from sources.arrow_times import has_nanoseconds, in_microseconds
from sources.arrow_values import UnreadPlace
from sources.file_access import File, reading
from sources.forms import FormOfItem
from sources.parquet_reading import RowGroup, batches, misread_row, opened_parquet

__all__ = ["rows_of_group"]

_FIRST_ROWS, _ROWS = 4_096, 32_768
"""So many rows of numbers stay in the cache of a core. The first block is small, for who looks for one item."""
_GROUP_BYTES = 64 << 20
"""Columns of a row group are read as a whole up to so many bytes; the rows of a larger one come in batches."""


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
    rows = rows_maker(form, names, whole)
    if rows is None or not whole.has_times_of_python(names):
        return None
    if whole.bytes <= _GROUP_BYTES:
        found: Iterator[tuple[int, ArrowRows]] = (
            (start, rows(partial(_slice, whole.column, start, size), size, group.batch_rows))
            for start, size in _blocks(whole.rows)
        )
    else:
        found = _rows_of_batches(batches(parquet, [group], names), rows, group.batch_rows)
    return (_of_group(group, start, each) for start, each in found)


def _rows_of_batches(read: Iterable[Any], rows: RowsMaker, most: int) -> Iterator[tuple[int, ArrowRows]]:
    start = 0
    for batch in read:
        yield start, rows(partial(_of_batch, batch), batch.num_rows, most)
        start += batch.num_rows


def _of_batch(batch: Any, name: str) -> Any:
    return in_usual_layout(batch.column(name))


def _of_group(group: RowGroup, start: int, rows: ArrowRows) -> ArrowRows:
    """Return rows whose parts and items say where they stand if they cannot be made, whenever that is."""
    parts = {each: partial(_part, group.file.name, part) for each, part in rows.parts.items()}
    return replace(rows, parts=parts, items=partial(_items, group.file, group.before + start + 1, rows.items))


def _part(name: str, part: Callable[[], Any]) -> Any:
    with reading(name):
        return part()


def _items(file: File, first: int, items: Callable[[Any], Iterable[Any]], places: Any) -> Iterable[Any]:
    with reading(file.name):  # What cannot be decoded fails here: behind it, rows become items one by one.
        try:
            return items(places)
        except UnreadPlace as unread:
            row = unread.unread
            raise misread_row(file, first + unread.place, row.row, row.problem).error() from row.problem.plain()


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
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return in_usual_layout(in_microseconds(whole))

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
        return usual_type(self._parquet.schema_arrow.field(name).type)

    def may_hold_nulls(self, name: str) -> bool:
        """Say whether a column may hold nulls, from the metadata if these know."""
        if not self._parquet.schema_arrow.field(name).nullable:
            return False
        group = self._parquet.metadata.row_group(self._group.index)
        for each in map(group.column, range(group.num_columns)):
            if each.path_in_schema == name and each.statistics is not None and each.statistics.has_null_count:
                return bool(each.statistics.null_count)
        return bool(self.column(name).null_count)


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    """Give where each block begins, and how many rows it has."""
    start, size = 0, _FIRST_ROWS
    while start < rows:
        yield start, min(size, rows - start)
        start, size = start + size, _ROWS


def _slice(column: Column, start: int, size: int, name: str) -> Any:
    return column(name).slice(start, size)
