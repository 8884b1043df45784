"""`OperatorProcessor`: runs an operator of windows, as pipelines do, for the items between two watermarks."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.core.block_processor import BlockProcessor
from dstream.core.processors.saving import Saving
from dstream.spi.processor import SHARDS, BroadcastKey, Inbox, ShardKey, Watermark
from dstream.spi.state_operator import Moment, ShardState, StateOperator
from dstream.values.blaming import each
from dstream.values.event_time import END_OF_TIME, NO_WATERMARK, Timed

__all__ = ["OperatorProcessor"]

_WATERMARK = BroadcastKey("watermark")
_AT_ONCE = 16384
"""So many items wait before they are reduced, if no watermark comes."""


class OperatorProcessor(BlockProcessor):
    """Gathers items, and lets an operator see those between two watermarks as one epoch.

    Args:
        operator: makes and keeps the state.
        timestamps: gives the timestamp of an item, a function for each inbound edge.
        hands_over: what has not closed is emitted, and not saved, when a snapshot is taken: another vertex combines it.
        clock: gives the seconds by which early results come.
    """

    def __init__(
        self,
        operator: StateOperator,
        timestamps: tuple[Callable[[Any], int], ...],
        hands_over: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._operator = operator
        self._timestamps = timestamps
        self._hands_over = hands_over
        self._clock = clock
        self._early_at: float | None = None
        self._waiting: list[list[Timed]] = [[] for _ in timestamps]
        self._states: dict[int, ShardState] = {}
        self._watermark = NO_WATERMARK
        self._epoch = 0
        self._saving = Saving()

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        """Let the items wait for a watermark; if there are many, the operator reduces them."""
        waiting = self._waiting[ordinal]
        waiting.extend(zip(each(self._timestamps[ordinal], items), items, strict=True))
        return () if len(waiting) < _AT_ONCE else self._until(self._watermark)

    def tick(self) -> bool:
        """Emit early results, if it is time for them."""
        if not self.emit_what_waits():
            return False
        if self._early_at is None or self._clock() < self._early_at:
            return True
        return self.emit(self._until(self._watermark))

    def try_process_watermark(self, watermark: Watermark) -> bool:
        """Emit the windows that it closes."""
        return self._passes(watermark.timestamp)

    def complete(self) -> bool:
        """Emit all windows that are left."""
        return self._passes(END_OF_TIME)

    def _passes(self, watermark: int) -> bool:
        if not self.emit_what_waits():
            return False
        return watermark <= self._watermark or self.emit(self._until(watermark))

    def _until(self, watermark: int) -> Iterator[Any]:
        """Let the operator take what waits, and time move; give the results in the order of their windows."""
        self._epoch += 1
        now = self._clock()
        moment = Moment(self._epoch, now, self._watermark, watermark, clock_deadline=self._early_at)
        came = self._came(moment)
        is_early = self._early_at is not None and self._early_at <= now
        due = {shard for shard, state in self._states.items() if is_early or _is_due(state, watermark)}
        for shard in came:
            if shard not in self._states:
                self._states[shard] = self._operator.new()
        self._watermark = watermark
        applied = [self._states[shard].apply(came.get(shard, []), moment) for shard in sorted(due | came.keys())]
        return self._items(heapq.merge(*(each.outputs for each in applied), key=_timestamp))

    def _items(self, outputs: Iterator[Timed]) -> Iterator[Any]:
        """Give what goes on; the operator works while it is consumed."""
        for _, item in outputs:
            yield item
        self._look_for_early()

    def _look_for_early(self) -> None:
        deadlines = (state.clock_deadline() for state in self._states.values())
        self._early_at = min((each for each in deadlines if each is not None), default=None)

    def _came(self, moment: Moment) -> dict[int, list[tuple[int, Any]]]:
        """Return what waits as partials of the operator, by shard; then nothing waits."""
        found: dict[int, list[tuple[int, Any]]] = {}
        late = 0
        for number, waiting in enumerate(self._waiting):
            if waiting:
                partials = self._operator.partial(number, iter(waiting), moment, SHARDS)
                late += partials.late
                for shard, partial in partials.of_shards.items():
                    found.setdefault(shard, []).append((number, partial))
        self._waiting = [[] for _ in self._timestamps]
        if late:
            self._context.logger.info("%d items came behind the watermark %d, and were dropped", late, moment.old)
        return found

    def save_to_snapshot(self) -> bool:
        """Save the state of each shard, or emit all of it."""
        if not self.emit_what_waits():
            return False
        if any(self._waiting) and not self.emit(self._until(self._watermark)):
            return False
        if self._hands_over and self._states and not self.emit(self._left_open()):
            return False
        return self._saving.goes_on(self._outbox, self._entries)

    def _left_open(self) -> Iterator[Any]:
        watermark = self._watermark
        given = self._until(END_OF_TIME)
        self._watermark, self._states = watermark, {}
        return given

    def _entries(self) -> Iterator[tuple[Any, Any]]:
        yield _WATERMARK, self._watermark
        for shard, state in self._states.items():
            if len(state):
                yield ShardKey(shard), state.dump()

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        """Take the states back."""
        for key, value in inbox:
            if key == _WATERMARK:
                self._watermark = value
            else:
                state = self._states[key.shard] = self._operator.new()
                state.load(value)
        self._look_for_early()


def _is_due(state: ShardState, watermark: int) -> bool:
    deadline = state.deadline()
    return deadline is not None and deadline <= watermark


def _timestamp(timed: Timed) -> int:
    timestamp = timed[0]
    assert timestamp is not None, "windows give what has a timestamp"
    return timestamp
