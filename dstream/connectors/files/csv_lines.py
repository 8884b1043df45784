"""Lines of CSV input: blocks within a bound, damage, and quotes."""

from __future__ import annotations

import collections
import csv
import functools
import io
import itertools
import re
from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple

from dstream.connectors.files.lines import (
    Damaged,
    LineNumbers,
    TooLong,
    blocks_of_text,
    line_blocks,
    lines_of_text,
    splits_at_newlines,
    too_long,
    whole_lines,
)
from dstream.connectors.files.sources import misread_at
from dstream.connectors.files.splits import Part
from dstream.errors import SourceError
from dstream.filesystem.access import opened
from dstream.spi import Misread

__all__ = ["CsvInput", "FullError", "QuotedFields", "blank_sep_line"]


_SEP = re.compile("\ufeff?sep=(.)[\r\n]*", re.IGNORECASE)


def blank_sep_line(name: str, lines: list[str], delimiter: str) -> None:
    r"""Replace a first line that names the delimiter, as in Excel, by a blank line, which is skipped.

    Args:
        name: the name of the file.
        lines: its first lines, with their ends; changed in place.
        delimiter: the delimiter of the file.

    Raises:
        SourceError: the line names another one.

    Example:
        >>> lines = ["sep=;\n", "a;b\n"]
        >>> blank_sep_line("a.csv", lines, ";")
        >>> lines
        ['\n', 'a;b\n']
    """
    if not lines or (found := _SEP.fullmatch(lines[0])) is None:
        return
    if found[1] != delimiter:
        line = found[0].strip("\ufeff\r\n")
        raise SourceError(
            f"{name}, line 1: {line!r} names the delimiter of the file, as for Excel: "
            f"delimiter={found[1]!r} reads it, and skips this line (quotes around it make it a field)"
        )
    lines[0] = "\n"


LINES = 1_024
"""The number of lines of a block where bytes are not cut at line ends."""
_CHARACTERS = 1 << 20
"""Characters of rows made together, and of a block where bytes are not cut at line ends, unless a record has more."""

_FIELDS = 1 << 20
"""The maximal number of fields of a row: 64 MiB may have as many, each of which takes about 60 bytes."""


class FullError(Exception):
    """The lines that were read have enough characters for rows."""


class _OpenBlock(NamedTuple):
    """A block of lines that are not done.

    Attributes:
        before: the number of earlier lines.
        lines: its lines, with their ends.
        is_special: one is damaged, or may contain quotes around nothing.
        size: their number of characters.
    """

    before: int
    lines: list[str]
    is_special: bool
    size: int


