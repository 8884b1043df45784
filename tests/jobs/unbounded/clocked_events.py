"""Events that come with the clock and are a function of their place, and what a job must have made of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["FRAME", "LAG", "PARTITIONS", "Clocked", "Event", "Expected", "expected"]

PARTITIONS = 4
FRAME = 1000
"""Milliseconds of a window."""
LAG = 200
"""By how much an event is older than one before it in its partition, at most."""
_STEP = 7
"""Milliseconds from one event to the next, were they in order."""
_LARGE = 2_654_435_761


class Event(NamedTuple):
    """What happened.

    Attributes:
        place: the partition and the number there, which name it.
    """

    place: str
    key: str
    timestamp: int


def event(partition: int, number: int, keys: int) -> Event:
    """Return the event of a place."""
    mixed = (number * PARTITIONS + partition) * _LARGE % 2**32
    key, disorder = mixed % keys, mixed // keys % LAG
    return Event(f"{partition}.{number}", f"k{key}", number * _STEP + LAG - disorder)


@dataclass(frozen=True, slots=True)
class _Stretch:
    partition: int
    first: int
    stop: int
    keys: int

    def read(self) -> Iterator[Event]:
        return (event(self.partition, number, self.keys) for number in range(self.first, self.stop))


@dataclass(frozen=True)
class Clocked:
    """Partitions that grow with a clock, each a little slower than the one before, up to an end.

    Attributes:
        count: of events in each partition.
        keys: how many there are.
        rate: events of a partition in a second.
        born: what time it was when there were none.
        clock: says what time it is.
    """

    count: int
    keys: int
    rate: float
    born: float
    clock: Callable[[], float] = time.time
    label = "clocked()"
    ends = True

    def begin(self) -> Mapping[str, int]:
        """Begin with the first of each partition."""
        return {str(partition): 0 for partition in range(PARTITIONS)}

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Say how many there are now; a partition that was read to its end is left out."""
        return {name: self._reach(name, offset, most) for name, offset in offsets.items() if offset < self.count}

    def _reach(self, name: str, offset: int, most: int | None) -> int:
        there = int((self.clock() - self.born) * self.rate * (1 - int(name) / 100))
        reached = max(offset, min(self.count, there))
        return reached if most is None else min(reached, offset + most)

    def split(self, partition: str, start: int | None, stop: int) -> _Stretch:
        """Return a range."""
        return _Stretch(int(partition), start or 0, stop, self.keys)


class Expected(NamedTuple):
    """What the sinks must hold.

    Attributes:
        windows: counts by key and start of a window.
        totals: counts by key.
        places: all events, by their names.
        rolling: for each event, its key and how many of the key there were with it.
    """

    windows: dict[str, int]
    totals: dict[str, int]
    places: list[str]
    rolling: list[tuple[str, int]]


def expected(count: int, keys: int) -> Expected:
    """Return what sinks must hold once so many events of each partition have been read."""
    events = [event(partition, number, keys) for partition in range(PARTITIONS) for number in range(count)]
    windows = Counter(f"{each.key}@{each.timestamp // FRAME * FRAME}" for each in events)
    totals = Counter(each.key for each in events)
    rolling = [(key, number) for key, most in totals.items() for number in range(1, most + 1)]
    return Expected(dict(windows), dict(totals), sorted(each.place for each in events), sorted(rolling))
