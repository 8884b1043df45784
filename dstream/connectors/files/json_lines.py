"""Lines of JSON as a source: values, items of classes, columns, and errors with the line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
    lines_of_text,
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
        """Whether values can be read in columns."""
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
        make, decode = self._makers()
        for block in blocks_of_text(part, self.encoding, self.max_record, with_ends=False):
            if isinstance(block, bytes):
                rows = columns.rows(block)
                if rows is not None:
                    yield rows
                    given += rows.size
                    continue
                block = lines_of_text(block, with_ends=False)
                yield self._quickly(block, make, decode, given, numbers, misread)
            else:
                yield self._damaged(block, given, numbers, misread)
            given += len(block)

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Give the values."""
        numbers, given = LineNumbers(part, self.encoding, self.max_record), 0
        make, decode = self._makers()
        for block in blocks_of_lines(part, self.encoding, self.max_record):
            if isinstance(block, Damaged):
                yield from self._damaged(block, given, numbers, misread)
            else:
                yield from self._quickly(block, make, decode, given, numbers, misread)
            given += len(block)

    def _makers(self) -> tuple[Callable[[Any], Any], Callable[[str], tuple[Any, int]]]:
        """Return what makes a value of parsed JSON, and what parses it."""
        make = _unchanged if self.form is None else _maker(self.form)
        # It parses as `json.loads` does, which spends twice the time around the parser on a short line (CPython 3.11).
        return make, json.JSONDecoder(parse_float=self.parse_float).raw_decode

    def _quickly(
        self, block: list[str], make: Any, decode: Any, given: int, numbers: LineNumbers, misread: OnMisread
    ) -> Iterator[Any]:
        """Give the values of a block; a line that does not become one at once is looked at again."""
        for number, line in enumerate(block, given + 1):
            try:
                value, end = decode(line)
                # `raw_decode` ignores what follows the value: white space, which is no error, and anything else.
                if end != len(line):
                    value = json.loads(line, parse_float=self.parse_float)
                value = make(value)
            except (ValueError, RecursionError):
                yield from self._slowly(line, number, numbers, misread)
            else:
                yield value

    def _slowly(self, line: str, number: int, numbers: LineNumbers, misread: OnMisread) -> Iterator[Any]:
        """Give the value of a line, if it is not blank: the definition."""
        if not line.strip(JSON_SPACES):
            return
        from dstream.schema.decoders import DecodeError  # here: lines of text need none

        problem: Exception
        try:
            value = json.loads(line, parse_float=self.parse_float)
            value = value if self.form is None else self.form.made(value)
        except DecodeError as error:
            problem, said = error, f": {error}"
        except (ValueError, RecursionError) as error:
            begins_file = number == 1 and not numbers.part.start
            problem, said = error, f" {json_problem(error, line if begins_file else None)}"
        else:
            yield value
            return
        yield from misread(misread_at(numbers.part.file, lambda: numbers.number(number), line, problem, said))

    def _damaged(self, block: Damaged, given: int, numbers: LineNumbers, misread: OnMisread) -> Iterator[Any]:
        for place, line in enumerate(block):
            if place in block.bad:
                yield from misread(numbers.undecodable(block, place, given + place + 1))
            else:
                yield from self._slowly(line, given + place + 1, numbers, misread)


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


def _unchanged(value: Any) -> Any:
    return value


def _can_be_columns(form: ItemDecoder | None) -> bool:
    from dstream.connectors.files.json_columns import can_be_columns  # here: lines of text need none

    return can_be_columns(form)


def _maker(form: ItemDecoder) -> Callable[[Any], Any]:
    from dstream.schema.factories import maker_of_objects  # here: only a `kind` needs it

    return maker_of_objects(form)
