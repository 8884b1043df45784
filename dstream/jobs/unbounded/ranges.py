"""`Range`: the input of one epoch from one partition, and the choice of ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, cast

from dstream.errors import SourceError
from dstream.failures import shown
from dstream.jobs.records import packed
from dstream.jobs.unbounded.log import SourceMark
from dstream.spi import Source, Split, StreamSource
from dstream.spi.source import Identity, Offset, TimedSplit

__all__ = [
    "BoundedAsStream",
    "EpochInput",
    "InRanges",
    "Range",
    "check_offsets",
    "identity_of",
    "no_items",
    "ranges_of",
    "with_times",
]


@dataclass(frozen=True, slots=True)
class InRanges:
    """The items of splits, as a bounded source; without a split it still has one task, in which time advances."""

    parts: tuple[Split[Any], ...]

    ordered = True
    bounded = True
    in_caller = False
    on_bad = "fail"
    into = None

    def splits(self, parallelism: int) -> Iterable[Split[Any]]:
        """Return one split for each range."""
        return self.parts

    def count_splits(self, parallelism: int) -> int:
        """Return their number."""
        return len(self.parts)


@dataclass(frozen=True, slots=True)
class _Empty:
    """A split of nothing."""

    def read(self) -> Iterator[Any]:
        return iter(())

    def read_past(self, misread: Any) -> Iterator[Any]:
        return iter(())


no_items = InRanges((_Empty(),))
"""The items where nothing is read."""


def with_times(items: Source[Any]) -> Source[Any]:
    """Return pairs of the time and the item of a range, from its splits."""
    return InRanges(tuple(_WithTimes(cast("TimedSplit[Any]", split)) for split in items.splits(1)))


@dataclass(frozen=True, slots=True)
class _WithTimes:
    """A split that yields pairs of the time and the item."""

    split: TimedSplit[Any]

    def read(self) -> Iterator[Any]:
        """Yield pairs."""
        return self.split.read_timed()


class Range(NamedTuple):
    """The range to read of one partition.

    Attributes:
        partition: its name.
        items: a bounded source.
        ends: no items will follow.
    """

    partition: str
    items: Source[Any]
    ends: bool = False


class EpochInput(NamedTuple):
    """The input of one epoch from a source, and the position of the source after it.

    Attributes:
        left: the number of items after that; None: unknown.
        expected: an estimate of that number; None: unknown.
    """

    ranges: Sequence[Range]
    mark: SourceMark
    left: int | None = 0
    expected: int | None = 0


@dataclass(frozen=True, slots=True)
class BoundedAsStream:
    """A bounded source read as a stream: one partition, in one range."""

    source: Source[Any]

    ends = True
    """True: the source ends, after which no items arrive."""

    @property
    def label(self) -> str:
        """The source, for messages."""
        return str(getattr(self.source, "label", self.source))

    def begin(self) -> Mapping[str, Offset]:
        """Return the only partition."""
        return {"all": 0}

    def reach(self, offsets: Mapping[str, Offset], most: int | None = None) -> Mapping[str, Offset]:
        """Return the end, without a backlog."""
        return {partition: 1 for partition, offset in offsets.items() if offset == 0}

    def split(self, partition: str, start: Offset, stop: Offset) -> Split[Any]:
        """Refuse: it is read as a whole, by one task per split."""
        raise AssertionError("a bounded source has its own splits")


def ranges_of(
    source: StreamSource[Any], mark: SourceMark, most: int | None, now: float = 0.0, keep: float = math.inf
) -> EpochInput:
    """Request the end of a source, and choose the ranges that an epoch reads.

    Args:
        source: an unbounded source, or a `BoundedAsStream`.
        mark: how far it has been read.
        most: the maximal number of items of each partition.
        now: the clock time.
        keep: seconds for which the offset of a partition that the source leaves out is retained.

    Raises:
        SourceError: items were removed before they were read, or an offset is no plain data.
    """
    if mark.has_ended:
        return EpochInput((), mark)
    found = source.reach(dict(mark.offsets), most)
    reached, left = dict(found), _backlog(found, "left", 0 if most is None else None)
    # It is read in one range by one task per split, and never polled again.
    if isinstance(source, BoundedAsStream):
        ranges: list[Range] = [Range(partition, source.source, ends=True) for partition in reached]
        return EpochInput(ranges, SourceMark({}, True, mark.found_at))
    changed = [partition for partition in _in_order(reached) if _has_news(partition, reached, mark.offsets)]
    check_offsets(source, {partition: reached[partition] for partition in changed})
    ranges = [Range(each, InRanges((source.split(each, mark.offsets.get(each), reached[each]),))) for each in changed]
    # Only a source with `ends` ends: files may be added to an empty folder.
    has_ended = not reached and bool(getattr(source, "ends", False))
    if has_ended:
        # Without its offsets: nothing will be read after them, and they would remain in each record.
        return EpochInput(ranges, SourceMark({}, True, mark.found_at))
    goes_on = _read_to(reached, mark, now, keep, _identity_after(source, mark, reached))
    return EpochInput(ranges, goes_on, left, _backlog(found, "expected", None) if left is None else left)


def _backlog(found: Mapping[str, Offset], name: str, otherwise: int | None) -> int | None:
    """Return a backlog of a source, which may be one of a user's and report anything."""
    items = getattr(found, name, None)
    if items is None:
        return otherwise
    return items if type(items) is int and items >= 0 else None


