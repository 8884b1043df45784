"""`Source` and `StreamSource`: bounded and unbounded input, with its splits and offsets.

`dstream docs write-a-source` writes one in 30 lines.

A job asks a `StreamSource` in the driver how far each partition reaches, chooses a range of offsets of each, and lets
tasks read the ranges. It stores the offsets with the results of their items. So a range is read again only if its
results were lost, and must then give the same items.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
]


T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class Split(Protocol[T_co]):
    """One part of a source. It travels pickled, and the worker that owns it opens it.

    Parallelism: one task reads one split, from the start to the end or until no more items are wanted.
    On re-run: `read` may be called again, in another process, and must give the same items.
    """

    def read(self) -> Iterator[T_co]:
        """Open the split and give its items one after another; release it when the iterator closes.

        Raises:
            SourceError: the data is missing, torn, or not what was declared.
        """
        ...


@runtime_checkable
class InBlocks(Split[T_co], Protocol[T_co]):
    """A split whose items are read several at a time anyway; others leave it out.

    An engine then takes a whole list where it would ask for one item after another. That must change
    nothing else: who asks for one item causes no more reading than `read` would do.
    """

    def read_blocks(self) -> Iterator[Sequence[T_co]]:
        """Open the split and give its items in lists, which the engine may keep."""
        ...


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Items stored in columns of Arrow, so that an engine may work on these and make no objects.

    Attributes:
        size: how many items there are.
        parts: each gives the column of a part of the items when it is asked for, by the name of the part: an Arrow
            array as long as there are items, or other `ArrowRows`; None if the values are none of that kind. What
            `to_pylist` makes of the ints, floats, bools, texts and bytes of an array is exactly what the items have
            there; nulls are None.
        reached_by: how items give their parts: `"attribute"`: `item.name`; `"key"`: `item["name"]`; `"place"`:
            `item[0]`, in the order of `parts`. None runs code of the item's class. Nothing: the items are the one part.
        items: gives the items at some places, a `slice` or an array of NumPy, as `Split.read` gives them; one after
            another where that saves memory.
        most: at most this number of items are made at a time, for the sake of memory.
        again: reads the same rows once more, in any process; None: they cannot be, or at a high cost.
        item_class: the class of all items, which have no attributes but its fields; None if it is not known.
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
        """Return the rows of an array or a batch of Arrow at some places, as `items` takes them."""
        if isinstance(places, slice):
            # A slice copies nothing.
            return of.slice(places.start, places.stop - places.start)
        import pyarrow as pa

        try:
            return of.take(_indices(places))
        except pa.ArrowNotImplementedError:  # Of some types it can be sliced and joined alone (pyarrow 26).
            if isinstance(of, pa.RecordBatch):
                columns = [ArrowRows.chosen(column, places) for column in of.columns]
                return pa.RecordBatch.from_arrays(columns, schema=of.schema)
            return pa.concat_arrays([of.slice(0, 0), *(of.slice(place, 1) for place in map(int, places))])


def _indices(places: Any) -> Any:
    """Return places as an array of Arrow: of an array of NumPy `take` would load pandas (pyarrow 26)."""
    import pyarrow as pa

    if getattr(places, "dtype", None) != "int64" or not places.flags.c_contiguous:
        return places
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])


class RowsAgain(Protocol):
    """A reference to rows, which can be pickled: it travels with a few of their columns, in place of the others."""

    @property
    def together(self) -> Hashable:
        """A value that is equal for rows that are opened together, within one run."""
        ...

    def opened(self) -> Any:
        """Open what the rows are a part of, for `rows`; that is kept for others of the same part.

        Raises:
            SourceError: it is gone.
        """
        ...

    def rows(self, opened: Any) -> ArrowRows:
        """Return the rows.

        Raises:
            SourceError: there are no longer as many.
        """
        ...

    def changed(self) -> Exception:
        """Return the error for rows that are no longer those which were read first."""
        ...


@runtime_checkable
class InArrow(Split[T_co], Protocol[T_co]):
    """A split whose items are stored in columns of Arrow anyway; others leave it out.

    Parts that are not asked for need not be read: a value in them that has no object of Python is no error.
    """

    def arrow_rows(self) -> Iterator[ArrowRows | Iterator[T_co]] | None:
        """Open the split and give its items in order: rows, and an iterator of the items that are in no columns.

        None if none of them does.
        """
        ...


class Misread(NamedTuple):
    """A record that does not become an item. To find its location may take reading, so that is done when asked for.

    Attributes:
        problem: what the parser raised.
        record: gives the content of the record, and its location.
        error: gives the exception that ends the run, unless it is handled.
    """

    problem: Exception
    record: Callable[[], BadRecord]
    error: Callable[[], SourceError]


@runtime_checkable
class SplitOfRecords(Split[T_co], Protocol[T_co]):
    """A split that can go on behind a record that does not become an item; those of `OfRecords` can."""

    def read_past(self, misread: Callable[[Misread], Iterable[Any]]) -> Iterator[T_co]:
        """Yield the items as `read` does, with the result of `misread` in the place of a bad record, or its error."""
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
        ordered: the items have an encounter order: the order of the splits, then that inside each.
        bounded: the items end.
        in_caller: the splits hold their items themselves, so that reading one costs nothing; an
            engine then moves the items in batches rather than the split as a whole.
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
            parallelism: how many splits keep every core busy; a source may give more or fewer, and
                may give them lazily: a short-circuiting operation asks for no more than it needs.

        Raises:
            SourceError: what was asked for does not exist.
        """
        ...


