"""Rows of Parquet files as items or as Arrow columns, by row group."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dstream.base.records import record
from dstream.base.showing import repeated
from dstream.connectors.files.open_parquet import (
    DECODED_BYTES,
    LARGEST_ROW,
    OpenParquet,
    RowGroup,
    RowGroups,
    batches,
    has_dictionary,
    largest_value,
    misread_row,
    opened_parquet,
    pieces,
    too_large,
)
from dstream.connectors.files.splits import OPENING, group
from dstream.connectors.files.text_columns import only_chunk
from dstream.errors import SourceError
from dstream.filesystem.access import File, reading
from dstream.schema.arrow_decoders import (
    Column,
    RowsMaker,
    UnreadPlace,
    UnreadRow,
    are_parts_plain,
    names_read,
    rows_maker,
    rows_of_python,
)
from dstream.schema.decoders import DecodeError, ItemDecoder
from dstream.schema.factories import maker_of_rows
from dstream.schema.record_decoders import OnMisread, missing_columns
from dstream.schema.times import has_nanoseconds, in_microseconds, in_usual_layout, usual_type
from dstream.spi import ArrowRows

__all__ = ["ParquetReader", "rows_of_group"]


_FIRST_ROWS, _ROWS = 4_096, 32_768
"""Rows of numbers that fit into the cache of a core. The first block is small, for readers of one item."""
_GROUP_BYTES = 64 << 20
"""The maximal bytes of a row group that is read as a whole; a larger one is read in batches."""
_GROUP_NUMBERS = 1 << 30
"""The same of the bytes that its numbers have when they are decoded."""
_GROUP_DECODED = 256 << 20
"""The maximal bytes of columns of a row group that are decoded as a whole; others remain in dictionaries."""


def rows_of_group(
    parquet: OpenParquet, group: RowGroup, names: Sequence[str], form: ItemDecoder | None
) -> Iterator[ArrowRows] | None:
    """Return the rows of a row group in columns; None if a row may be invalid, or there are no columns.

    Args:
        parquet: the open file.
        group: the row group.
        names: the names of the columns of items.
        form: the decoder of the items, whose parts are plain; None for dictionaries.
    """
    whole = _ColumnsOfGroup(parquet, group)
    rows = rows_maker(form, names, whole)
    if rows is None or not whole.has_times_of_python(names):
        return None
    if whole.bytes <= _GROUP_BYTES and parquet.most_of_numbers(group.index, whole.rows, names) <= _GROUP_NUMBERS:
        return (
            BlockOfGroup(group, tuple(names), form, start, size).made(whole, rows)
            for start, size in _blocks(whole.rows)
        )
    found = _rows_of_batches(batches(parquet, [group], names), rows, group.batch_rows)
    return (_of_group(group, whole, *each) for each in found)


@record
class BlockOfGroup:
    """Reference to rows of a row group whose columns are read as a whole, by which they are read again."""

    group: RowGroup
    names: tuple[str, ...]
    form: ItemDecoder | None
    start: int
    size: int

    @property
    def together(self) -> tuple[str, int]:
        """The row group, within one run."""
        return self.group.file.name, self.group.index

    def opened(self) -> _ColumnsOfGroup:
        """Return the columns of the row group."""
        with opened_parquet(self.group.file) as parquet:
            return _ColumnsOfGroup(parquet, self.group)

    def rows(self, opened: _ColumnsOfGroup) -> ArrowRows:
        """Return the rows."""
        with reading(self.group.file.name):
            make = rows_maker(self.form, self.names, opened)
        if make is None or opened.rows < self.start + self.size:
            raise self.changed()
        return self.made(opened, make)

    def made(self, whole: _ColumnsOfGroup, make: RowsMaker) -> ArrowRows:
        """Return the rows of columns that are open."""
        start, size = self.start, self.size
        rows = make(partial(_slice, whole.column, start, size), size, self.group.batch_rows)
        found = _of_group(self.group, whole, start, rows, partial(whole.apart, self.names, start, size))
        return replace(found, again=self)

    def changed(self) -> SourceError:
        """Return the error for a file that was rewritten."""
        return SourceError(f"{self.group.file.name} was changed while it was read: write a new file in its place")


_Apart = Callable[[Any], Sequence[Any]]
"""Function that divides positions of rows into batches whose items are made together."""


def _rows_of_batches(read: Iterable[Any], rows: RowsMaker, most: int) -> Iterator[tuple[int, ArrowRows, _Apart]]:
    start = 0
    for batch in read:
        yield start, rows(partial(_of_batch, batch), batch.num_rows, most), lambda places: [places]
        start += batch.num_rows


def _of_batch(batch: Any, name: str) -> Any:
    return in_usual_layout(batch.column(name))


def _of_group(group: RowGroup, whole: _ColumnsOfGroup, start: int, rows: ArrowRows, apart: _Apart) -> ArrowRows:
    """Return rows whose parts and items name their location in an error."""
    parts = {each: partial(_part, group.file.name, whole, each, part) for each, part in rows.parts.items()}
    return replace(rows, parts=parts, items=partial(_items, group.file, group.before + start + 1, rows.items, apart))


def _part(file: str, whole: _ColumnsOfGroup, name: str, part: Callable[[], Any]) -> Any:
    with reading(file):
        return _decoded(part(), partial(whole.type_of, name))


def _decoded(values: Any, kind: Callable[[], Any]) -> Any:
    """Return decoded values unless their column has a dictionary; None if they take too many bytes."""
    import pyarrow as pa

    if not has_dictionary(values.type):
        return values
    if len(list(itertools.islice(pieces([values], len(values), DECODED_BYTES), 2))) > 1:
        return None
    if has_dictionary(kind()):
        return values
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else None


def _items(file: File, first: int, items: Callable[[Any], Iterable[Any]], apart: _Apart, places: Any) -> Iterable[Any]:
    with reading(file.name):
        try:
            found = apart(places)
        except OverflowError as error:
            raise too_large(file, first + error.args[0]) from None
    made = map(partial(_made, file, first, items), found)
    return itertools.chain.from_iterable(made) if len(found) > 1 else next(made)


def _made(file: File, first: int, items: Callable[[Any], Iterable[Any]], places: Any) -> Iterable[Any]:
    with reading(file.name):  # Invalid values fail here: afterwards, rows become items one by one.
        try:
            return items(places)
        except UnreadPlace as unread:
            row = unread.unread
            raise misread_row(file, first + unread.place, row.row, row.problem).error() from row.problem.plain()


class _Large(NamedTuple):
    """The dictionaries of a column, how many bytes all its values may have, and whether rows have several of them."""

    paths: list[str]
    bytes: int
    are_lists: bool


class _ColumnsOfGroup:
    """The columns of a row group, each read on first use.

    Attributes:
        rows: the number of rows.
        bytes: the uncompressed size of the columns.
    """

    def __init__(self, parquet: OpenParquet, group: RowGroup) -> None:
        self._parquet = parquet
        self._group = group
        self._columns: dict[str, Any] = {}
        self._room = _GROUP_DECODED
        metadata = parquet.file.metadata.row_group(group.index)
        self.rows: int = metadata.num_rows
        self.bytes: int = metadata.total_byte_size

    def column(self, name: str) -> Any:
        """Return a column of all rows."""
        if name not in self._columns:
            if self._parquet.file.closed:  # A caller has retained rows until the split was read.
                with opened_parquet(self._group.file) as parquet:
                    self._columns[name] = self._read(parquet, name)
            else:
                self._columns[name] = self._read(self._parquet, name)
        return self._columns[name]

    def _read(self, parquet: OpenParquet, name: str) -> Any:
        """Return a column; its values remain in dictionaries if they would take too many bytes otherwise."""
        group = self._group.index
        large = self._large(parquet, name)
        if not large.paths:
            column: Any = only_chunk(parquet.file.read_row_group(group, [name], use_threads=False).column(name))
        elif (found := self._within_room(parquet.file, name, large)) is not None:
            column = found
        else:
            read = parquet.with_dictionaries(large.paths).read_row_group(group, [name], use_threads=False)
            column = only_chunk(read.column(name))
        self._room -= column.nbytes
        return in_usual_layout(in_microseconds(column))

    def _large(self, parquet: OpenParquet, name: str) -> _Large:
        """Return the dictionaries of a column if its decoded values may take too many bytes."""
        most = max(0, self._room)
        # Where rows that have all values of the row group are within the bound, no dictionary need be looked at.
        if self.bytes * self.rows <= most and not parquet.has_lists:
            return _Large([], 0, are_lists=False)
        found, together, are_lists = [], 0, False
        for chunk in parquet.chunks(self._group.index, [name]):
            if largest := largest_value(parquet.source, chunk, most // max(1, chunk.num_values)):
                found.append(chunk.path_in_schema)
                together += largest * chunk.num_values
                are_lists |= chunk.num_values > self.rows
        is_large = together > most and not has_dictionary(self.type_of(name))
        return _Large(found if is_large else [], together, are_lists)

    def _within_room(self, parquet: Any, name: str, large: _Large) -> Any:
        """Return a column that fits into the remaining memory, otherwise None."""
        import pyarrow as pa

        if large.are_lists and large.bytes > LARGEST_ROW:  # One row may have all of them.
            return None
        rows = max(1, min(_ROWS, DECODED_BYTES * self.rows // large.bytes))
        room, found = self._room, []
        for batch in parquet.iter_batches(rows, [self._group.index], [name], use_threads=False):
            found.append(batch.column(name))
            room -= found[-1].nbytes
            if room < 0:
                return None
        return pa.chunked_array(found)  # A block is in one chunk, or in a few small ones.

    def apart(self, names: Sequence[str], start: int, size: int, places: Any) -> Sequence[Any]:
        """Divide positions of a block into batches whose decoded rows are small.

        Raises:
            OverflowError: a row takes more than 1 GiB; its place is the argument.
        """
        rows = [self.column(name).slice(start, size) for name in names if has_dictionary(self.column(name).type)]
        if not rows:
            return [places]
        columns = [ArrowRows.chosen(each, places) for each in rows]
        try:
            found = list(pieces(columns, len(columns[0]), DECODED_BYTES))
        except OverflowError as error:
            row = error.args[0]
            raise OverflowError(places.start + row if isinstance(places, slice) else int(places[row])) from None
        if isinstance(places, slice):
            return [slice(places.start + few.start, places.start + few.stop) for few in found]
        return [places[few] for few in found]

    def has_times_of_python(self, names: Sequence[str]) -> bool:
        """Return whether all values of columns of nanoseconds are whole microseconds; these columns are read."""
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
        return usual_type(self._parquet.file.schema_arrow.field(name).type)

    def may_hold_nulls(self, name: str) -> bool:
        """Return whether a column may contain nulls, from the metadata if available."""
        if not self._parquet.file.schema_arrow.field(name).nullable:
            return False
        group = self._parquet.file.metadata.row_group(self._group.index)
        for each in map(group.column, range(group.num_columns)):
            if each.path_in_schema == name and each.statistics is not None and each.statistics.has_null_count:
                return bool(each.statistics.null_count)
        return bool(self.column(name).null_count)


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    """Yield the start of each block, and its number of rows."""
    start, size = 0, _FIRST_ROWS
    while start < rows:
        yield start, min(size, rows - start)
        start += size
        size = _ROWS - start % _ROWS


def _slice(column: Column, start: int, size: int, name: str) -> Any:
    import pyarrow as pa

    rows = column(name).slice(start, size)
    return only_chunk(rows) if isinstance(rows, pa.ChunkedArray) else rows


BATCH_BYTES = 1 << 20
BATCH_ROWS = 8_192
"""Rows become dictionaries in batches of about 1 MiB of Parquet data, and of 8,192 rows at most; see `batches`."""


@record
class ParquetReader:
    """Rows of Parquet, and the decoder of each."""

    columns: tuple[str, ...] | None
    form: ItemDecoder | None

    fewest_bytes = 0

    def divided(self, files: list[File], parallelism: int) -> list[tuple[RowGroups, ...]]:
        """Read the metadata of the files and divide their row groups."""
        units = itertools.chain.from_iterable(map(self._row_groups, files))
        return [tuple(_by_file(each)) for each in group(units, parallelism)] or [()]

    def _row_groups(self, file: File) -> list[tuple[int, RowGroup]]:
        """Return each row group with its size in bytes."""
        with opened_parquet(file) as parquet:
            self._check_columns(file, parquet.file.schema_arrow.names)
            found, before = [], 0
            metadata, fixed = parquet.file.metadata, _fixed_bytes(parquet.file.schema)
            for index, each in enumerate(map(metadata.row_group, range(metadata.num_row_groups))):
                unit = RowGroup(file, index, before, _batch_rows(each, fixed))
                found.append((OPENING + each.total_byte_size, unit))
                before += each.num_rows
            return found

    def _check_columns(self, file: File, names: Sequence[str]) -> None:
        read = set(self._names(names))
        if twice := repeated(name for name in names if name in read):
            raise SourceError(f"{file.name} holds the column {twice} more than once")
        wanted = missing_columns(self.form, names) if self.columns is None else self.columns
        there = set(names)
        if unknown := [name for name in wanted if name not in there]:
            raise SourceError(f"{file.name} has no column {', '.join(unknown)}; there are {', '.join(names)}")

    def row_count(self, file: File) -> int:
        """Return the number of rows, from the footer."""
        with opened_parquet(file) as parquet:
            rows: int = parquet.file.metadata.num_rows
            return rows

    def items(self, part: RowGroups, misread: OnMisread) -> Iterator[Any]:
        """Yield the rows of a file, batch by batch."""
        return itertools.chain.from_iterable(
            self._made(rows, number, part.file, misread) for number, rows in self._rows(part)
        )

    @property
    def has_columns(self) -> bool:
        """Return whether rows can be read in columns."""
        return are_parts_plain(self.form)

    def arrow_rows(self, part: RowGroups, misread: OnMisread) -> Iterator[ArrowRows | Iterator[Any]]:
        """Yield the rows of a file in columns, and the items of row groups that are not columnar."""
        with opened_parquet(part.file) as parquet:
            names = self._names(parquet.file.schema_arrow.names)
            for each in part.groups:
                rows = rows_of_group(parquet, each, names, self.form)
                if rows is None:
                    yield self.items(RowGroups(part.file, (each,)), misread)
                else:
                    yield from rows

    def _rows(self, part: RowGroups) -> Iterator[tuple[int, _Rows | UnreadRow]]:
        """Yield rows, with the number of the first. No function of the user's runs inside, as `reading` requires."""
        number = part.groups[0].before + 1  # A task reads neighbouring row groups of a file.
        with opened_parquet(part.file) as parquet:
            for batch in batches(parquet, part.groups, self._names(parquet.file.schema_arrow.names)):
                # Where no field has a column none is read, and the batch still has its number of rows.
                if not batch.num_columns:
                    yield number, _Rows([], [{} if self.form is None else ()] * batch.num_rows)
                    number += batch.num_rows
                    continue
                for found in rows_of_python(batch, is_strict=self.form is not None):
                    yield number, found if isinstance(found, UnreadRow) else self._of_values(batch.schema.names, found)
                    number += 1 if isinstance(found, UnreadRow) else len(found[0])

    def _of_values(self, names: list[str], columns: list[list[Any]]) -> _Rows:
        """Return rows: dictionaries if these are the items, and the values of each otherwise."""
        rows: Iterable[Any] = zip(*columns, strict=True)
        return _Rows(names, [dict(zip(names, row, strict=True)) for row in rows] if self.form is None else rows)

    def _names(self, there: Sequence[str]) -> Sequence[str]:
        """Return the columns to read: the requested columns, or the columns of the fields."""
        return names_read(self.form, there) if self.columns is None else self.columns

    def _made(self, rows: _Rows | UnreadRow, number: int, file: File, misread: OnMisread) -> Iterable[Any]:
        if isinstance(rows, UnreadRow):
            return misread(misread_row(file, number, rows.row, rows.problem))
        return rows.values if self.form is None else self._items(rows, number, file, misread)

    def _items(self, rows: _Rows, first: int, file: File, misread: OnMisread) -> Iterator[Any]:
        assert self.form is not None, "rows become something"
        make = maker_of_rows(self.form, rows.names)
        for number, values in enumerate(rows.values, first):
            try:
                made = make(values)  # A failure would name what is called `item`, which is the one before.
            except DecodeError as error:
                yield from misread(misread_row(file, number, dict(zip(rows.names, values, strict=True)), error))
            else:
                yield made


class _Rows(NamedTuple):
    """Rows of a file: dictionaries if these are the items, and the values of each otherwise."""

    names: list[str]
    values: Iterable[Any]


def _by_file(groups: Iterable[RowGroup]) -> Iterator[RowGroups]:
    for file, each in itertools.groupby(groups, key=lambda row_group: row_group.file):
        yield RowGroups(file, tuple(each))


def _fixed_bytes(schema: Any) -> int:
    """Return the bytes of a row in columns of bytes of a fixed length, even if dictionary-encoded or absent."""
    columns = map(schema.column, range(len(schema)))
    return sum(each.length for each in columns if each.physical_type == "FIXED_LEN_BYTE_ARRAY")


def _batch_rows(row_group: Any, fixed: int) -> int:
    row_bytes: int = max(1, row_group.total_byte_size // max(1, row_group.num_rows))
    return max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes, DECODED_BYTES // max(1, fixed)))
