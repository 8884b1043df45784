"""`Source` and `StreamSource`: bounded and unbounded input, with its splits and offsets.

`dstream docs write-a-source` writes one in 30 lines.

A job asks a `StreamSource` in the driver how far each partition reaches, chooses a range of offsets of each, and lets
tasks read the ranges. It stores the offsets with the results of their items. So a range is read again only if its
results were lost, and must then yield the same items.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from dstream.errors import SourceError
from dstream.values.bad_records import BadRecord

__all__ = [
    "ArrowRows",
    "Counted",
    "Ending",
    "Identified",
    "Identity",
    "InArrow",
    "InBlocks",
    "InputSize",
    "Misread",
    "OfRecords",
    "Offset",
    "OffsetShowing",
    "Reached",
    "RowsAgain",
    "SizedSource",
    "Source",
    "Split",
    "SplitOfRecords",
    "StreamSource",
    "Streamable",
    "TimedSplit",
    "Timestamped",
    "TimestampedBeside",
    "asking_sizes_once",
    "input_size",
    "yields_its_items",
]


T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class Split(Protocol[T_co]):
    """Part of a source. It is sent pickled, and opened by the worker that owns it.

    Parallelism: one task reads one split, from the start to the end or until no more items are needed.
    On re-run: `read` may be called again, in another process, and must yield the same items.
    """

    def read(self) -> Iterator[T_co]:
        """Open the split and yield its items one after another; release it when the iterator closes.

        Raises:
            SourceError: the data is missing, torn, or not what was declared.
        """
        ...


def yields_its_items(split: Split[Any]) -> bool:
    """Return whether `read` yields the members of the attribute `items`, so that an engine may take them from there.

    A dataclass has an attribute of this name if so. A subclass may override `read`, so it does not inherit it.
    """
    return bool(vars(type(split)).get("yields_its_items")) and is_dataclass(split)


@runtime_checkable
class InBlocks(Split[T_co], Protocol[T_co]):
    """A split that reads several items at a time; other splits omit this method.

    An engine then takes a list of items instead of one item after another. That must change nothing else: a request for
    one item causes no more reading than `read` would.
    """

    def read_blocks(self) -> Iterator[Sequence[T_co]]:
        """Open the split and yield its items in lists, which the engine may retain."""
        ...


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Items stored in Arrow columns, on which an engine may operate without making objects.

    Attributes:
        size: the number of items.
        parts: functions that return the column of a part of the items on demand, by the name of the part: an Arrow
            array with `size` values, or other `ArrowRows`; None if the values have no such representation. The ints,
            floats, bools, strings and bytes that `to_pylist` makes of an array equal the parts of the items exactly;
            nulls are None.
        reached_by: how the parts of an item are accessed: `"attribute"`: `item.name`; `"key"`: `item["name"]`;
            `"place"`: `item[0]`, in the order of `parts`. None of these runs code of the item's class. Empty: the items
            are the only part.
        items: returns the items at the passed positions, a `slice` or an array of NumPy, as `Split.read` yields them;
            lazily where that saves memory.
        most: at most this number of items are made at a time, to limit memory.
        again: reads the same rows once more, in any process; None: this is impossible or expensive.
        item_class: the class of all items, which have no attributes but its fields; None if unknown.
    """

    size: int
    parts: Mapping[str, Callable[[], Any]]
    reached_by: frozenset[Literal["attribute", "key", "place"]]
    items: Callable[[Any], Iterable[Any]]
    most: int
    again: RowsAgain | None = None
    item_class: type | None = None

    @staticmethod
    def chosen(of: Any, places: Any) -> Any:
        """Return the rows of an array or a batch of Arrow at the passed positions, a `slice` or an array of NumPy."""
        if isinstance(places, slice):
            # A slice copies nothing.
            return of.slice(places.start, places.stop - places.start)
        import pyarrow as pa

        try:
            return of.take(_indices(places))
        except pa.ArrowNotImplementedError:  # Some types can only be sliced and concatenated (pyarrow 26).
            if isinstance(of, pa.RecordBatch):
                columns = [ArrowRows.chosen(column, places) for column in of.columns]
                return pa.RecordBatch.from_arrays(columns, schema=of.schema)
            return pa.concat_arrays([of.slice(0, 0), *(of.slice(place, 1) for place in map(int, places))])


def _indices(places: Any) -> Any:
    """Return positions as an array of Arrow: for an array of NumPy `take` would load pandas (pyarrow 26)."""
    import pyarrow as pa

    if getattr(places, "dtype", None) != "int64" or not places.flags.c_contiguous:
        return places
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])


class RowsAgain(Protocol):
    """A reference to rows, which can be pickled: it is sent with a subset of their columns, in place of the others."""

    @property
    def together(self) -> Hashable:
        """A value that is equal for rows that are opened together, within one run."""
        ...

    def opened(self) -> Any:
        """Open the container of the rows, for `rows`; it is cached for other rows of the same container.

        Raises:
            SourceError: it is gone.
        """
        ...

    def rows(self, opened: Any) -> ArrowRows:
        """Return the rows.

        Raises:
            SourceError: the number of rows has changed.
        """
        ...

    def changed(self) -> Exception:
        """Return the error for rows that are no longer those which were read first."""
        ...


