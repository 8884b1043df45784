"""Pipelines without an end by chance, and what they are given: epochs of items, readings of the clock, and restarts.

A program is plain values, so that it can be printed; the same seed makes it again. `endless_pipelines` makes a pipeline
of it and runs that, `endless_definition` says what must come out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

__all__ = ["BY_ITEM", "BY_KEY", "KINDS", "OF_COLUMNS", "UNKNOWN", "Cut", "Item", "Program", "Step", "program"]

KINDS = (
    "frames",
    "sessions",
    "co_frames",
    "co_sessions",
    "join_within",
    "distinct",
    "map_stateful",
    "filter_stateful",
    "flat_map_stateful",
    "rolling",
    "hash_join",
    "merge",
)
"""What is done behind timestamps, besides steps that take one item at a time."""
OF_COLUMNS = ("count", "all", "floats", "filtered", "nested")
"""Columnar form of the aggregate of a window."""
_SIMPLE = ("map", "filter", "flat_map", "other_key", "rebalance")
_NEED_ORDER = frozenset({"distinct", "map_stateful", "filter_stateful", "flat_map_stateful", "rolling"})
_INPUTS = {"co_frames": (2, 3), "co_sessions": (2, 3), "join_within": (2,), "merge": (2, 3)}
_KEYS = ["a", "a", "b", "b", "c", 1, 1.0, True, 2, None, float("nan"), ("a", float("nan")), (None, 1)]
_KEYS_OF_ONE_TYPE: list[list[Any]] = [
    [-(2**63), -1, -1, 0, 0, 1, 1, 2, 5, 2**40, 2**63 - 1, 7, 7],
    ["a", "a", "b", "b", "", "ä", "\U0001f600", "ab", "c", "c", "d", "e", "f"],
    [0.0, -2.5, 0.5, 0.5, 1.0, -1.0, float("nan"), float("nan"), float("inf"), 2.0, 2.0, 3.0, 4.0],
    [True, False] * 6 + [True],
]
"""Keys that columns take, as many as there are others."""
_PARTITIONS = 8
BY_ITEM, BY_KEY, UNKNOWN = "by item", "by key", "unknown"
"""Which items of a step have an order: all, those of each key, or none."""


class Item(NamedTuple):
    """What sources give; behind timestamps, items are pairs of key and value."""

    key: Any
    value: int
    timestamp: int


@dataclass(frozen=True, eq=False)
class Step:
    """A step of a program.

    Attributes:
        number: it is known by.
        kind: one of `KINDS`, one that takes an item at a time, or `stamp`.
        inputs: the steps before.
        given: to the method.
        order: which of its items have one.
    """

    number: int
    kind: str
    inputs: tuple[Step, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    order: str = BY_ITEM

    def __str__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{self.number} = {self.kind}({', '.join(str(each.number) for each in self.inputs)}; {named})"


@dataclass(frozen=True)
class Cut:
    """An epoch.

    Attributes:
        given: the items of each partition of each source.
        now: the reading of the clock.
        restarted: when another driver took the job over before; None: none did.
        lost: what an epoch before that was given which was never committed; None: there was none.
        moved: another worker runs it than the one before.
        ends: all sources end with it.
    """

    given: dict[int, dict[int, list[Item]]]
    now: float
    restarted: float | None = None
    lost: dict[int, dict[int, list[Item]]] | None = None
    moved: bool = False
    ends: bool = False


@dataclass(frozen=True, eq=False)
class Program:
    """Steps and epochs.

    Attributes:
        seed: makes it again.
        partitions: how many each source has at the start.
        bounded: the items of a source that ends.
        steps: in an order in which each stands behind its inputs.
        written: those whose items go to a sink.
        shards: of each state.
        snapshots: how many parts the state of a shard has before it is written as a whole; None: as it is usual.
        rows: how many items the blocks have in which sources give columns, in turns; 0 for items one by one.
    """

    seed: int
    partitions: list[int]
    bounded: list[Item]
    steps: list[Step]
    written: list[Step]
    cuts: list[Cut]
    shards: int
    snapshots: int | None
    rows: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        kept = f"{self.shards} shards, snapshots: {self.snapshots}, blocks of {self.rows}"
        lines = [f"seed {self.seed}, sources with {self.partitions} partitions, {kept}", *self.steps]
        written = f"written: {[step.number for step in self.written]}"
        return "\n".join(
            map(str, [*lines, f"bounded: {list(map(tuple, self.bounded))}", written, *map(_shown, self.cuts)])
        )


def _shown(cut: Cut) -> str:
    given, lost = (
        {s: {p: [*map(tuple, i)] for p, i in of.items()} for s, of in each.items()}
        for each in (cut.given, cut.lost or {})
    )
    return f"cut({given}, now={cut.now}, restarted={cut.restarted}, lost={lost}, moved={cut.moved}, ends={cut.ends})"


def program(seed: int, only: Sequence[str] = ()) -> Program:
    """Return the program of a seed.

    Args:
        seed: decides.
        only: kinds of steps besides those that take one item at a time; all by default.
    """
    return _Maker(seed, only or KINDS).program()


class _Maker:
    def __init__(self, seed: int, kinds: Sequence[str]) -> None:
        self._seed = seed
        self._kinds = kinds
        self._chance = Random(seed)
        self._unit = self._chance.choice([1, 1, 10])  # With 1, times that differ by 1 come often.
        self._ahead = self._chance.choice([[0, 0, 1, 1, 2, 15], [0, 0, 1, 1, 2, 15], [0, 1], [1]])
        self._behind = self._chance.choice([1, 4, 12])
        # Apart, so that what a seed means has not changed since sources have columns.
        self._apart = apart = Random(f"columns {seed}")
        self._rows = apart.choice([(0,), (1,), (4,), (50,), (0, 3), (5, 0, 0, 2)])
        self._of_columns = 0.0 if self._rows == (0,) else 0.7
        self._keys = _KEYS if self._rows == (0,) else apart.choice([_KEYS, *_KEYS_OF_ONE_TYPE])
        self._numbers = itertools.count()
        self._values = itertools.count()
        self._steps: list[Step] = []

    def program(self) -> Program:
        chance = self._chance
        partitions = [chance.choice([0, 1, 1, 2, 3, 8]) for _ in range(chance.choice([1, 1, 2, 3]))]
        bounded = list(self._items(chance.choice([0, 0, 5, 20]), self._unit * chance.randrange(-20, 20)))
        for source in range(len(partitions)):
            for _ in range(chance.choice([1, 1, 1, 2])):
                self._stamp(source)
        if bounded:
            self._stamp(-1)
        self._step(chance.choice(self._kinds))
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            self._step(chance.choice(self._kinds if chance.random() < 0.8 else _SIMPLE))
        read = {each for step in self._steps for each in step.inputs}
        # What nobody looks at is not run: a source that leads nowhere is none of the pipeline's.
        ends = [s for s in self._steps if s not in read and s.kind != "stamp"]
        ends += [s for s in self._steps if s in read and s.kind != "stamp" and chance.random() < 0.3]
        ends += [s for s in self._steps if s.kind == "stamp" and s not in read]
        cuts, shards, snapshots = self._cuts(partitions), chance.choice([1, 3, 8, 8]), chance.choice([None, 2, 100])
        return Program(self._seed, partitions, bounded, self._steps, ends, cuts, shards, snapshots, self._rows)

    # --------------------------------------------------------------------------------------------------------- steps

    def _stamp(self, source: int) -> None:
        chance = self._chance
        lag = self._unit * chance.choice([0, 0, 5, 20, 500]) + chance.choice([0, 0, 0, 1])
        policy, by = chance.choice(
            [
                ("lag", 0),
                ("lag", 0),
                ("delay", chance.choice([0.0, 0.5, 2.0])),
                ("wall clock", chance.choice([0.0, 0.25, 1.0])),
                ("lull", chance.choice([0.0, 0.25, 1.0])),
                ("last", 0),
            ]
        )
        given = {
            "source": source,
            "by": chance.choice(["fn", "fn", "fn", "moment", "ingestion"] + ["native"] * (source >= 0)),
            "filtered": chance.choice([0, 0, 0, 2, 3]),
            "policy": (policy, lag, by),
            "idle": chance.choice([0.0, 0.125, 0.5, 1.0, 60.0]),
        }
        if given["by"] == "native":
            given |= {"filtered": 0, "policy": ("lag", lag, 0), "idle": 60.0}
        elif given["by"] == "ingestion":
            given |= {"policy": ("lag", 0, 0), "idle": 60.0}
        self._add("stamp", (), given)

    def _step(self, kind: str) -> None:
        chance = self._chance
        count = chance.choice(_INPUTS.get(kind, (1,)))
        # What was made last is likelier, so that cascades come.
        pool = self._steps[-3:] * 2 + self._steps
        if kind in _NEED_ORDER:
            pool = [each for each in pool if each.order != UNKNOWN]
        inputs = tuple(chance.choice(pool) for _ in range(count)) if pool else ()
        if inputs:
            self._add(kind, inputs, *self._given(kind, inputs))

    def _given(self, kind: str, inputs: tuple[Step, ...]) -> tuple[dict[str, Any], str]:
        chance = self._chance
        orders = {each.order for each in inputs}
        order = orders.pop() if len(orders) == 1 else BY_KEY if orders == {BY_KEY, BY_ITEM} else UNKNOWN
        keyed = chance.random() < 0.7 or (kind == "distinct") or (kind in _NEED_ORDER and order != BY_ITEM)
        is_known = order == BY_ITEM or (keyed and order == BY_KEY)
        after = BY_KEY if keyed else BY_ITEM
        match kind:
            case "frames" | "co_frames":
                windows = [(10, 10), (7, 7), (30, 10), (12, 3), (6, 1), (4, 2)]
                size, by = (self._unit * length for length in chance.choice(windows))
                offset = chance.choice([0, 0, 0, by // 2, by - 1])
                ops = ["count", "sum", "sorted"] + ["list"] * 3 * is_known
                op = chance.choice([*ops, "not combined"]) if kind == "frames" and is_known else chance.choice(ops)
                if kind == "frames" and self._apart.random() < self._of_columns:
                    op = self._apart.choice(OF_COLUMNS)
                given = {"keyed": keyed, "size": size, "by": by, "offset": offset, "op": op, **self._early()}
                return given | {"to": chance.random() < 0.2, "late": chance.random() < 0.5}, after
            case "sessions" | "co_sessions":
                op = chance.choice(["count", "sum", "sorted"])
                given = {
                    "keyed": keyed,
                    "timeout": chance.choice([1, *self._lengths(1, 5, 20)]),
                    "op": op,
                    **self._early(),
                }
                return given | {"to": chance.random() < 0.2, "late": chance.random() < 0.5}, after
            case "join_within":
                lengths = [0, *self._lengths(0, 1, 5, 20)]
                return {"before": chance.choice(lengths), "after": chance.choice(lengths)}, UNKNOWN
            case "distinct":
                return {"within": chance.choice([None, *self._lengths(0, 5, 40)])}, BY_KEY
            case "rolling":
                return {"keyed": keyed, "op": chance.choice(["count", "sum", "list"])}, after
            case "map_stateful" | "filter_stateful" | "flat_map_stateful":
                ttl = chance.choice([None, *self._lengths(0, 5, 40)])
                return {"keyed": keyed, "ttl": ttl, "evicts": ttl is not None and chance.random() < 0.7}, after
            case "hash_join":
                right = [(chance.choice(self._keys), f"right {n}") for n in range(chance.randrange(6))]
                return {"right": right, "inner": chance.random() < 0.5, "refresh": chance.choice([None, 0.5])}, order
            case "other_key":
                return {}, order if order == BY_ITEM else UNKNOWN
            case "merge" | "rebalance":
                return {}, UNKNOWN
        return {}, order

    def _lengths(self, *units: int) -> list[int]:
        return [self._unit * each for each in units]

    def _early(self) -> dict[str, Any]:
        return {"early": self._chance.choice([None, None, 0.25, 1.0])}

    def _add(self, kind: str, inputs: tuple[Step, ...], given: dict[str, Any], order: str = BY_ITEM) -> None:
        self._steps.append(Step(next(self._numbers), kind, inputs, given, order))

    # -------------------------------------------------------------------------------------------------------- epochs

    def _items(self, count: int, time: int) -> Iterator[Item]:
        """Give items that are roughly in order, whose times are often those at which windows begin and end."""
        chance = self._chance
        for _ in range(count):
            time += self._unit * chance.choice(self._ahead)
            at = time - self._unit * chance.randrange(self._behind) + chance.choice([0, 0, 0, 0, 3, -1, 1])
            yield Item(chance.choice(self._keys), next(self._values), at)

    def _cuts(self, partitions: list[int]) -> list[Cut]:
        chance, count = self._chance, self._chance.randint(2, 10)
        times, now = [self._unit * chance.choice([0, 0, 0, -50, 70]) for _ in partitions], 0.0
        follows = chance.random() < 0.3  # Time in the events goes as fast as the clock.
        names = [chance.choices(range(_PARTITIONS), k=chance.randint(1, 4)) for _ in partitions]
        cuts: list[Cut] = []
        for number in range(count):
            restarted = None
            if number and chance.random() < 0.3:
                restarted = now = now + chance.choice([0, 0, 0.25, 1])
            now += chance.choice([0, 0.125, 0.125, 0.25, 0.5, 1.0])
            given: dict[int, dict[int, list[Item]]] = {}
            for source in range(len(partitions)):
                time = max(times[source], int(now * 1000)) if follows else times[source]
                items = list(self._items(chance.choice([0, 0, 1, 4, 12]), time))
                times[source] = max([times[source], *(each.timestamp for each in items)])
                for item in items:
                    given.setdefault(source, {}).setdefault(chance.choice(names[source]), []).append(item)
            ends = number == count - 1 and chance.random() < 0.7
            cuts.append(Cut(given, now, restarted, None, chance.random() < 0.4, ends))
        return [self._with_loss(cut, after) for cut, after in zip(cuts, [*cuts[1:], cuts[-1]], strict=True)]

    def _with_loss(self, cut: Cut, after: Cut) -> Cut:
        """Return the same, behind an epoch that was lost with the driver, which had its items or those behind."""
        if cut.restarted is None or self._chance.random() < 0.5:
            return cut
        return replace(cut, lost=self._chance.choice([cut, after]).given)
