"""Reading of CSV files: header, rows, items, and errors with the line, also of a wrong delimiter."""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dstream.base.records import record
from dstream.base.showing import repeated
from dstream.connectors.base import MAX_RECORD
from dstream.connectors.files.csv_columns import CsvColumns, can_be_columns, count_lines
from dstream.connectors.files.csv_lines import CsvInput, FullError, QuotedFields
from dstream.connectors.files.lines import is_like_ascii
from dstream.connectors.files.sources import (
    fail_at_once,
    misread_at,
    rows_and_items,
)
from dstream.connectors.files.splits import FEW_BYTES, Part, plan
from dstream.errors import SourceError
from dstream.filesystem.access import File
from dstream.schema.decoders import DecodeError, ItemDecoder
from dstream.schema.factories import maker_of_many, maker_of_many_rows, maker_of_rows
from dstream.schema.record_decoders import OnMisread, missing_columns
from dstream.spi import ArrowRows, Misread

__all__ = ["CsvReader", "RowsOfFile"]


# With 256 and more, the garbage collector scans the rows, which costs what is saved (CPython 3.11).
ROWS = 128
"""The number of rows that are made together."""


class RowsOfFile:
    """The rows of one file, read one after another, once.

    Args:
        part: the complete file.
        encoding: the encoding of the file.
        dialect: the arguments of `csv.reader`.
        names: the names of the columns; None if the first row has them.
        form: the decoder of a row; None for dictionaries.
        most: the limit of the bytes of a line, and of the characters of a record of several lines.
        fails: the first bad row ends the reading, so that nothing after a line that is too long is read.
        in_columns: `arrow_rows` will be called.
    """

    def __init__(
        self,
        part: Part,
        encoding: str,
        dialect: dict[str, Any],
        names: tuple[str, ...] | None,
        form: ItemDecoder | None,
        most: int,
        *,
        fails: bool = False,
        in_columns: bool = False,
    ) -> None:
        self._most = most
        self._file = part.file
        self._names = names
        self._form = form
        self._dialect = dialect
        self._quotes = QuotedFields(dialect["delimiter"], dialect["quotechar"]) if dialect["quotechar"] else None
        self._delimiters = OtherDelimiters(dialect)
        self._count: int | None = None  # Of the names, when they are known.
        self._in_columns = in_columns
        self._lines = CsvInput(part, encoding, dialect, self._quotes, most, fails, as_text=in_columns)
        self._begin()

    def _begin(self) -> None:
        """Begin after the last line whose row is done."""
        self._before = self._lines.done
        self._reader: Any = csv.reader(itertools.chain.from_iterable(self._lines.blocks()), **self._dialect)

    @property
    def _line_num(self) -> int:
        """The number of the last line that was read."""
        number: int = self._before + self._reader.line_num
        return number

    def blocks(self, misread: OnMisread) -> Iterator[Sequence[Any]]:
        """Yield the items of the rows after the header, in lists.

        Rows that fit are made together. From a row that does not fit, the rows of the batch are made one by one, on
        demand: items before a bad row are yielded before anything is raised.

        Args:
            misread: returns the replacement of a bad row, or raises.

        Raises:
            SourceError: the file cannot be read, its header does not fit, or nothing closes a quote.
        """
        with contextlib.closing(self._lines):
            yield from self._blocks(misread)

    def arrow_rows(self, misread: OnMisread) -> Iterator[ArrowRows | Iterator[Any]]:
        """Yield the items in columns, and blocks that are not columnar as iterators; otherwise as `blocks`."""
        return rows_and_items(self.blocks(misread))

    def _blocks(self, misread: OnMisread) -> Iterator[Any]:
        # The limit is global to the process, and never lowered here.
        csv.field_size_limit(max(csv.field_size_limit(), min(self._most, _LARGEST_LIMIT)))
        lines = self._lines
        names = self._header() if self._names is None else self._names
        make, make_of_plain = self._maker(names, False), self._maker(names, True)
        make_many, problem = self._maker_of_many(names, make_of_plain), None
        is_first, self._count = True, len(names)
        columns = CsvColumns(self._dialect, names, self._form) if self._in_columns else None
        while True:
            if columns is not None and not is_first:
                yield from self._columns(columns)
            rows, is_full = lines.rows, False
            try:
                rows.extend(itertools.islice(self._reader, ROWS))
            except FullError:
                is_full = True
            except Exception as error:
                problem = error  # The rows that were read before are yielded first.
            last = self._line_of(rows) if is_full else self._line_num
            if not rows and problem is None:
                return
            if is_first and self._delimiters.are_likely:
                place = f"{self._file.name}, line {lines.done:,}"
                self._delimiters.refuse_single_column(place, names[0], lines.up_to(last))
            is_first, lines.ends_rows = (
                False,
                True,
            )  # The first rows show the delimiter, also if they are several blocks.
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
            del rows, made  # So few lists exist at a time that the garbage collector does not scan them.

    def _columns(self, columns: CsvColumns) -> Iterator[ArrowRows]:
        """Yield the rows of the next blocks, up to one that is not columnar."""
        lines = self._lines
        while (text := lines.text()) is not None and (rows := columns.rows(text)) is not None:
            lines.skip(count_lines(text))
            self._begin()
            yield rows

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
        """Yield the items of the remaining rows, each in a list."""
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
        """Return the number of the last line of rows, after which a record may have begun."""
        *_, (_, last) = self._with_lines(rows, self._line_num)
        return last

    def _with_lines(self, rows: list[list[str]], last: int) -> Iterable[tuple[list[str], int]]:
        """Return the rows that are not done with the number of the last line of each."""
        done = self._lines.done
        # Each row is one line, so that nothing has to be parsed again to count lines.
        if last - done == len(rows):
            return zip(rows, range(done + 1, last + 1), strict=True)
        again: Any = csv.reader(self._lines.up_to(last), **self._dialect)
        return ((row, done + again.line_num) for row in itertools.islice(again, len(rows)))

    def _instead(self, problem: Exception, last: int, misread: OnMisread) -> Sequence[Any]:
        # A file that cannot be read is no bad row.
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
        # `csv.reader` has skipped blank lines before the header, which are still in this text.
        header = self._lines.text_up_to(self._line_num).lstrip("\r\n")
        if twice := repeated(row):
            raise self._bad_header(f"the header holds {twice} more than once")
        if row and (missing := missing_columns(self._form, row)):
            advice = self._delimiters.of_names(header, row, self._form)
            raise self._bad_header(f"there is no column {', '.join(missing)}; there are {', '.join(row)}{advice}")
        self._delimiters.remember_header(header, row)
        self._lines.done = self._line_num
        return tuple(row)

    def _bad_header(self, problem: str) -> SourceError:
        return SourceError(f"{self._file.name}, line {self._line_num:,}: {problem}")

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
        """Return a row with None for empty fields without quotes, where the `csv` module returns empty strings.

        Raises:
            ValueError: it has too few fields or too many, or damaged lines.
        """
        if damage := self._lines.damage_up_to(last):
            raise damage.problem
        if len(row) != len(names):
            advice = self._delimiters.of_row(self._lines.text_up_to(last), len(names))
            raise DecodeError(
                f"{len(row)} field{'s' * (len(row) != 1)}, but there {'is' if len(names) == 1 else 'are'} "
                f"{len(names)} name{'s' * (len(names) != 1)} ({', '.join(names)}){advice}"
            )
        if self._quotes is None or "" not in row:
            return [value or None for value in row]
        around = self._quotes.around(self._lines.text_up_to(last))
        return [value if value or is_quoted else None for value, is_quoted in zip(row, around, strict=True)]

    def _misread(self, problem: Exception, last: int) -> Misread:
        """Return the report on the row whose lines are not done.

        Raises:
            SourceError: where the next row begins is not known.
        """
        first = self._lines.done + 1
        if damage := self._lines.damage_up_to(last):
            return damage
        text, reason = (
            self._lines.text_up_to(last),
            problem.message("column") if isinstance(problem, DecodeError) else str(problem),
        )
        if isinstance(problem, csv.Error):
            other = self._delimiters
            advice = other.of_torn_header(text) if self._count is None else other.of_row(text, self._count)
            reason += advice or next((advice for words, advice in _ADVICE.items() if words in reason), "")
        found = misread_at(self._file, lambda: first, text, problem, f": {reason}")
        is_open = reason.startswith("unexpected end of data") and last > first
        if isinstance(problem, csv.Error) and (is_open or reason.startswith("field larger")):
            raise found.error() from problem  # A quote that is not closed is before the last line.
        return found


