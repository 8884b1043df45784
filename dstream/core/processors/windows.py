"""Vertices that aggregate over windows of event time, by the operators of pipelines.

An item belongs to its windows by its timestamp; a watermark closes those that end at or before it, sessions strictly
before. An item whose frame is closed is dropped, and counted in the log. What is open at the end of the items closes.
Early results are emitted by the clock of the process; those of the second of two stages have the frames that have
closed.
"""

from __future__ import annotations

import heapq
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from dstream.arguments import checked_function, kind_of, optional_function
from dstream.core.block_processor import SavingProcessor
from dstream.core.processors.groups import checked_keys, checked_operation, of_containers, to_containers
from dstream.core.suppliers import LibrarySupplier, shown_call
from dstream.failures.attribution import each
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi import AggregateOperation
from dstream.spi.epochs import EpochTime, ShardState, StateOperator
from dstream.spi.processor import SHARDS, BroadcastKey, Inbox, ShardKey, Watermark
from dstream.spi.suppliers import ProcessorMetaSupplier
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Timed
from dstream.windows import FrameWindow, KeyedWindowResult, SessionWindow

__all__ = [
    "OperatorProcessor",
    "accumulate_by_frame",
    "aggregate_to_session_window",
    "aggregate_to_sliding_window",
    "combine_to_sliding_window",
]


_WATERMARK = BroadcastKey("watermark")
_AT_ONCE = 16384
"""The most items that are buffered before they are reduced, if no watermark arrives."""


class OperatorProcessor(SavingProcessor):
    """A processor around an operator, which sees the items between two watermarks as one epoch.

    Args:
        operator: creates and stores the state.
        timestamps: returns the timestamp of an item, a function for each inbound edge.
        hands_over: open windows are emitted, and not saved, when a snapshot is taken: another vertex combines it.
        clock: returns the seconds by which early results are emitted.
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

    def made_of(self, ordinal: int, items: list[Any]) -> Iterable[Any]:
        """Buffer the items until a watermark; if there are many, the operator reduces them."""
        pending = self._waiting[ordinal]
        pending.extend(zip(each(self._timestamps[ordinal], items), items, strict=True))
        return () if len(pending) < _AT_ONCE else self._until(self._watermark)

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
        """Make the operator process buffered items, and advance time; yield results in the order of their windows."""
        self._epoch += 1
        now = self._clock()
        moment = EpochTime(self._epoch, now, self._watermark, watermark, clock_deadline=self._early_at)
        came = self._came(moment)
        is_early = self._early_at is not None and self._early_at <= now
        # Most shards have nothing to do at a watermark, and their deadlines show that without a look at their windows.
        due = {shard for shard, state in self._states.items() if is_early or _is_due(state, watermark)}
        for shard in came:
            if shard not in self._states:
                self._states[shard] = self._operator.new()
        self._watermark = watermark
        applied = [self._states[shard].apply(came.get(shard, []), moment) for shard in sorted(due | came.keys())]
        # Each shard emits its results in the order of time, so the merged results have that order, too.
        return self._items(heapq.merge(*(each.outputs for each in applied), key=_timestamp))

    def _items(self, outputs: Iterator[Timed]) -> Iterator[Any]:
        """Yield the output; the operator works while it is consumed."""
        for _, item in outputs:
            yield item
        # After the outputs: the operator works while they are consumed.
        self._look_for_early()

    def _look_for_early(self) -> None:
        deadlines = (state.clock_deadline() for state in self._states.values())
        self._early_at = min((each for each in deadlines if each is not None), default=None)

    def _came(self, moment: EpochTime) -> dict[int, list[tuple[int, Any]]]:
        """Return the pending items as partials of the operator, by shard, and clear them."""
        found: dict[int, list[tuple[int, Any]]] = {}
        late = 0
        for number, pending in enumerate(self._waiting):
            if pending:
                partials = self._operator.partial(number, iter(pending), moment, SHARDS)
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
        # Items that wait are in no state yet, and only states are saved.
        if any(self._waiting) and not self.emit(self._until(self._watermark)):
            return False
        if self._hands_over and self._states and not self.emit(self._left_open()):
            return False
        return super().save_to_snapshot()

    def _left_open(self) -> Iterator[Any]:
        # Time has ended for the snapshot alone: later items are judged by the watermark as it was.
        watermark = self._watermark
        given = self._until(END_OF_TIME)
        self._watermark, self._states = watermark, {}
        return given

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Yield the watermark, and the state of each shard."""
        yield _WATERMARK, self._watermark
        for shard, state in self._states.items():
            # An empty shard is made again by its first item.
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


