"""Sources and sinks made of functions, items at a steady rate, and logging.

These sinks have effects as soon as a task runs: a failed run does not undo them.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import reprlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from dstream.base.functions import refuse_awaitable
from dstream.base.logging import is_enabled, log_line
from dstream.base.records import record
from dstream.base.showing import shown
from dstream.connectors.base import BATCH, ImmediateSink, PassingJob
from dstream.connectors.memory import ItemsSplit, NamesOfStreams
from dstream.errors import SourceError
from dstream.failures.attribution import each, given
from dstream.spi import Reached, Receipt
from dstream.spi.source import Offset
from dstream.values.user_functions import shown_function

__all__ = [
    "FiniteStream",
    "FunctionSource",
    "FunctionSplit",
    "FunctionStreamSource",
    "LoggingSink",
    "Pace",
    "PacedItems",
    "PacedSplit",
    "RangeSplit",
    "SimpleEvent",
    "TimestampedFunctionStreamSource",
]


T = TypeVar("T")


class SimpleEvent(NamedTuple):
    """The items of `item_stream`.

    Attributes:
        timestamp: when it was due, in milliseconds since 1970.
        sequence: its number, from 0.
    """

    timestamp: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Pace:
    """The times at which items are due.

    Attributes:
        shown: how the call began, for messages.
        start: of item 0, in milliseconds; None: when a job begins.
    """

    shown: str
    per_second: float
    start: int | None
    partitions: int
    clock: Callable[[], float]

    def now(self) -> int:
        """Return the time of the clock, in milliseconds."""
        return math.floor(self.clock() * 1000)

    def due(self, start: int, partition: int) -> int:
        """Return the number of items of a partition that are due."""
        passed = self.now() - start
        return max(0, (math.floor(passed * self.per_second / 1000) - partition) // self.partitions + 1)

    def timestamp(self, start: int, sequence: int) -> int:
        """Return when an item is due."""
        return start + math.floor(sequence * 1000 / self.per_second)


@dataclass(frozen=True, slots=True, repr=False)
class PacedItems(NamesOfStreams, Generic[T]):
    """Result of `item_stream` and `long_stream`.

    An offset is the start, in milliseconds, and the number of items of the partition that have been read. So a job that
    resumes retains its start.
    """

    pace: Pace
    make: Callable[[int, int], T]

    has_times_beside = True

    @property
    def label(self) -> str:
        """The call."""
        more = "" if self.pace.partitions == 1 else f", partitions={self.pace.partitions}"
        return f"{self.pace.shown}{more})"

    def begin(self) -> Mapping[str, list[int]]:
        """Begin with item 0."""
        start = self.pace.now() if self.pace.start is None else self.pace.start
        return {str(partition): [start, 0] for partition in range(self.pace.partitions)}

    def shown_offset(self, offset: Any) -> str:
        """Return how many items were made."""
        return f"item {self._checked(offset)[1]:,}"

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, list[int]]:
        """Return the offsets by the clock; never before the read offsets, although a clock may be set back.

        Raises:
            SourceError: the partitions differ, or an offset is invalid.
        """
        if set(offsets) != {str(partition) for partition in range(self.pace.partitions)}:
            raise SourceError(
                f"{self.label}: the job was begun with {len(offsets)} partitions, and there are "
                f"{self.pace.partitions}: items would come twice; give it another name to begin anew"
            )
        reached, left = {}, 0
        for name, offset in offsets.items():
            start, read = self._checked(offset)
            due = max(read, self.pace.due(start, int(name)))
            taken = due if most is None else min(due, read + most)
            reached[name], left = [start, taken], left + due - taken
        return Reached(reached, left)

    def split(self, partition: str, start: Any, stop: Any) -> PacedSplit[T]:
        """Return a range of items, which a worker makes."""
        (_, first), (begun, end) = self._checked(start), self._checked(stop)
        # The start of the offset, not that of this process: items keep their times when a job resumes.
        pace = dataclasses.replace(self.pace, start=begun)
        return PacedSplit(pace, self.make, int(partition), first, end)

    def _checked(self, offset: Any) -> tuple[int, int]:
        if not isinstance(offset, list | tuple) or [type(each) for each in offset] != [int, int]:
            raise SourceError(f"{self.label}: {offset!r} is no offset of it")
        return offset[0], offset[1]

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, slots=True, repr=False)
class PacedSplit(Generic[T]):
    """The items of one partition from `first` up to, not including, `end`."""

    pace: Pace
    make: Callable[[int, int], T]
    partition: int
    first: int
    end: int

    def read(self) -> Iterator[T]:
        """Make them."""
        return (made for _, made in self.read_timed())

    def read_timed(self) -> Iterator[tuple[int, T]]:
        """Yield pairs of the time at which the item was due, in milliseconds, and the item."""
        pace, begun = self.pace, self.pace.start
        assert begun is not None  # A range has the start of its offset.
        for number in range(self.first, self.end):
            item = number * pace.partitions + self.partition  # An exception of the user's function names it so.
            timestamp = pace.timestamp(begun, item)
            yield timestamp, self.make(timestamp, item)


@dataclass(frozen=True, slots=True, repr=False)
class FiniteStream(NamesOfStreams, Generic[T]):
    """Items in partitions that end; an offset is how many of a partition have been read."""

    items: tuple[T, ...]
    partitions: int

    ends = True
    """After the last partition is left out no items arrive, so that a job completes."""

    @property
    def label(self) -> str:
        """The call."""
        more = "" if self.partitions == 1 else f", partitions={self.partitions}"
        return f"stream_of({reprlib.repr(list(self.items))}{more})"

    def begin(self) -> Mapping[str, int]:
        """Begin with the first item of each partition."""
        return {str(partition): 0 for partition in range(self.partitions)}

    def reach(self, offsets: Mapping[str, Any], most: int | None = None) -> Mapping[str, int]:
        """Leave out partitions that were read to their ends.

        Raises:
            SourceError: the offsets belong to other items.
        """
        read = {name: self._checked(offset) for name, offset in offsets.items()}
        sizes = {name: len(self._of(name)) for name in read}
        reached = {
            name: sizes[name] if most is None else min(sizes[name], read[name] + most)
            for name in read
            if read[name] < sizes[name]
        }
        return Reached(reached, sum(sizes[name] - offset for name, offset in reached.items()))

    def split(self, partition: str, start: Any, stop: Any) -> ItemsSplit[T]:
        """Return a range of items, which is sent."""
        return ItemsSplit(self._of(partition)[self._checked(start) : self._checked(stop)])

    def _of(self, partition: str) -> tuple[T, ...]:
        if partition not in self.begin():
            raise SourceError(f"{self.label}: there is no partition {partition!r}")
        return self.items[int(partition) :: self.partitions]

    def _checked(self, offset: Any) -> int:
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise SourceError(f"{self.label}: {offset!r} is no offset of an item")
        return offset

    def __repr__(self) -> str:
        return self.label


S = TypeVar("S")


@dataclass(frozen=True, slots=True, repr=False)
class FunctionSource(NamesOfStreams, Generic[S, T]):
    """Result of `source_from`."""

    label: str
    parts: Any
    read: Callable[[S], Iterable[T]]
    ordered: bool

    bounded = True
    in_caller = False
    is_of_functions = True

    def splits(self, parallelism: int) -> Iterator[FunctionSplit[S, T]]:
        """Yield a split for each part, in their order."""
        parts = self.parts(parallelism) if callable(self.parts) else self.parts
        for part in _iterable(parts, self.parts, self.label):
            yield FunctionSplit(self.label, part, self.read)

    def __repr__(self) -> str:
        return self.label


def _read(label: str, function: Callable[..., Iterable[T]], *given_to_it: Any) -> Iterator[T]:
    """Yield the items of a function; its own exception names the part."""
    blaming = _Blaming(function, given_to_it)
    with blaming:
        found = _iterable(function(*given_to_it), function, label)
    # Containers that cannot fail are unchanged: numbers in a range or a list may become columns.
    return iter(found) if type(found) in (range, list, tuple) else _each(found, blaming)


def _each(found: Iterable[T], blaming: _Blaming) -> Iterator[T]:
    with blaming:
        yield from found


@dataclass(frozen=True, slots=True)
class _Blaming:
    """Attaches the arguments of a function to its exception."""

    function: Callable[..., Any]
    given_to_it: tuple[Any, ...]

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            given(error, f"when {shown_function(self.function)} was given {', '.join(map(shown, self.given_to_it))}")


def _iterable(found: Any, fn: Any, label: str) -> Iterable[Any]:
    if not isinstance(found, Iterable):
        refuse_awaitable(found)
        raise SourceError(f"{label}: {shown_function(fn)} must give several items, not {shown(found)}")
    return found


@dataclass(frozen=True, slots=True, repr=False)
class FunctionSplit(Generic[S, T]):
    """Split of a source that is made of functions."""

    label: str
    part: S
    function: Callable[[S], Iterable[T]]

    def read(self) -> Iterator[T]:
        """Call the function."""
        return _read(self.label, self.function, self.part)


@dataclass(frozen=True, repr=False)
class FunctionStreamSource(NamesOfStreams, Generic[T]):
    """Result of `stream_source_from`."""

    label: str
    begin_function: Callable[[], Mapping[str, Offset]]
    reach_function: Callable[[Mapping[str, Offset], int | None], Mapping[str, Offset]]
    read_function: Callable[[str, Offset, Offset], Iterable[T]]

    def begin(self) -> Mapping[str, Offset]:
        """Ask the function."""
        return self._checked(self.begin_function(), self.begin_function)

    def reach(self, offsets: Mapping[str, Offset], most: int | None = None) -> Mapping[str, Offset]:
        """Ask the function."""
        return self._checked(self.reach_function(offsets, most), self.reach_function)

    def _checked(self, found: Any, fn: Any) -> Mapping[str, Offset]:
        if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
            raise SourceError(f"{self.label}: {shown_function(fn)} must give offsets by names, not {shown(found)}")
        for name, offset in found.items():
            try:
                # A job stores offsets as JSON, and one that is read back as another value is another position.
                is_kept = json.loads(json.dumps(offset)) == offset
            except (TypeError, ValueError, RecursionError):
                is_kept = False
            if not is_kept:
                raise SourceError(f"{self.label}: the offset of {name!r} is not as JSON has it: {shown(offset)}")
        return found

    def split(self, partition: str, start: Offset, stop: Offset) -> RangeSplit[T]:
        """Return a range, which a worker reads."""
        return RangeSplit(self.label, self.read_function, partition, start, stop)

    def __repr__(self) -> str:
        return self.label


@dataclass(frozen=True, repr=False)
class TimestampedFunctionStreamSource(FunctionStreamSource[T]):
    """A stream source that is made of functions, whose items have a time."""

    timestamp: Callable[[T], int | None]


@dataclass(frozen=True, slots=True, repr=False)
class RangeSplit(Generic[T]):
    """Range of a partition."""

    label: str
    function: Callable[[str, Offset, Offset], Iterable[T]]
    partition: str
    start: Offset
    stop: Offset

    def read(self) -> Iterator[T]:
        """Call the function."""
        return _read(self.label, self.function, self.partition, self.start, self.stop)


LOGGER = "dstream.to_logger"


@dataclass(frozen=True)
class DiscardingWriter:
    """Writer that discards items."""

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Consume the items; yield no receipts."""
        deque(items, maxlen=0)
        yield from ()


