"""What a pipeline without an end gives, in plain Python: how far time comes in each step, and what each step means.

All items of an epoch come, then time goes on. What windows and states are is said in `tests.operators`; here is how
time follows from partitions, policies and the clock, and how steps stand behind each other. Nothing here has tasks,
shards or files, and nothing is forgotten.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.values.time import END_OF_TIME, NO_WATERMARK, Late
from tests.differential.endless_programs import Item, Program, Step
from tests.differential.endless_words import as_number, farewell, more, other_key, passes, said, several, weight
from tests.operators import definitions
from tests.operators.definition_of_windows import Epoch, Event, frame_windows, session_windows

__all__ = ["Expected", "Same", "expected"]

Timed = list[tuple[int, Any]]
"""Timestamps and items, in order."""


@dataclass
class Expected:
    """What must come of a program.

    Attributes:
        results: by the number of the step and the epoch, the items that it gives.
        late: the same of items that came too late.
        clock: of the job after each epoch.
    """

    results: dict[int, list[list[Any]]]
    late: dict[int, list[list[Any]]]
    clock: list[int | None]


class Same:
    """A key, equal to all that are one key with it; it has no order and is no text."""

    def __init__(self, key: Any) -> None:
        self.text = repr(key) if isinstance(key, Same) else definitions.same(key)

    @classmethod
    def named(cls, text: str) -> Same:
        """Return the key with this text."""
        made = cls(None)
        made.text = text
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


# ---------------------------------------------------------------------------------------------------------------- time


@dataclass
class _Partition:
    """The time of one partition of a source, by what has been seen of it.

    Attributes:
        heard_at: when it was found, when the driver began, or when it last gave an event, whichever is last.
        events: (reading of the clock, timestamp).
    """

    policy: tuple[str, int, float]
    idle: float
    heard_at: float
    watermark: int = NO_WATERMARK
    is_idle: bool = False
    has_ended: bool = False
    events: list[tuple[float, int]] = field(default_factory=list)

    def pass_epoch(self, timestamps: Sequence[int], now: float, ends: bool) -> None:
        self.events += [(now, timestamp) for timestamp in timestamps]
        if timestamps:
            self.heard_at = now
        self.watermark = END_OF_TIME if ends else max(self.watermark, self._of_policy(now))
        self.is_idle = not timestamps and self.idle > 0 and now - self.heard_at >= self.idle
        self.has_ended = ends

    def _of_policy(self, now: float) -> int:
        """Return how far time has come; it may go back."""
        name, lag, by = self.policy
        behind = max((timestamp for _, timestamp in self.events), default=NO_WATERMARK + lag) - lag
        if name == "wall clock":
            return max(behind, math.floor((now - by) * 1000))
        if not self.events:
            return NO_WATERMARK
        if name == "delay":
            return max([behind, *(timestamp for at, timestamp in self.events if at + by <= now)])
        if name == "lull":
            return behind + max(0, math.floor((now - self.events[-1][0] - by) * 1000))
        return self.events[-1][1] - lag if name == "last" else behind


class _Times:
    """The partitions of the stage that gives timestamps, by name; `watermark` is of those that hold time back."""

    def __init__(self, step: Step, partitions: int, started_at: float) -> None:
        self._policy, self._idle = step.given["policy"], step.given["idle"]
        self.partitions = {number: self._found(started_at) for number in range(partitions)}
        self._nobody = self._found(started_at)  # Time waits for a source that has no partitions yet.

    def _found(self, now: float) -> _Partition:
        return _Partition(self._policy, self._idle, now)

    def pass_epoch(self, timestamps: dict[int, list[int]], now: float, ends: bool) -> None:
        for number in timestamps:
            self.partitions.setdefault(number, self._found(now))
        for number, partition in self.partitions.items():
            if not partition.has_ended:
                partition.pass_epoch(timestamps.get(number, ()), now, ends)
        self._nobody.is_idle = 0 < self._idle <= now - self._nobody.heard_at
        self._nobody.has_ended = ends

    def restart(self, now: float) -> None:
        for partition in (*self.partitions.values(), self._nobody):
            partition.heard_at = max(partition.heard_at, now)

    def all(self) -> list[_Partition]:
        return list(self.partitions.values()) or [self._nobody]


def _step_watermark(old: int, partitions: Iterable[_Partition]) -> int:
    """Return the least watermark of those that hold time back; where none does, the greatest that one has reached."""
    going = [each for each in partitions if not each.has_ended]
    if not going:
        return END_OF_TIME
    waited_for = [each.watermark for each in going if not each.is_idle]
    return max(old, min(waited_for) if waited_for else max(each.watermark for each in going))


# --------------------------------------------------------------------------------------------------------------- steps


class _Meaning:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.results: dict[int, list[Timed]] = {}
        self.late: dict[int, list[list[Any]]] = {}
        self.stamped: dict[int, list[dict[int, list[tuple[int, Item]]]]] = {
            step.number: [self._stamped(step, epoch) for epoch in range(len(program.cuts))]
            for step in program.steps
            if step.kind == "stamp"
        }
        self.stamps = {step.number: self._stamps(step) for step in program.steps}
        self.watermarks, self.clock = self._time()

    def all(self) -> Expected:
        for step in self.program.steps:
            self.results[step.number] = _MEANINGS[step.kind](self, step)
        shown = {number: [[item for _, item in each] for each in found] for number, found in self.results.items()}
        return Expected(shown, self.late, self.clock)

    def _stamped(self, step: Step, epoch: int) -> dict[int, list[tuple[int, Item]]]:
        """Return the items of each partition in an epoch, with timestamps; a partition that was named is found."""
        cut, source = self.program.cuts[epoch], step.given["source"]
        given = ({0: self.program.bounded} if epoch == 0 else {}) if source < 0 else cut.given.get(source, {})
        every = step.given["filtered"]
        return {
            partition: [
                (int(cut.now * 1000) if step.given["by"] == "ingestion" else item.timestamp, item)
                for item in given[partition]
                if not every or item.value % every
            ]
            for partition in sorted(given)
        }

    def _stamps(self, step: Step) -> set[int]:
        if step.kind == "stamp":
            return {step.number}
        return {stamp for each in step.inputs for stamp in self._stamps(each)}

    def _time(self) -> tuple[dict[int, list[tuple[int, int]]], list[int | None]]:
        """Return the watermarks of each step before and after each epoch, and the clock of the job after it."""
        program = self.program
        times = {
            step.number: _Times(
                step, 0 if step.given["source"] < 0 else program.partitions[step.given["source"]], program.cuts[0].now
            )
            for step in program.steps
            if step.kind == "stamp"
        }
        watermarks: dict[int, list[tuple[int, int]]] = {step.number: [] for step in program.steps}
        clocks: list[int | None] = []
        for epoch, cut in enumerate(program.cuts):
            for step in (each for each in program.steps if each.kind == "stamp"):
                if cut.restarted is not None:
                    times[step.number].restart(cut.restarted)
                timestamps = {
                    name: [timestamp for timestamp, _ in items]
                    for name, items in self.stamped[step.number][epoch].items()
                }
                times[step.number].pass_epoch(timestamps, cut.now, cut.ends or step.given["source"] < 0)
            for number, stamps in self.stamps.items():
                old = watermarks[number][-1][1] if epoch else NO_WATERMARK
                partitions = [each for stamp in stamps for each in times[stamp].all()]
                watermarks[number].append((old, _step_watermark(old, partitions)))
            clocks.append(_clock(clocks[-1] if clocks else None, times.values()))
        return watermarks, clocks

    def epochs_of(self, step: Step) -> Iterator[tuple[list[Timed], int, int, float]]:
        """Give for each epoch what comes from each input, the watermark before and after it, and the clock."""
        for epoch, cut in enumerate(self.program.cuts):
            old, new = self.watermarks[step.number][epoch]
            yield [self.results[each.number][epoch] for each in step.inputs], old, new, cut.now


def _clock(before: int | None, times: Iterable[_Times]) -> int | None:
    counting = [
        each.watermark for some in times for each in some.partitions.values() if not (each.is_idle or each.has_ended)
    ]
    if not counting or min(counting) == NO_WATERMARK:
        return before
    return min(counting) if before is None else max(before, min(counting))


def _stamp(meaning: _Meaning, step: Step) -> list[Timed]:
    return [
        [(timestamp, (Same(item.key), item.value)) for items in of_epoch.values() for timestamp, item in items]
        for of_epoch in meaning.stamped[step.number]
    ]


def _one_by_one(fn: Callable[[Step, Any, Any], Iterable[Any]]) -> Callable[[_Meaning, Step], list[Timed]]:
    def means(meaning: _Meaning, step: Step) -> list[Timed]:
        return [
            [(timestamp, made) for some in inputs for timestamp, item in some for made in fn(step, *item)]
            for inputs, _, _, _ in meaning.epochs_of(step)
        ]

    return means


def _matches(step: Step, key: Any, value: Any) -> list[Any]:
    found = [match for other, match in step.given["right"] if Same(other) == key]
    return [(key, (value, match)) for match in found or [None] * (not step.given["inner"])]


def _windows(meaning: _Meaning, step: Step) -> list[Timed]:
    given, count = step.given, len(step.inputs)
    epochs = [
        Epoch(
            [_event(number, *each, given["keyed"]) for number, some in enumerate(inputs) for each in some],
            old,
            new,
            now,
        )
        for inputs, old, new, now in meaning.epochs_of(step)
    ]

    def reduction(items: list[tuple[int, Any]]) -> Any:
        of_inputs = ([value for number, (_, (_, value)) in items if number == each] for each in range(count))
        results = tuple(map(_RESULTS[given["op"]], of_inputs))
        return results[0] if count == 1 else results

    if "size" in given:
        results = frame_windows(epochs, given["size"], given["by"], reduction, given["offset"], given["early"])
    else:
        results = session_windows(epochs, given["timeout"], reduction, given["early"])
    meaning.late[step.number] = [[event.value for event in epoch.late] for epoch in epochs]
    behind = 1 if "size" in given else 0
    return [[(each.end - behind, _told(each, step)) for each in of_epoch] for of_epoch in results]


def _event(number: int, timestamp: int, item: Any, is_keyed: bool) -> Event:
    return Event(timestamp, repr(item[0]) if is_keyed else "", item, number)


def _told(result: Any, step: Step) -> Any:
    start, end, text, found, is_early = result
    key = Same.named(text) if step.given["keyed"] else Same(None)
    return key, (start, end, found) if step.given["to"] else (start, end, found, is_early)


_RESULTS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda values: sum(map(weight, values)),
    "sorted": lambda values: tuple(sorted(values, key=repr)),
    "list": tuple,
    "not combined": tuple,
    "all": lambda values: (len(values), sum(map(as_number, values)), sum(map(as_number, values)) / len(values)),
    "floats": lambda values: math.fsum(as_number(value) * 0.1 for value in values),
    "filtered": lambda values: sum(as_number(value) % 2 for value in values),
    "nested": lambda values: tuple(sorted(Counter(as_number(value) % 3 for value in values).items())),
}


def _by_epoch(meaning: _Meaning, step: Step, found: Iterable[tuple[int, int, Any]]) -> list[Timed]:
    """Return what a definition gives by epochs, and note what was late; only windows give late items to anybody."""
    results: list[Timed] = [[] for _ in meaning.program.cuts]
    late = meaning.late[step.number] = [[] for _ in meaning.program.cuts]
    for epoch, timestamp, item in found:
        if isinstance(item, Late):
            late[epoch].append(item.item)
        else:
            results[epoch].append((timestamp, (Same.named(item[0]), item[1])))
    return results


def _epochs(meaning: _Meaning, step: Step) -> definitions.Epochs:
    """Return what the definitions of states take; without a key, all items have the same."""
    keyed = step.given.get("keyed", True)
    return [
        ([[[(at, item if keyed else (Same(None), item[1])) for at, item in some]] for some in inputs], new)
        for inputs, _, new, _ in meaning.epochs_of(step)
    ]


def _joined(meaning: _Meaning, step: Step) -> list[Timed]:
    found = definitions.joined(_epochs(meaning, step), step.given["before"], step.given["after"])
    return _by_epoch(meaning, step, found)


def _distinct(meaning: _Meaning, step: Step) -> list[Timed]:
    return _by_epoch(meaning, step, definitions.distinct(_epochs(meaning, step), step.given["within"]))


def _rolling(meaning: _Meaning, step: Step) -> list[Timed]:
    result = _RESULTS[step.given["op"]]
    found = _by_epoch(meaning, step, definitions.rolling(_epochs(meaning, step)))
    return [[(at, (key, result(values))) for at, (key, values) in of_epoch] for of_epoch in found]


def _stateful(meaning: _Meaning, step: Step) -> list[Timed]:
    """Return what functions make of a state, which is a list of all values of its key."""

    def made(values: list[Any]) -> list[Any]:
        if values[0] != "gone":
            return said(step.kind, values)
        return farewell(step.kind, values[1:-1], values[-1]) if step.given["evicts"] else []

    found = _by_epoch(meaning, step, definitions.mapping(_epochs(meaning, step), step.given["ttl"]))
    return [[(at, (key, each)) for at, (key, values) in of_epoch for each in made(values)] for of_epoch in found]


_MEANINGS: dict[str, Callable[[_Meaning, Step], list[Timed]]] = {
    "stamp": _stamp,
    "map": _one_by_one(lambda step, key, value: [(key, more(value))]),
    "filter": _one_by_one(lambda step, key, value: [(key, value)] * passes(value)),
    "flat_map": _one_by_one(lambda step, key, value: [(key, each) for each in several(value)]),
    "other_key": _one_by_one(lambda step, key, value: [(Same(other_key(value)), value)]),
    "rebalance": _one_by_one(lambda step, key, value: [(key, value)]),
    "merge": _one_by_one(lambda step, key, value: [(key, value)]),
    "hash_join": _one_by_one(_matches),
    "frames": _windows,
    "sessions": _windows,
    "co_frames": _windows,
    "co_sessions": _windows,
    "join_within": _joined,
    "distinct": _distinct,
    "rolling": _rolling,
    "map_stateful": _stateful,
    "filter_stateful": _stateful,
    "flat_map_stateful": _stateful,
}


def expected(program: Program) -> Expected:
    """Return what must come of a program."""
    return _Meaning(program).all()
