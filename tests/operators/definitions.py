"""What the operators that keep state mean, in plain Python: no shards, no partials, no deadlines.

Each takes epochs `(inputs, watermark at the end)`, where inputs are lists of partitions of items
`(timestamp, (key, number))`, and gives all that comes out. Only `same` says which keys are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dstream.values.time import END_OF_TIME, NO_WATERMARK, Late

Epochs = list[tuple[list[list[list[Any]]], int]]


def same(key: Any) -> str:
    """Return one text for all keys that are one, of those that the tests have."""
    return "1" if key == 1 else repr(key)


def arrivals(epochs: Epochs, timed: bool) -> Iterator[tuple[int, str, int, Any, int]]:
    """Give (epoch, what, input, item, timestamp) of every item, and of the watermark at the end of each epoch."""
    old = NO_WATERMARK
    for epoch, (inputs, watermark) in enumerate(epochs):
        for number, partitions in enumerate(inputs):
            for timestamp, item in (each for partition in partitions for each in partition):
                yield epoch, "late" if timed and timestamp < old else "item", number, item, timestamp
        old = watermark
        yield epoch, "end", 0, None, watermark


def rolling(epochs: Epochs) -> Iterator[Any]:
    """Every item becomes its key with the list of the numbers so far."""
    seen: dict[Any, list[int]] = {}
    for epoch, what, _, item, timestamp in arrivals(epochs, timed=False):
        if what == "item":
            key, number = item
            seen[same(key)] = seen.get(same(key), []) + [number]
            yield epoch, timestamp, (same(key), seen[same(key)])


def mapping(epochs: Epochs, ttl: int | None) -> Iterator[Any]:
    """Every item becomes its key with the numbers of its state; one that goes says so, in its last instant."""
    states: dict[Any, tuple[list[int], int]] = {}
    for epoch, what, _, item, timestamp in arrivals(epochs, timed=ttl is not None):
        if what == "late":
            yield epoch, timestamp, Late((same(item[0]), item[1]))
            continue
        key = None if item is None else same(item[0])
        for each in [key] if what == "item" else list(states):
            if each in states and ttl is not None and states[each][1] < timestamp - ttl:
                numbers, last = states.pop(each)
                told = last + ttl + 1 if timestamp == END_OF_TIME else timestamp
                yield epoch, last + ttl, (each, ["gone", *numbers, told])
        if what == "item":
            numbers, last = states.get(key, ([], timestamp))
            states[key] = numbers + [item[1]], max(last, timestamp)
            yield epoch, timestamp, (key, states[key][0])


def distinct(epochs: Epochs, within: int | None) -> Iterator[Any]:
    """Of each key the first item passes, and the next one that is `within` behind the last that passed."""
    passed: dict[Any, int] = {}
    for epoch, what, _, (key, number), timestamp in (each for each in arrivals(epochs, within is not None) if each[3]):
        item = same(key), number
        if what == "late":
            yield epoch, timestamp, Late(item)
        elif same(key) not in passed or (within is not None and timestamp - passed[same(key)] >= within):
            passed[same(key)] = timestamp
            yield epoch, timestamp, item


def joined(epochs: Epochs, before: int, after: int) -> Iterator[Any]:
    """All pairs of one key that are close enough, each in the epoch in which its second item comes."""
    sides: tuple[list[Any], list[Any]] = ([], [])
    for epoch, what, side, item, timestamp in arrivals(epochs, timed=True):
        if what == "late":
            yield epoch, timestamp, Late((same(item[0]), item[1]))
        elif what == "item":
            key, number = same(item[0]), item[1]
            for other_key, other, time in sides[1 - side]:
                left, right = (time, timestamp) if side else (timestamp, time)
                if other_key == key and left - before <= right <= left + after:
                    yield epoch, max(left, right), (key, (other, number) if side else (number, other))
            sides[side].append((key, number, timestamp))