@runtime_checkable
class InArrow(Split[T_co], Protocol[T_co]):
    """A split whose items are stored in Arrow columns; other splits omit this method.

    Parts that are not used need not be read: a value in them that has no Python object is no error.
    """

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[T_co]] | None:
        """Open the split and yield its items in order: rows, or an iterator of items that are not in columns.

        None if none of them does.
        """
        ...


class Misread(NamedTuple):
    """A record that cannot be parsed into an item. Its location may require reading, so it is computed lazily.

    Attributes:
        problem: the exception of the parser.
        record: returns the content of the record, and its location.
        error: returns the exception that ends the run, unless it is handled.
    """

    problem: Exception
    record: Callable[[], BadRecord]
    error: Callable[[], SourceError]


@runtime_checkable
class SplitOfRecords(Split[T_co], Protocol[T_co]):
    """A split that can continue after a record that cannot be parsed, as the splits of `OfRecords`."""

    def read_past(self, misread: Callable[[Misread], Iterable[Any]]) -> Iterator[T_co]:
        """Yield the items as `read` does, with the result of `misread` in place of a bad record, or raise its error."""
        ...


@runtime_checkable
class OfRecords(Protocol):
    """A source whose splits are `SplitOfRecords`: `ignore`, `resolve` and `on_error` may follow it.

    Attributes:
        on_bad: the treatment of bad records that these steps do not handle: `"fail"` or `"skip"`.
        into: a reducer that gets a dead letter for each of them instead, or None.
    """

    @property
    def on_bad(self) -> str: ...

    @property
    def into(self) -> Any: ...


@runtime_checkable
class Source(Protocol[T_co]):
    """Items that can be read again and again, divided into splits.

    Attributes:
        ordered: the items have an encounter order: the order of the splits, then the order inside each.
        bounded: the items end.
        in_caller: the splits contain their items, so that reading is free; an engine then sends the items in batches
            instead of the complete split.
    """

    @property
    def ordered(self) -> bool: ...

    @property
    def bounded(self) -> bool: ...

    @property
    def in_caller(self) -> bool: ...

    def splits(self, parallelism: int) -> Iterable[Split[T_co]]:
        """Divide the source, in the caller's process, when a terminal operation starts.

        Args:
            parallelism: the number of splits that keeps every core busy; a source may return more or fewer, and may
                yield them lazily: a short-circuiting operation consumes no more than it needs.

        Raises:
            SourceError: the input does not exist.
        """
        ...


@runtime_checkable
class Counted(Protocol):
    """A source that can count its splits; other sources omit this method. `stream.explain()` calls it."""

    def count_splits(self, parallelism: int) -> int | None:
        """Return the number of splits of `splits(parallelism)` without reading; None if that requires reading."""
        ...


@dataclass(frozen=True, slots=True)
class InputSize:
    """The size of the input of a source, as far as the source has it without reading its items.

    Attributes:
        items: the number of items, or an upper bound; `math.inf` if the input is infinite, None if unknown.
        is_exact: there are exactly `items` items, so that `stream.count()` reads none of them.
        stored_bytes: the number of bytes to read for the items; None if unknown, or nothing is read.
        is_held: this process has the items in memory, or generates them.
        is_near: reading the first items costs no more in this process than on a worker.
    """

    items: float | None = None
    is_exact: bool = False
    stored_bytes: int | None = None
    is_held: bool = False
    is_near: bool = False


@runtime_checkable
class SizedSource(Protocol):
    """A source that may know the size of its input; other sources omit this method.

    It is used by `stream.count()`, and by the choice of the engine: a small input needs no workers.
    """

    def input_size(self) -> InputSize | None:
        """Return the size, or None if it is unknown; what it raises counts as unknown.

        It is called in the caller's process before each run, so it must read little, such as the sizes of files, and
        wait at most a second for a response.
        """
        ...


_UNKNOWN_SIZE = InputSize()


def input_size(source: Any) -> InputSize:
    """Return the size of the input of a source; an unknown size if the source does not report one."""
    known = getattr(_remembered, "sizes", None)
    if known is None:
        return _asked_for_size(source)
    if id(source) not in known:
        # With the source, so that no other object gets its `id`.
        known[id(source)] = source, _asked_for_size(source)
    size: InputSize = known[id(source)][1]
    return size


@contextmanager
def asking_sizes_once() -> Iterator[None]:
    """Cache the sizes of sources within the block, in this thread, since they are read from files."""
    before = getattr(_remembered, "sizes", None)
    _remembered.sizes = {} if before is None else before
    try:
        yield
    finally:
        _remembered.sizes = before


_remembered = threading.local()


