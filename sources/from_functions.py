"""`source_from` and `stream_source_from`: sources made of functions, for what no class is worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dstream.errors import SourceError
from dstream.spi.functions import shown_function
from dstream.spi.source import Source
from dstream.spi.stream_source import Offset, StreamSource
from dstream.spi.wrong_arguments import checked_function
from dstream.values.blaming import given, shown
from dstream.values.flattened import refuse_awaitable
from sources.memory import NamesOfStreams

__all__ = [
    "FunctionSource",
    "FunctionSplit",
    "FunctionStreamSource",
    "RangeSplit",
    "TimestampedFunctionStreamSource",
    "source_from",
    "stream_source_from",
]

S = TypeVar("S")
T = TypeVar("T")


def source_from(
    splits: Iterable[S] | Callable[[int], Iterable[S]],
    read: Callable[[S], Iterable[T]],
    *,
    ordered: bool = True,
    name: str | None = None,
) -> Source[T]:
    """Read what a function gives for each of several parts, such as files, pages or shards.

    The parts are values that can be pickled; the worker that gets one calls `read`, which may yield its items.

    **Parallelism**: one task for each part.
    **Guarantee**: that of `read`: every item once, if it gives each one for one part.
    **On re-run**: `read` is called again, also after a task was lost, and must give the same items.

    Args:
        splits: the parts, or a function that gives them when a run starts: it takes how many keep every core busy, and
            may give more or fewer.
        read: gives the items of a part, one after another; it opens what it needs, and closes that in a `finally`.
        ordered: whether the items have an order: that of the parts, and then that inside each.
        name: what messages call the source; unset, its functions.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: `name` is empty.

    Example:
        >>> from sources import source_from
        >>> def squares(part):
        ...     yield from (n * n for n in part)
        >>> with connect(engine="local") as ctx:
        ...     ctx.read(source_from([range(3), range(3, 5)], squares)).to_list()
        [0, 1, 4, 9, 16]
    """
    if isinstance(splits, str | bytes) or not (callable(splits) or isinstance(splits, Iterable)):
        raise TypeError(f"splits must be several parts or a function that gives them, not {type(splits).__name__}")
    if not isinstance(ordered, bool):
        raise TypeError(f"ordered must be True or False, not {type(ordered).__name__}")
    _check(splits=splits if callable(splits) else iter, read=read)
    given = splits if callable(splits) else tuple(splits)
    label = _label("source_from", name, *([given] if callable(given) else []), read)
    return FunctionSource(label, given, read, ordered)


def stream_source_from(
    begin: Callable[[], Mapping[str, Offset]],
    reach: Callable[[Mapping[str, Offset], int | None], Mapping[str, Offset]],
    read: Callable[[str, Offset, Offset], Iterable[T]],
    timestamp: Callable[[T], int | None] | None = None,
    *,
    name: str | None = None,
) -> StreamSource[T]:
    """Read what functions give of something that grows without an end, such as a table, a feed or a queue with offsets.

    They are the methods of `dstream.spi.StreamSource`, which says more. An offset is plain data that JSON has.

    **Parallelism**: one task for each range of a partition.
    **Guarantee**: exactly once, if a range gives the same items whenever it is read.
    **On re-run**: a new job begins at `begin()`; one that goes on, where it stood.

    Args:
        begin: gives the partitions that there are, and the offset at which a new job begins in each; in the driver.
        reach: takes how far each partition was read, and a number of items that suffice or None; gives how far each can
            be read now; in the driver.
        read: takes a partition and two offsets, gives the items from the first one up to, not including, the second; in
            a worker. The first one is None at the start of a partition that `begin` did not have.
        timestamp: gives the time of an item in milliseconds since 1970, or None.
        name: what messages call the source; unset, its functions.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: `name` is empty.
        SourceError: when it runs: `begin` or `reach` gives no mapping of names to plain offsets.

    Example:
        >>> from sources import stream_source_from
        >>> feed = ["a", "b", "c"]
        >>> source = stream_source_from(
        ...     begin=lambda: {"feed": 0},
        ...     reach=lambda offsets, most: {"feed": len(feed)},
        ...     read=lambda partition, start, stop: feed[start:stop],
        ... )
        >>> list(source.split("feed", 1, source.reach(source.begin())["feed"]).read())
        ['b', 'c']
    """
    _check(begin=begin, reach=reach, read=read, **({} if timestamp is None else {"timestamp": timestamp}))
    label = _label("stream_source_from", name, begin, reach, read)
    if timestamp is None:
        return FunctionStreamSource(label, begin, reach, read)
    return TimestampedFunctionStreamSource(label, begin, reach, read, timestamp)


def _check(**functions: Any) -> None:
    for name, fn in functions.items():
        checked_function(fn, name)


def _label(maker: str, name: Any, *functions: Any) -> str:
    if name is None:
        return f"{maker}({', '.join(map(shown_function, functions))})"
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("name must not be empty")
    return f"{maker}({name!r})"


@dataclass(frozen=True, slots=True, repr=False)
class FunctionSource(NamesOfStreams, Generic[S, T]):
    """What `source_from` returns."""

    label: str
    parts: Any
    read: Callable[[S], Iterable[T]]
    ordered: bool

    bounded = True
    in_caller = False
    is_of_functions = True

    def splits(self, parallelism: int) -> Iterator[FunctionSplit[S, T]]:
        """Give a split for each part, as they come."""
        parts = self.parts(parallelism) if callable(self.parts) else self.parts
        for part in _iterable(parts, self.parts, self.label):
            yield FunctionSplit(self.label, part, self.read)

    def __repr__(self) -> str:
        return self.label


def _read(label: str, function: Callable[..., Iterable[T]], *given_to_it: Any) -> Iterator[T]:
    """Give what a function reads; an exception of its own says of what."""
    blaming = _Blaming(function, given_to_it)
    with blaming:
        found = _iterable(function(*given_to_it), function, label)
    # What cannot fail stays as it is: numbers in a range or a list may become columns.
    return iter(found) if type(found) in (range, list, tuple) else _each(found, blaming)


def _each(found: Iterable[T], blaming: _Blaming) -> Iterator[T]:
    with blaming:
        yield from found


@dataclass(frozen=True, slots=True)
class _Blaming:
    """Keeps with an exception what the function was given that raised it."""

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
    """One part."""

    label: str
    part: S
    function: Callable[[S], Iterable[T]]

    def read(self) -> Iterator[T]:
        """Call the function."""
        return _read(self.label, self.function, self.part)


@dataclass(frozen=True, repr=False)
class FunctionStreamSource(NamesOfStreams, Generic[T]):
    """What `stream_source_from` returns."""

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
                is_kept = json.loads(json.dumps(offset)) == offset
            except (TypeError, ValueError):
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
    """One whose items have a time."""

    timestamp: Callable[[T], int | None]


@dataclass(frozen=True, slots=True, repr=False)
class RangeSplit(Generic[T]):
    """One range of a partition."""

    label: str
    function: Callable[[str, Offset, Offset], Iterable[T]]
    partition: str
    start: Offset
    stop: Offset

    def read(self) -> Iterator[T]:
        """Call the function."""
        return _read(self.label, self.function, self.partition, self.start, self.stop)
