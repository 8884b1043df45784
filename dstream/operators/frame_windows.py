"""`FrameWindows`: aggregates the items of tumbling and sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.operators.arrivals import Arrivals
from dstream.operators.frame_partials import partial_frames
from dstream.operators.frame_state import FrameState
from dstream.operators.independent_copies import copies_of
from dstream.operators.window_arguments import check_keys, signature_of
from dstream.operators.window_output import WindowOutput
from dstream.spi import AggregateOperation
from dstream.spi.state_operator import Moment, Partials
from dstream.values.event_time import Timed
from dstream.windows import FrameWindow

__all__ = ["FrameWindows"]


@dataclass(frozen=True, slots=True)
class FrameWindows:
    """The result of the items of each window, when the watermark reaches its end, for each key that has any.

    Results have the last instant of their window as timestamp. An item is late when the watermark at the start of its
    epoch has reached the end of its frame, also where windows that hold it are still open.

    Args:
        window: which windows.
        keys: gives the key of an item, one function for each input; None: all items are one group.
        operation: takes the items of each input. Without `combine`, all items are kept until their windows close.
        to: takes (start, end, result), or (start, end, key, result) where there are keys, and makes what goes on;
            None: a `WindowResult` or `KeyedWindowResult`.
        gives_late: late items go on, as `(timestamp, Late(item))`.

    Raises:
        TypeError: there is not one key function for each input.
    """

    window: FrameWindow
    keys: tuple[Callable[[Any], Any], ...] | None
    operation: AggregateOperation[Any, Any, Any]
    to: Callable[..., Any] | None = None
    gives_late: bool = False

    kind = "window"

    def __post_init__(self) -> None:
        check_keys(self.keys, self.operation)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What state depends on."""
        offset = (self.window.offset,) if self.window.offset else ()
        return (self.window.size, self.window.by, *offset, *signature_of(self.keys, self.operation))

    @property
    def inputs(self) -> int:
        """One for each input of the operation."""
        return self.operation.arity

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Accumulate the items of one task by shard, frame and key."""
        key = None if self.keys is None else self.keys[number]
        arrivals = Arrivals(items, key, self.window.floor_frame(moment.old), self.gives_late)
        return partial_frames(arrivals, self.window, self.operation.on_input(number), shards, key is not None)

    def new(self) -> FrameState:
        """Return the state of a shard without items."""
        output = WindowOutput(self.operation, self.to, self.keys is not None)
        return FrameState(self.window, self.operation.on_input(0), output, copies_of(self.operation))
