"""Rows of CSV files, as dictionaries."""

from __future__ import annotations

import collections
import csv
import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.errors import SourceError
from dstream.spi.source import Source
from sources.files import File, Part, Paths, find_files, opened, path_list, plan, written_call
from sources.lines import checked_encoding, from_the_start, line_blocks
from sources.names import checked_names, repeated

__all__ = ["CsvFiles", "CsvSplit", "csv_rows"]

LONGEST_FIELD = 64 << 20
"""A longer field is taken for an unclosed quote. The `csv` module's own limit is 128 KiB."""


def csv_rows(
    *paths: Paths,
    encoding: str = "utf-8",
    delimiter: str = ",",
    quotechar: str | None = '"',
    fieldnames: Iterable[str] | None = None,
) -> Source[dict[str, str]]:
    r"""Read the rows of CSV files as dictionaries of strings; blank lines are skipped.

    Paths, order and compressed files are those of `text_files`. A row must have as many fields as
    there are names: one that is torn is never filled up in silence.

    **Parallelism**: one task for each file, since a quoted field may hold line ends; small
    neighbours share a task.
    **Guarantee**: every row once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        encoding: as for `open`; use "utf-8-sig" for files that Excel wrote.
        delimiter: what stands between two fields.
        quotechar: what stands around a field that holds a delimiter; None if nothing does.
        fieldnames: the names of the fields, for files without a header line.

    Raises:
        LookupError: there is no such encoding.
        TypeError: `delimiter` or `quotechar` is not one character, or `fieldnames` is one str.
        ValueError: `fieldnames` is empty or holds a name twice.
        SourceError: when it runs: a file is missing, unreadable or torn, a header holds a name
            twice, or a row does not fit the header; the message names the file and the line.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
        >>> _ = path.write_text('name,age\nAda,36\n"Hopper, Grace",85\n')
        >>> [row for split in csv_rows(path).splits(2) for row in split.read()]
        [{'name': 'Ada', 'age': '36'}, {'name': 'Hopper, Grace', 'age': '85'}]
    """
    quoting = csv.QUOTE_MINIMAL if quotechar is not None else csv.QUOTE_NONE
    dialect = {"delimiter": delimiter, "quotechar": quotechar, "quoting": quoting, "strict": True}
    csv.reader([], **dialect)  # type: ignore[arg-type]  # Refuses what is not one character.
    names = checked_names(fieldnames, "fieldnames")
    return CsvFiles(path_list(*paths), checked_encoding(encoding), tuple(dialect.items()), names)


@dataclass(frozen=True, slots=True, repr=False)
class CsvFiles:
    """What `csv_rows` returns."""

    paths: tuple[str, ...]
    encoding: str
    dialect: tuple[tuple[str, Any], ...]
    fieldnames: tuple[str, ...] | None

    ordered = True
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[CsvSplit]:
        """Find the files and divide them, each of them whole."""
        parts = plan(find_files(self.paths), parallelism, lambda file: False)
        return [CsvSplit(each, self.encoding, self.dialect, self.fieldnames) for each in parts]

    def __repr__(self) -> str:
        return written_call("csv_rows", self.paths, encoding=self.encoding, fieldnames=self.fieldnames)


@dataclass(frozen=True, slots=True)
class CsvSplit:
    """Files that one task reads one after another."""

    parts: tuple[Part, ...]
    encoding: str
    dialect: tuple[tuple[str, Any], ...]
    fieldnames: tuple[str, ...] | None

    def read(self) -> Iterator[dict[str, str]]:
        """Give the rows."""
        return itertools.chain.from_iterable(self._rows(part.file) for part in self.parts)

    def _rows(self, file: File) -> Iterator[dict[str, str]]:
        with opened(file) as stream, io.TextIOWrapper(stream, from_the_start(self.encoding), newline="") as text:
            # The limit is one for the whole process, and never lowered here.
            csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
            reader = csv.reader(_without_nul(text, file), **dict(self.dialect))
            names = self.fieldnames
            while row := _next_row(reader, file, self.encoding):
                if names is None:
                    names = _header(row, file, reader.line_num)
                elif len(row) != len(names):
                    raise SourceError(
                        f"{file.name}, line {reader.line_num:,}: {len(row)} fields, "
                        f"but there are {len(names)} names ({', '.join(names)})"
                    )
                else:
                    yield dict(zip(names, row, strict=True))


def _without_nul(lines: Iterable[str], file: File) -> Iterator[str]:
    """Pass lines on; since Python 3.11, `csv` takes NUL characters, which only torn files hold."""
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise SourceError(f"{file.name}, line {number:,} holds a NUL character: is this a CSV file?")
        yield line


def _next_row(reader: Any, file: File, encoding: str) -> list[str]:
    """Return the next row that is not blank, or an empty one at the end."""
    try:
        return next(filter(None, reader), [])
    except csv.Error as error:
        raise SourceError(f"{file.name}, line {reader.line_num:,}: {error}") from error
    except UnicodeDecodeError:
        # The error of a text stream counts from some buffer's start. Reading the file as lines says where it is.
        collections.deque(line_blocks(Part(file), encoding), maxlen=0)
        raise


def _header(row: list[str], file: File, line: int) -> tuple[str, ...]:
    if twice := repeated(row):
        raise SourceError(f"{file.name}, line {line:,}: the header holds {twice} more than once")
    return tuple(row)