_USUAL = (";", "\t", "|", ",")


class OtherDelimiters:
    """Words of errors about delimiters.

    Args:
        dialect: the arguments of `csv.reader`; its delimiter is the one of the file.
    """

    def __init__(self, dialect: dict[str, Any]) -> None:
        signs = dialect["delimiter"], dialect["quotechar"]
        self._dialects = [{**dialect, "delimiter": each} for each in _USUAL if each not in signs]
        self._header: list[tuple[dict[str, Any], int]] = []

    def of_names(self, header: str, names: Sequence[str], form: ItemDecoder | None) -> str:
        """Return advice on a header that lacks fields of a form; empty if no other delimiter yields them."""
        for dialect in self._dialects:
            [found] = _rows([header], dialect) or [[]]
            if len(found) > 1 and (len(names) == 1 or not missing_columns(form, found)):
                return f": delimiter={dialect['delimiter']!r} gives {', '.join(found)}"
        return ""

    def of_row(self, text: str, count: int) -> str:
        """Return advice on a row that has another number of fields than `count`, or of which no row is made."""
        return self._advice(text, self._header if count == 1 else [(dialect, count) for dialect in self._dialects])

    def of_torn_header(self, text: str) -> str:
        """Return advice on a header that the csv module cannot parse."""
        return self._advice(text, [(dialect, 0) for dialect in self._dialects])

    def _advice(self, text: str, likely: Iterable[tuple[dict[str, Any], int]]) -> str:
        for dialect, fields in likely:
            counts = [len(row) for row in _rows([text], dialect)]
            if len(counts) == 1 and (counts[0] == fields or (not fields and counts[0] > 1)):
                return f": delimiter={dialect['delimiter']!r} gives {counts[0]} fields"
        return ""

    def remember_header(self, header: str, names: Sequence[str]) -> None:
        """Record which delimiters divide a header of one column into several, unless it is quoted."""
        if list(names) == [header]:
            for dialect in self._dialects:
                [found] = _rows([header], dialect) or [[]]
                if len(found) > 1 and all(found) and not repeated(found):
                    self._header.append((dialect, len(found)))

    @property
    def are_likely(self) -> bool:
        """Return whether the header makes one of them likely."""
        return bool(self._header)

    def refuse_single_column(self, where: str, header: str, lines: Iterable[str]) -> None:
        """Refuse a header of one column if another delimiter divides it and half of the first rows consistently.

        Raises:
            SourceError: it does; the message names the delimiter.
        """
        lines = list(lines)
        for dialect, fields in self._header:
            rows = list(filter(None, _rows(lines, dialect)))
            if rows and 2 * sum(len(row) == fields for row in rows) >= len(rows):
                raise SourceError(
                    f"{where}: the header is one column, {header!r}: delimiter={dialect['delimiter']!r} reads {fields} "
                    "columns (quotes around the name make it one)"
                )


