"""`files`: whole files, read as the user says."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, TypeVar, overload

from dstream.errors import SourceError
from dstream.spi import Source
from dstream.spi.functions import refuse_async
from sources.file_access import File, is_compressed, opened, reading
from sources.file_splits import Part, plan
from sources.found_files import Paths, find_files, path_list, within, written_call
from sources.memory import NamesOfStreams

__all__ = ["WholeFile", "WholeFiles", "files"]

T = TypeVar("T")


@overload
def files(*paths: Paths, glob: str | None = ...) -> Source[tuple[str, bytes]]: ...
@overload
def files(*paths: Paths, glob: str | None = ..., read: Callable[[str, IO[bytes]], Iterable[T] | None]) -> Source[T]: ...
def files(
    *paths: Paths, glob: str | None = None, read: Callable[[str, IO[bytes]], Iterable[Any] | None] | None = None
) -> Source[Any]:
    """Read whole files: as pairs of path and bytes, or as the items that `read(path, open_file)` gives of each.

    Paths, order and compressed files are those of `text_files`.

    **Parallelism**: one task for each file; small neighbours share a task.
    **Guarantee**: every file once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`; directories, if there is a `glob`.
        glob: which files below the directories, such as `"*.xml"` or `"**/*.xml"`.
        read: is given the path, absolute or a URL, and the file, open for reading bytes, decompressed. It gives the
            items, maybe lazily, or None if there are none. The file is closed behind the last one.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: there are no paths, or one of them is empty.
        SourceError: when it runs: a file is missing, unreadable or torn. What `read` raises itself arrives as it is.

    Example:
        >>> import json, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.json").write_text('[1, 2]')
        >>> _ = (folder / "b.json").write_text('[3]')
        >>> source = files(folder, glob="*.json", read=lambda path, open_file: json.load(open_file))
        >>> [item for split in source.splits(2) for item in split.read()]
        [1, 2, 3]
    """
    if read is not None and not callable(read):
        raise TypeError(f"read must be a function of a path and an open file, not {type(read).__name__}")
    if read is not None:
        refuse_async(read, "read")
    if glob is not None and not isinstance(glob, str):
        raise TypeError(f"glob must be a str, not {type(glob).__name__}")
    return WholeFiles(path_list(*paths), glob, read)


@dataclass(frozen=True, slots=True, repr=False)
class WholeFiles(NamesOfStreams):
    """What `files` returns."""

    paths: tuple[str, ...]
    glob: str | None
    reader: Callable[[str, IO[bytes]], Iterable[Any] | None] | None

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[WholeFile]:
        """Find the files and divide them, each of them whole."""
        paths = self.paths if self.glob is None else [within(path, self.glob) for path in self.paths]
        parts = plan(find_files(paths), parallelism, lambda file: False)
        return [WholeFile(each, self.reader) for each in parts]

    def __repr__(self) -> str:
        return written_call("files", self.paths, glob=self.glob, read=self.reader)


@dataclass(frozen=True, slots=True)
class WholeFile:
    """Files that one task reads one after another."""

    parts: tuple[Part, ...]
    reader: Callable[[str, IO[bytes]], Iterable[Any] | None] | None

    def read(self) -> Iterator[Any]:
        """Give the items of each file."""
        read = _content if self.reader is None else self._items
        return itertools.chain.from_iterable(read(part.file) for part in self.parts)

    def _items(self, file: File) -> Iterator[Any]:
        assert self.reader is not None, "somebody reads the files"
        # What the function raises does not pass through `opened`, which would take it for a fault of the file.
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(opened(file))
            try:
                yield from _given(self.reader(file.name, stream), file)
            except Exception as error:
                stack.pop_all().close()
                with contextlib.suppress(Exception):  # A class of the user's may take none.
                    error.add_note(f"In the file {file.name}")
                with reading(file.name) if _is_torn(file, error) else contextlib.nullcontext():
                    raise


def _content(file: File) -> Iterator[tuple[str, bytes]]:
    with opened(file) as stream:
        content = stream.read()
    yield file.name, content


def _given(items: Any, file: File) -> Iterable[Any]:
    if isinstance(items, str | bytes | bytearray):
        raise TypeError(
            f"read gave a {type(items).__name__} for {file.name}, whose parts would be the items: give a list of it"
        )
    return () if items is None else items


def _is_torn(file: File, error: Exception) -> bool:
    """Say whether an exception is one of those that decompressing raises."""
    import lzma
    import zlib

    kinds = (EOFError, zlib.error, lzma.LZMAError, OSError)
    return is_compressed(file) and isinstance(error, kinds) and not isinstance(error, SourceError)
