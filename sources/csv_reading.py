"""Reading one CSV file: its lines, its header, its rows, and what is said of a row that does not fit."""

from __future__ import annotations

import collections
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dstream.errors import SourceError
from dstream.spi import Misread
from sources.file_access import Part, opened
from sources.forms import FormOfItem, Unfit
from sources.kinds import missing_columns
from sources.lines import Damaged, LineNumbers, line_blocks, splits_at_newlines, whole_lines
from sources.names import repeated
from sources.quick_makers import maker_of_rows
from sources.record_files import OnMisread, misread_at

__all__ = ["RowsOfFile"]

LONGEST_FIELD = 64 << 20
"""A longer field is taken for an unclosed quote. The `csv` module's own limit is 128 KiB."""


class RowsOfFile:
    """The rows of one file, read one after another, once.

    Args:
        part: the whole file.
        encoding: that of the file.
        dialect: what `csv.reader` takes.
        names: those of the columns; None if the first row has them.
        form: of what a row becomes; None for dictionaries.
    """

    def __init__(
        self,
        part: Part,
        encoding: str,
        dialect: dict[str, Any],
        names: tuple[str, ...] | None,
        form: FormOfItem | None,
    ) -> None:
        self._file = part.file
        self._names = names
        self._form = form
        self._lines = _Lines(part, encoding)
        self._reader: Any = csv.reader(iter(self._lines), **dialect)
        self._quotes = _Quotes(dialect["delimiter"], dialect["quotechar"]) if dialect["quotechar"] else None

    def items(self, misread: OnMisread) -> Iterator[Any]:
        """Give what becomes of each row behind the header; in the place of a bad one what `misread` gives, or raises.

        Raises:
            SourceError: the file cannot be read, its header does not fit, or nothing closes a quote.
        """
        # The limit is one for the whole process, and never lowered here.
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        names = self._header() if self._names is None else self._names
        count, make, held = len(names), self._maker(names), self._lines.held
        while True:
            try:
                for row in self._reader:
                    if len(row) == count and "" not in row and not self._lines.damage:
                        yield make(row)
                    elif row or self._lines.damage:
                        yield make(self._completed(row, names))
                    held.clear()
            except (csv.Error, ValueError) as problem:
                yield from misread(self._misread(problem))
                self._lines.forget()
            else:
                return

    def _header(self) -> tuple[str, ...]:
        """Return the names that the first row has, nothing of an empty file."""
        try:
            row = next(filter(None, self._reader), ())
        except csv.Error as error:
            raise self._misread(error).error() from error
        if self._lines.damage:
            raise self._lines.damage.error()
        if twice := repeated(row):
            raise self._bad_header(f"the header holds {twice} more than once")
        if row and (missing := missing_columns(self._form, row)):
            raise self._bad_header(f"there is no column {', '.join(missing)}; there are {', '.join(row)}")
        self._lines.forget()
        return tuple(row)

    def _bad_header(self, said: str) -> SourceError:
        return SourceError(f"{self._file.name}, line {self._reader.line_num:,}: {said}")

    def _maker(self, names: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
        if self._form is not None:
            return maker_of_rows(self._form, names)
        return lambda row: dict(zip(names, row, strict=True))

    def _completed(self, row: list[str], names: tuple[str, ...]) -> list[str | None]:
        """Return a row with None for what is empty and has no quotes, which the `csv` module does not tell apart.

        Raises:
            ValueError: it has too few fields or too many, or lines that are none.
        """
        if self._lines.damage:
            raise self._lines.damage.problem
        if len(row) != len(names):
            raise Unfit(f"{len(row)} fields, but there are {len(names)} names ({', '.join(names)})")
        text = "".join(self._lines.held)
        if self._quotes is None or not self._quotes.may_be_around_nothing(text):
            return [value or None for value in row]
        around = self._quotes.around(text.rstrip("\r\n"))
        return [value if value or is_quoted else None for value, is_quoted in zip(row, around, strict=True)]

    def _misread(self, problem: Exception) -> Misread:
        """Return what is said of the row whose lines are held.

        Raises:
            SourceError: where the next row begins is not known.
        """
        if self._lines.damage:
            return self._lines.damage
        first, text = self._lines.first(), "".join(self._lines.held).rstrip("\r\n")
        reason = problem.said("column") if isinstance(problem, Unfit) else str(problem)
        found = misread_at(self._file, lambda: first, text, problem, f": {reason}")
        if isinstance(problem, csv.Error) and self._is_open_quote(str(problem)):
            raise found.error() from problem
        return found

    def _is_open_quote(self, said: str) -> bool:
        """Say whether nothing closes a quote that stands before the last line."""
        return said.startswith("field larger") or (said == "unexpected end of data" and len(self._lines.held) > 1)


class _Lines:
    """The lines of a file with their ends, as `csv.reader` wants them.

    Attributes:
        held: those since it was told to forget them: the lines of a row.
        damage: says that one of them is in another encoding, or in none.
    """

    def __init__(self, part: Part, encoding: str) -> None:
        self.held: list[str] = []
        self.damage: Misread | None = None
        self._part = part
        self._encoding = encoding
        self._given = 0

    def forget(self) -> None:
        """Begin a row."""
        self.held.clear()
        self.damage = None

    def first(self) -> int:
        """Return the number of the first line that is held."""
        return self._given - len(self.held) + 1

    def __iter__(self) -> Iterator[str]:
        hold = self.held.append
        numbers = LineNumbers(self._part, self._encoding)
        for block in self._blocks():
            bad = block.bad if isinstance(block, Damaged) else ()
            for place, line in enumerate(block):
                hold(line)
                self._given += 1
                if "\0" in line or place in bad:
                    self.damage = self.damage or self._damage(block, place, numbers)
                yield line

    def _damage(self, block: list[str], place: int, numbers: LineNumbers) -> Misread:
        line = self._given
        if isinstance(block, Damaged) and place in block.bad:
            return numbers.undecodable(block, place, line)
        # Since Python 3.11, `csv` takes NUL characters, which only torn files hold.
        said = " holds a NUL character: is this a CSV file?"
        return misread_at(self._part.file, lambda: line, block[place].rstrip("\r\n"), ValueError(said[1:]), said)

    def _blocks(self) -> Iterator[list[str]]:
        if splits_at_newlines(self._encoding):
            return whole_lines(self._part, self._encoding)
        return self._decoded_at_once()

    def _decoded_at_once(self) -> Iterator[list[str]]:
        with opened(self._part.file) as stream, io.TextIOWrapper(stream, self._encoding, newline="") as text:
            try:
                for line in text:
                    yield [line]
            except UnicodeDecodeError:
                # Its error counts from some buffer's start. Reading the file as lines says where it is.
                collections.deque(line_blocks(self._part, self._encoding), maxlen=0)
                raise


class _Quotes:
    """Tells which fields of a row have quotes around them."""

    def __init__(self, delimiter: str, quote: str) -> None:
        self._quote = quote
        escaped, end = re.escape(quote), f"({re.escape(delimiter)}|\\Z)"
        quoted = f"{escaped}[^{escaped}]*(?:{escaped * 2}[^{escaped}]*)*{escaped}"
        self._field = re.compile(f"(?:{quoted}|[^{re.escape(delimiter)}]*){end}")

    def may_be_around_nothing(self, text: str) -> bool:
        """Say whether some field may have quotes and nothing between them."""
        return self._quote * 2 in text

    def around(self, text: str) -> list[bool]:
        """Say of each field whether it has quotes around it, in a row that the `csv` module has read."""
        found: list[bool] = []
        end, is_last = 0, False
        while not is_last:
            field = self._field.match(text, end)
            assert field is not None, "the csv module has found the same fields"
            found.append(text.startswith(self._quote, end))
            end, is_last = field.end(), not field[1]
        return found
