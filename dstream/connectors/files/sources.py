"""Base of the sources of files: options, splits, bad records; and files read as one item.

A `Format` has the division of the files, and makes items of the records of a part. This module has the rest, the same
for all formats: pairs with the path, and the handling of bad records.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol, get_args, runtime_checkable

from dstream.base.records import record
from dstream.base.showing import add_note
from dstream.connectors.base import MAX_RECORD, OnBad
from dstream.connectors.files.splits import Part, plan, size_of
from dstream.connectors.memory import NamesOfStreams
from dstream.errors import SourceError
from dstream.filesystem.access import File, is_compressed, opened, reading
from dstream.filesystem.discovery import find_files, within, written_call
from dstream.filesystem.urls import URL
from dstream.spi import ArrowRows, InputSize, Misread, Sink
from dstream.values import BadRecord

if TYPE_CHECKING:
    from dstream.schema.record_decoders import OnMisread

__all__ = [
    "Format",
    "Options",
    "RecordFiles",
    "RecordSplit",
    "WholeFile",
    "WholeFiles",
    "checked_max_record",
    "fail_at_once",
    "misread_at",
    "options",
    "rows_and_items",
    "shown_max_record",
]


SHOWN = 200
"""The characters of a bad record that its error shows."""
LONGEST_TEXT = 64 << 10
"""The characters of a bad record that its dead letter has."""


class Format(Protocol):
    """The contract of a format, which makes items of the records of files. It is sent with each split."""

    def divided(self, files: list[File], parallelism: int) -> Sequence[tuple[Any, ...]]:
        """Return the parts that each split reads, one after another; each part has a `file`."""
        ...

    def items(self, part: Any, misread: OnMisread) -> Iterator[Any]:
        """Yield the items of a part; the result of `misread` in place of a bad record, or raise its error."""
        ...


@runtime_checkable
class FormatInBlocks(Format, Protocol):
    """A format whose items are made several at a time."""

    def blocks(self, part: Any, misread: OnMisread) -> Iterator[Sequence[Any]]:
        """Yield the items of a part in lists; else as `items`."""
        ...


@runtime_checkable
class FormatInArrow(Format, Protocol):
    """A format whose files have columns, or can be read in columns."""

    @property
    def has_columns(self) -> bool:
        """Return whether items can be read in columns."""
        ...

    @property
    def fewest_bytes(self) -> int:
        """The bytes of files that a task reads, or more, so that columns are faster."""
        ...

    def arrow_rows(self, part: Any, misread: OnMisread) -> Iterator[ArrowRows | Iterator[Any]]:
        """Yield the items of a part in columns, and in iterators those that are in none; else as `items`."""
        ...


@runtime_checkable
class FormatWithRowCounts(Format, Protocol):
    """A format whose files contain the number of their items."""

    def row_count(self, file: File) -> int:
        """Return the number of items of a file, reading little."""
        ...


@record
class Options:
    """The common options of all sources of files.

    Attributes:
        with_path: items are pairs of the path and the item of the format.
        on_bad: how bad records are handled.
        into: receives a dead letter for each of them, or None.
    """

    with_path: bool
    on_bad: OnBad
    into: Any


def options(with_path: object, on_bad: object, into: object) -> Options:
    """Return the options of a source.

    Raises:
        TypeError: an option has another type.
        ValueError: `on_bad` is not one of its choices, or "skip" together with `into`.
    """
    if not isinstance(with_path, bool):
        raise TypeError(f"with_path must be True or False, not {type(with_path).__name__}")
    if on_bad not in get_args(OnBad):
        kept = f"; into={on_bad!r} sends bad records there" if isinstance(on_bad, Sink) else ""
        raise ValueError(f"on_bad must be 'fail' or 'skip', not {on_bad!r}{kept}")
    if into is not None and (isinstance(into, type) or not isinstance(into, Sink)):
        raise TypeError(f"into must be a reducer, such as to_ilist(...), not {type(into).__name__}")
    if into is not None and on_bad == "skip":
        raise ValueError("on_bad='skip' leaves bad records out, and into= sends them away: give one of the two")
    return Options(with_path, on_bad, into)  # type: ignore[arg-type]  # It is one of the choices.


def checked_max_record(size: object) -> int:
    """Return the number of bytes that a record may have.

    Raises:
        TypeError: it is no int.
        ValueError: it is none above 0.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"max_record must be a number of bytes as an int, not {type(size).__name__}")
    if size < 1:
        raise ValueError(f"max_record must be at least 1, not {size}")
    return size


def shown_max_record(size: int) -> tuple[str, int | None]:
    """Return the argument as a source shows it, which leaves out the default."""
    return "max_record", None if size == MAX_RECORD else size


