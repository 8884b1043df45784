"""Rows of CSV files, as dictionaries or as what a class makes of them. `sources.csv_reading` reads a file."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from dstream.spi import Reducer, Source
from dstream.spi.wrong_arguments import hinting
from dstream.values import DeadLetter
from sources.csv_reading import RowsOfFile
from sources.file_access import File
from sources.file_splits import Part, plan
from sources.forms import FormOfItem
from sources.found_files import Paths, path_list
from sources.kinds import TEXTS, form_of, kind_behind, missing_columns
from sources.lines import checked_encoding
from sources.names import checked_names
from sources.record_files import (
    MAX_RECORD,
    OnBad,
    OnMisread,
    RecordFiles,
    checked_max_record,
    fail_at_once,
    options,
    shown_max_record,
)

__all__ = ["CsvFormat", "csv_rows"]

T = TypeVar("T")


@overload
def csv_rows(
    path: Paths,
    kind: type[T],
    /,
    *,
    encoding: str = ...,
    delimiter: str = ...,
    quotechar: str | None = ...,
    fieldnames: Iterable[str] | None = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def csv_rows(
    path: Paths,
    kind: type[T],
    /,
    *,
    encoding: str = ...,
    delimiter: str = ...,
    quotechar: str | None = ...,
    fieldnames: Iterable[str] | None = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def csv_rows(
    *paths: Paths,
    kind: type[T],
    encoding: str = ...,
    delimiter: str = ...,
    quotechar: str | None = ...,
    fieldnames: Iterable[str] | None = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def csv_rows(
    *paths: Paths,
    kind: type[T],
    encoding: str = ...,
    delimiter: str = ...,
    quotechar: str | None = ...,
    fieldnames: Iterable[str] | None = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def csv_rows(
    *paths: Paths,
    encoding: str = ...,
    delimiter: str = ...,
    quotechar: str | None = ...,
    fieldnames: Iterable[str] | None = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[dict[str, Any]]: ...
@overload
def csv_rows(
    *paths: Paths,
    encoding: str = ...,
    delimiter: str = ...,
    quotechar: str | None = ...,
    fieldnames: Iterable[str] | None = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, dict[str, Any]]]: ...
@hinting(
    cls="kind=",
    columns="fieldnames=",
    dtype="kind=, a class whose fields have types",
    header="fieldnames=[...] for files without a header line; the first line is one otherwise",
    names="fieldnames=",
    quote="quotechar=",
    schema="kind=, a class whose fields have types",
    sep="delimiter=",
    separator="delimiter=",
)
def csv_rows(
    *paths: Any,
    kind: Any = None,
    encoding: str = "utf-8",
    delimiter: str = ",",
    quotechar: str | None = '"',
    fieldnames: Iterable[str] | None = None,
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
    max_record: int = MAX_RECORD,
) -> Source[Any]:
    r"""Read the rows of CSV files as dictionaries, or as what `kind` makes of them; blank lines are skipped.

    Paths, order and compressed files are those of `text_files`. A row must have as many fields as
    there are names: one that is torn is never filled up in silence. A field that is empty is None, and `""` is the
    empty text.

    Without a `kind`, rows are dictionaries of texts and None. With one, each becomes an item by the names and the types
    of its fields: `str`, `int`, `float`, `Decimal`, `bool`, `date`, `datetime`, `time`, enumerations (by value),
    `Literal`, and `X | None` for what may be empty. Nothing is guessed: an `int` is written with digits, a `bool` as
    `true` or `false`, with a capital or all in capitals; spaces around a number are refused. Columns that the kind has
    not are left out; a field with a default needs no column. A pydantic model converts by its own rules.
    Up to 128 rows are made at a time, also if fewer are asked for.

    **Parallelism**: one task for each file, since a quoted field may hold line ends; small
    neighbours share a task.
    **Guarantee**: every row once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may stand without
            its name.
        encoding: as for `open`; the byte order mark of UTF-8 that Excel writes is dropped.
        delimiter: what stands between two fields; a first line such as `sep=;`, as for Excel, must name it.
        quotechar: what stands around a field that holds a delimiter; None if nothing does.
        fieldnames: the names of the fields, for files without a header line.
        with_path: give pairs of the path, absolute or a URL, and the row.
        on_bad: what becomes of a row that does not fit: `"fail"` ends the run, `"skip"` leaves it out and says at the
            end how many there were. A quote that nothing closes always ends the run, unless it stands in the last line:
            where the next row begins is not known then.
        into: a reducer that gets a `DeadLetter` for each such row instead, whose item is a `BadRecord`.
        max_record: bytes that a line may have, decompressed, 64 MiB by default; of a row of several lines, characters,
            of which a MiB is read whatever this says. A longer line is a bad row; if it has a `quotechar`, or is a row
            of several lines, it ends the run.

    Raises:
        LookupError: there is no such encoding.
        TypeError, ValueError: an argument is of another kind or none of its choices; `delimiter` or `quotechar` is not
            one character, or ends a line, or both are the same; `fieldnames` holds a name twice or lacks a field of
            `kind`; no text becomes the type of a field of `kind`.
        SourceError: when it runs: a file is missing, unreadable or torn, a header holds a name twice or lacks a field
            of `kind`, or a row does not fit; the message names the file, the line, the column and the value.

    Example:
        >>> import pathlib, tempfile
        >>> from typing import NamedTuple
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text('name,age\nAda,36\n"Hopper, Grace",\n')
        >>> [row for split in csv_rows(path).splits(2) for row in split.read()]
        [{'name': 'Ada', 'age': '36'}, {'name': 'Hopper, Grace', 'age': None}]
        >>> class Person(NamedTuple):
        ...     name: str
        ...     age: int | None
        >>> [row for split in csv_rows(path, Person).splits(2) for row in split.read()]
        [Person(name='Ada', age=36), Person(name='Hopper, Grace', age=None)]
    """
    paths, kind = kind_behind(paths, kind)
    quoting = csv.QUOTE_MINIMAL if quotechar is not None else csv.QUOTE_NONE
    dialect = {"delimiter": delimiter, "quotechar": quotechar, "quoting": quoting, "strict": True}
    _refuse_mixed(delimiter, quotechar)
    csv.reader([], **dialect)  # type: ignore[arg-type]  # Refuses what is not one character.
    names = checked_names(fieldnames, "fieldnames")
    form = None if kind is None else form_of(kind, TEXTS)
    if names is not None and form is not None and (missing := missing_columns(form, names)):
        raise ValueError(f"fieldnames must hold the fields of {form.expected}: there is no {', '.join(missing)}")
    format = CsvFormat(checked_encoding(encoding), tuple(dialect.items()), names, form, checked_max_record(max_record))
    signs = (("delimiter", _shown_sign(delimiter, ",")), ("quotechar", _shown_sign(quotechar, '"')))
    shown = (("encoding", encoding), *signs, ("fieldnames", names), ("kind", kind), shown_max_record(max_record))
    return RecordFiles("csv_rows", path_list(*paths), format, options(with_path, on_bad, into), shown)


def _shown_sign(sign: str | None, default: str) -> _Written | None:
    """Return how a sign is shown; None for the default, which is not."""
    return None if sign == default else _Written(repr(sign))


class _Written(str):
    """An argument as it is written, which also None may be."""

    __slots__ = ()
    __repr__ = str.__str__


def _refuse_mixed(delimiter: str, quotechar: str | None) -> None:
    """Refuse characters of which a reader cannot tell what they stand for, as `csv` of 3.13 does in other words."""
    for name, sign in (("delimiter", delimiter), ("quotechar", quotechar)):
        if sign in ("\r", "\n"):
            raise ValueError(f"{name} must not be {sign!r}, which ends a line")
    if delimiter == quotechar:
        raise ValueError(f"delimiter and quotechar must be two characters, not {delimiter!r} both")


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """Rows of CSV, and the form of what each becomes."""

    encoding: str
    dialect: tuple[tuple[str, Any], ...]
    fieldnames: tuple[str, ...] | None
    form: FormOfItem | None
    max_record: int = MAX_RECORD

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files, each of them whole."""
        return plan(files, parallelism, lambda file: False)

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Give the rows of a file."""
        return itertools.chain.from_iterable(self.blocks(part, misread))

    def blocks(self, part: Part, misread: OnMisread) -> Iterator[Sequence[Any]]:
        """Give the rows of a file in lists."""
        fails, dialect = misread is fail_at_once, dict(self.dialect)
        rows = RowsOfFile(part, self.encoding, dialect, self.fieldnames, self.form, self.max_record, fails=fails)
        return rows.blocks(misread)
