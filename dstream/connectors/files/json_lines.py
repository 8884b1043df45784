"""Lines of JSON as a source: values, items of classes, columns, and errors with the line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dstream.base.records import record
from dstream.connectors.base import MAX_RECORD
from dstream.connectors.files.lines import (
    JSON_SPACES,
    Damaged,
    LineNumbers,
    blocks_of_lines,
    blocks_of_text,
    is_divisible,
    is_like_ascii,
    lists_of_text,
)
from dstream.connectors.files.sources import misread_at, rows_and_items
from dstream.connectors.files.splits import FEW_BYTES, Part, plan
from dstream.filesystem.access import File
from dstream.spi import ArrowRows

if TYPE_CHECKING:
    from dstream.schema.decoders import ItemDecoder
    from dstream.schema.record_decoders import OnMisread

__all__ = ["JsonReader", "exact_float", "json_problem"]


@record
class JsonReader:
    """Lines of JSON values, the decoder of each, the parser of floats, and the bound on the bytes of a line."""

    encoding: str
    form: ItemDecoder | None = None
    parse_float: Callable[[str], float] | None = None
    max_record: int = MAX_RECORD

    fewest_bytes = FEW_BYTES

    @property
    def has_columns(self) -> bool:
        """Return whether values can be read in columns."""
        return is_like_ascii(self.encoding) and self.parse_float is None and _can_be_columns(self.form)

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files by bytes."""
        return plan(files, parallelism, lambda file: is_divisible(file, self.encoding))

    def arrow_rows(self, part: Part, misread: OnMisread) -> Iterator[ArrowRows | Iterator[Any]]:
        """Yield the values in columns, and those of blocks that are not columnar."""
        return rows_and_items(self._blocks(part, misread))

    def _blocks(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        from dstream.connectors.files.json_columns import JsonColumns  # here: lines of text need none

        numbers, given, columns = LineNumbers(part, self.encoding, self.max_record), 0, JsonColumns(self.form)
        quickly = self._quickly(numbers, misread)
        for block in blocks_of_text(part, self.encoding, self.max_record, with_ends=False):
            if isinstance(block, bytes):
                rows = columns.rows(block)
                if rows is not None:
                    yield rows
                    given += rows.size
                    continue
                for lines in lists_of_text(block):
                    yield from quickly(lines, given)
                    given += len(lines)
            else:
                yield from self._damaged(block, given, numbers, misread)
                given += len(block)

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Yield the values."""
        return itertools.chain.from_iterable(self.blocks(part, misread))

    def blocks(self, part: Part, misread: OnMisread) -> Iterator[Sequence[Any]]:
        """Yield the values in lists.

        Lines that fit are parsed together. From one that does not, those read with it are parsed one by one, when they
        are asked for.
        """
        numbers, given = LineNumbers(part, self.encoding, self.max_record), 0
        quickly = self._quickly(numbers, misread)
        for block in blocks_of_lines(part, self.encoding, self.max_record):
            if isinstance(block, Damaged):
                yield from self._damaged(block, given, numbers, misread)
            else:
                yield from quickly(block, given)
            given += len(block)

    def _quickly(
        self, numbers: LineNumbers, misread: OnMisread
    ) -> Callable[[Sequence[str], int], Iterator[Sequence[Any]]]:
        """Return a function that gives the values of a block in lists."""
        # It parses as `json.loads` does, which spends twice the time around the parser on a short line (CPython 3.11).
        decode = json.JSONDecoder(parse_float=self.parse_float).raw_decode
        make_many = None if self.form is None else _maker_of_many(self.form)

        def values(block: Sequence[str], given: int) -> Iterator[Sequence[Any]]:
            for first in range(0, len(block), _TOGETHER):
                lines = block[first : first + _TOGETHER]
                found = _parsed(lines, decode) if make_many is None else make_many(_parsed(lines, decode))
                if found:
                    yield found
                for number, line in enumerate(lines[len(found) :], given + first + len(found) + 1):
                    yield list(self._slowly(line, number, numbers, misread))

        return values

    def _slowly(self, line: str, number: int, numbers: LineNumbers, misread: OnMisread) -> Iterator[Any]:
        """Yield the value of a line, if it is not blank: the definition."""
        if not line.strip(JSON_SPACES):
            return
        from dstream.schema.decoders import DecodeError  # here: lines of text need none

        problem: Exception
        try:
            value = json.loads(line, parse_float=self.parse_float)
            value = value if self.form is None else self.form.made(value)
        except DecodeError as error:
            problem, description = error, f": {error}"
        except (ValueError, RecursionError) as error:
            begins_file = number == 1 and not numbers.part.start
            problem, description = error, f" {json_problem(error, line if begins_file else None)}"
        else:
            yield value
            return
        yield from misread(misread_at(numbers.part.file, lambda: numbers.number(number), line, problem, description))

    def _damaged(self, block: Damaged, given: int, numbers: LineNumbers, misread: OnMisread) -> Iterator[Sequence[Any]]:
        for place, line in enumerate(block):
            if place in block.bad:
                yield list(misread(numbers.undecodable(block, place, given + place + 1)))
            else:
                yield list(self._slowly(line, given + place + 1, numbers, misread))


_TOGETHER = 128


def _parsed(lines: Sequence[str], decode: Callable[[str], tuple[Any, int]]) -> list[Any]:
    """Return the values of the first lines, up to one that is no JSON."""
    found: list[Any] = []
    with suppress(ValueError, RecursionError):
        for line, (value, end) in zip(lines, map(decode, lines), strict=True):
            if end != len(line) and line[end:].strip(JSON_SPACES):
                break  # The parser ignores what follows a value.
            found.append(value)
    return found


def json_problem(error: ValueError | RecursionError, first: str | None = None) -> str:
    """Return the report on a line that is no JSON.

    Args:
        error: of the parser.
        first: the line, if it is the first of its file.
    """
    if isinstance(error, RecursionError):
        return f"is nested too deeply for Python's json ({error})"
    text = "" if first is None else first.rstrip()
    is_begun = isinstance(error, json.JSONDecodeError) and error.pos >= len(text) and text.lstrip()[:1] in ("[", "{")
    return f"is not JSON ({error})" + (_SEVERAL_LINES if is_begun else "")


_SEVERAL_LINES = (
    "; if its value goes on in the next line, files(path, read=lambda path, file: [json.load(file)]) reads the file as "
    "one value"
)


def exact_float(text: str) -> float:
    """Return a number that may become a `Decimal`, which would miss digits that a float has not."""
    value = float(text)
    if (len(text) > _EXACT or "e" in text.lower()) and Decimal(repr(value)) != Decimal(text):
        from dstream.schema.decoders import DecodeError  # here: lines of text need none

        raise DecodeError(f"the number {text} is more than a float holds, as which JSON is read: write it as a text")
    return value


_EXACT = 16
"""Characters of a number with a point and without an exponent: of 15 digits none is lost."""


def _can_be_columns(form: ItemDecoder | None) -> bool:
    from dstream.connectors.files.json_columns import can_be_columns  # here: lines of text need none

    return can_be_columns(form)


def _maker_of_many(form: ItemDecoder) -> Callable[[Sequence[Any]], list[Any]]:
    from dstream.schema.factories import maker_of_many, maker_of_objects  # here: only a `kind` needs them

    return maker_of_many(maker_of_objects(form))
