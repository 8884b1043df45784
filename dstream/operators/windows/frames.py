"""`FrameWindows`: aggregation of tumbling and sliding windows, and the state that a watermark closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from dstream.keys.hashing import with_keys_of_this_process
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.windows.arrivals import Arrivals
from dstream.operators.windows.buffers import FrameBuffer, Frames, Slide, inside_of, partial_frames
from dstream.operators.windows.results import Copies, WindowOutput, WindowState, check_keys, copies_of, signature_of
from dstream.spi import AggregateOperation, Collector, InColumns
from dstream.spi.epochs import EpochTime, TaskPartials
from dstream.values.time import END_OF_TIME, Timed
from dstream.windows import FrameWindow

__all__ = ["FrameState", "FrameWindows"]


class FrameState(WindowState[Frames, FrameBuffer]):
    """The frames of one shard.

    Args:
        window: the definition of the windows.
        collector: the collector of the containers.
        output: creates the results.
        copies: copies containers.
    """

    def __init__(
        self, window: FrameWindow, collector: Collector[Any, Any, Any], output: WindowOutput, copies: Copies
    ) -> None:
        super().__init__(FrameBuffer(collector), window.early, output, copies)
        self._window = window
        self._collector = collector
        self._slide = self._new_slide()

    def dump(self) -> Any:
        """Return (watermark, next early results, containers by frame and key)."""
        copies = self._copies
        frames = {end: dict(zip(groups, copies(groups.values()), strict=True)) for end, groups in self._buffer.items()}
        return self._watermark, self._early.next, frames

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped."""
        self._watermark, self._early.next, frames = dumped
        self._buffer.load({end: with_keys_of_this_process(groups) for end, groups in frames.items()})

    def patch(self, delta: Any) -> None:
        """Become the state after an epoch."""
        self._watermark, self._early.next, frames = delta
        for end, groups in frames.items():
            self._buffer.put(end, with_keys_of_this_process(groups))
        self._buffer.drop(self._last_left())
        # The old slide has frames inside that the delta has replaced.
        self._slide = self._new_slide()

    def deadline(self) -> int | None:
        """Return the end of the next window that has items."""
        ends = self._buffer.ends
        return self._first_window(self._watermark) if ends else None

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Return each key with its containers by the ends of their frames."""
        return self._buffer.of_keys()

    def _take(self, found: Frames) -> None:
        for end, groups in found.items():
            self._buffer.take(end, with_keys_of_this_process(groups))
            self._has_changed = True

    def _has_items(self) -> bool:
        return bool(self._buffer.ends)

    def _outputs(self, moment: EpochTime) -> Iterator[Timed]:
        yield from self._closing(moment.old, moment.new)
        self._watermark = moment.new
        # Before the frames are dropped: the slide takes their containers out of the window.
        self._slide.leave(self._buffer, self._last_left())
        self._buffer.drop(self._last_left())
        if self._early.passes(moment) and self._buffer.ends:
            self._has_changed = True
            yield from self._still_open()
        # An empty shard has no period: it begins with the period of its next item.
        if not self._buffer.ends:
            self._early.next = None

    def _closing(self, old: int, new: int) -> Iterator[Timed]:
        if not self._buffer.ends:
            return
        give = self._output.last if self._window.is_tumbling else self._output.passing
        for end, groups in self._slide.windows(self._buffer, self._first_window(old), new):
            self._has_changed = True
            start = end - self._window.size
            for key, container in groups.items():
                yield end - 1, give(start, end, key, container)

    def _still_open(self) -> Iterator[Timed]:
        """Yield the early results of all windows that have items."""
        first = self._first_window(self._watermark)
        for end, groups in self._new_slide().windows(self._buffer, first, END_OF_TIME):
            start = end - self._window.size
            for key, container in groups.items():
                yield end - 1, self._output.passing(start, end, key, container, True)

    def _first_window(self, watermark: int) -> int:
        """Return the end of the first window that is open at a watermark and has items."""
        return max(self._buffer.ends[0], self._window.higher_frame(watermark))

    def _last_left(self) -> int:
        """Return the end of the last frame that is in no open window."""
        return self._window.higher_frame(self._watermark) - self._window.size

    def _new_slide(self) -> Slide:
        window = self._window
        return Slide(window.size, window.by, inside_of(window.is_tumbling, self._collector, self._copies))


@dataclass(frozen=True, slots=True)
class FrameWindows:
    """Operator that emits the result of each window and key with items, when the watermark reaches its end.

    Results have the last instant of their window as timestamp. An item is late when the watermark at the start of its
    epoch has reached the end of its frame, also if windows that contain it are still open.

    Args:
        window: the definition of the windows.
        keys: returns the key of an item, one function for each input; None: all items are one group.
        operation: aggregates the items of each input. Without `combine`, all items are buffered until their windows
            close.
        to: receives (start, end, result), or (start, end, key, result) with keys, and returns the emitted item;
            None: a `WindowResult` or `KeyedWindowResult`.
        gives_late: late items are emitted as `(timestamp, Late(item))`.
        in_columns: groups by the keys of each input, with the containers of a key, as far as columns support them;
            empty: the functions were not read.

    Raises:
        TypeError: there is not one key function for each input.
    """

    window: FrameWindow
    keys: tuple[Callable[[Any], Any], ...] | None
    operation: AggregateOperation[Any, Any, Any]
    to: Callable[..., Any] | None = None
    gives_late: bool = False
    in_columns: tuple[InColumns | None, ...] = ()

    kind = "window"

    def __post_init__(self) -> None:
        check_keys(self.keys, self.operation)

    @property
    def signature(self) -> tuple[Any, ...]:
        """Return the facts that the layout of state depends on."""
        offset = (self.window.offset,) if self.window.offset else ()
        return (self.window.size, self.window.by, *offset, *signature_of(self.keys, self.operation))

    @property
    def inputs(self) -> int:
        """Return the number of inputs of the operation."""
        return self.operation.arity

    def reductions(self) -> list[tuple[Callable[[Any], Any] | None, Collector[Any, Any, Any]]]:
        """Return for each input the key function, or None, and the collector of the items of a key."""
        keys = self.keys or (None,) * self.inputs
        return [(key, self.operation.on_input(number)) for number, key in enumerate(keys)]

    def with_columns(self, known: tuple[InColumns | None, ...]) -> FrameWindows:
        """Return a copy that takes items of columns as far as columns can group them."""
        return replace(self, in_columns=known)

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Accumulate the items of one task by shard, frame and key."""
        key = None if self.keys is None else self.keys[number]
        # By the border, not the watermark: a frame accepts items until the watermark has reached its end.
        arrivals = Arrivals(items, key, self.window.floor_frame(moment.old), self.gives_late)
        known = self.in_columns[number] if self.in_columns and type(items) is ColumnItems else None
        return partial_frames(arrivals, self.window, self.operation.on_input(number), shards, key is not None, known)

    def new(self) -> FrameState:
        """Return the state of a shard without items."""
        output = WindowOutput(self.operation, self.to, self.keys is not None)
        return FrameState(self.window, self.operation.on_input(0), output, copies_of(self.operation))
