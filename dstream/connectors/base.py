"""Base of connectors: checks of arguments, lines of text, sinks without a transaction.

A sink without a transaction has effects as soon as a task runs: a failed run does not undo them.
"""

from __future__ import annotations

import codecs
import datetime
import functools
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar, cast

from dstream.arguments import kind_of
from dstream.base.functions import refuse_awaitable
from dstream.base.records import record
from dstream.base.showing import shown
from dstream.base.threads import contextmanager
from dstream.errors import CollectionDestroyedError, SourceError
from dstream.failures.attribution import each, failed_on, stopped
from dstream.spi import Collections, Receipt, Writer
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.schema.types import ColumnTypes

__all__ = [
    "MAX_RECORD",
    "ImmediateSink",
    "OnBad",
    "PassingJob",
    "Replaceable",
    "Start",
    "TextLines",
    "UnnamedLines",
    "checked_encoding",
    "checked_start",
    "checked_text",
    "naming_destroyed",
    "readable",
]


Start: TypeAlias = 'Literal["oldest", "current"] | datetime.datetime'


OnBad: TypeAlias = Literal["fail", "skip"]

MAX_RECORD = 64 << 20
"""The most bytes of a record of a file, decompressed, unless the user sets another number."""


def checked_start(start: Any) -> Start:
    """Return `start` if it is a valid start.

    Raises:
        TypeError: it is neither a string nor a datetime.
        ValueError: it is another string, or a datetime without a time zone.
    """
    if isinstance(start, datetime.datetime):
        if start.tzinfo is None:
            raise ValueError(f"start must be a datetime with a time zone, not {start!r}: start.astimezone() gives one")
        return start
    if not isinstance(start, str):
        raise TypeError(f"start must be 'oldest', 'current' or a datetime, not {type(start).__name__}")
    if start not in ("oldest", "current"):
        raise ValueError(f"start must be 'oldest', 'current' or a datetime, not {start!r}")
    return start  # type: ignore[return-value]  # mypy does not narrow strings here.


class Replaceable:
    """A sink whose fields `replace` and `label` `replacing` sets."""

    __slots__ = ()

    replace: bool

    @property
    def instead_of_epochs(self) -> str | None:
        """The sink to use for items of epochs, where this one cannot write them; None: it can."""
        return NOT_REPLACING if self.replace else None


NOT_REPLACING = "leave out replacing(...), so that each epoch adds to what is there"


def checked_text(value: Any, name: str) -> str:
    """Return `value` if it is a non-empty string.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {kind_of(value)}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value


@contextmanager
def naming_destroyed(label: str) -> Iterator[None]:
    """Raise the error of a collection that was destroyed while it is read as a failure of the source of that label."""
    try:
        yield
    except CollectionDestroyedError as error:
        raise SourceError(f"{label}: {error}") from error


T = TypeVar("T")

BATCH = 1_000


@record(slots=False)
class ImmediateSink(Generic[T]):
    """A sink without a separate target: it is its own target.

    Attributes:
        label: the reducer as the user wrote it.
        writer: travels to the tasks.
    """

    label: str
    writer: Writer

    collector = None
    job = None

    def open(self, context: Collections) -> ImmediateSink[T]:
        """Return the sink itself: there is nothing to open."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> PassingJob:
        """Begin an epoch, of which it is unknown whether it ran before."""
        return PassingJob(self.writer, _nothing)

    def result(self) -> None:
        """Return None."""

    def __repr__(self) -> str:
        return self.label


@record(slots=False, repr=False)
class CommittingSink(ImmediateSink[T]):
    """A sink that passes its tasks' prepared receipts to a function.

    Attributes:
        commit: takes the receipts.
    """

    commit: Callable[[list[Any]], object]

    def begin(self, job: str | None, epoch: int = 1) -> PassingJob:
        """Begin an epoch. Whether it was committed, `commit` finds out."""
        return PassingJob(self.writer, self._commit)

    def _commit(self, receipts: Sequence[Receipt]) -> None:
        if receipts:
            self.commit(list(receipts))


