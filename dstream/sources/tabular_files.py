"""Files of rows as sources: `csv_rows`, `parquet_rows`, `avro_records`.

Each factory loads the connector of its format when it is called, `dstream.connectors.files`.
"""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from dstream.arguments import checked_names, hinting
from dstream.base.environment import pip_install
from dstream.base.urls import Paths
from dstream.connectors.base import MAX_RECORD, OnBad, checked_encoding
from dstream.errors import SetupError
from dstream.spi import Reducer, Source
from dstream.values import DeadLetter

if TYPE_CHECKING:
    from dstream.connectors.files.csv import WrittenSign

__all__ = ["avro_records", "csv_rows", "parquet_rows"]


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
    r"""Read the rows of CSV files as dictionaries, or as objects of `kind`; blank lines are skipped.

    Paths, order and compressed files are those of `text_files`. A row must have as many fields as
    there are names: one that is torn is never filled up in silence. A field that is empty is None, and `""` is the
    empty text.

    Without a `kind`, rows are dictionaries of texts and None. With one, each becomes an item by the names and the types
    of its fields: `str`, `int`, `float`, `Decimal`, `Fraction`, `bool`, `date`, `datetime`, `time`, `timedelta`,
    `UUID`, `Path`, addresses, `bytes` (in base64), enumerations (by value), `Literal`, and `X | None` for what may be
    empty. Nothing is guessed: an `int` is written with digits, a `bool` as
    `true` or `false`, with a capital or all in capitals; spaces around a number are refused. Columns that the kind has
    not are left out; a field with a default needs no column. A pydantic model converts by its own rules.
    Up to 128 rows are made at a time, also if fewer are asked for; in columns, those of a block of about 1 MB.

    **Parallelism**: one task for each file, since a quoted field may hold line ends; small
    neighbours share a task.
    **Guarantee**: every row once, as long as the files are not changed meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may be passed
            without its name.
        encoding: as for `open`; the byte order mark of UTF-8 that Excel writes is dropped.
        delimiter: the character between two fields; a first line such as `sep=;`, as for Excel, must name it.
        quotechar: the character around a field that contains a delimiter; None if there is none.
        fieldnames: the names of the fields, for files without a header line.
        with_path: give pairs of the path, absolute or a URL, and the row.
        on_bad: what is done with a row that does not fit: `"fail"` ends the run, `"skip"` leaves it out and reports at
            the end how many there were. A quote that is not closed always ends the run, unless it is in the last line:
                where the next row begins is not known then.
        into: a reducer that gets a `DeadLetter` for each such row instead, whose item is a `BadRecord`.
        max_record: bytes that a line may have, decompressed, 64 MiB by default; of a row of several lines, characters,
            of which a MiB is read in any case. A longer line is a bad row; if it has a `quotechar`, or is a row
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
    from dstream.connectors.files.csv import CsvReader
    from dstream.connectors.files.sources import RecordFiles, checked_max_record, options, shown_max_record
    from dstream.filesystem.discovery import path_list
    from dstream.schema.record_decoders import TEXTS, form_of, kind_behind, missing_columns

    paths, kind = kind_behind(paths, kind)
    quoting = csv.QUOTE_MINIMAL if quotechar is not None else csv.QUOTE_NONE
    # Unless it is strict, `csv` takes a quote that nothing closes, and what follows a closing one, for text.
    dialect = {"delimiter": delimiter, "quotechar": quotechar, "quoting": quoting, "strict": True}
    _refuse_mixed(delimiter, quotechar)
    csv.reader([], **dialect)  # type: ignore[arg-type]  # Refuses what is not one character.
    names = checked_names(fieldnames, "fieldnames")
    form = None if kind is None else form_of(kind, TEXTS)
    if names is not None and form is not None and (missing := missing_columns(form, names)):
        raise ValueError(f"fieldnames must hold the fields of {form.expected}: there is no {', '.join(missing)}")
    format = CsvReader(checked_encoding(encoding), tuple(dialect.items()), names, form, checked_max_record(max_record))
    signs = (("delimiter", _shown_sign(delimiter, ",")), ("quotechar", _shown_sign(quotechar, '"')))
    shown = (("encoding", encoding), *signs, ("fieldnames", names), ("kind", kind), shown_max_record(max_record))
    return RecordFiles("csv_rows", path_list(*paths), format, options(with_path, on_bad, into), shown)


def _shown_sign(sign: str | None, default: str) -> WrittenSign | None:
    """Return how a sign is shown; None for the default, which is not."""
    from dstream.connectors.files.csv import WrittenSign

    return None if sign == default else WrittenSign(repr(sign))


def _refuse_mixed(delimiter: str, quotechar: str | None) -> None:
    """Refuse characters with an ambiguous meaning, as `csv` of 3.13 does in other words."""
    for name, sign in (("delimiter", delimiter), ("quotechar", quotechar)):
        if sign in ("\r", "\n"):
            raise ValueError(f"{name} must not be {sign!r}, which ends a line")
    if delimiter == quotechar:
        raise ValueError(f"delimiter and quotechar must be two characters, not {delimiter!r} both")


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
    """Read the rows of Parquet files as dictionaries of Python values, or as objects of `kind`.

    Paths and order are those of `text_files`. With a `kind`, each row becomes one by the names and the types of its
    fields, nested ones too, as with `json_lines`; dates, times, decimals and bytes have their types in the file. Only
    the columns of its fields are read. Times are Python's, in microseconds. A row with a value that Python does not
    have is bad: nanoseconds that microseconds do not hold, a moment of the year 10000, a text that is no UTF-8. A map
    is a list of pairs, since it may have a key twice; for a field such as `dict[str, int]` of a `kind` it is a
    dictionary.

    **Parallelism**: row groups are divided among tasks; small neighbours share one. The driver
    reads only the metadata of each file.
    **Guarantee**: every row once, as long as the files are not changed meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may be passed
            without its name.
        columns: the top-level columns to read, in this order; by default all, or those that `kind` has.
        with_path: give pairs of the path, absolute or a URL, and the row.
        on_bad: what is done with a row that does not become a `kind`, or has a value that Python does not have:
            `"fail"` ends the run, `"skip"` leaves it out and reports at the end how many there were.
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
    from dstream.connectors.files.parquet import ParquetReader
    from dstream.connectors.files.sources import RecordFiles, options
    from dstream.filesystem.discovery import path_list
    from dstream.schema.record_decoders import BINARY, form_of, kind_behind, missing_columns

    paths, kind = kind_behind(paths, kind)
    names = checked_names(columns, "columns")
    form = None if kind is None else form_of(kind, BINARY)
    format = ParquetReader(names, form)
    if names is not None and form is not None and (missing := missing_columns(form, names)):
        raise ValueError(f"columns must hold the fields of {form.expected}: there is no {', '.join(missing)}")
    shown_arguments = (("columns", names), ("kind", kind))
    return RecordFiles("parquet_rows", path_list(*paths), format, options(with_path, on_bad, into), shown_arguments)


