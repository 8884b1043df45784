"""Vertices that aggregate over windows of event time, with the operators that windows of pipelines run.

An item belongs to its windows by its timestamp; a watermark closes those that end at or before it, sessions strictly
before. An item whose frame is closed is dropped, and counted in the log. What is open at the end of the items closes.
Early results come by the clock of the process; those of the second of two stages know the frames that have closed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dstream.core.processors.group_vertices import checked_keys, checked_operation
from dstream.core.processors.library_supplier import LibrarySupplier, shown_call
from dstream.core.processors.operator_processor import OperatorProcessor
from dstream.core.processors.taken_containers import of_containers, to_containers
from dstream.operators.frame_windows import FrameWindows
from dstream.operators.session_windows import SessionWindows
from dstream.spi import AggregateOperation
from dstream.spi.processor_suppliers import ProcessorMetaSupplier
from dstream.spi.state_operator import StateOperator
from dstream.stream.stream_arguments import function, kind_of, optional_function
from dstream.windows import FrameWindow, KeyedWindowResult, SessionWindow

__all__ = [
    "accumulate_by_frame",
    "aggregate_to_session_window",
    "aggregate_to_sliding_window",
    "combine_to_sliding_window",
]

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
    """Return what makes processors that emit the result of each tumbling or sliding window, for each key with items.

    Results of an earlier window come first.

    Args:
        keys: gives the key of an item, one function for each inbound edge; None: all items are one group.
        timestamps: gives the timestamp of an item in milliseconds, one function for each inbound edge.
        window: `tumbling(...)` or `sliding(...)`.
        operation: takes the items of each inbound edge as one input.
        to: takes (start, end, key, result), without keys (start, end, result), and makes what is emitted; None: a
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
    given = {"keys": keys, "timestamps": timestamps, "window": window, "operation": operation, "to": to}
    return _in_one_stage("aggregate_to_sliding_window", FrameWindow, FrameWindows, **given)


def accumulate_by_frame(
    *, keys: Functions, timestamps: Functions, window: FrameWindow, operation: Operation
) -> ProcessorMetaSupplier:
    """Return the first of two stages: what makes processors that emit the containers of each frame, for each key.

    A frame is the part of time by which the window moves. What is emitted is a `KeyedWindowResult` of the frame, with
    the container as its result: `combine_to_sliding_window` takes it, over an edge that is partitioned by
    `operator.attrgetter("key")`. When a snapshot is taken, what is open is emitted, so nothing has to be saved.

    Args:
        keys: gives the key of an item, one function for each inbound edge.
        timestamps: gives the timestamp of an item in milliseconds, one function for each inbound edge.
        window: that of the second stage.
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
    """Return the second stage: what makes processors that emit the result of each window, for each key with items.

    Args:
        window: `tumbling(...)` or `sliding(...)`, as in the first stage.
        operation: that of the `accumulate_by_frame` before it.
        to: takes (start, end, key, result), and makes what is emitted; None: a `KeyedWindowResult`.

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
    """Return what makes processors that emit the result of each session of each key.

    An item whose timestamp is below the watermark is dropped.

    Args:
        keys: gives the key of an item, one function for each inbound edge; None: all items are one group.
        timestamps: gives the timestamp of an item in milliseconds, one function for each inbound edge.
        window: `session(timeout)`.
        operation: takes the items of each inbound edge as one input; it has a `combine`.
        to: takes (start, end, key, result), without keys (start, end, result), and makes what is emitted; None: a
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
    given = {"keys": keys, "timestamps": timestamps, "window": window, "operation": operation, "to": to}
    return _in_one_stage("aggregate_to_session_window", SessionWindow, SessionWindows, **given)


def _in_one_stage(name: str, kind: type, make: Callable[..., StateOperator], **given: Any) -> ProcessorMetaSupplier:
    """Return the supplier of a vertex that has all that its windows need, for what its user gave.

    Args:
        name: of the function of the library.
        kind: of the window.
        make: makes what keeps the windows.
        given: keys, timestamps, window, operation and to.
    """
    checked = checked_operation(given["operation"], name)
    keys = None if given["keys"] is None else checked_keys(given["keys"], checked)
    windows = make(_of_kind(given["window"], kind, name), keys, checked, optional_function(given["to"], "to"))
    create = partial(OperatorProcessor, windows, _timestamps(given["timestamps"], checked))
    return LibrarySupplier(create, shown_call(name, **given), inputs=checked.arity)


def _of_kind(window: Any, kind: Any, name: str) -> Any:
    if not isinstance(window, kind):
        made_by = "tumbling(...) or sliding(...)" if kind is FrameWindow else "session(...)"
        raise TypeError(f"{name}: window must be what {made_by} makes, not {kind_of(window)}")
    return window


def _timestamps(timestamps: Any, operation: Operation) -> tuple[Callable[[Any], int], ...]:
    if callable(timestamps) or isinstance(timestamps, str):
        raise TypeError(f"timestamps must be a list with a function for each inbound edge, not {kind_of(timestamps)}")
    found = tuple(function(each, "a timestamp function") for each in timestamps)
    if len(found) != operation.arity:
        raise TypeError(
            f"{operation!r} has {operation.arity} inputs, and there are {len(found)} functions of timestamps"
        )
    return found


def _last_instant(frame: KeyedWindowResult[Any, Any]) -> int:
    """Return the timestamp of a frame: one that lies in it."""
    return frame.end - 1