Operation = AggregateOperation[Any, Any, Any]
Functions = Sequence[Callable[[Any], Any]]


def aggregate_to_sliding_window(
    *,
    keys: Functions | None = None,
    timestamps: Functions,
    window: FrameWindow,
    operation: Operation,
    to: Callable[..., Any] | None = None,
) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the result of each tumbling or sliding window, for each key with items.

    Results of an earlier window are emitted first.

    Args:
        keys: returns the key of an item, one function for each inbound edge; None: all items are one group.
        timestamps: returns the timestamp of an item in milliseconds, one function for each inbound edge.
        window: `tumbling(...)` or `sliding(...)`.
        operation: takes the items of each inbound edge as one input.
        to: takes (start, end, key, result), without keys (start, end, result), and returns the output; None: a
            `KeyedWindowResult` or `WindowResult`.

    Raises:
        TypeError: one of these is of another kind, or there are more or fewer functions than inputs.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> from dstream.windows import tumbling
        >>> processors.aggregate_to_sliding_window(timestamps=[whole_item], window=tumbling(10), operation=counting())
        aggregate_to_sliding_window(timestamps=[whole_item], window=tumbling(10), operation=counting())
    """
    arguments = {"keys": keys, "timestamps": timestamps, "window": window, "operation": operation, "to": to}
    return _in_one_stage("aggregate_to_sliding_window", FrameWindow, FrameWindows, **arguments)


def accumulate_by_frame(
    *, keys: Functions, timestamps: Functions, window: FrameWindow, operation: Operation
) -> ProcessorMetaSupplier:
    """Return the first of two stages: a supplier of processors that emit the containers of each frame, for each key.

    A frame is the part of time by which the window moves. What is emitted is a `KeyedWindowResult` of the frame, with
    the container as its result: `combine_to_sliding_window` takes it, over an edge that is partitioned by
    `operator.attrgetter("key")`. When a snapshot is taken, what is open is emitted, so nothing has to be saved.

    Args:
        keys: returns the key of an item, one function for each inbound edge.
        timestamps: returns the timestamp of an item in milliseconds, one function for each inbound edge.
        window: the window of the second stage.
        operation: takes the items of each inbound edge as one input; it has a `combine`.

    Raises:
        TypeError: one of these is of another kind, there are more or fewer functions than inputs, or the operation has
            no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> from dstream.windows import sliding
        >>> processors.accumulate_by_frame(
        ...     keys=[len], timestamps=[int], window=sliding(10, by=5), operation=counting()
        ... )
        accumulate_by_frame(keys=[len], timestamps=[int], window=sliding(10, by=5), operation=counting())
    """
    name = "accumulate_by_frame"
    checked = to_containers(checked_operation(operation, name), name)
    frame = _of_kind(window, FrameWindow, name).of_frames()
    windows = FrameWindows(frame, checked_keys(keys, checked), checked, KeyedWindowResult)
    create = partial(OperatorProcessor, windows, _timestamps(timestamps, checked), hands_over=True)
    shown = shown_call(name, keys=keys, timestamps=timestamps, window=window, operation=operation)
    return LibrarySupplier(create, shown, inputs=checked.arity)


def combine_to_sliding_window(
    *, window: FrameWindow, operation: Operation, to: Callable[..., Any] | None = None
) -> ProcessorMetaSupplier:
    """Return the second stage: a supplier of processors that emit the result of each window, for each key with items.

    Args:
        window: `tumbling(...)` or `sliding(...)`, as in the first stage.
        operation: the operation of the `accumulate_by_frame` vertex upstream.
        to: takes (start, end, key, result), and returns the output; None: a `KeyedWindowResult`.

    Raises:
        TypeError: one of these is of another kind, or the operation has no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors
        >>> from dstream.windows import sliding
        >>> processors.combine_to_sliding_window(window=sliding(10, by=5), operation=counting())
        combine_to_sliding_window(window=sliding(10, by=5), operation=counting())
    """
    name = "combine_to_sliding_window"
    checked = of_containers(checked_operation(operation, name), operator.attrgetter("result"), name)
    keys = (operator.attrgetter("key"),)
    windows = FrameWindows(_of_kind(window, FrameWindow, name), keys, checked, optional_function(to, "to"))
    create = partial(OperatorProcessor, windows, (_last_instant,))
    return LibrarySupplier(create, shown_call(name, window=window, operation=operation, to=to), inputs=checked.arity)


def aggregate_to_session_window(
    *,
    keys: Functions | None = None,
    timestamps: Functions,
    window: SessionWindow,
    operation: Operation,
    to: Callable[..., Any] | None = None,
) -> ProcessorMetaSupplier:
    """Return a supplier of processors that emit the result of each session of each key.

    An item whose timestamp is below the watermark is dropped.

    Args:
        keys: returns the key of an item, one function for each inbound edge; None: all items are one group.
        timestamps: returns the timestamp of an item in milliseconds, one function for each inbound edge.
        window: `session(timeout)`.
        operation: takes the items of each inbound edge as one input; it has a `combine`.
        to: takes (start, end, key, result), without keys (start, end, result), and returns the output; None: a
            `KeyedWindowResult` or `WindowResult`.

    Raises:
        TypeError: one of these is of another kind, there are more or fewer functions than inputs, or the operation has
            no `combine`.

    Example:
        >>> from collectors import counting
        >>> from dstream.core import processors, whole_item
        >>> from dstream.windows import session
        >>> processors.aggregate_to_session_window(timestamps=[whole_item], window=session(10), operation=counting())
        aggregate_to_session_window(timestamps=[whole_item], window=session(10), operation=counting())
    """
    arguments = {"keys": keys, "timestamps": timestamps, "window": window, "operation": operation, "to": to}
    return _in_one_stage("aggregate_to_session_window", SessionWindow, SessionWindows, **arguments)


def _in_one_stage(name: str, kind: type, make: Callable[..., StateOperator], **arguments: Any) -> ProcessorMetaSupplier:
    """Return the supplier of a vertex with all that its windows need, by its user's arguments.

    Args:
        name: of the function of the library.
        kind: of the window.
        make: makes what keeps the windows.
        arguments: keys, timestamps, window, operation and to.
    """
    checked = checked_operation(arguments["operation"], name)
    keys = None if arguments["keys"] is None else checked_keys(arguments["keys"], checked)
    windows = make(_of_kind(arguments["window"], kind, name), keys, checked, optional_function(arguments["to"], "to"))
    create = partial(OperatorProcessor, windows, _timestamps(arguments["timestamps"], checked))
    return LibrarySupplier(create, shown_call(name, **arguments), inputs=checked.arity)


def _of_kind(window: Any, kind: Any, name: str) -> Any:
    if not isinstance(window, kind):
        made_by = "tumbling(...) or sliding(...)" if kind is FrameWindow else "session(...)"
        raise TypeError(f"{name}: window must be what {made_by} makes, not {kind_of(window)}")
    return window


def _timestamps(timestamps: Any, operation: Operation) -> tuple[Callable[[Any], int], ...]:
    if callable(timestamps) or isinstance(timestamps, str):
        raise TypeError(f"timestamps must be a list with a function for each inbound edge, not {kind_of(timestamps)}")
    found = tuple(checked_function(each, "a timestamp function") for each in timestamps)
    if len(found) != operation.arity:
        raise TypeError(
            f"{operation!r} has {operation.arity} inputs, and there are {len(found)} functions of timestamps"
        )
    return found


def _last_instant(frame: KeyedWindowResult[Any, Any]) -> int:
    """Return the timestamp of a frame: one that lies in it."""
    return frame.end - 1