def _rows(lines: Iterable[str], dialect: dict[str, Any]) -> list[list[str]]:
    try:
        return list(csv.reader(lines, **dialect))
    except csv.Error:
        return []


_ADVICE = {
    " expected after ": ": a quote in a quoted field is written twice",
    "unexpected end of data": ": a quote is never closed",
}
"""The causes to look for, by the message of the `csv` module."""
_LARGEST_LIMIT = (1 << 31) - 1
"""The largest limit of the `csv` module where a C long has 32 bits."""


class WrittenSign(str):
    """An argument as it is written, which may also be None."""

    __slots__ = ()
    __repr__ = str.__str__


@record
class CsvReader:
    """Rows of CSV, and the decoder of each."""

    encoding: str
    dialect: tuple[tuple[str, Any], ...]
    fieldnames: tuple[str, ...] | None
    form: ItemDecoder | None
    max_record: int = MAX_RECORD

    fewest_bytes = FEW_BYTES

    @property
    def has_columns(self) -> bool:
        """Return whether rows can be read in columns."""
        return is_like_ascii(self.encoding) and can_be_columns(dict(self.dialect), self.form)

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files, each of them whole."""
        return plan(files, parallelism, lambda file: False)

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Yield the rows of a file."""
        return itertools.chain.from_iterable(self.blocks(part, misread))

    def blocks(self, part: Part, misread: OnMisread) -> Iterator[Sequence[Any]]:
        """Yield the rows of a file in lists."""
        return self._rows(part, misread).blocks(misread)

    def arrow_rows(self, part: Part, misread: OnMisread) -> Iterator[ArrowRows | Iterator[Any]]:
        """Yield the rows of a file in columns, and the items of blocks that are not columnar."""
        return self._rows(part, misread, in_columns=True).arrow_rows(misread)

    def _rows(self, part: Part, misread: OnMisread, *, in_columns: bool = False) -> RowsOfFile:
        fails, dialect = misread is fail_at_once, dict(self.dialect)
        return RowsOfFile(
            part,
            self.encoding,
            dialect,
            self.fieldnames,
            self.form,
            self.max_record,
            fails=fails,
            in_columns=in_columns,
        )
