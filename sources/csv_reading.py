"""Reading one CSV file: its lines, its header, its rows, and what is said of a row that does not fit."""

from __future__ import annotations

import collections
import csv
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dstream.errors import SourceError
from dstream.spi import Misread
from sources.column_makers import maker_of_many, maker_of_many_rows
from sources.csv_delimiters import OtherDelimiters, blank_sep_line
from sources.file_access import opened
from sources.file_splits import Part
from sources.forms import FormOfItem, Unfit
from sources.kinds import missing_columns
from sources.lines import Damaged, LineNumbers, TooLong, line_blocks, splits_at_newlines, too_long, whole_lines
from sources.names import repeated
from sources.quick_makers import maker_of_rows
from sources.record_files import OnMisread, misread_at

__all__ = ["RowsOfFile"]

ROWS = 128
"""So many rows are made together."""
LINES = 1_024
"""So many lines are a block where bytes are not cut at line ends."""
_CHARACTERS = 1 << 20
"""Of rows that are made together, and of a block where bytes are not cut at line ends, unless a record has more."""

_FIELDS = 1 << 20
"""A row has no more fields: one of 64 MiB may have as many, each of which takes some 60 bytes."""


class RowsOfFile:
    """The rows of one file, read one after another, once.

    Args:
        part: the whole file.
        encoding: that of the file.
        dialect: what `csv.reader` takes.
        names: those of the columns; None if the first row has them.
        form: of what a row becomes; None for dictionaries.
        most: bytes that a line may have, and characters that a record of several may have.
        fails: the first bad row ends the reading, so that nothing behind a line that is too long is read.
    """

    def __init__(
        self,
        part: Part,
        encoding: str,
        dialect: dict[str, Any],
        names: tuple[str, ...] | None,
        form: FormOfItem | None,
        most: int,
        *,
        fails: bool = False,
    ) -> None:
        self._most = most
        self._file = part.file
        self._names = names
        self._form = form
        self._dialect = dialect
        self._quotes = _Quotes(dialect["delimiter"], dialect["quotechar"]) if dialect["quotechar"] else None
        self._delimiters = OtherDelimiters(dialect)
        self._count: int | None = None  # Of the names, when they are known.
        self._lines = _Lines(part, encoding, dialect, self._quotes, most, fails)
        self._begin()

    def _begin(self) -> None:
        """Begin behind the last line whose row is done."""
        self._before = self._lines.done
        self._reader: Any = csv.reader(itertools.chain.from_iterable(self._lines.blocks()), **self._dialect)

    @property
    def _line_num(self) -> int:
        """The number of the last line that was read."""
        number: int = self._before + self._reader.line_num
        return number

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
        csv.field_size_limit(max(csv.field_size_limit(), min(self._most, _LARGEST_LIMIT)))
        lines = self._lines
        names = self._header() if self._names is None else self._names
        make, make_of_plain = self._maker(names, False), self._maker(names, True)
        make_many, problem = self._maker_of_many(names, make_of_plain), None
        is_first, self._count = True, len(names)
        while True:
            rows, is_full = lines.rows, False
            try:
                rows.extend(itertools.islice(self._reader, ROWS))
            except _Full:
                is_full = True
            except Exception as error:
                problem = error  # The rows that were read before come first.
            last = self._line_of(rows) if is_full else self._line_num
            if not rows and problem is None:
                return
            if is_first and self._delimiters.are_likely:
                place = f"{self._file.name}, line {lines.done:,}"
                self._delimiters.refuse_single_column(place, names[0], lines.up_to(last))
            is_first = False
            made = make_many(rows) if lines.are_plain else []
            if made:
                yield made
            if len(made) < len(rows) or problem is not None:
                yield from self._one_by_one(rows, last, len(made), names, make, make_of_plain, misread)
            if problem is not None:
                yield self._instead(problem, last, misread)
                problem = None
            lines.done, lines.rows = last, []
            if is_full:
                self._begin()
            del rows, made  # So few lists live at a time that the garbage collector does not look for cycles in them.

    def _one_by_one(
        self,
        rows: list[list[str]],
        last_of_all: int,
        given: int,
        names: tuple[str, ...],
        make: Callable[[Sequence[Any]], Any],
        make_of_plain: Callable[[Sequence[Any]], Any],
        misread: OnMisread,
    ) -> Iterator[Sequence[Any]]:
        """Give what becomes of the rows that are not given yet, each in a list."""
        lines, count = self._lines, len(names)
        for place, (row, last) in enumerate(self._with_lines(rows, last_of_all)):
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

    def _line_of(self, rows: list[list[str]]) -> int:
        """Return the number of the last line of some rows, behind which a record may have been begun."""
        *_, (_, last) = self._with_lines(rows, self._line_num)
        return last

    def _with_lines(self, rows: list[list[str]], last: int) -> Iterable[tuple[list[str], int]]:
        """Return the rows that are not done with the number of the last line of each."""
        done = self._lines.done
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
            raise self._misread(error, self._line_num).error() from error
        if damage := self._lines.damage_up_to(self._line_num):
            raise damage.error()
        header = self._lines.text_up_to(self._line_num).lstrip("\r\n")
        if twice := repeated(row):
            raise self._bad_header(f"the header holds {twice} more than once")
        if row and (missing := missing_columns(self._form, row)):
            advice = self._delimiters.of_names(header, row, self._form)
            raise self._bad_header(f"there is no column {', '.join(missing)}; there are {', '.join(row)}{advice}")
        self._delimiters.remember_header(header, row)
        self._lines.done = self._line_num
        return tuple(row)

    def _bad_header(self, said: str) -> SourceError:
        return SourceError(f"{self._file.name}, line {self._line_num:,}: {said}")

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
_LARGEST_LIMIT = (1 << 31) - 1
"""The largest limit that the `csv` module takes where a C long has 32 bits."""


