"""Items of the program as sources: `items`, `stream_of`, `item_stream`, `long_stream`.

The streams load their connector when they are called, `dstream.connectors.functions`.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from dstream.arguments import running_function
from dstream.connectors.memory import Items, LiteralItems, whole
from dstream.spi.source import StreamSource
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.connectors.functions import Pace, SimpleEvent

__all__ = ["item_stream", "items", "long_stream", "stream_of"]


def items(*values: T) -> Items[T]:
    """Read these items, in this order: a source for trials and tests.

    **Parallelism**: as many splits as keep every core busy, of nearly equal size.
    **Guarantee**: every item once.
    **On re-run**: the same items.

    Example:
        >>> from sources import items
        >>> with connect(engine="local") as ctx:
        ...     ctx.read(items("Ada", "Grace")).map(len).to_list()
        [3, 5]
    """
    return LiteralItems(values)


T = TypeVar("T")

EventStart = int | datetime.datetime
"""Milliseconds since 1970, or a datetime with a time zone."""


@overload
def item_stream(
    per_second: float,
    *,
    start: EventStart | None = None,
    partitions: int = 1,
    clock: Callable[[], float] = time.time,
) -> StreamSource[SimpleEvent]: ...
@overload
def item_stream(
    per_second: float,
    fn: Callable[[int, int], T],
    start: EventStart | None = None,
    *,
    partitions: int = 1,
    clock: Callable[[], float] = time.time,
) -> StreamSource[T]: ...
def item_stream(
    per_second: float,
    fn: Callable[[int, int], Any] | None = None,
    start: EventStart | None = None,
    *,
    partitions: int = 1,
    clock: Callable[[], float] = time.time,
) -> StreamSource[Any]:
    """Yield items at a steady rate, for ever: `SimpleEvent(timestamp, sequence)`, or a function's results for the two.

    Item number i is due i / `per_second` seconds after the start, and has that time as its timestamp, which
    `native_timestamps()` assigns to the result of the function. It depends on nothing else. Items that were due while
    no job ran are emitted at once when a job resumes.

    **Parallelism**: one task for each range of a partition.
    ***Guarantee**: exactly once, if `fn` returns the same for the same arguments.
    **On re-run**: a new job begins with item 0; one that resumes, where it was, and with the start that it had.

    Args:
        per_second: the number of items due each second, of all partitions together.
        fn: returns the item for a timestamp in milliseconds and a number; it runs in a worker.
        start: the time at which item 0 is due; unset, when a job begins.
        partitions: item i is one of partition i modulo this number.
        clock: returns the seconds since 1970; tests pass a clock of their own.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: `per_second` is not above 0, `partitions` is below 1, or `start` has no time zone.
        SourceError: when a job resumes that had other partitions.

    Example:
        >>> from sources import item_stream
        >>> source = item_stream(10, start=5_000, clock=lambda: 5.2)
        >>> begin = source.begin()
        >>> list(source.split("0", begin["0"], source.reach(begin)["0"]).read())[1:]
        [SimpleEvent(timestamp=5100, sequence=1), SimpleEvent(timestamp=5200, sequence=2)]
    """
    from dstream.connectors.functions import PacedItems, SimpleEvent

    pace = _pace("item_stream", per_second, start, partitions, clock)
    if fn is None:
        return PacedItems(pace, SimpleEvent)
    running_function(fn, "fn")
    return PacedItems(dataclasses.replace(pace, shown=f"{pace.shown}, {shown_function(fn)}"), fn)


def long_stream(
    per_second: float,
    start: EventStart | None = None,
    *,
    partitions: int = 1,
    clock: Callable[[], float] = time.time,
) -> StreamSource[int]:
    """Generate the whole numbers from 0 on at a steady rate, without an end.

    Each has the time at which it is due as its timestamp, as the items of `item_stream`.

    **Parallelism**, **Guarantee**, **On re-run**: as for `item_stream`.

    Args:
        per_second: the number of numbers due each second.
        start: as for `item_stream`.
        partitions: as for `item_stream`.
        clock: as for `item_stream`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: as for `item_stream`.

    Example:
        >>> from sources import long_stream
        >>> source = long_stream(2, start=0, clock=lambda: 1.5)
        >>> list(source.split("0", source.begin()["0"], source.reach(source.begin())["0"]).read())
        [0, 1, 2, 3]
    """
    from dstream.connectors.functions import PacedItems, sequence_number

    return PacedItems(_pace("long_stream", per_second, start, partitions, clock), sequence_number)


def stream_of(items: Iterable[T], partitions: int = 1) -> StreamSource[T]:
    """Yield these items, and end, so that a streaming job ends, and its output can be checked.

    **Parallelism**: one task for each range of a partition.
    **Guarantee**: exactly once.
    **On re-run**: a new job begins with the first item; one that resumes, where it was.

    Args:
        items: all items; they are read at once, and are sent with the plan of the job.
        partitions: item i is one of partition i modulo this number.

    Raises:
        TypeError: `items` cannot be iterated, or `partitions` is no int.
        ValueError: `partitions` is below 1.

    Example:
        >>> from sources import stream_of
        >>> source = stream_of("abcde", partitions=2)
        >>> reached = source.reach(source.begin())
        >>> [list(source.split(name, 0, reached[name]).read()) for name in reached]
        [['a', 'c', 'e'], ['b', 'd']]
    """
    from dstream.connectors.functions import FiniteStream

    if not isinstance(items, Iterable):
        raise TypeError(f"items must be several items, not {type(items).__name__}")
    return FiniteStream(tuple(items), _count(partitions))


def _pace(maker: str, per_second: Any, start: Any, partitions: Any, clock: Any) -> Pace:
    from dstream.connectors.functions import Pace

    if isinstance(per_second, bool) or not isinstance(per_second, int | float):
        raise TypeError(f"per_second must be a number, not {type(per_second).__name__}")
    if not 0 < per_second < math.inf:
        raise ValueError(f"per_second must be above 0, not {per_second}")
    checked_clock = running_function(clock, "clock")
    return Pace(f"{maker}({per_second}", per_second, _milliseconds(start), _count(partitions), checked_clock)


def _count(partitions: Any) -> int:
    count = whole(partitions, "partitions")
    if count < 1:
        raise ValueError(f"partitions must be at least 1, not {count}")
    return count


def _milliseconds(start: Any) -> int | None:
    if isinstance(start, datetime.datetime):
        if start.tzinfo is None:
            raise ValueError(f"start must be a datetime with a time zone, not {start!r}: start.astimezone() gives one")
        return math.floor(start.timestamp() * 1000)
    if start is not None and (isinstance(start, bool) or not isinstance(start, int)):
        raise TypeError(f"start must be milliseconds as an int, or a datetime, not {type(start).__name__}")
    return start
