"""Records of Avro files, as Python values or as what a class makes of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeVar, overload

from dstream.errors import SetupError, SourceError
from dstream.spi import Misread, Reducer, Source
from dstream.values import DeadLetter
from dstream.values.distribution import pip_install
from sources.file_access import File, check_format, opened
from sources.file_signatures import AVRO
from sources.file_splits import Part, plan
from sources.forms import FormOfItem, Unfit
from sources.found_files import Paths, path_list
from sources.kinds import BINARY, form_of, kind_behind
from sources.quick_makers import maker_of_objects
from sources.record_files import OnBad, OnMisread, RecordFiles, misread_at, options

__all__ = ["AvroFormat", "avro_records"]

T = TypeVar("T")


@overload
def avro_records(
    path: Paths,
    kind: type[T],
    /,
    *,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
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
) -> Source[tuple[str, T]]: ...
@overload
def avro_records(
    *paths: Paths,
    kind: type[T],
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[T]: ...
@overload
def avro_records(
    *paths: Paths,
    kind: type[T],
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[tuple[str, T]]: ...
@overload
def avro_records(
    *paths: Paths,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[Any]: ...
@overload
def avro_records(
    *paths: Paths,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
) -> Source[tuple[str, Any]]: ...
def avro_records(
    *paths: Any,
    kind: Any = None,
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
) -> Source[Any]:
    """Read the records of Avro files, each with the schema that its file holds.

    Paths, order and compressed files are those of `text_files`. Values are those of fastavro: records are dictionaries,
    and dates, times, decimals and UUIDs are Python's. With a `kind`, each record becomes one, as with `parquet_rows`.
    It needs the package fastavro: `pip install 'dstream-spark[avro]'`.

    **Parallelism**: one task for each file; small neighbours share a task. It holds a block of a file at a time.
    **Guarantee**: every record once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may stand without
            its name.
        with_path: give pairs of the path, absolute or a URL, and the record.
        on_bad: what becomes of a record that does not become a `kind`: `"fail"` ends the run, `"skip"` leaves it out
            and says at the end how many there were. A torn file always ends the run.
        into: a reducer that gets a `DeadLetter` for each such record instead. Its item is a `BadRecord`, which has the
            number of the record as its line, and the record as Python shows it.

    Raises:
        SetupError: fastavro is not installed.
        TypeError, ValueError: an argument is of another kind or none of its choices; a field of `kind` is of a type
            that no Avro becomes.
        SourceError: when it runs: a file is missing, torn or no Avro file, has a block of more than 128 MiB, or a
            record that does not become a `kind`; the message names the file, the record, the field and the value.

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
    paths, kind = kind_behind(paths, kind)
    format = AvroFormat(None if kind is None else form_of(kind, BINARY))
    return RecordFiles("avro_records", path_list(*paths), format, options(with_path, on_bad, into), (("kind", kind),))


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Records of Avro, and the form of what each becomes."""

    form: FormOfItem | None

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files, each of them whole."""
        return plan(files, parallelism, lambda file: False)

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Give what becomes of the records of a file."""
        if self.form is None:
            yield from _records(part.file)
            return
        make = maker_of_objects(self.form)
        for number, record in enumerate(_records(part.file), start=1):
            try:
                made = make(record)  # A failure would name what is called `item`, which is the one before.
            except Unfit as error:
                yield from misread(_misread(part.file, number, record, error))
            else:
                yield made


def _records(file: File) -> Iterator[Any]:
    import fastavro

    given = 0
    with opened(file) as stream:
        check_format(file, stream, AVRO)
        blocks: Any = _OfBlocks(stream, file.name)
        try:
            for given, record in enumerate(fastavro.reader(blocks), start=1):  # noqa: B007
                yield record
        except SourceError:
            raise
        except EOFError as error:
            raise SourceError(
                f"cannot read {file.name}: it is torn: it ends too early behind record {given:,}"
            ) from error
        except Exception as error:
            what = f"what comes behind record {given:,} is no Avro: {type(error).__name__}: {error}"
            raise SourceError(f"cannot read {file.name}: {what}") from error


class _OfBlocks:
    """What fastavro reads from, which takes a whole block at a time (1.13)."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._name = name

    def read(self, size: int = -1) -> bytes:
        """Return some bytes."""
        if size > LARGEST_BLOCK:
            raise SourceError(
                f"cannot read {self._name}: it has a block of {size:,} bytes, all of which a task would hold; up to "
                f"{LARGEST_BLOCK:,} are read: write it with smaller blocks, such as fastavro's with sync_interval=2**20"
            )
        return self._stream.read(size)


LARGEST_BLOCK = 128 << 20
"""Blocks have some ten kilobytes as a rule. One that has more than this is torn, or takes more than a worker has."""


def _misread(file: File, number: int, record: Any, error: Unfit) -> Misread:
    return misread_at(file, lambda: number, repr(record), error, f": {error}", unit="record")