@runtime_checkable
class Counted(Protocol):
    """A source that can count its splits; others leave it out. `stream.explain()` asks for it."""

    def count_splits(self, parallelism: int) -> int | None:
        """Return how many splits `splits(parallelism)` would give, reading nothing; None if that takes reading."""
        ...


@dataclass(frozen=True, slots=True)
class InputSize:
    """The size of the input of a source, as far as the source has it without reading its items.

    Attributes:
        items: how many items there are, or may be at most; `math.inf` if they have no end, None if that is unknown.
        is_exact: there are exactly `items` items, so that `stream.count()` reads none of them.
        stored_bytes: how many bytes have to be read to get the items; None if that is unknown, or nothing is read.
        is_held: this process has the items in memory, or makes them from nothing.
        is_near: to read the first few items costs no more in this process than on a worker.
    """

    items: float | None = None
    is_exact: bool = False
    stored_bytes: int | None = None
    is_held: bool = False
    is_near: bool = False


@runtime_checkable
class SizedSource(Protocol):
    """A source that may know the size of its input; others leave it out.

    `stream.count()` asks it, and the choice of the engine: a small input needs no workers.
    """

    def input_size(self) -> InputSize | None:
        """Return the size, or None if it is unknown; what it raises counts as unknown.

        It is asked for in the caller's process before each run, so it reads little, such as the sizes of files, and
        does not wait for an answer longer than a second.
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
    """Ask each source at most once for its size within the block, in this thread: files are looked at for it."""
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
    On re-run: a range gives the same items, in the order of their offsets, as long as the source keeps them.
    """

    @property
    def label(self) -> str:
        """The source as the user wrote it, for messages."""
        ...

    def begin(self) -> Mapping[str, Offset]:
        """Return the partitions that there are, by names that stay, and the offset at which a new job begins in each.

        Raises:
            SourceError: what is to be read does not exist, or cannot be asked.
        """
        ...

    def reach(self, offsets: Mapping[str, Offset], most: int | None = None) -> Mapping[str, Offset]:
        """Return how far each partition can be read now: the offset behind its last item.

        Partitions that were added meanwhile are among the result: what is read of them begins at the offset None. One
        that has ended, as a file that was read and deleted, is left out. It holds time back no longer; should it come
        back, it is continued where it was.

        Args:
            offsets: how far each partition has been read, also those that were left out within the last day
                (`JobConfig(keep=)`).
            most: the greatest number of items of each partition; None: all that are there. A source that cannot count
                items without reading them may use their size. One that knows how many are left returns a `Reached`.

        Raises:
            SourceError: items from these offsets on were removed before they were read, or a partition is gone.
        """
        ...

    def split(self, partition: str, start: Offset, stop: Offset) -> Split[T_co]:
        """Return the items of one partition from the offset `start` up to `stop`, without the one at `stop`.

        Args:
            partition: its name.
            start: None for the start of one that was added after `begin`.
            stop: an offset that `reach` gave.
        """
        ...


class Reached(dict[str, Offset]):
    """Result of `reach` in place of a plain dictionary, with the backlog besides.

    Attributes:
        left: how many items are there behind these offsets, in all partitions. Metrics of jobs show it. None: they
            cannot be counted without reading them.
        expected: about how many they are, such as by the bytes of a file, where they cannot be counted. The sizes of
            epochs and their engine depend on it, and no metric shows it. None: nothing is known.
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

        Jobs that run in epochs read that in its place, so that they give results before the end. It may be asked anew
        in each run, and needs not give again what was read.
        """
        ...


@runtime_checkable
class Ending(Protocol):
    """A source that may end; others leave it out.

    Attributes:
        ends: no item will arrive once `reach` leaves out every partition: all windows close then, and a job completes
            whose sources have all ended. Without it, an empty result means that there is nothing now.
    """

    @property
    def ends(self) -> bool: ...


@runtime_checkable
class OffsetShowing(Protocol):
    """A source whose offsets mean little by themselves; others leave it out."""

    def shown_offset(self, offset: Offset) -> str:
        """Return an offset for the tables of a job, such as `byte 4096`."""
        ...


@runtime_checkable
class Identified(Protocol):
    """A source with an identity that its offsets belong to; others leave it out.

    Attributes:
        identity: a text, or texts by the names of the parts of which some may be added later, as topics are. A job that
            went on with the offsets of one map in another of the same name would leave items out, so it refuses a
            source that has another identity than the one it has read, or another one of a part that it has read. It is
            asked for when a run of a job begins, when partitions are added, and once in some seconds while there are
            epochs; what it raises in such an epoch is no failure.
    """

    @property
    def identity(self) -> Identity: ...


@runtime_checkable
class Timestamped(Protocol[T_contra]):
    """A source whose items have the time at which they happened; others leave it out."""

    def timestamp(self, item: T_contra) -> int | None:
        """Return the time of an item in milliseconds since 1970; None if it has none."""
        ...


@runtime_checkable
class TimestampedBeside(Protocol):
    """A source that has the time of each item beside the item; others leave it out.

    Attributes:
        has_times_beside: always True: each split is a `TimedSplit`.
    """

    @property
    def has_times_beside(self) -> bool: ...


class TimedSplit(Split[T_co], Protocol[T_co]):
    """A split that knows the time of each item."""

    def read_timed(self) -> Iterator[tuple[int, T_co]]:
        """Give the items as `read` does, each behind its time in milliseconds since 1970."""
        ...
