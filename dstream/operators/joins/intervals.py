"""`IntervalJoin`: pairs of items of two inputs with equal keys and close timestamps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dstream.keys import canonical_all
from dstream.operators.state.items import ItemsByKey, late_ones, partials_by_key, rows
from dstream.operators.state.keys import DumpedKeys, KeyStates
from dstream.spi.epochs import EpochTime, ShardOutput, ShardState, TaskPartials
from dstream.values.time import NO_WATERMARK, Timed

__all__ = ["IntervalJoin"]


@dataclass(frozen=True, slots=True)
class IntervalJoin:
    """Join that emits `(left, right)` for items of one key with timestamps `left - before <= right <= left + after`.

    The join is inner: an item without a partner emits nothing. The timestamp of a pair is the later one of its items.
    An item before the watermark of both inputs together, at the start of the epoch, is late. An item is dropped when
    the watermark at the end of an epoch has passed its last possible partner: `watermark > left + after`, and
    `watermark > right + before`.

    Order: items are processed in the order of (epoch, input, partition of the source, offset), the left input first.
    Each item emits its pairs with all partners processed before it, by the timestamps of the partners, and in the order
    of processing for equal timestamps. If no item is late, the set of pairs does not depend on the ends of epochs.

    Attributes:
        left_key: returns the key of an item of the left input.
        right_key: returns the key of an item of the right input.
        before: the maximum milliseconds of the right item before the left one.
        after: the maximum milliseconds of the right item after the left one.
        gives_late: late items of both inputs are emitted as `Late`.
    """

    kind = "interval_join"
    inputs = 2

    left_key: Callable[[Any], Any]
    right_key: Callable[[Any], Any]
    before: int
    after: int
    gives_late: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return the durations that decide when items are dropped."""
        return self.before, self.after

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Send the items of one input, in order, to the shards of their keys."""
        key = self.right_key if number else self.left_key
        return partials_by_key(key, items, shards, moment.old, self.gives_late)

    def new(self) -> ShardState:
        """Return the empty state of a shard."""
        return _WaitingItems(self.before, self.after)


class _Waiting(NamedTuple):
    """The buffered items of one key and one input, by timestamp and order of arrival."""

    timestamps: list[int]
    items: list[Any]

    def add(self, timestamp: int, item: Any) -> None:
        place = bisect_right(self.timestamps, timestamp)
        self.timestamps.insert(place, timestamp)
        self.items.insert(place, item)

    def drop(self, before: int) -> None:
        place = bisect_left(self.timestamps, before)
        del self.timestamps[:place], self.items[:place]

    def copied(self) -> _Waiting:
        return _Waiting(self.timestamps.copy(), self.items.copy())

    def between(self, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """Return the (timestamp, item) pairs with timestamps from `first` to `last`, both inclusive."""
        start = bisect_left(self.timestamps, first)
        stop = bisect_right(self.timestamps, last)
        return zip(self.timestamps[start:stop], self.items[start:stop], strict=True)


_Sides = tuple[_Waiting, _Waiting]


@dataclass(slots=True)
class _Arrived:
    """The input of a shard, as columns, and the watermark of the items to forget: the delta of a join."""

    watermark: int = NO_WATERMARK
    inputs: list[int] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)

    def add(self, number: int, key: Any, timestamp: int, item: Any) -> None:
        self.inputs.append(number)
        self.keys.append(key)
        self.timestamps.append(timestamp)
        self.items.append(item)

    def rows(self) -> Iterator[tuple[int, Any, int, Any]]:
        return zip(self.inputs, canonical_all(self.keys), self.timestamps, self.items, strict=True)

    def waiting(self, reaches: tuple[int, int]) -> _Arrived:
        """Return the input without the items that are forgotten already."""
        found = _Arrived(self.watermark)
        for number, key, timestamp, item in self.rows():
            if timestamp + reaches[number] >= self.watermark:
                found.add(number, key, timestamp, item)
        return found


class _WaitingItems(KeyStates[_Sides]):
    """The items of both inputs, by key, that may still get a partner.

    A delta contains the items that arrived, not all buffered items of their keys: a key may have many.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__(self._next_drop)
        self._reaches = (after, before)
        """The maximum time of a partner after an item, for each input."""
        self._arrived = _Arrived()

    def _next_drop(self, sides: _Sides) -> int:
        pairs = zip(sides, self._reaches, strict=True)
        return 1 + min(waiting.timestamps[0] + reach for waiting, reach in pairs if waiting.timestamps)

    def apply(self, partials: Sequence[tuple[int, Any]], moment: EpochTime) -> ShardOutput:
        return ShardOutput(self._outputs(partials, moment.new))

    def _outputs(self, partials: Sequence[tuple[int, ItemsByKey]], watermark: int) -> Iterator[Timed]:
        for number, partial in partials:
            yield from self._paired(number, partial)
            yield from late_ones(partial)
        # After all inputs: an item of the second input may be the partner of an item that this watermark removes.
        self._drop(watermark)

    def _paired(self, number: int, partial: ItemsByKey) -> Iterator[Timed]:
        ahead, behind = self._reaches[1 - number], self._reaches[number]
        for key, timestamp, item in rows(partial):
            others = self._take(number, key, timestamp, item)
            for time, other in others.between(timestamp - ahead, timestamp + behind):
                yield max(time, timestamp), (other, item) if number else (item, other)

    def _take(self, number: int, key: Any, timestamp: int, item: Any) -> _Waiting:
        """Buffer an item, and return the items of the other input."""
        self._arrived.add(number, key, timestamp, item)
        return self._add(number, key, timestamp, item)[1 - number]

    def _add(self, number: int, key: Any, timestamp: int, item: Any) -> _Sides:
        sides = self._states.get(key)
        if sides is None:
            sides = self._states[key] = (_Waiting([], []), _Waiting([], []))
        sides[number].add(timestamp, item)
        # An item is forgotten when the watermark is beyond its last partner, not at it.
        self._deadlines.note(key, timestamp + self._reaches[number] + 1)
        return sides

    def _drop(self, watermark: int) -> None:
        """Drop the items that cannot get a partner any more."""
        for key in self._deadlines.passed(watermark):
            sides = self._states[key]
            for waiting, reach in zip(sides, self._reaches, strict=True):
                waiting.drop(watermark - reach)
            if not sides[0].timestamps and not sides[1].timestamps:
                del self._states[key]
            self._arrived.watermark = watermark

    def to_disk(self) -> bool:
        """Return False: items are buffered no longer than the bounds of the join, and are read by their time."""
        return False

    def delta(self) -> Any | None:
        """Return the items that arrived, and up to where items were forgotten."""
        arrived, self._arrived = self._arrived, _Arrived()
        if not arrived.keys and arrived.watermark == NO_WATERMARK:
            return None
        # Items that arrived and were dropped within one epoch need not be written.
        return arrived.waiting(self._reaches)

    def patch(self, delta: Any) -> None:
        """Apply a delta: add the items that arrived, and remove the items that were dropped."""
        arrived: _Arrived = delta
        for number, key, timestamp, item in arrived.rows():
            self._add(number, key, timestamp, item)
        self._drop(arrived.watermark)
        # `_drop` has recorded the watermark as a change, but it is part of the delta.
        self._arrived = _Arrived()

    def dump(self) -> Any:
        """Return all keys with lists of the buffered items; items are shared, since they are not changed."""
        sides = [(left.copied(), right.copied()) for left, right in self._states.values()]
        return DumpedKeys(list(self._states), sides)

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Yield the keys with the buffered items: two lists of (timestamp, item), of the left and the right input."""
        for key, (left, right) in self._states.items():
            yield key, (list(zip(*left, strict=True)), list(zip(*right, strict=True)))
