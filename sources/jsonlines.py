"""Files that hold one JSON value a line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeVar, overload

from dstream.spi import Reducer, Source
from dstream.values import DeadLetter
from sources.file_access import File
from sources.file_splits import Part, plan
from sources.forms import MADE, FormOfItem, Unfit
from sources.found_files import Paths, path_list
from sources.kinds import JSON, form_of, kind_behind
from sources.lines import JSON_SPACES, Damaged, LineNumbers, blocks_of_lines, checked_encoding, is_divisible
from sources.quick_makers import maker_of_objects
from sources.record_files import (
    MAX_RECORD,
    OnBad,
    OnMisread,
    RecordFiles,
    checked_max_record,
    misread_at,
    options,
    shown_max_record,
)

__all__ = ["JsonFormat", "json_lines", "json_problem"]

T = TypeVar("T")


@overload
def json_lines(
    path: Paths,
    kind: type[T],
    /,
    *,
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def json_lines(
    path: Paths,
    kind: type[T],
    /,
    *,
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def json_lines(
    *paths: Paths,
    kind: type[T],
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[T]: ...
@overload
def json_lines(
    *paths: Paths,
    kind: type[T],
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, T]]: ...
@overload
def json_lines(
    *paths: Paths,
    encoding: str = ...,
    with_path: Literal[False] = ...,
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[Any]: ...
@overload
def json_lines(
    *paths: Paths,
    encoding: str = ...,
    with_path: Literal[True],
    on_bad: OnBad = ...,
    into: Reducer[DeadLetter, Any] | None = ...,
    max_record: int = ...,
) -> Source[tuple[str, Any]]: ...
def json_lines(
    *paths: Any,
    kind: Any = None,
    encoding: str = "utf-8",
    with_path: bool = False,
    on_bad: OnBad = "fail",
    into: Reducer[DeadLetter, Any] | None = None,
    max_record: int = MAX_RECORD,
) -> Source[Any]:
    r"""Read files that hold one JSON value a line; blank lines are skipped.

    Paths, line ends, order and compressed files are those of `text_files`; values are those of
    `json.loads`, which also takes NaN and Infinity.

    With a `kind`, each line is an object that becomes one, by the names and the types of its fields: `int`, `float`,
    `str`, `bool`, `None`, `Decimal`, `date`, `datetime`, `time`, enumerations (by value), `Literal`, `X | Y`, lists,
    sets, tuples and dictionaries of these, and other such classes. A field with a default may be missing. Fields that
    the kind has not are left out. Nothing else is converted: a text with digits is no `int`. A pydantic model converts
    by its own rules. In a line of a kind with a `Decimal`, a number with more digits than a float holds does not fit:
    written as a text it keeps all of them.

    **Parallelism**: large files are cut into ranges of 1 to 64 MiB, and small neighbours share a
    task. A compressed file, and one in an encoding such as UTF-16, is read by one task.
    **Guarantee**: every value once, as long as nobody writes to the files meanwhile.
    **On re-run**: the files are read again.

    Args:
        paths: as for `text_files`.
        kind: a dataclass, a named tuple, a `TypedDict` or a pydantic model; behind a single path it may stand without
            its name.
        encoding: as for `text_files`.
        with_path: give pairs of the path, absolute or a URL, and the value.
        on_bad: what becomes of a line that is no such value: `"fail"` ends the run, `"skip"` leaves it out and says at
            the end how many there were.
        into: a reducer that gets a `DeadLetter` for each such line instead, whose item is a `BadRecord`. To know the
            number of a line in a file that is read in ranges, the task counts the lines before its range, once.
        max_record: bytes that a line may have, as for `text_files`; a longer one is a bad record.

    Raises:
        LookupError: there is no such encoding.
        TypeError, ValueError: an argument is of another kind or none of its choices; a field of `kind` has a type that
            no JSON becomes.
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
    paths, kind = kind_behind(paths, kind)
    form = None if kind is None else form_of(kind, JSON)
    parse_float = _float if _has_decimals(form) else None
    format = JsonFormat(checked_encoding(encoding), form, parse_float, checked_max_record(max_record))
    shown = (("encoding", encoding), ("kind", kind), shown_max_record(max_record))
    return RecordFiles("json_lines", path_list(*paths), format, options(with_path, on_bad, into), shown)


def _has_decimals(form: object) -> bool:
    """Say whether a `Decimal` may be made within a form."""
    seen: dict[int, object] = {}
    waiting = [form]
    while waiting:
        each = waiting.pop()
        if each is MADE[Decimal]:
            return True
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, tuple | list):
            waiting += each
        elif dataclasses.is_dataclass(each):
            waiting += [getattr(each, field.name, None) for field in dataclasses.fields(each)]
    return False


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """One JSON value a line, the form of what each becomes, what makes a float, and the bytes of a line."""

    encoding: str
    form: FormOfItem | None = None
    parse_float: Callable[[str], float] | None = None
    max_record: int = MAX_RECORD

    def divided(self, files: list[File], parallelism: int) -> list[tuple[Part, ...]]:
        """Divide the files by bytes."""
        return plan(files, parallelism, lambda file: is_divisible(file, self.encoding))

    def items(self, part: Part, misread: OnMisread) -> Iterator[Any]:
        """Give the values."""
        numbers, given = LineNumbers(part, self.encoding, self.max_record), 0
        make = _unchanged if self.form is None else maker_of_objects(self.form)
        # It parses as `json.loads` does, which spends twice the time around the parser on a short line (CPython 3.11).
        decode = json.JSONDecoder(parse_float=self.parse_float).raw_decode
        for block in blocks_of_lines(part, self.encoding, self.max_record):
            if isinstance(block, Damaged):
                yield from self._damaged(block, given, numbers, misread)
            else:
                yield from self._quickly(block, make, decode, given, numbers, misread)
            given += len(block)

    def _quickly(
        self, block: list[str], make: Any, decode: Any, given: int, numbers: LineNumbers, misread: OnMisread
    ) -> Iterator[Any]:
        """Give the values of a block; a line that does not become one at once is looked at again."""
        for number, line in enumerate(block, given + 1):
            try:
                value, end = decode(line)
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
        problem: Exception
        try:
            value = json.loads(line, parse_float=self.parse_float)
            value = value if self.form is None else self.form.made(value)
        except Unfit as error:
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
    """Return what is said of a line that is no JSON.

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


def _float(text: str) -> float:
    """Return a number that may become a `Decimal`, which would miss digits that a float has not."""
    value = float(text)
    if (len(text) > _EXACT or "e" in text.lower()) and Decimal(repr(value)) != Decimal(text):
        raise Unfit(f"the number {text} is more than a float holds, as which JSON is read: write it as a text")
    return value


_EXACT = 16
"""Characters of a number with a point and without an exponent: of 15 digits none is lost."""


def _unchanged(value: Any) -> Any:
    return value
