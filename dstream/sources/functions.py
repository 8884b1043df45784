"""Sources made of functions and of processors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dstream.arguments import checked_function, running_function
from dstream.connectors.functions import FunctionSource, FunctionStreamSource, TimestampedFunctionStreamSource
from dstream.spi import ProcessorSource, ProcessorStreamSource
from dstream.spi.source import Offset, Source, StreamSource
from dstream.values.user_functions import shown_function

if TYPE_CHECKING:
    from dstream.spi.suppliers import AnySupplier

__all__ = ["from_processor", "source_from", "stream_from_processor", "stream_source_from"]


S = TypeVar("S")
T = TypeVar("T")


def source_from(
    splits: Iterable[S] | Callable[[int], Iterable[S]],
    read: Callable[[S], Iterable[T]],
    *,
    ordered: bool = True,
    name: str | None = None,
) -> Source[T]:
    """Read the results of a function for each of several parts, such as files, pages or shards.

    The parts are values that can be pickled; the worker of a part calls `read`, which may yield its items.

    **Parallelism**: one task for each part.
    ***Guarantee**: that of `read`: every item once, if it returns each item for one part.
    **On re-run**: `read` is called again, also after a task was lost, and must return the same items.

    Args:
        splits: the parts, or a function that returns them when a run starts: it receives the number of parts that keeps
            every core busy, and may return more or fewer.
        read: returns or yields the items of a part; it opens its resources, and closes them in a `finally`.
        ordered: whether the items have an order: the order of the parts, and then the order inside each part.
        name: the name of the source in messages; unset, its functions.

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
    checked_function(splits if callable(splits) else iter, "splits"), checked_function(read, "read")
    # A one-shot iterator would be empty in the second run.
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
    """Read by functions from something that grows without an end, such as a table, a feed or a queue with offsets.

    They are the methods of `dstream.spi.StreamSource`, which describes them. An offset is plain data that JSON has.

    **Parallelism**: one task for each range of a partition.
    ***Guarantee**: exactly once, if a range has the same items whenever it is read.
    **On re-run**: a new job begins at `begin()`; one that resumes, where it was.

    Args:
        begin: returns the existing partitions, and the offset at which a new job begins in each; runs in the driver.
        reach: receives the offset up to which each partition was read, and a number of items that suffices or None;
            returns the offset up to which each partition can be read now; runs in the driver.
        read: receives a partition and two offsets, returns the items from the first offset up to, not including, the
            second; runs in a worker. The first offset is None at the start of a partition that `begin` did not return.
        timestamp: returns the time of an item in milliseconds since 1970, or None.
        name: the name of the source in messages; unset, its functions.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: `name` is empty.
        SourceError: when it runs: `begin` or `reach` returns no mapping of names to plain offsets.

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
    running_function(begin, "begin"), running_function(reach, "reach"), checked_function(read, "read")
    if timestamp is not None:
        running_function(timestamp, "timestamp")
    label = _label("stream_source_from", name, begin, reach, read)
    if timestamp is None:
        return FunctionStreamSource(label, begin, reach, read)
    return TimestampedFunctionStreamSource(label, begin, reach, read, timestamp)


def _label(maker: str, name: Any, *functions: Any) -> str:
    if name is None:
        return f"{maker}({', '.join(map(shown_function, functions))})"
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("name must not be empty")
    return f"{maker}({name!r})"


def from_processor(name: str, supplier: AnySupplier) -> ProcessorSource[Any]:
    """Read the output of processors without inputs, such as a client of your own with a protocol.

    They run like a vertex of a graph: each emits in `complete()` until that returns True, and several share the work by
    their `index` and `total_parallelism`. The output has no order. Where functions suffice, `source_from(...)` is
    shorter.

    **Parallelism**: one task for each processor: as many as there are cores, unless the supplier or, in a pipeline,
    `set_local_parallelism(n)` changes that; the local engine has one.
    **Guarantee**: every item once, in runs that succeed.
    **On re-run**: new processors emit again, also after a task was lost.

    Args:
        name: the name of the vertex, and in a pipeline of its stage.
        supplier: creates the processors: a class of processors, a function, a `ProcessorSupplier` or a
            `ProcessorMetaSupplier`.

    Raises:
        TypeError: `name` is no str, or `supplier` none.
        ValueError: `name` is empty.

    Example:
        >>> from dstream.core import AbstractProcessor, traverse
        >>> from sources import from_processor
        >>> class Numbers(AbstractProcessor):
        ...     def start(self, context):
        ...         self.numbers = traverse(range(context.index, 6, context.total_parallelism))
        ...
        ...     def complete(self):
        ...         return self.emit_from_traverser(self.numbers)
        >>> with connect(engine="local") as ctx:
        ...     sorted(ctx.read(from_processor("numbers", Numbers)))
        [0, 1, 2, 3, 4, 5]
    """
    return ProcessorSource.of(name, supplier)


def stream_from_processor(name: str, supplier: AnySupplier) -> ProcessorStreamSource[Any]:
    """Read the output of processors that run without an end, in a pipeline; a job runs them epoch by epoch.

    In each epoch `complete()` has a slice of 50 ms, and at the end of the epoch a processor saves its position,
    in `save_to_snapshot()`. The output has no timestamps, so that windows and other steps that need time are
    refused downstream. Downstream steps are notified of an end when all sources of the job have ended. Where functions
    suffice, `stream_source_from(...)` is shorter, and assigns timestamps.

    **Parallelism**: one task for each processor, as for `from_processor`.
    **Guarantee**: exactly once, if they resume from what they have saved.
    ***On re-run**: resumes where it was; a new job begins at the start.

    Args:
        name: the name of the vertex, and in a pipeline of its stage.
        supplier: creates the processors, as for `from_processor`.

    Raises:
        TypeError: `name` is no str, or `supplier` none.
        ValueError: `name` is empty.

    Example:
        >>> from sources import stream_from_processor
        >>> from dstream.core import AbstractProcessor
        >>> stream_from_processor("ticks", AbstractProcessor)
        stream_from_processor('ticks')
    """
    return ProcessorStreamSource.of(name, supplier)
