"""Runs an operator over epochs as a job does, but for tasks and files: with pickles, shards, and states made again."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle

from dstream.spi.epochs import EpochTime, ShardState, StateOperator
from dstream.values.time import NO_WATERMARK, Timed
from tests.operators.definitions import same

Partitions = list[list[Timed]]
"""The items of one input in an epoch, by the partitions of the source."""

KEPT, DUMPED, PATCHED = "kept", "dumped", "patched"


class ByHand:
    """An operator with its shards; each call of `epoch` is an epoch.

    Args:
        operator: travels pickled to each task.
        shards: how many there are.
        fate: says after each epoch, for each shard, what the next one finds: the same object, one that was loaded from
            a dump, or one that was loaded from a dump of earlier and patched with all deltas since.
    """

    def __init__(self, operator: StateOperator, shards: int = 1, fate: Callable[[], str] = lambda: KEPT) -> None:
        self.operator, self.shards, self.fate = operator, shards, fate
        self.number, self.watermark, self.late = 0, NO_WATERMARK, 0
        self.states = [operator.new() for _ in range(shards)]
        self.dumps = [pickle.dumps(state.dump()) for state in self.states]
        self.deltas: list[list[bytes]] = [[] for _ in range(shards)]
        self.opened: list[int] = []

    def epoch(self, *inputs: Partitions, to: int | None = None) -> list[Timed]:
        """Run an epoch that moves the watermark up to `to`, and return what it gives, shard by shard."""
        self.number += 1
        new = self.watermark if to is None else to
        partials = self._partials(inputs)
        moment = EpochTime(self.number, 0.0, self.watermark, new)
        self.watermark, self.opened = new, []
        return [timed for shard in range(self.shards) for timed in self._applied(shard, partials, moment)]

    def _partials(self, inputs: tuple[Partitions, ...]) -> list[tuple[int, dict[int, Any]]]:
        early, found = EpochTime(self.number, 0.0, self.watermark, self.watermark), []
        for number, partitions in enumerate(inputs):
            for items in partitions:
                partials = pickle.loads(cloudpickle.dumps(self.operator)).partial(
                    number, iter(items), early, self.shards
                )
                assert partials.items == len(items)
                self.late += partials.late
                found.append((number, pickle.loads(pickle.dumps(dict(partials.of_shards)))))
        return found

    def _applied(self, shard: int, partials: list[tuple[int, dict[int, Any]]], moment: EpochTime) -> list[Timed]:
        state, come = self.states[shard], [(number, of[shard]) for number, of in partials if shard in of]
        deadline = state.deadline()
        if not come and (deadline is None or deadline > moment.new):
            return []
        self.opened.append(shard)
        applied = state.apply(come, moment)
        outputs = list(applied.outputs)
        self.late += applied.late
        self._staged(shard, state)
        return outputs

    def _staged(self, shard: int, state: ShardState) -> None:
        delta, fate = state.delta(), self.fate()
        assert state.delta() is None
        if delta is not None:
            self.deltas[shard].append(pickle.dumps(delta))
        if fate == DUMPED:
            self.dumps[shard], self.deltas[shard] = pickle.dumps(state.dump()), []
        if fate != KEPT:
            self.states[shard] = self.again(shard)
            assert shown(self.states[shard]) == shown(state)

    def again(self, shard: int) -> ShardState:
        """Return the state of a shard as another process makes it."""
        state = self.operator.new()
        state.load(pickle.loads(self.dumps[shard]))
        for delta in self.deltas[shard]:
            state.patch(pickle.loads(delta))
        return state

    def last_delta(self, shard: int = 0) -> Any:
        """Return what changed in the last epoch that touched a shard, as it was written."""
        return pickle.loads(self.deltas[shard][-1])

    def entries(self) -> dict[Any, Any]:
        """Return all keys with their states."""
        return {key: held for state in self.states for key, held in state.entries()}


def shown(state: ShardState) -> tuple[Any, ...]:
    """Return all of a state that can be seen."""
    return sorted(repr((same(key), held)) for key, held in state.entries()), state.deadline(), len(state)
