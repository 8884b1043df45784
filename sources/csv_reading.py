"""Reading one CSV file: its lines, its header, its rows, and what is said of a row that does not fit."""

from __future__ import annotations

import collections
import csv
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dstream.errors import SourceError
from dstream.spi import Misread
from sources.column_makers import maker_of_many, maker_of_many_rows
from sources.csv_delimiters import OtherDelimiters
from sources.file_access import opened
from sources.file_splits import Part
from sources.forms import FormOfItem, Unfit
from sources.kinds import missing_columns
from sources.lines import Damaged, LineNumbers, line_blocks, splits_at_newlines, whole_lines
from sources.names import repeated
from sources.quick_makers import maker_of_rows
from sources.record_files import OnMisread, misread_at

__all__ = ["RowsOfFile"]

LONGEST_FIELD = 64 << 20
"""A longer field is taken for an unclosed quote. The `csv` module's own limit is 128 KiB."""
ROWS = 128
"""So many rows are made together."""
LINES = 1_024
"""So many lines are a block where bytes are not cut at line ends."""


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
        self._dialect = dialect
        self._quotes = _Quotes(dialect["delimiter"], dialect["quotechar"]) if dialect["quotechar"] else None
        self._delimiters = OtherDelimiters(dialect)
        self._count: int | None = None  # Of the names, when they are known.
        self._lines = _Lines(part, encoding, self._quotes)
        self._reader: Any = csv.reader(itertools.chain.from_iterable(self._lines.blocks()), **dialect)

    def blocks(self, misread: OnMisread) -> Iterator[Sequence[Any]]:
        """Give what becomes of each row behind the header, in lists.

        Rows that fit are made together. From one that does not, those read with it are made one by one, when they are
        asked for: what is in front of a bad row is given before anything is raised.

        Args:
            misread: gives what stands in the place of a bad row, or raises.

        Raises:
            SourceError: the file cannot be read, its header does not fit, or nothing closes a quote.
        """
        # The limit is one for the whole process, and never lowered here.
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
        reader, lines = self._reader, self._lines
        names = self._header() if self._names is None else self._names
        make, make_of_plain = self._maker(names, False), self._maker(names, True)
        make_many, problem = self._maker_of_many(names, make_of_plain), None
        is_first, self._count = True, len(names)
        while True:
            rows: list[list[str]] = []
            try:
                rows.extend(itertools.islice(reader, ROWS))
            except Exception as error:
                problem = error  # The rows that were read before come first.
            if not rows and problem is None:
                return
            if is_first and self._delimiters.are_likely:
                place = f"{self._file.name}, line {lines.done:,}"
                self._delimiters.refuse_single_column(place, names[0], lines.up_to(reader.line_num))
            is_first = False
            made = make_many(rows) if lines.are_plain else []
            if made:
                yield made
            if len(made) < len(rows) or problem is not None:
                yield from self._one_by_one(rows, len(made), names, make, make_of_plain, misread)
            if problem is not None:
                yield self._instead(problem, reader.line_num, misread)
                problem = None
            lines.done = reader.line_num
            del rows, made  # So few lists live at a time that the garbage collector does not look for cycles in them.

    def _one_by_one(
        self,
        rows: list[list[str]],
        given: int,
        names: tuple[str, ...],
        make: Callable[[Sequence[Any]], Any],
        make_of_plain: Callable[[Sequence[Any]], Any],
        misread: OnMisread,
    ) -> Iterator[Sequence[Any]]:
        """Give what becomes of the rows that are not given yet, each in a list."""
        lines, count = self._lines, len(names)
        for place, (row, last) in enumerate(self._with_lines(rows)):
            if place >= given:
                try:
                    if len(row) == count and (lines.are_plain or ("" not in row and not lines.damaged)):
                        made = make_of_plain(row)
                    elif row or lines.damage_up_to(last):
                        made = make(self._completed(row, names, last))
                    else:
                        lines.done = last
                        continue
                except ValueError as problem:
                    yield self._instead(problem, last, misread)
                else:
                    yield (made,)
            lines.done = last

    def _with_lines(self, rows: list[list[str]]) -> Iterable[tuple[list[str], int]]:
        """Return the rows that are not done with the number of the last line of each."""
        done, last = self._lines.done, self._reader.line_num
        if last - done == len(rows):
            return zip(rows, range(done + 1, last + 1), strict=True)
        again: Any = csv.reader(self._lines.up_to(last), **self._dialect)
        return ((row, done + again.line_num) for row in itertools.islice(again, len(rows)))

    def _instead(self, problem: Exception, last: int, misread: OnMisread) -> Sequence[Any]:
        if not isinstance(problem, csv.Error | ValueError):
            raise problem
        return list(misread(self._misread(problem, last)))

    def _header(self) -> tuple[str, ...]:
        """Return the names that the first row has, nothing of an empty file."""
        try:
            row: Sequence[str] = next(filter(None, self._reader), ())
        except csv.Error as error:
            raise self._misread(error, self._reader.line_num).error() from error
        if damage := self._lines.damage_up_to(self._reader.line_num):
            raise damage.error()
        header = self._lines.text_up_to(self._reader.line_num).lstrip("\r\n")
        if twice := repeated(row):
            raise self._bad_header(f"the header holds {twice} more than once")
        if row and (missing := missing_columns(self._form, row)):
            advice = self._delimiters.of_names(header, row, self._form)
            raise self._bad_header(f"there is no column {', '.join(missing)}; there are {', '.join(row)}{advice}")
        self._delimiters.remember_header(header, row)
        self._lines.done = self._reader.line_num
        return tuple(row)

    def _bad_header(self, said: str) -> SourceError:
        return SourceError(f"{self._file.name}, line {self._reader.line_num:,}: {said}")

    def _maker(self, names: tuple[str, ...], empty_is_none: bool) -> Callable[[Sequence[Any]], Any]:
        if self._form is not None:
            return maker_of_rows(self._form, names, empty_is_none=empty_is_none)
        if empty_is_none:
            return lambda row: dict(zip(names, [value or None for value in row], strict=True))
        return lambda row: dict(zip(names, row, strict=True))

    def _maker_of_many(
        self, names: tuple[str, ...], make: Callable[[Sequence[Any]], Any]
    ) -> Callable[[Sequence[Sequence[str]]], list[Any]]:
        return maker_of_many(make) if self._form is None else maker_of_many_rows(self._form, names, make)

    def _completed(self, row: list[str], names: tuple[str, ...], last: int) -> list[str | None]:
        """Return a row with None for what is empty and has no quotes, which the `csv` module does not tell apart.

        Raises:
            ValueError: it has too few fields or too many, or lines that are none.
        """
        if damage := self._lines.damage_up_to(last):
            raise damage.problem
        if len(row) != len(names):
            advice = self._delimiters.of_row(self._lines.text_up_to(last), len(names))
            raise Unfit(f"{len(row)} fields, but there are {len(names)} names ({', '.join(names)}){advice}")
        if self._quotes is None or "" not in row:
            return [value or None for value in row]
        around = self._quotes.around(self._lines.text_up_to(last))
        return [value if value or is_quoted else None for value, is_quoted in zip(row, around, strict=True)]

    def _misread(self, problem: Exception, last: int) -> Misread:
        """Return what is said of the row whose lines are not done.

        Raises:
            SourceError: where the next row begins is not known.
        """
        first = self._lines.done + 1
        if damage := self._lines.damage_up_to(last):
            return damage
        text, reason = (
            self._lines.text_up_to(last),
            problem.said("column") if isinstance(problem, Unfit) else str(problem),
        )
        if isinstance(problem, csv.Error):
            other = self._delimiters
            advice = other.of_torn_header(text) if self._count is None else other.of_row(text, self._count)
            reason += advice or next((advice for words, advice in _ADVICE.items() if words in reason), "")
        found = misread_at(self._file, lambda: first, text, problem, f": {reason}")
        is_open = reason.startswith("unexpected end of data") and last > first
        if isinstance(problem, csv.Error) and (is_open or reason.startswith("field larger")):
            raise found.error() from problem  # A quote that nothing closes stands before the last line.
        return found