class CsvInput:
    """The lines of a file with their ends, in blocks, as `csv.reader` requires.

    Attributes:
        done: the number of the last line whose row is done. Blocks before it are released.
        are_plain: no pending line is damaged, or may contain quotes around nothing.
        damaged: the messages about lines that cannot be decoded, or that are too long, by their numbers.
        rows: receives the pending rows of these lines.
        ends_rows: batches of rows end with a block, if `text` may return the next one.

    Args:
        as_text: `text` returns blocks as bytes, so that a row is read from two blocks only if it extends over both.
    """

    def __init__(
        self,
        part: Part,
        encoding: str,
        dialect: dict[str, Any],
        quotes: QuotedFields | None,
        most: int,
        fails: bool,
        *,
        as_text: bool = False,
    ) -> None:
        self.done = 0
        self.rows: list[list[str]] = []
        self.ends_rows = False
        self.are_plain = True
        self.damaged: dict[int, Misread] = {}
        self._part = part
        self._encoding = encoding
        self._quotes = quotes
        self._dialect = dialect
        self._delimiter = dialect["delimiter"]
        # If a line that is too long ends the reading, it need not be searched for quotes.
        self._quote = "" if fails else dialect["quotechar"] or ""
        self._most = most
        self._fails = fails
        self._open_blocks: list[_OpenBlock] = []
        self._as_text = as_text
        self._next: Any = None  # A block of the file that `text` has returned, or damaged lines.
        self._is_tried = False
        self._file = blocks_of_text(part, encoding, most, self._quote, with_ends=True) if as_text else self._blocks()
        self._given, self._rest = 0, self._lines_of_texts() if as_text else self._file

    def close(self) -> None:
        """Close the file: the generator that reads it may be part of a cycle, or of the traceback of an error."""
        self._file.close()

    def text(self) -> bytes | None:
        """Return lines that are not done as bytes in UTF-8: the rest of a block, or the next one; None if they may not.

        They begin with a row. A block is returned once, unless some of its rows are done.
        """
        if self.done < self._given:
            if self._is_tried or self.damaged:
                return None
            self._is_tried = True
            return "".join(self.up_to(self._given)).encode()
        if self._next is None:
            self._next = next(self._file, None)
        self._is_tried = True
        return self._next if isinstance(self._next, bytes) else None

    def skip(self, lines: int) -> None:
        """Mark the rows of `text`, which has *n* lines, as done."""
        if self._next is not None:
            self._given += lines
        self.done, self._open_blocks, self._next = self._given, [], None

    def _lines_of_texts(self) -> Generator[list[str], None, None]:
        while True:
            if self._next is None:
                self._next, self._is_tried = next(self._file, None), False
            block, self._next = self._next, None
            if block is None:
                return
            yield lines_of_text(block, with_ends=True) if isinstance(block, bytes) else block

    def blocks(self) -> Iterator[list[str]]:
        """Yield the lines that are not done in lists; `reader.line_num` counts them.

        Raises:
            SourceError: a record of several lines has too many characters.
            FullError: before another block than the first is read, if the lines of pending rows have many characters,
                or if `text` may return the next one.
        """
        for given, block, *_ in list(self._open_blocks):
            if given + len(block) > self.done:
                yield block[max(self.done - given, 0) :]
                self._check_size()
        self._end_of_block()
        for block in self._rest:
            given = self._given
            self._given += len(block)
            if isinstance(block, TooLong) and self._fails:
                numbers = LineNumbers(self._part, self._encoding, self._most)
                raise numbers.undecodable(block, 0, self._given).error()
            if isinstance(block, TooLong) and block.has_quote:
                problem = f" {block.error} and a quote, so that it is not known where the next record begins"
                raise misread_at(self._part.file, lambda: self._given, block[0], block.error, problem).error()
            if not given and not isinstance(block, TooLong):
                blank_sep_line(self._part.file.name, block, self._delimiter)
            self._open_blocks = [each for each in self._open_blocks if each.before + len(each.lines) > self.done]
            self.damaged = {number: misread for number, misread in self.damaged.items() if number > self.done}
            text = "".join(block)
            is_damaged = isinstance(block, Damaged) or "\0" in text
            if is_damaged:
                self._note_damage(block, given)
            if text.count(self._delimiter) >= _FIELDS and (cut := self._cut_wide(block, given)) is not block:
                block, is_damaged = cut, True
                text = "".join(block)
            has_quotes = self._quotes is not None and self._quotes.may_be_around_nothing(text)
            self._open_blocks.append(_OpenBlock(given, block, has_quotes or is_damaged, len(text)))
            self.are_plain = not any(each.is_special for each in self._open_blocks)
            yield block
            self._check_size()
            self._end_of_block()

    def _end_of_block(self) -> None:
        if self._as_text and self.ends_rows and self.rows:
            raise FullError

    def _check_size(self) -> None:
        most = max(self._most, _CHARACTERS)
        # The first sum is cheap, but counts lines of these blocks whose rows are done.
        if sum(each.size for each in self._open_blocks) <= most or sum(map(len, self.up_to(self._given))) <= most:
            return
        if self.rows:
            raise FullError
        problem = f" begins a record of more than max_record={self._most:,} characters: is a quote never closed"
        text = "".join(itertools.islice(self.up_to(self._given), LINES))
        raise misread_at(self._part.file, lambda: self.done + 1, text, ValueError(problem[1:]), problem).error()

    def _blocks(self) -> Generator[list[str], None, None]:
        if splits_at_newlines(self._encoding):
            return whole_lines(self._part, self._encoding, self._most, self._quote)
        return self._decoded_at_once()

    def _decoded_at_once(self) -> Generator[list[str], None, None]:
        # The `csv` module requires unchanged line ends: they may be a part of a quoted field.
        with opened(self._part.file) as stream, io.TextIOWrapper(stream, self._encoding, newline="") as text:
            number = size = 0
            try:
                block: list[str] = []
                # Two characters more, since a line of the largest size may end with "\r\n".
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
                # Its error counts from the start of a buffer. Reading the file as lines yields the line number.
                if self._part.file.size is None:  # A pipe cannot be read again.
                    bad = error.object[error.start : error.end][:20]
                    problem = f"line {number + 1:,} or behind it: {bad!r} is not {self._encoding} ({error.reason})"
                    raise SourceError(f"{self._part.file.name}, {problem}") from error
                collections.deque(line_blocks(self._part, self._encoding, self._most), maxlen=0)
                raise

    def _note_damage(self, block: list[str], given: int) -> None:
        numbers = LineNumbers(self._part, self._encoding, self._most)
        bad = block.bad if isinstance(block, Damaged) else ()
        for place, line in enumerate(block):
            number = given + place + 1
            if isinstance(block, Damaged) and place in bad:
                self.damaged[number] = numbers.undecodable(block, place, number)
            elif "\0" in line:  # Since Python 3.11, `csv` accepts NUL characters, which only damaged files contain.
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
            text = f" {words}{' and a quote, so that it is not known where the next record begins' * has_quote}"
            misread = misread_at(self._part.file, functools.partial(int, number), line[:LINES], ValueError(words), text)
            if has_quote:
                raise misread.error()
            self.damaged[number] = misread
            found = [*found[:place], line[:LINES].rstrip("\r\n") + "\n", *found[place + 1 :]]
        return found

    def _is_open(self, lines: Iterable[str]) -> bool:
        """Return whether a quoted field continues after lines, of which the first begins a record."""
        try:
            collections.deque(csv.reader(lines, **self._dialect), maxlen=0)
        except csv.Error as error:
            return str(error).startswith("unexpected end of data")
        return False

    def _is_wide(self, line: str, is_open: bool) -> bool:
        """Return whether a line has too many fields, whose delimiters are outside of quotes."""
        quote, start, found = self._dialect["quotechar"], 0, 0
        while found < _FIELDS and start <= len(line):
            end = line.find(quote, start) if quote else -1
            end = len(line) if end < 0 else end
            found += 0 if is_open else line.count(self._delimiter, start, end)
            # A quote that is written twice in a field closes and opens it, with no delimiter between.
            start, is_open = end + 1, not is_open
        return found >= _FIELDS

    def damage_up_to(self, last: int) -> Misread | None:
        """Return the report on the first damaged line of those that are not done, up to one."""
        if not self.damaged:
            return None
        return next((self.damaged[each] for each in range(self.done + 1, last + 1) if each in self.damaged), None)

    def text_up_to(self, last: int) -> str:
        """Return the lines that are not done, up to one, without the last line end."""
        return "".join(self.up_to(last)).rstrip("\r\n")

    def up_to(self, last: int) -> Iterator[str]:
        """Return the lines that are not done, up to one."""
        done, open_blocks = self.done, self._open_blocks
        return itertools.chain.from_iterable(
            block[max(done - given, 0) : max(last - given, 0)] for given, block, *_ in open_blocks
        )