def _asked_for_size(source: Any) -> InputSize:
    ask = getattr(source, "input_size", None)
    if ask is None:
        return _UNKNOWN_SIZE
    # An estimate must not fail a run that would succeed; what is wrong with the source, the run itself reports.
    with suppress(Exception):
        size = ask()
        if isinstance(size, InputSize):
            return size
    return _UNKNOWN_SIZE


T_contra = TypeVar("T_contra", contravariant=True)

Offset: TypeAlias = Any
"""The position of an item in its partition: plain data that JSON has, such as an int, or a list of ints and strings."""

Identity: TypeAlias = str | Mapping[str, str]
"""The owner of offsets: one string, or a string for each of several parts, by their names."""


@runtime_checkable
class StreamSource(Protocol[T_co]):
    """A source without an end.

    Parallelism: one task reads one range of one partition.
    On re-run: a range yields the same items, in the order of their offsets, as long as the source retains them.
    """

    @property
    def label(self) -> str:
        """The source as the user wrote it, for messages."""
        ...

    def begin(self) -> Mapping[str, Offset]:
        """Return the existing partitions, by stable names, and the offset at which a new job begins in each.

        Raises:
            SourceError: the input does not exist, or is not reachable.
        """
        ...

    def reach(self, offsets: Mapping[str, Offset], most: int | None = None) -> Mapping[str, Offset]:
        """Return how far each partition can be read now: the offset after its last item.

        The result includes partitions that were added meanwhile: they are read from the offset None. A partition that
        has ended, as a file that was read and deleted, is left out. It no longer holds the watermark back; if it
        reappears, it is continued at its last offset.

        Args:
            offsets: how far each partition has been read, including partitions that were left out within the last day
                (`JobConfig(keep=)`).
            most: the maximal number of items of each partition; None: unlimited. A source that cannot count items
                without reading them may use their size. A source that knows the number of remaining items returns a
                `Reached`.

        Raises:
            SourceError: items from these offsets on were removed before they were read, or a partition is gone.
        """
        ...

    def split(self, partition: str, start: Offset, stop: Offset) -> Split[T_co]:
        """Return the items of one partition from the offset `start` up to `stop`, exclusive.

        Args:
            partition: its name.
            start: None for the start of a partition that was added after `begin`.
            stop: an offset that `reach` returned.
        """
        ...


class Reached(dict[str, Offset]):
    """Result of `reach` with the backlog, in place of a plain dictionary.

    Attributes:
        left: the number of items after these offsets, in all partitions. Metrics of jobs show it. None: they cannot be
            counted without reading them.
        expected: an estimate of their number, such as by the bytes of a file, where they cannot be counted. The sizes
            of epochs and their engine depend on it, and no metric shows it. None: unknown.
    """

    def __init__(self, offsets: Mapping[str, Offset], left: int | None = None, expected: int | None = None) -> None:
        super().__init__(offsets)
        self.left = left
        self.expected = expected


@runtime_checkable
class Streamable(Protocol[T_co]):
    """A source that ends when another program ends it, such as a connection; others leave it out."""

    def as_stream(self) -> StreamSource[T_co]:
        """Return a source of the items without an end.

        Jobs that run in epochs read that stream instead, so that they have results before the end. It may be called
        again in each run, and need not repeat items that were read.
        """
        ...


@runtime_checkable
class Ending(Protocol):
    """A source that may end; others leave it out.

    Attributes:
        ends: no item will arrive once `reach` leaves out every partition: then all windows close, and a job whose
            sources have all ended completes. Without it, an empty result means that there are no items now.
    """

    @property
    def ends(self) -> bool: ...


@runtime_checkable
class OffsetShowing(Protocol):
    """A source whose offsets need a description for users; other sources omit this method."""

    def shown_offset(self, offset: Offset) -> str:
        """Return an offset for the tables of a job, such as `byte 4096`."""
        ...


@runtime_checkable
class Identified(Protocol):
    """A source with an identity that its offsets belong to; others leave it out.

    Attributes:
        identity: a string, or strings by the names of parts, such as topics, that may be added later. A job that
            continued with the offsets of one map in another map of the same name would skip items, so it refuses a
            source whose identity, or the identity of a part that it has read, has changed. It is read when a run of a
            job begins, when partitions are added, and every few seconds between epochs; an exception then is no
            failure.
    """

    @property
    def identity(self) -> Identity: ...


@runtime_checkable
class Timestamped(Protocol[T_contra]):
    """A source whose items have the time at which they happened; other sources omit this method."""

    def timestamp(self, item: T_contra) -> int | None:
        """Return the time of an item in milliseconds since 1970; None if it has none."""
        ...


@runtime_checkable
class TimestampedBeside(Protocol):
    """A source that provides the time of each item separately; other sources omit this method.

    Attributes:
        has_times_beside: always True: each split is a `TimedSplit`.
    """

    @property
    def has_times_beside(self) -> bool: ...


class TimedSplit(Split[T_co], Protocol[T_co]):
    """A split that knows the time of each item."""

    def read_timed(self) -> Iterator[tuple[int, T_co]]:
        """Yield pairs of the time in milliseconds since 1970 and the item, in the order of `read`."""
        ...
