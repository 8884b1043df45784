"""`StreamSource`: items that never end, in partitions of which any range can be read.

A job asks in the driver how far each partition reaches, chooses a range of offsets of each, and lets tasks read the
ranges. It keeps the offsets with what it made of them. So a range is read again only if nothing came of it, and must
then give the same items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from dstream.spi.source import Split

__all__ = [
    "Ending",
    "Identified",
    "Identity",
    "Offset",
    "OffsetShowing",
    "Reached",
    "StreamSource",
    "Streamable",
    "TimedSplit",
    "Timestamped",
    "TimestampedBeside",
]

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Offset: TypeAlias = Any
"""Where an item stands in its partition: plain data that JSON has, such as an int, or a list of ints and texts."""

Identity: TypeAlias = str | Mapping[str, str]
"""What offsets belong to: one text, or a text for each of several parts, by their names."""


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

        Partitions that came up meanwhile are among the result: what is read of them begins at the offset None. One that
        has ended, as a file that was read and deleted, is left out. It holds time back no longer; should it come back,
        it goes on where it was.

        Args:
            offsets: how far each partition has been read, also those that were left out within the last day
                (`JobConfig(keep=)`).
            most: at most so many items of each partition; None: all that are there. A source that cannot count items
                without reading them may go by their size. One that knows how many are left returns a `Reached`.

        Raises:
            SourceError: items from these offsets on were removed before they were read, or a partition is gone.
        """
        ...

    def split(self, partition: str, start: Offset, stop: Offset) -> Split[T_co]:
        """Return the items of one partition from the offset `start` up to `stop`, without the one at `stop`.

        Args:
            partition: its name.
            start: None for the start of one that came up after `begin`.
            stop: an offset that `reach` gave.
        """
        ...


class Reached(dict[str, Offset]):
    """What `reach` may return instead of a plain dictionary: it says besides how much is left.

    Attributes:
        left: how many items are there behind these offsets, in all partitions. Metrics of jobs show it.
    """

    def __init__(self, offsets: Mapping[str, Offset], left: int) -> None:
        super().__init__(offsets)
        self.left = left


@runtime_checkable
class Streamable(Protocol[T_co]):
    """A source that ends when another program ends it, such as a connection; others leave it out."""

    def as_stream(self) -> StreamSource[T_co]:
        """Return the same items as a source without an end.

        Jobs that run in epochs read that in its place, so that they give results before the end. It may be asked anew
        in each run, and needs not give again what was read.
        """
        ...


@runtime_checkable
class Ending(Protocol):
    """A source that may end; others leave it out.

    Attributes:
        ends: nothing will come once `reach` leaves out every partition: all windows close then, and a job completes
            whose sources have all ended. Without it, an empty result means that there is nothing now.
    """

    @property
    def ends(self) -> bool: ...


@runtime_checkable
class OffsetShowing(Protocol):
    """A source whose offsets say little by themselves; others leave it out."""

    def shown_offset(self, offset: Offset) -> str:
        """Return an offset for the tables of a job, such as `byte 4096`."""
        ...


@runtime_checkable
class Identified(Protocol):
    """A source that knows what its offsets belong to; others leave it out.

    Attributes:
        identity: a text, or texts by the names of the parts of which some may come up later, as topics do. A job that
            went on with the offsets of one map in another of the same name would leave items out, so it refuses a
            source that has another identity than the one it has read, or another one of a part that it has read. It is
            asked for when a run of a job begins, when partitions come up, and once in some seconds while there are
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
    """A source that knows the time at which each item happened, though the item does not say it; others leave it out.

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
