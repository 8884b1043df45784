"""Rows of Parquet files, as dictionaries or as what a class makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, overload

from dstream.errors import SourceError
from dstream.spi import ArrowRows, Reducer, Source
from dstream.values import DeadLetter
from sources.arrow_items import are_parts_plain, names_read
from sources.arrow_values import UnreadRow, rows_of_python
from sources.file_access import File
from sources.file_splits import OPENING, group
from sources.forms import FormOfItem, Unfit
from sources.found_files import Paths, path_list
from sources.kinds import BINARY, form_of, kind_behind, missing_columns
from sources.names import checked_names, repeated
from sources.parquet_columns import rows_of_group
from sources.parquet_reading import DECODED_BYTES, RowGroup, RowGroups, batches, misread_row, opened_parquet
from sources.quick_makers import maker_of_rows
from sources.record_files import OnBad, OnMisread, RecordFiles, options

__all__ = ["ParquetFormat", "parquet_rows"]

T = TypeVar("T")

BATCH_BYTES = 1 << 20
BATCH_ROWS = 8_192
"""Rows become dictionaries in batches of about 1 MiB of Parquet data, and of 8,192 rows at most; see `batches`."""


@overload
def parquet_rows(
    path: Paths,
    kind: type[T],
    /,
    *,
    columns: Iterable[str] | None = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[T]: ...
@overload
def parquet_rows(
    path: Paths,
    kind: type[T],
    /,
    *,
    columns: Iterable[str] | None = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[tuple[str, T]]: ...
@overload
def parquet_rows(
    *paths: Paths,
    kind: type[T],
    columns: Iterable[str] | None = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[T]: ...
@overload
def parquet_rows(
    *paths: Paths,
    kind: type[T],
    columns: Iterable[str] | None = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[tuple[str, T]]: ...
@overload
def parquet_rows(
    *paths: Paths,
    columns: Iterable[str] | None = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[dict[str, Any]]: ...
@overload
def parquet_rows(
    *paths: Paths,
    columns: Iterable[str] | None = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[tuple[str, dict[str, Any]]]: ...
def parquet_rows(
    *paths: Any,
    kind: Any = None,
    columns: Iterable[str] | None = None,
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
) -> Source[Any]:
    """Read the rows of Parquet files as dictionaries of Python values, or as what `kind` makes of them.

    Paths and order are those of `text_files`. With a `kind`, each row becomes one by the names and the types of its
    fields, nested ones too, as with `json_lines`; dates, times, decimals and bytes are there already. Only the columns
    of its fields are read. Times are Python's, in microseconds. A row with a value that Python does not have
    is bad: nanoseconds that microseconds do not hold, a moment of the year 10000, a text that is no UTF-8. A map is a
    list of pairs, since it may have a key twice; for a field such as `dict[str, int]` of a `kind` it is a dictionary.

    **Parallelism**: row groups are divided among tasks; small neighbours share one. The driver
    reads only the metadata of each file.
    **Guarantee**: every row once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may stand without
            its name.
        columns: the top-level columns to read, in this order; by default all, or those that `kind` has.
        with_path: give pairs of the path, absolute or a URL, and the row.
        on_bad: what becomes of a row that does not become a `kind`, or has a value that Python does not have: `"fail"`
            ends the run, `"skip"` leaves it out and says at the end how many there were.
        into: a reducer that gets a `DeadLetter` for each such row instead. Its item is a `BadRecord`, which has the
            number of the row as its line, and the row as Python shows it.

    Raises:
        TypeError, ValueError: an argument is of another kind or none of its choices; `columns` is a str, is empty or
            holds a name twice; a field of `kind` is of a type that no Parquet becomes.
        SourceError: when it runs: a file is missing or no Parquet file, lacks a column, or has a bad row; the message
            names the file, the row, the column and the value.

    Example:
        >>> import pathlib, tempfile, pyarrow, pyarrow.parquet
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
        >>> pyarrow.parquet.write_table(pyarrow.table({"name": ["Ada"], "age": [36]}), path)
        >>> [row for split in parquet_rows(path).splits(2) for row in split.read()]
        [{'name': 'Ada', 'age': 36}]
    """
    paths, kind = kind_behind(paths, kind)
    names = checked_names(columns, "columns")
    form = None if kind is None else form_of(kind, BINARY)
    format = ParquetFormat(names, form)
    if names is not None and form is not None and (missing := missing_columns(form, names)):
        raise ValueError(f"columns must hold the fields of {form.expected}: there is no {', '.join(missing)}")
    shown_arguments = (("columns", names), ("kind", kind))
    return RecordFiles("parquet_rows", path_list(*paths), format, options(with_path, on_bad, into), shown_arguments)


@dataclass(frozen=True, slots=True)
class ParquetFormat:
    """Rows of Parquet, and the form of what each becomes."""

    columns: tuple[str, ...] | None
    form: FormOfItem | None

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

    def items(self, part: RowGroups, misread: OnMisread) -> Iterator[Any]:
        """Give the rows of a file, batch by batch."""
        return itertools.chain.from_iterable(
            self._made(rows, number, part.file, misread) for number, rows in self._rows(part)
        )

    @property
    def has_columns(self) -> bool:
        """Whether rows may stand in columns."""
        return are_parts_plain(self.form)

    def arrow_rows(self, part: RowGroups, misread: OnMisread) -> Iterator[ArrowRows | Iterator[Any]]:
        """Give the rows of a file in columns, and the items of row groups that stand in none."""
        with opened_parquet(part.file) as parquet:
            names = self._names(parquet.file.schema_arrow.names)
            for each in part.groups:
                rows = rows_of_group(parquet, each, names, self.form)
                if rows is None:
                    yield self.items(RowGroups(part.file, (each,)), misread)
                else:
                    yield from rows

    def _rows(self, part: RowGroups) -> Iterator[tuple[int, _Rows | UnreadRow]]:
        """Give rows, with the number of the first. None of the user's code runs in here, as `reading` wants it."""
        number = part.groups[0].before + 1  # A task reads neighbouring row groups of a file.
        with opened_parquet(part.file) as parquet:
            for batch in batches(parquet, part.groups, self._names(parquet.file.schema_arrow.names)):
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
        """Return the columns to read: those that are asked for, or those of the fields."""
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
            except Unfit as error:
                yield from misread(misread_row(file, number, dict(zip(rows.names, values, strict=True)), error))
            else:
                yield made


class _Rows(NamedTuple):
    """Some rows of a file: dictionaries if these are the items, and the values of each otherwise."""

    names: list[str]
    values: Iterable[Any]


def _by_file(groups: Iterable[RowGroup]) -> Iterator[RowGroups]:
    for file, each in itertools.groupby(groups, key=lambda row_group: row_group.file):
        yield RowGroups(file, tuple(each))


def _fixed_bytes(schema: Any) -> int:
    """Return how many bytes a row takes in columns of bytes of a fixed length, be they in a dictionary or absent."""
    columns = map(schema.column, range(len(schema)))
    return sum(each.length for each in columns if each.physical_type == "FIXED_LEN_BYTE_ARRAY")


def _batch_rows(row_group: Any, fixed: int) -> int:
    row_bytes: int = max(1, row_group.total_byte_size // max(1, row_group.num_rows))
    return max(1, min(BATCH_ROWS, BATCH_BYTES // row_bytes, DECODED_BYTES // max(1, fixed)))