def _read_to(reached: dict[str, Offset], mark: SourceMark, now: float, keep: float, identity: Identity) -> SourceMark:
    """Return how far a source has been read then.

    A partition that is left out may be shown again, as a file that is renamed while the folder is listed: it resumes
        where it was, so that nothing is lost or read twice.
    """
    left_out = {name: mark.left_out.get(name, now) for name in mark.offsets if name not in reached}
    left_out = {name: since for name, since in left_out.items() if now - since < keep}
    offsets = {**{name: mark.offsets[name] for name in left_out}, **reached}
    return SourceMark(offsets, False, mark.found_at, left_out, identity)


def _identity_after(source: StreamSource[Any], mark: SourceMark, reached: Mapping[str, Offset]) -> Identity:
    """Return the identity of the source of offsets as it was when they were read: the next run compares with it."""
    before = mark.identity
    if not before:  # it had none yet
        return identity_of(source)
    if isinstance(before, str) or reached.keys() <= mark.offsets.keys():
        return before
    found = identity_of(source)
    return before if isinstance(found, str) else {**found, **before}


def identity_of(source: StreamSource[Any]) -> Identity:
    """Return the identity that the offsets of a source belong to; an empty string if it has none."""
    found = getattr(source, "identity", "")
    return {str(part): str(text) for part, text in found.items()} if isinstance(found, Mapping) else str(found)


def check_offsets(source: StreamSource[Any], offsets: Mapping[str, Offset]) -> None:
    """Refuse offsets that no record can contain, before anything is read.

    Raises:
        SourceError: an offset, or the name of a partition, is no plain data.
    """
    for partition, offset in offsets.items():
        try:
            packed((partition, offset))
        except Exception as error:  # msgpack has exceptions of its own
            where = f"the offset {shown(offset)} of the partition {partition!r}"
            raise SourceError(f"{source.label}: {where} is no plain data ({error!s:.200})") from error


def _has_news(partition: str, reached: Mapping[str, Offset], read: Mapping[str, Offset]) -> bool:
    """Return whether there is something to read. Tuples of a record may be read back as lists."""
    return partition not in read or _plain(reached[partition]) != _plain(read[partition])


def _plain(offset: Offset) -> Offset:
    return list(map(_plain, offset)) if isinstance(offset, list | tuple) else offset


def _in_order(partitions: Iterable[str]) -> list[str]:
    """Return partitions in natural order: 10 after 9."""
    return sorted(partitions, key=lambda name: (len(name) if name.isdigit() else 0, name))


def joined(ranges: Sequence[Range]) -> Source[Any]:
    """Return the items of all ranges of a source, one split for each partition."""
    if not ranges:
        return no_items
    if len(ranges) == 1:
        return ranges[0].items
    return InRanges(tuple(chain.from_iterable(each.items.splits(1) for each in ranges)))