@record
class RecordFiles(NamesOfStreams):
    """Result of the sources of files.

    Attributes:
        maker: the name of the function that made it.
        paths: the paths of the files.
        format: their format.
        options: the options of all such sources.
        shown: other arguments by name, as they are shown.
    """

    maker: str
    paths: tuple[str, ...]
    format: Format
    options: Options
    shown: tuple[tuple[str, Any], ...] = ()

    ordered = True
    bounded = True
    in_caller = False

    @property
    def on_bad(self) -> OnBad:
        """The treatment of bad records."""
        return self.options.on_bad

    @property
    def into(self) -> Any:
        """The receiver of a dead letter for each bad record, or None."""
        return self.options.into

    @property
    def has_columns(self) -> bool:
        """Return whether items can be read in columns: no pairs can, nor items of sources that handle bad records."""
        return getattr(self.format, "has_columns", False) and self.options == Options(False, "fail", None)

    @property
    def item_class(self) -> type | None:
        """The class of the items, if one was named."""
        return getattr(getattr(self.format, "form", None), "kind", None)

    @property
    def columns_if(self) -> str:
        """Return the condition on the files for that, in words that follow "if"."""
        fewest = getattr(self.format, "fewest_bytes", 0)
        return f"a task reads {fewest >> 10} KB or more, whose values are written plainly" if fewest else ""

    def input_size(self) -> InputSize | None:
        """Return the bytes of local files, and about how many items they have, if the format stores it."""
        files = _local_files(self.paths)
        if files is None or not isinstance(self.format, FormatWithRowCounts):
            return _size_of_files(files)
        return _size_of_files(files, _about_rows(files, self.format))

    def splits(self, parallelism: int) -> list[RecordSplit]:
        """Find the files and divide them."""
        return [self._split(parts) for parts in self.format.divided(find_files(self.paths), parallelism)]

    def _split(self, parts: tuple[Any, ...]) -> RecordSplit:
        if isinstance(self.format, FormatInBlocks) and not self.options.with_path:
            return SplitInBlocks(parts, self.format, False)
        return RecordSplit(parts, self.format, self.options.with_path)

    def __repr__(self) -> str:
        options = {
            "with_path": self.options.with_path or None,
            "on_bad": self.on_bad if self.on_bad != "fail" else None,
        }
        call = written_call(self.maker, self.paths, **dict(self.shown), **options)
        return call if self.into is None else f"{call[:-1]}, into={self.into.label})"


def _local_files(paths: Iterable[str]) -> list[File] | None:
    """Return the files, None if not all are local: the search for remote files may be slow."""
    paths = tuple(paths)
    return find_files(paths) if all(_is_local(path) for path in paths) else None


def _is_local(path: str) -> bool:
    return not URL.match(path) or path.lower().startswith("file:")


def _size_of_files(files: list[File] | None, items: float | None = None) -> InputSize | None:
    sizes = [] if files is None else [file.size for file in files]
    if files is None or None in sizes:
        return None  # Remote files, pipes and devices.
    return InputSize(items, stored_bytes=sum(size or 0 for size in sizes), is_near=True)


_MOST_FOOTERS = 8
"""Opening a file for its number of rows takes about a millisecond."""