def _of_nul(part: Part, number: int, line: str) -> Misread:
    problem = " holds a NUL character: is this a CSV file?"
    return misread_at(part.file, lambda: number, line.rstrip("\r\n"), ValueError(problem[1:]), problem)


class QuotedFields:
    """Finds the fields of a row that have quotes around them."""

    def __init__(self, delimiter: str, quote: str) -> None:
        self._quote = quote
        # With no character of a field before and after. It begins with a rare character, for speed.
        nothing, inside = re.escape(quote * 2), f"[^{re.escape(delimiter)}\\r\\n]"
        self._nothing = re.compile(f"{nothing}(?<!{inside}{nothing})(?!{inside})")
        escaped, end = re.escape(quote), f"({re.escape(delimiter)}|\\Z)"
        quoted = f"{escaped}[^{escaped}]*(?:{escaped * 2}[^{escaped}]*)*{escaped}"
        self._field = re.compile(f"(?:{quoted}|[^{re.escape(delimiter)}]*){end}")

    def may_be_around_nothing(self, text: str) -> bool:
        """Return whether a field of the lines may have quotes and nothing between them."""
        return self._nothing.search(text) is not None

    def around(self, text: str) -> list[bool]:
        """Return for each field whether it has quotes around it, in a row that the `csv` module has read."""
        found: list[bool] = []
        end, is_last = 0, False
        while not is_last:
            field = self._field.match(text, end)
            assert field is not None, "the csv module has found the same fields"
            found.append(text.startswith(self._quote, end))
            end, is_last = field.end(), not field[1]
        return found
