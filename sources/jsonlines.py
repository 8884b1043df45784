"""Files that hold one JSON value a line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from dstream.errors import SourceError
from dstream.spi.source import Source
from sources.files import Part, Paths, find_files, path_list, plan, written_call
from sources.forms import Record, Unfit
from sources.kinds import form_of
from sources.lines import checked_encoding, is_divisible, line_blocks, lines_before

__all__ = ["JsonLines", "JsonSplit", "json_lines"]

T = TypeVar("T")

SHOWN = 200
"""How much of a bad line its error shows."""


@overload
def json_lines(path: Paths, kind: type[T], /, *, encoding: str = ...) -> Source[T]: ...
@overload
def json_lines(*paths: Paths, kind: type[T], encoding: str = ...) -> Source[T]: ...
@overload
def json_lines(*paths: Paths, encoding: str = ...) -> Source[Any]: ...
def json_lines(*paths: Any, kind: Any = None, encoding: str = "utf-8") -> Source[Any]:
    r"""Read files that hold one JSON value a line; blank lines are skipped.

    Paths, line ends, order and compressed files are those of `text_files`; values are those of
    `json.loads`, which also takes NaN and Infinity.

    With a `kind`, each line is an object that becomes one, by the names and the types of its fields: `int`, `float`,
    `str`, `bool`, `None`, `Decimal`, `date`, `datetime`, `time`, enumerations (by value), `Literal`, `X | Y`, lists,
    sets, tuples and dictionaries of these, and other such classes. A field with a default may be missing. Fields that
    the kind has not are left out. Nothing else is converted: a text with digits is no `int`.

    **Parallelism**: large files are cut into ranges of 1 to 64 MiB, and small neighbours share a
    task. A compressed file, and one in an encoding such as UTF-16, is read by one task.
    **Guarantee**: every value once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple or a `TypedDict`; behind a single path it may stand without its name.
        encoding: as for `text_files`.

    Raises:
        LookupError: there is no such encoding.
        TypeError: `kind` is none of these, or has a field of a type that no JSON becomes.
        SourceError: when it runs: a file is missing, unreadable or torn, a line is not JSON, or does not become a
            `kind`; the message names the file, the line, and the field.

    Example:
        >>> import pathlib, tempfile
        >>> from typing import NamedTuple
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "events.jsonl"
        >>> _ = path.write_text('{"n": 1}\n\n{"n": 2, "more": 3}\n')
        >>> [value for split in json_lines(path).splits(2) for value in split.read()]
        [{'n': 1}, {'n': 2, 'more': 3}]
        >>> class Event(NamedTuple):
        ...     n: int
        >>> [value for split in json_lines(path, Event).splits(2) for value in split.read()]
        [Event(n=1), Event(n=2)]
    """
    *before, last = paths or (None,)
    if kind is None and before and isinstance(last, type):
        paths, kind = tuple(before), last
    form = None if kind is None else form_of(kind)
    return JsonLines(path_list(*paths), checked_encoding(encoding), form)


@dataclass(frozen=True, slots=True, repr=False)
class JsonLines:
    """What `json_lines` returns."""

    paths: tuple[str, ...]
    encoding: str
    form: Record | None = None

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[JsonSplit]:
        """Find the files and divide them by bytes."""
        files = find_files(self.paths)
        parts = plan(files, parallelism, lambda file: is_divisible(file, self.encoding))
        return [JsonSplit(each, self.encoding, self.form) for each in parts]

    def __repr__(self) -> str:
        call = written_call("json_lines", self.paths, encoding=self.encoding)
        return call if self.form is None else f"{call[:-1]}, kind={self.form.expected})"


@dataclass(frozen=True, slots=True)
class JsonSplit:
    """Parts of files that one task reads one after another."""

    parts: tuple[Part, ...]
    encoding: str
    form: Record | None = None

    def read(self) -> Iterator[Any]:
        """Give the values."""
        return itertools.chain.from_iterable(map(self._values, self.parts))

    def _values(self, part: Part) -> Iterator[Any]:
        lines = itertools.chain.from_iterable(line_blocks(part, self.encoding))
        form = self.form
        for number, line in enumerate(lines, start=1):
            if not line or line.isspace():
                continue
            try:
                value = json.loads(line)
                if form is not None:
                    value = form.made(value)
            except Unfit as error:
                raise _at(part, self.encoding, number, f": {error}", line) from error.__cause__
            except (ValueError, RecursionError) as error:
                raise _at(part, self.encoding, number, f" is not JSON ({error})", line) from error
            yield value


def _at(part: Part, encoding: str, number: int, problem: str, line: str) -> SourceError:
    shown = line if len(line) <= SHOWN else line[:SHOWN] + "..."
    return SourceError(f"{part.file.name}, line {lines_before(part, encoding) + number:,}{problem}: {shown}")