@dataclass
class PassingJob:
    """An epoch whose commit changes nothing, or passes the receipts to a function in the driver.

    Attributes:
        writer: is sent to the tasks.
        finish: takes the receipts.
    """

    writer: Writer
    finish: Callable[[Sequence[Receipt]], object]
    is_done: bool = field(default=False, init=False)

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Finish, once."""
        if not self.is_done:
            self.finish(receipts)
            self.is_done = True

    def abort(self) -> None:
        """Do nothing: effects are not undone."""


def _nothing(receipts: Sequence[Receipt]) -> None:
    """Leave the receipts as they are."""


@record(slots=False)
class FunctionWriter:
    """Calls a function with each item."""

    create: Callable[[], Any]
    receive: Callable[[Any, Any], object]
    flush: Callable[[Any], object] | None
    destroy: Callable[[Any], object] | None
    prepare: Callable[[Any], Receipt] | None = None

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Pass the items to the function; yield the result of `prepare` at the end, if there is one."""
        made: Any = _NOTHING_MADE
        receipts: list[Receipt] = []
        # Looked up at the end, since the object is made with the first item.
        with self._destroying(lambda: made):
            for number, item in enumerate(items, start=1):
                if made is _NOTHING_MADE:
                    made = self.create()
                self._give(made, item)
                if number % BATCH == 0:
                    self._flush(made)
            self._flush(made)
            if self.prepare is not None and made is not _NOTHING_MADE:
                receipts.append(self._checked(self.prepare(made)))
        # Only after `destroy`, so that a task in which it fails has no receipt.
        yield from receipts

    def _checked(self, receipt: Any) -> Receipt:
        """Return a receipt that a record of a job can store."""
        import json  # imported on use: only a sink with `prepare` needs it

        with suppress(TypeError, ValueError, RecursionError):
            # `dumps` also accepts values that are read back as others: a tuple as a list, an int key as a string.
            if json.loads(json.dumps(receipt, allow_nan=False)) == receipt:
                return cast("Receipt", receipt)
        accepted = "texts, numbers, lists and dictionaries with texts as keys"
        raise TypeError(f"sink_from(): prepare= must make plain data ({accepted}), not {shown(receipt)}")

    def _give(self, made: Any, item: Any) -> None:
        try:
            if (result := self.receive(made, item)) is not None:  # An exception finds the item by this name.
                refuse_awaitable(result)
        # Inside of a generator, Python would convert it to a RuntimeError that names no function (PEP 479).
        except StopIteration as error:
            raise stopped(shown_function(self.receive)) from error

    def _flush(self, made: Any) -> None:
        if self.flush is not None and made is not _NOTHING_MADE:
            self.flush(made)

    @contextmanager
    def _destroying(self, made: Callable[[], Any]) -> Iterator[None]:
        """Destroy the made object after the block. A failure of the block is not hidden by one of `destroy`."""
        try:
            yield
        except BaseException as error:
            try:
                self._destroy(made())
            except Exception as second:
                with suppress(Exception):  # An exception may refuse notes.
                    error.add_note(f"and then {shown_function(self.destroy)} failed with {second!r}")
            raise
        self._destroy(made())

    def _destroy(self, made: Any) -> None:
        if self.destroy is not None and made is not _NOTHING_MADE:
            self.destroy(made)


_NOTHING_MADE: Any = object()


def checked_encoding(encoding: str) -> str:
    """Return `encoding`, refusing those that `open` would refuse.

    Raises:
        LookupError: there is no such text encoding.
        TypeError: `encoding` is no str.
    """
    if not isinstance(encoding, str):
        raise TypeError(f"encoding must be a str, not {type(encoding).__name__}")
    codecs.lookup(encoding)
    # `lookup` also finds codecs that are no encodings of text, such as base64.
    io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return encoding


class UnnamedLines:
    """The methods that formats of lines without columns share."""

    __slots__ = ()

    is_known = False

    def begun(self) -> Self:
        """Return this format: one of lines has no state."""
        return self

    def header(self, items: Sequence[Any]) -> str:
        """Return nothing."""
        return ""

    def columns(self) -> ColumnTypes:
        """Return none."""
        return {}

    def heading(self, columns: ColumnTypes) -> str:
        """Return nothing."""
        return ""


@record
class TextLines(UnnamedLines):
    """Each item as a line of text.

    Attributes:
        to_string: returns the string of an item.
    """

    to_string: Callable[[Any], str]

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of items, each with its line end.

        Raises:
            TypeError: `to_string` returns no string.
            ValueError: a string has a line break, so that readers would find two lines.
        """
        texts = items
        if self.to_string is not str or not {str}.issuperset(map(type, items)):
            texts = each(self.to_string, items)
            if not {str}.issuperset(map(type, texts)):
                _refuse(items, texts, lambda text: not isinstance(text, str), _no_text)
        # One search through all lines costs less than one for each; the item is looked for after a failure.
        made = "\n".join([*texts, ""])
        if "\r" in made or made.count("\n") != len(texts):
            _refuse(items, texts, lambda text: "\n" in text or "\r" in text, _broken)
        return made

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Raise an error that names the item that the encoding cannot represent: text has no escapes."""
        each(lambda item: readable(self.lines([item]), encoding).encode(encoding), items)
        return self.lines(items)


def _refuse(
    items: Sequence[Any], texts: Sequence[Any], is_wrong: Callable[[Any], bool], why: Callable[[Any], Exception]
) -> None:
    for item, text in zip(items, texts, strict=True):
        if is_wrong(text):
            error = why(text)
            failed_on(error, item)
            raise error


def _no_text(text: object) -> Exception:
    return TypeError(f"to_string must give a str, not {type(text).__name__}")


def _broken(text: object) -> Exception:
    return ValueError(
        "the text of an item has a line break, so it would be read as several lines; json.dumps(...) of it has none"
    )


def readable(text: str, encoding: str) -> str:
    """Return `text`, refusing characters that an encoding writes as others, as Shift JIS does with the yen sign.

    Raises:
        UnicodeEncodeError: it contains such a character.
    """
    changed = _changed(encoding)
    if not changed or changed.isdisjoint(text):
        return text
    place = next(place for place, sign in enumerate(text) if sign in changed)
    raise UnicodeEncodeError(encoding, text, place, place + 1, "its bytes are read as another character")


@functools.cache
def _changed(encoding: str) -> frozenset[str]:
    """Return the characters that are written as others, which some encodings of East Asia have."""
    name = codecs.lookup(encoding).name
    # These change no character, so the usual encodings are not searched through.
    if name.startswith(("utf", "ascii", "iso8859")):
        return frozenset()
    return frozenset(sign for sign in map(chr, range(0x80, 0x10000)) if not _is_round_trip(sign, name))


def _is_round_trip(sign: str, encoding: str) -> bool:
    try:
        data = sign.encode(encoding)
    except UnicodeError:
        return True
    return data.decode(encoding, "replace") == sign