@dataclass(frozen=True)
class LogLineWriter:
    """Writer that converts items to strings, which are the receipts.

    Attributes:
        is_logged: the caller logs them; otherwise they are made and dropped.
    """

    to_string: Callable[[Any], str]
    is_logged: bool

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Yield the strings in lists."""
        from more_itertools import chunked  # imported on use: only `to_logger` needs it

        for batch in chunked(items, BATCH):
            texts: list[Receipt] = [*map(str, each(self.to_string, batch))]
            if self.is_logged:
                yield texts


@record(slots=False, repr=False)
class LoggingSink(ImmediateSink[T]):
    """Sink that logs the strings in the driver.

    Attributes:
        logger: the name of the logger.
    """

    writer: LogLineWriter
    logger: str

    def begin(self, job: str | None, epoch: int = 1) -> PassingJob:
        """Begin an epoch; items below the logger's level are not sent."""
        is_logged = is_enabled(logging.getLogger(self.logger))
        return PassingJob(LogLineWriter(self.writer.to_string, is_logged), self._log)

    def _log(self, receipts: Sequence[Receipt]) -> None:
        logger = logging.getLogger(self.logger)
        for texts in receipts:
            for text in texts if isinstance(texts, list) else ():
                log_line(logger, text)


def sequence_number(timestamp: int, sequence: int) -> int:
    return sequence