_ADVICE = {
    " expected after ": ": a quote in a quoted field is written twice",
    "unexpected end of data": ": a quote is never closed",
}
"""What to look for, by what the `csv` module says."""


class _Lines:
    """The lines of a file with their ends, in blocks, as `csv.reader` wants them.

    Attributes:
        done: the number of the last line whose row is done. Blocks before it are let go of.
        are_plain: no line that is not done is damaged, or may hold quotes around nothing.
        damaged: what is said of lines in another encoding, or in none, by their numbers.
    """

    def __init__(self, part: Part, encoding: str, quotes: _Quotes | None) -> None:
        self.done = 0
        self.are_plain = True
        self.damaged: dict[int, Misread] = {}
        self._part = part
        self._encoding = encoding
        self._quotes = quotes
        self._held: list[tuple[int, list[str], bool]] = []

    def blocks(self) -> Iterator[list[str]]:
        """Give the lines in lists; `reader.line_num` counts them."""
        given = 0
        for block in self._blocks():
            self._held = [each for each in self._held if each[0] + len(each[1]) > self.done]
            self.damaged = {number: misread for number, misread in self.damaged.items() if number > self.done}
            text = "".join(block)
            is_damaged = isinstance(block, Damaged) or "\0" in text
            if is_damaged:
                self._note_damage(block, given)
            has_quotes = self._quotes is not None and self._quotes.may_be_around_nothing(text)
            self._held.append((given, block, has_quotes or is_damaged))
            self.are_plain = not any(is_special for _, _, is_special in self._held)
            yield block
            given += len(block)

    def _blocks(self) -> Iterator[list[str]]:
        if splits_at_newlines(self._encoding):
            return whole_lines(self._part, self._encoding)
        return self._decoded_at_once()

    def _decoded_at_once(self) -> Iterator[list[str]]:
        with opened(self._part.file) as stream, io.TextIOWrapper(stream, self._encoding, newline="") as text:
            try:
                while block := list(itertools.islice(text, LINES)):
                    yield block
            except UnicodeDecodeError:
                # Its error counts from some buffer's start. Reading the file as lines says where it is.
                collections.deque(line_blocks(self._part, self._encoding), maxlen=0)
                raise

    def _note_damage(self, block: list[str], given: int) -> None:
        numbers = LineNumbers(self._part, self._encoding)
        bad = block.bad if isinstance(block, Damaged) else ()
        for place, line in enumerate(block):
            number = given + place + 1
            if isinstance(block, Damaged) and place in bad:
                self.damaged[number] = numbers.undecodable(block, place, number)
            elif "\0" in line:  # Since Python 3.11, `csv` takes NUL characters, which only torn files hold.
                self.damaged[number] = _of_nul(self._part, number, line)

    def damage_up_to(self, last: int) -> Misread | None:
        """Return what is said of the first damaged line of those that are not done, up to one."""
        if not self.damaged:
            return None
        return next((self.damaged[each] for each in range(self.done + 1, last + 1) if each in self.damaged), None)

    def text_up_to(self, last: int) -> str:
        """Return the lines that are not done, up to one, without the last line end."""
        return "".join(self.up_to(last)).rstrip("\r\n")

    def up_to(self, last: int) -> Iterator[str]:
        """Return the lines that are not done, up to one."""
        done, held = self.done, self._held
        return itertools.chain.from_iterable(
            block[max(done - given, 0) : max(last - given, 0)] for given, block, _ in held
        )


def _of_nul(part: Part, number: int, line: str) -> Misread:
    said = " holds a NUL character: is this a CSV file?"
    return misread_at(part.file, lambda: number, line.rstrip("\r\n"), ValueError(said[1:]), said)


class _Quotes:
    """Tells which fields of a row have quotes around them."""

    def __init__(self, delimiter: str, quote: str) -> None:
        self._quote = quote
        # With no character of a field before and behind. It begins with what is rare, to be found quickly.
        nothing, inside = re.escape(quote * 2), f"[^{re.escape(delimiter)}\\r\\n]"
        self._nothing = re.compile(f"{nothing}(?<!{inside}{nothing})(?!{inside})")
        escaped, end = re.escape(quote), f"({re.escape(delimiter)}|\\Z)"
        quoted = f"{escaped}[^{escaped}]*(?:{escaped * 2}[^{escaped}]*)*{escaped}"
        self._field = re.compile(f"(?:{quoted}|[^{re.escape(delimiter)}]*){end}")

    def may_be_around_nothing(self, text: str) -> bool:
        """Say whether a field of some lines may have quotes and nothing between them."""
        return self._nothing.search(text) is not None

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