@overload
def avro_records(
    path: Paths,
    kind: type[T],
    /,
    *,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def avro_records(
    path: Paths,
    kind: type[T],
    /,
    *,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def avro_records(
    *paths: Paths,
    kind: type[T],
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def avro_records(
    *paths: Paths,
    kind: type[T],
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def avro_records(
    *paths: Paths,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[Any]: ...
@overload
def avro_records(
    *paths: Paths,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, Any]]: ...
def avro_records(
    *paths: Any,
    kind: Any = None,
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
    max_record: int = MAX_RECORD,
) -> Source[Any]:
    """Read the records of Avro files, each with the schema that its file holds.

    Paths, order and compressed files are those of `text_files`. Values are those of fastavro: records are dictionaries,
    and dates, times, decimals and UUIDs are Python's, decimals with all digits of the file. With a
    `kind`, each record becomes one, as with `parquet_rows`.
    It needs the package fastavro: `pip install 'dstream-spark[avro]'`.

    **Parallelism**: one task for each file; small neighbours share a task. It holds a block of a file at a time.
    **Guarantee**: every record once, as long as the files are not changed meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may be passed
            without its name.
        with_path: give pairs of the path, absolute or a URL, and the record.
        on_bad: what is done with a record that does not become a `kind`: `"fail"` ends the run, `"skip"` leaves it out
            and reports at the end how many there were. The same holds for one that is too large, nested too
            deeply, or has a value that Python does not have, such as a moment of the year 10000.
            A torn file always ends the run.
        into: a reducer that gets a `DeadLetter` for each such record instead. Its item is a `BadRecord`, which has the
            number of the record as its line, and the record as Python shows it.
        max_record: bytes that a record may take in memory, 64 MiB by default, and that a block of the file may have,
            decompressed: the records of one that has more are left out together.

    Raises:
        SetupError: fastavro is not installed.
        TypeError, ValueError: an argument is of another kind or none of its choices; a field of `kind` is of a type
            that no Avro becomes.
        SourceError: when it runs: a file is missing, torn or no Avro file, has a broken schema, or a record that does
            not become a `kind`, is larger than `max_record` or nested more than 200 levels deep; the message names the
            file, the record, and the field and the value, or the limit.

    Example:
        >>> import fastavro, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.avro"
        >>> fields = [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}]
        >>> with open(path, "wb") as out:
        ...     schema = {"type": "record", "name": "Person", "fields": fields}
        ...     fastavro.writer(out, schema, [{"name": "Ada", "age": None}])
        >>> [record for split in avro_records(path).splits(2) for record in split.read()]
        [{'name': 'Ada', 'age': None}]
    """
    if importlib.util.find_spec("fastavro") is None:
        raise SetupError(f"avro_records() needs the package fastavro: {pip_install('avro')}")
    from dstream.connectors.files.avro import AvroReader
    from dstream.connectors.files.sources import RecordFiles, checked_max_record, options, shown_max_record
    from dstream.filesystem.discovery import path_list
    from dstream.schema.record_decoders import BINARY, form_of, kind_behind

    paths, kind = kind_behind(paths, kind)
    format = AvroReader(None if kind is None else form_of(kind, BINARY), checked_max_record(max_record))
    shown = (("kind", kind), shown_max_record(max_record))
    return RecordFiles("avro_records", path_list(*paths), format, options(with_path, on_bad, into), shown)
