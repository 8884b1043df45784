"""Windows over bounded input: one container of all windows of a key, finished at the end.

Definitions, containers and results are those of windows over unbounded data, whose watermark has reached the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from dstream.operators.windows.buffers import EMPTY, FrameBuffer, Session, Slide, inside_of, joined
from dstream.operators.windows.results import WindowOutput, copies_of
from dstream.plan.steps import PairFunction
from dstream.plan.timestamps import InstantOf
from dstream.spi import AggregateOperation, Collector, InColumns
from dstream.values.time import END_OF_TIME
from dstream.windows import FrameWindow, SessionWindow, Window

__all__ = ["BoundedFrames", "BoundedSessions", "bounded_windows"]


Frames: TypeAlias = dict[int, Any]
"""Containers of one key by the end of their frame."""

# Not None, which may be a container.
_MISSING: Any = object()


def bounded_windows(
    window: Window, operation: AggregateOperation[Any, Any, Any], timestamp: InstantOf, is_keyed: bool
) -> BoundedFrames | BoundedSessions:
    """Return the windows of one key.

    Args:
        window: the definition of the windows.
        operation: aggregates the items of a window; it has one input.
        timestamp: returns the timestamp of an item in milliseconds.
        is_keyed: whether results contain their key.

    Raises:
        TypeError: the operation has no `combine`, which sessions need when an item joins them.
        ValueError: the window emits early results.
    """
    if window.early is not None:
        raise ValueError(f"{window!r}: early results are of windows that are open, and items that end leave none open")
    output = WindowOutput(operation, None, is_keyed)
    if isinstance(window, FrameWindow):
        return BoundedFrames(window, operation, timestamp, output)
    if operation.combine is None:
        raise TypeError(f"{operation!r} has no combine, and sessions become one when an item joins them")
    return BoundedSessions(window, operation, timestamp, output)


@dataclass(frozen=True)
class _EndOfFrame:
    """Function that returns the end of the frame of an item.

    Attributes:
        fn: the user's function, which returns the timestamp.
        window: the definition of the frames.
    """

    fn: Callable[[Any], Any]
    window: FrameWindow

    around: ClassVar[PairFunction] = "end_of_frame"

    def __call__(self, item: Any) -> int:
        """Return it."""
        return self.window.higher_frame(InstantOf(self.fn)(item))


def _in_columns(end: _EndOfFrame, collector: Collector[Any, Any, Any]) -> InColumns | None:
    """Return the frames of a key as the groups within a group that they are."""
    known = collector.on_columns()
    if known is None or not known.makes_containers:
        return None
    return InColumns("groups", of=end, downstream=replace(known, supplier=known.supplier or collector.supplier))


class BoundedFrames:
    """Tumbling and sliding windows of one key.

    Attributes:
        operation: creates the container of a key.
    """

    def __init__(
        self,
        window: FrameWindow,
        operation: AggregateOperation[Any, Any, Any],
        timestamp: InstantOf,
        output: WindowOutput,
    ) -> None:
        self._window = window
        self._inner = operation
        self._collector = operation.on_input(0)
        self._timestamp = timestamp
        self._output = output
        end = _EndOfFrame(timestamp.fn, window)
        self.operation: Collector[Any, Frames, Frames] = Collector(
            dict,
            self._accumulate,
            self._combine,
            in_columns=_in_columns(end, self._collector),
            functions=(("timestamp", end), *self._collector.functions),
        )

    def results(self, key: Any, frames: Frames) -> list[Any]:
        """Return the results of a key, in the order of time."""
        if self._window.is_tumbling:
            return self._output.last_of_key(self._window.size, key, frames)
        return list(self._sliding(key, frames))

    def _accumulate(self, frames: Frames, item: Any) -> None:
        collector, end = self._collector, self._window.higher_frame(self._timestamp(item))
        container = frames.get(end, _MISSING)
        if container is _MISSING:
            container = frames[end] = collector.create()
        following = collector.accumulates[0](container, item)
        if following is not None:
            frames[end] = following

    def _combine(self, frames: Frames, later: Frames) -> None:
        for end, container in later.items():
            before = frames.get(end, _MISSING)
            frames[end] = container if before is _MISSING else self._collector.combined(before, container)

    def _sliding(self, key: Any, frames: Frames) -> Iterator[Any]:
        window, held = self._window, FrameBuffer(self._collector)
        held.load({end: {key: container} for end, container in frames.items()})
        slide = Slide(window.size, window.by, inside_of(False, self._collector, copies_of(self._inner)))
        # The end of time closes all windows: each with items is emitted once.
        for end, groups in slide.windows(held, held.ends[0], END_OF_TIME):
            yield self._output.passing(end - window.size, end, key, groups[key])


class BoundedSessions:
    """The sessions of one key.

    Attributes:
        operation: creates the container of a key.
    """

    def __init__(
        self,
        window: SessionWindow,
        operation: AggregateOperation[Any, Any, Any],
        timestamp: InstantOf,
        output: WindowOutput,
    ) -> None:
        self._timeout = window.timeout
        self._collector = operation.on_input(0)
        self._timestamp = timestamp
        self._output = output
        self.operation: AggregateOperation[Any, list[Session], list[Session]] = AggregateOperation(
            list, self._accumulate, self._combine
        )

    def results(self, key: Any, sessions: list[Session]) -> list[Any]:
        """Return the results of a key, in the order of time."""
        return [self._output.last(start, end, key, container) for start, end, container in sessions]

    def _accumulate(self, sessions: list[Session], item: Any) -> None:
        collector, start = self._collector, self._timestamp(item)
        session = joined(sessions, start, start + self._timeout, collector.combined)
        # `joined` makes a session without a container, which only the collector can make.
        if session[2] is EMPTY:
            session[2] = collector.create()
        following = collector.accumulates[0](session[2], item)
        if following is not None:
            session[2] = following

    def _combine(self, sessions: list[Session], later: list[Session]) -> None:
        combined = self._collector.combined
        for start, end, container in later:
            session = joined(sessions, start, end, combined)
            session[2] = container if session[2] is EMPTY else combined(session[2], container)