class _Full(Exception):
    """Lines that are read have enough characters, and there are rows of them."""


class _Held(NamedTuple):
    """A block of lines that are not done.

    Attributes:
        before: how many lines are before it.
        lines: these, with their ends.
        is_special: one is damaged, or may hold quotes around nothing.
        size: how many characters they have.
    """

    before: int
    lines: list[str]
    is_special: bool
    size: int


class _Lines:
    """The lines of a file with their ends, in blocks, as `csv.reader` wants them.

    Attributes:
        done: the number of the last line whose row is done. Blocks before it are let go of.
        are_plain: no line that is not done is damaged, or may hold quotes around nothing.
        damaged: what is said of lines in another encoding, or in none, or that are too long, by their numbers.
        rows: gets the rows that are read of these lines and are not done.
    """

    def __init__(
        self, part: Part, encoding: str, dialect: dict[str, Any], quotes: _Quotes | None, most: int, fails: bool
    ) -> None:
        self.done = 0
        self.rows: list[list[str]] = []
        self.are_plain = True
        self.damaged: dict[int, Misread] = {}
        self._part = part
        self._encoding = encoding
        self._quotes = quotes
        self._dialect = dialect
        self._delimiter = dialect["delimiter"]
        self._quote = "" if fails else dialect["quotechar"] or ""
        self._most = most
        self._fails = fails
        self._held: list[_Held] = []
        self._given, self._rest = 0, self._blocks()

    def blocks(self) -> Iterator[list[str]]:
        """Give the lines that are not done in lists; `reader.line_num` counts them.

        Raises:
            SourceError: a record of several lines has too many characters.
            _Full: before another block than the first is read, if the lines of rows that are not done have many.
        """
        for given, block, *_ in list(self._held):
            if given + len(block) > self.done:
                yield block[max(self.done - given, 0) :]
                self._check_size()
        for block in self._rest:
            given = self._given
            self._given += len(block)
            if isinstance(block, TooLong) and self._fails:
                numbers = LineNumbers(self._part, self._encoding, self._most)
                raise numbers.undecodable(block, 0, self._given).error()
            if isinstance(block, TooLong) and block.has_quote:
                said = f" {block.error} and a quote, so that it is not known where the next record begins"
                raise misread_at(self._part.file, lambda: self._given, block[0], block.error, said).error()
            if not given and not isinstance(block, TooLong):
                blank_sep_line(self._part.file.name, block, self._delimiter)
            self._held = [each for each in self._held if each.before + len(each.lines) > self.done]
            self.damaged = {number: misread for number, misread in self.damaged.items() if number > self.done}
            text = "".join(block)
            is_damaged = isinstance(block, Damaged) or "\0" in text
            if is_damaged:
                self._note_damage(block, given)
            if text.count(self._delimiter) >= _FIELDS and (cut := self._cut_wide(block, given)) is not block:
                block, is_damaged = cut, True
                text = "".join(block)
            has_quotes = self._quotes is not None and self._quotes.may_be_around_nothing(text)
            self._held.append(_Held(given, block, has_quotes or is_damaged, len(text)))
            self.are_plain = not any(each.is_special for each in self._held)
            yield block
            self._check_size()

    def _check_size(self) -> None:
        most = max(self._most, _CHARACTERS)
        if sum(each.size for each in self._held) <= most or sum(map(len, self.up_to(self._given))) <= most:
            return
        if self.rows:
            raise _Full
        said = f" begins a record of more than max_record={self._most:,} characters: is a quote never closed"
        text = "".join(itertools.islice(self.up_to(self._given), LINES))
        raise misread_at(self._part.file, lambda: self.done + 1, text, ValueError(said[1:]), said).error()

    def _blocks(self) -> Iterator[list[str]]:
        if splits_at_newlines(self._encoding):
            return whole_lines(self._part, self._encoding, self._most, self._quote)
        return self._decoded_at_once()

    def _decoded_at_once(self) -> Iterator[list[str]]:
        with opened(self._part.file) as stream, io.TextIOWrapper(stream, self._encoding, newline="") as text:
            number = size = 0
            try:
                block: list[str] = []
                for number, line in enumerate(iter(functools.partial(text.readline, self._most + 2), ""), 1):
                    if len(line) > self._most and len(line.rstrip("\r\n")) > self._most:
                        yield block
                        raise too_long(self._part.file, number, line, self._most)
                    block.append(line)
                    size += len(line)
                    if len(block) == LINES or size > _CHARACTERS:
                        yield block
                        block, size = [], 0
                if block:
                    yield block
            except UnicodeDecodeError as error:
                # Its error counts from some buffer's start. Reading the file as lines says where it is.
                if self._part.file.size is None:  # A pipe cannot be read again.
                    bad = error.object[error.start : error.end][:20]
                    said = f"line {number + 1:,} or behind it: {bad!r} is not {self._encoding} ({error.reason})"
                    raise SourceError(f"{self._part.file.name}, {said}") from error
                collections.deque(line_blocks(self._part, self._encoding, self._most), maxlen=0)
                raise

    def _note_damage(self, block: list[str], given: int) -> None:
        numbers = LineNumbers(self._part, self._encoding, self._most)
        bad = block.bad if isinstance(block, Damaged) else ()
        for place, line in enumerate(block):
            number = given + place + 1
            if isinstance(block, Damaged) and place in bad:
                self.damaged[number] = numbers.undecodable(block, place, number)
            elif "\0" in line:  # Since Python 3.11, `csv` takes NUL characters, which only torn files hold.
                self.damaged[number] = _of_nul(self._part, number, line)

    def _cut_wide(self, block: list[str], given: int) -> list[str]:
        """Return the lines of a block, those with too many fields cut and noted as damaged; the block if none has.

        Raises:
            SourceError: one of them has a quote, so that it is not known where the next record begins.
        """
        found = block
        for place, line in enumerate(block):
            before = itertools.chain(self.up_to(given), found[:place])
            if line.count(self._delimiter) < _FIELDS or not self._is_wide(line, self._is_open(before)):
                continue
            number, words = given + place + 1, f"has more than {_FIELDS:,} fields"
            has_quote = self._dialect["quotechar"] is not None and self._dialect["quotechar"] in line
            said = f" {words}{' and a quote, so that it is not known where the next record begins' * has_quote}"
            misread = misread_at(self._part.file, functools.partial(int, number), line[:LINES], ValueError(words), said)
            if has_quote:
                raise misread.error()
            self.damaged[number] = misread
            found = [*found[:place], line[:LINES].rstrip("\r\n") + "\n", *found[place + 1 :]]
        return found

    def _is_open(self, lines: Iterable[str]) -> bool:
        """Say whether a quoted field goes on behind some lines, of which the first begins a record."""
        try:
            collections.deque(csv.reader(lines, **self._dialect), maxlen=0)
        except csv.Error as error:
            return str(error).startswith("unexpected end of data")
        return False

    def _is_wide(self, line: str, is_open: bool) -> bool:
        """Say whether a line has too many fields, whose delimiters are outside of quotes."""
        quote, start, found = self._dialect["quotechar"], 0, 0
        while found < _FIELDS and start <= len(line):
            end = line.find(quote, start) if quote else -1
            end = len(line) if end < 0 else end
            found += 0 if is_open else line.count(self._delimiter, start, end)
            start, is_open = end + 1, not is_open
        return found >= _FIELDS

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
            block[max(done - given, 0) : max(last - given, 0)] for given, block, *_ in held
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
