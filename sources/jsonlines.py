"""Files that hold one JSON value a line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SourceError
from dstream.spi.source import Source
from sources.files import Part, Paths, find_files, path_list, plan, written_call
from sources.lines import checked_encoding, is_divisible, line_blocks, lines_before

__all__ = ["JsonLines", "JsonSplit", "json_lines"]

SHOWN = 200
"""How much of a bad line its error shows."""


def json_lines(*paths: Paths, encoding: str = "utf-8") -> Source[Any]:
    r"""Read files that hold one JSON value a line; blank lines are skipped.

    Paths, line ends, order and compressed files are those of `text_files`; values are those of
    `json.loads`, which also takes NaN and Infinity.

    **Parallelism**: large files are cut into ranges of 1 to 64 MiB, and small neighbours share a
    task. A compressed file, and one in an encoding such as UTF-16, is read by one task.
    **Guarantee**: every value once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Raises:
        LookupError: there is no such encoding.
        SourceError: when it runs: a file is missing, unreadable or torn, or a line is not JSON; the
            message names the file and the line.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "events.jsonl"
        >>> _ = path.write_text('{"n": 1}\n\n[2, 3]\n')
        >>> [value for split in json_lines(path).splits(2) for value in split.read()]
        [{'n': 1}, [2, 3]]
    """
    return JsonLines(path_list(*paths), checked_encoding(encoding))


@dataclass(frozen=True, slots=True, repr=False)
class JsonLines:
    """What `json_lines` returns."""

    paths: tuple[str, ...]
    encoding: str

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[JsonSplit]:
        """Find the files and divide them by bytes."""
        files = find_files(self.paths)
        parts = plan(files, parallelism, lambda file: is_divisible(file, self.encoding))
        return [JsonSplit(each, self.encoding) for each in parts]

    def __repr__(self) -> str:
        return written_call("json_lines", self.paths, encoding=self.encoding)


@dataclass(frozen=True, slots=True)
class JsonSplit:
    """Parts of files that one task reads one after another."""

    parts: tuple[Part, ...]
    encoding: str

    def read(self) -> Iterator[Any]:
        """Give the values."""
        return itertools.chain.from_iterable(_values(part, self.encoding) for part in self.parts)


def _values(part: Part, encoding: str) -> Iterator[Any]:
    lines = itertools.chain.from_iterable(line_blocks(part, encoding))
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _not_json(part, encoding, number, line, error) from error
        yield value


def _not_json(part: Part, encoding: str, number: int, line: str, error: Exception) -> SourceError:
    shown = line if len(line) <= SHOWN else line[:SHOWN] + "..."
    line_number = lines_before(part, encoding) + number
    return SourceError(f"{part.file.name}, line {line_number:,} is not JSON ({error}): {shown}")
