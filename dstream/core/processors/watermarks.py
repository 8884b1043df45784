"""`insert_watermarks`: watermarks of event time among the items."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from dstream.arguments import checked_function, kind_of
from dstream.core.block_processor import SavingProcessor
from dstream.core.suppliers import LibrarySupplier, shown_call
from dstream.failures.attribution import each, failed_on
from dstream.processors.blocks import Mark
from dstream.spi.epochs import WatermarkPolicy, policy_as_planned, watermark_of
from dstream.spi.processor import BroadcastKey, Inbox, Outbox, ProcessorContext, Watermark
from dstream.spi.suppliers import ProcessorMetaSupplier
from dstream.values.time import NO_WATERMARK, seconds
from dstream.windows.policies import EmissionPolicy, no_throttling

__all__ = ["insert_watermarks"]


_LAST = BroadcastKey("watermark")


def insert_watermarks(
    *,
    timestamps: Callable[[Any], int],
    policy: WatermarkPolicy,
    emission: EmissionPolicy | None = None,
    idle_timeout: float | timedelta = 60,
    clock: Callable[[], float] = time.time,
) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit all items, and watermarks among them.

    A watermark is emitted before the item that moved time. Late items are emitted too: the step that closes windows
    drops them. A snapshot has the last watermark, and the policy with what it has seen. The idle timeout starts anew
    when it is restored.

    Args:
        timestamps: returns the timestamp of an item, in milliseconds.
        policy: computes the watermark, such as `limiting_lag(2000)`; each processor uses its own copy.
        emission: which watermarks are emitted; None: `no_throttling()`.
        idle_timeout: the seconds without an item after which an idle processor no longer holds the watermark back,
            until an item arrives; 0: it always does.
        clock: returns the current time in seconds, for the policy and the timeout.

    Raises:
        TypeError: one of these is of another kind.
        ValueError: the timeout is negative.

    Example:
        >>> from dstream.core import processors, whole_item
        >>> from dstream.windows import emit_by_min_step, limiting_lag
        >>> stamped = processors.insert_watermarks(
        ...     timestamps=whole_item, policy=limiting_lag(100), emission=emit_by_min_step(10)
        ... )
    """
    checked_function(timestamps, "timestamps")
    checked_function(clock, "clock")
    if not isinstance(policy, WatermarkPolicy):
        raise TypeError(f"policy must be what limiting_lag(...) or its kin make, not {kind_of(policy)}")
    chosen = no_throttling() if emission is None else checked_function(emission, "emission")
    create = partial(_Inserting, timestamps, policy, chosen, seconds(idle_timeout, "idle_timeout"), clock)
    return LibrarySupplier(create, shown_call("insert_watermarks", timestamps=timestamps, policy=policy))


class _Inserting(SavingProcessor):
    @property
    def ticks_alone(self) -> bool:  # type: ignore[override]  # asked after each epoch, and never set
        """Return whether time may move by the clock: until nothing has arrived for the idle timeout."""
        return not self._is_idle

    def __init__(
        self,
        timestamps: Callable[[Any], int],
        policy: WatermarkPolicy,
        emission: EmissionPolicy,
        idle_timeout: float,
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self._timestamps = timestamps
        self._policy = copy.deepcopy(policy)
        self._emission = emission
        self._idle_timeout = idle_timeout
        self._clock = clock
        self._last = NO_WATERMARK
        self._received_at = 0.0
        self._is_idle = False

    def init(self, outbox: Outbox, context: ProcessorContext) -> None:
        super().init(outbox, context)
        self._received_at = self._clock()

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        now = self._received_at = self._clock()
        self._is_idle = False
        policy, greatest = self._policy, NO_WATERMARK
        tells_all = not getattr(policy, "greatest_only", False)
        made: list[Any] = []
        for timestamp, item in zip(self._stamps(items), items, strict=True):  # A failure finds the item by this name.
            if timestamp > greatest or tells_all:  # Other policies need only the greatest timestamp.
                greatest = timestamp
                policy.report(timestamp, now)
                made += self._moved(now)
            made.append(item)
        return made

    def _stamps(self, items: list[Any]) -> list[int]:
        stamps = each(self._timestamps, items)
        if set(map(type, stamps)) != {int}:
            for stamp, item in zip(stamps, items, strict=True):
                if not isinstance(stamp, int):
                    error = TypeError(f"timestamps must give milliseconds as int, not {kind_of(stamp)}")
                    failed_on(error, item)
                    raise error
        return stamps

    def _moved(self, now: float) -> list[Watermark]:
        """Return the watermark that is to be emitted, if there is one."""
        watermark = watermark_of(self._policy, now)
        if watermark <= self._last:
            return []
        chosen = self._emission(watermark, self._last)
        if chosen <= self._last:
            return []
        self._last = chosen
        return [Watermark(chosen)]

    def tick(self) -> bool:
        """Advance time by the clock."""
        if not self.emit_what_waits():
            return False
        if self._is_idle:
            return True
        now = self._clock()
        moved: list[Any] = [*self._moved(now)]
        if self._idle_timeout and now - self._received_at >= self._idle_timeout:
            self._is_idle = True
            moved.append(Mark.IDLE)
        return self.emit(moved)

    def entries(self) -> Iterator[tuple[Any, Any]]:
        # A copy: the policy changes before the snapshot is pickled.
        yield _LAST, (self._last, copy.deepcopy(self._policy))

    def restore_from_snapshot(self, inbox: Inbox) -> None:
        for _, (watermark, policy) in inbox:
            self._last = watermark
            self._policy = policy_as_planned(copy.deepcopy(policy), self._policy)
