"""Runs an operator epoch by epoch, as engines do: partials travel pickled, and state moves between processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cloudpickle

from dstream.spi.epochs import EpochTime, ShardState, StateOperator
from dstream.values.time import NO_WATERMARK, Late, Timed

__all__ = ["ELSEWHERE", "KEPT", "LOADED", "PATCHED", "Running"]

KEPT, LOADED, PATCHED = "kept", "loaded from a dump", "made of a dump and deltas"
ELSEWHERE = "kept by another worker, which has missed some deltas"


class Running:
    """An operator with its shards.

    Args:
        operator: it is pickled once.
        shards: how many there are.
        moving: says for an epoch and a shard where its state comes from; without it, the state is kept.
    """

    def __init__(self, operator: StateOperator, shards: int = 1, moving: Callable[[], str] = lambda: KEPT) -> None:
        self.operator: StateOperator = pickle.loads(cloudpickle.dumps(operator))
        self.watermark = NO_WATERMARK
        self.late = 0
        self.states: dict[int, ShardState] = {}
        self._shards = shards
        self._moving = moving
        self._epoch = 0
        self._saved: dict[int, tuple[bytes | None, int]] = {}
        self._deltas: dict[int, list[bytes]] = {}
        self._elsewhere: dict[int, tuple[ShardState, int]] = {}

    def epoch(self, tasks: Iterable[tuple[int, Sequence[Timed]]], watermark: int, now: float = 0.0) -> list[Timed]:
        """Run an epoch over the items of tasks, each with the number of its input; return what goes on."""
        self._epoch += 1
        moment = EpochTime(self._epoch, now, self.watermark, self.watermark)
        came: dict[int, list[tuple[int, Any]]] = {}
        for number, items in tasks:
            partials = self.operator.partial(number, iter(items), moment, self._shards)
            assert partials.items == len(items)
            self.late += partials.late
            for shard, partial in partials.of_shards.items():
                came.setdefault(shard, []).append((number, pickle.loads(pickle.dumps(partial))))
        waits = min((at for each in self.states.values() if (at := each.clock_deadline()) is not None), default=None)
        moment = EpochTime(self._epoch, now, self.watermark, watermark, clock_deadline=waits)
        woken = {shard for shard, state in self.states.items() if self._is_due(state, moment)}
        self.watermark = watermark
        return [out for shard in sorted(woken | set(came)) for out in self._apply(shard, came.get(shard, []), moment)]

    def results(self, tasks: Iterable[tuple[int, Sequence[Timed]]], watermark: int, now: float = 0.0) -> list[Any]:
        """Run an epoch, and return what goes on without timestamps and late items."""
        return [item for _, item in self.epoch(tasks, watermark, now) if not isinstance(item, Late)]

    def _is_due(self, state: ShardState, moment: EpochTime) -> bool:
        deadline, clock_deadline = state.deadline(), state.clock_deadline()
        return (deadline is not None and deadline <= moment.new) or (
            clock_deadline is not None and clock_deadline <= moment.now
        )

    def _apply(self, shard: int, partials: list[tuple[int, Any]], moment: EpochTime) -> list[Timed]:
        state = self.states[shard] = self._opened(shard)
        outputs = list(state.apply(partials, moment).outputs)
        delta = state.delta()
        if delta is not None:
            self._deltas[shard].append(pickle.dumps(delta))
        return outputs

    def _opened(self, shard: int) -> ShardState:
        """Return the state of a shard, made in one of the ways in which a worker gets it."""
        held, way, deltas = self.states.get(shard), self._moving(), self._deltas.setdefault(shard, [])
        if held is not None and way == KEPT:
            return held
        if held is not None and way == LOADED:
            self._saved[shard] = pickle.dumps(held.dump()), len(deltas)
        state, known = self._made(shard)
        if held is not None and way == ELSEWHERE:
            state, known = self._elsewhere.get(shard, (state, known))
            self._elsewhere[shard] = held, len(deltas)
        for delta in deltas[known:]:
            state.patch(pickle.loads(delta))
        return state

    def _made(self, shard: int) -> tuple[ShardState, int]:
        """Return a new state, loaded if there is a dump, and how many deltas that holds."""
        state = self.operator.new()
        snapshot, known = self._saved.get(shard, (None, 0))
        if snapshot is not None:
            state.load(pickle.loads(snapshot))
        return state, known