def _about_rows(files: Sequence[File], format: FormatWithRowCounts) -> float | None:
    """Return the number of rows of all files, by their bytes if there are too many files to open."""
    if any(file.size is None for file in files):
        return None
    seen = files[:: -(-len(files) // _MOST_FOOTERS) or 1]
    rows, stored = sum(map(format.row_count, seen)), sum(file.size or 0 for file in seen)
    return rows if len(seen) == len(files) else rows / max(stored, 1) * sum(file.size or 0 for file in files)


@record
class RecordSplit:
    """Parts of files that one task reads one after another."""

    parts: tuple[Any, ...]
    format: Format
    with_path: bool

    def read(self) -> Iterator[Any]:
        """Yield the items; a bad record ends that."""
        return self.read_past(fail_at_once)

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[Any]] | None:
        """Return the items in columns, as far as possible; None if there are no columns. A bad record ends them."""
        if self.with_path or not isinstance(self.format, FormatInArrow) or not self.format.has_columns:
            return None
        # Of Parquet a part is no range of bytes.
        if self.format.fewest_bytes and sum(map(size_of, self.parts)) < self.format.fewest_bytes:
            return None
        rows = self.format.arrow_rows
        return itertools.chain.from_iterable(rows(part, fail_at_once) for part in self.parts)

    def read_past(self, misread: OnMisread) -> Iterator[Any]:
        """Yield the items, with the result of `misread` in place of a bad record, or raise its error."""
        read = _with_path if self.with_path else _alone
        return itertools.chain.from_iterable(read(self.format, part, misread) for part in self.parts)


@record
class SplitInBlocks(RecordSplit):
    """Parts of files whose items are read in lists."""

    format: FormatInBlocks

    def read_blocks(self) -> Iterator[Sequence[Any]]:
        """Yield the items in lists; a bad record ends that."""
        return itertools.chain.from_iterable(self.format.blocks(part, fail_at_once) for part in self.parts)


def rows_and_items(found: Iterable[Any]) -> Iterator[ArrowRows | Iterator[Any]]:
    """Yield rows in columns as they arrive, and the items of lists between them in iterators, one after another."""
    for are_rows, some in itertools.groupby(found, lambda each: isinstance(each, ArrowRows)):
        if are_rows:
            yield from some
        else:
            yield itertools.chain.from_iterable(some)


def fail_at_once(misread: Misread) -> Iterable[Any]:
    """Raise the error of a bad record: `on_bad="fail"`."""
    raise misread.error()


def _alone(format: Format, part: Any, misread: OnMisread) -> Iterator[Any]:
    return format.items(part, misread)


def _with_path(format: Format, part: Any, misread: OnMisread) -> Iterator[Any]:
    """Yield pairs; the replacement of a bad record replaces the pair."""
    name = part.file.name
    # None of these is called `item`: a failure would be attributed to the item before the bad record.
    instead: OnMisread = misread if misread is fail_at_once else lambda found: map(_Instead, misread(found))
    for made in format.items(part, instead):
        yield made.item if type(made) is _Instead else (name, made)


@record
class _Instead:
    """The result of `misread`."""

    item: Any


def misread_at(
    file: File, number: Callable[[], int], text: str, problem: Exception, description: str, *, unit: str = "line"
) -> Misread:
    """Return a format's report on a bad record.

    Args:
        file: the file of the record.
        number: returns the number of its first line.
        text: the text of the record.
        problem: the error of the parser.
        description: the text after the location in the message.
        unit: the numbered unit.
    """
    from dstream.schema.decoders import DecodeError  # imported on use: only a bad record needs it

    seen = problem.plain() if isinstance(problem, DecodeError) else problem

    def record() -> BadRecord:
        return BadRecord(file.name, number(), _cut(text, LONGEST_TEXT))

    def error() -> SourceError:
        found = SourceError(f"{file.name}, {unit} {number():,}{description}: {_cut(text, SHOWN)}")
        found.__cause__ = seen
        return found

    return Misread(seen, record, error)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "..."


@record
class WholeFiles(NamesOfStreams):
    """Result of `files`."""

    paths: tuple[str, ...]
    glob: str | None
    reader: Callable[[str, IO[bytes]], Iterable[Any] | None] | None

    ordered = True
    bounded = True
    in_caller = False

    def input_size(self) -> InputSize | None:
        """Return the bytes of local files."""
        return _size_of_files(_local_files(self._paths()))

    def splits(self, parallelism: int) -> list[WholeFile]:
        """Find the files and divide them into splits of complete files."""
        parts = plan(find_files(self._paths()), parallelism, lambda file: False)
        return [WholeFile(each, self.reader) for each in parts]

    def _paths(self) -> Sequence[str]:
        return self.paths if self.glob is None else [within(path, self.glob) for path in self.paths]

    def __repr__(self) -> str:
        return written_call("files", self.paths, glob=self.glob, read=self.reader)


@record
class WholeFile:
    """Files that one task reads one after another."""

    parts: tuple[Part, ...]
    reader: Callable[[str, IO[bytes]], Iterable[Any] | None] | None

    def read(self) -> Iterator[Any]:
        """Yield the items of each file."""
        read = _content if self.reader is None else self._items
        return itertools.chain.from_iterable(read(part.file) for part in self.parts)

    def _items(self, file: File) -> Iterator[Any]:
        assert self.reader is not None, "a function reads the files"
        # What the function raises does not pass through `opened`, which would attribute it to the file.
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(opened(file))
            try:
                yield from _checked_items(self.reader(file.name, stream), file)
            except Exception as error:
                stack.pop_all().close()
                add_note(error, f"In the file {file.name}")
                with reading(file.name) if _is_torn(file, error) else contextlib.nullcontext():
                    raise


def _content(file: File) -> Iterator[tuple[str, bytes]]:
    with opened(file) as stream:
        content = stream.read()
    yield file.name, content


def _checked_items(items: Any, file: File) -> Iterable[Any]:
    if isinstance(items, str | bytes | bytearray):
        raise TypeError(
            f"read gave a {type(items).__name__} for {file.name}, whose parts would be the items: give a list of it"
        )
    return () if items is None else items


def _is_torn(file: File, error: Exception) -> bool:
    """Return whether an exception is one of those that decompressing raises."""
    import lzma
    import zlib

    kinds = (EOFError, zlib.error, lzma.LZMAError, OSError)
    return is_compressed(file) and isinstance(error, kinds) and not isinstance(error, SourceError)
