"""`SessionWindows`: aggregates the items of sessions, which last as long as items keep coming."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dstream.operators.arrivals import Arrivals
from dstream.operators.independent_copies import copies_of
from dstream.operators.session_partials import partial_sessions
from dstream.operators.session_state import SessionState
from dstream.operators.window_arguments import check_keys, signature_of
from dstream.operators.window_output import WindowOutput
from dstream.spi import AggregateOperation
from dstream.spi.state_operator import Moment, Partials
from dstream.values.event_time import Timed
from dstream.windows import SessionWindow

__all__ = ["SessionWindows"]


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """The result of the items of each session, when the watermark has passed its end, for each key that has any.

    Results have the end of their session as timestamp: that of its last item, and the timeout. An item is late when its
    timestamp is below the watermark at the start of its epoch.

    Args:
        window: how long a pause may be inside of a session.
        keys: gives the key of an item, one function for each input; None: all items are one group.
        operation: takes the items of each input. Sessions that an item joins are combined, the earlier first.
        to: takes (start, end, result), or (start, end, key, result) where there are keys, and makes what goes on;
            None: a `WindowResult` or `KeyedWindowResult`.
        gives_late: late items go on, as `(timestamp, Late(item))`.

    Raises:
        TypeError: there is not one key function for each input, or the operation has no `combine`.
    """

    window: SessionWindow
    keys: tuple[Callable[[Any], Any], ...] | None
    operation: AggregateOperation[Any, Any, Any]
    to: Callable[..., Any] | None = None
    gives_late: bool = False

    kind = "session"

    def __post_init__(self) -> None:
        check_keys(self.keys, self.operation)
        if self.operation.combine is None:
            raise TypeError(f"{self.operation!r} has no combine, and sessions become one when an item joins them")

    @property
    def signature(self) -> tuple[Any, ...]:
        """What state depends on."""
        return (self.window.timeout, *signature_of(self.keys, self.operation))

    @property
    def inputs(self) -> int:
        """One for each input of the operation."""
        return self.operation.arity

    def partial(self, number: int, items: Iterator[Timed], moment: Moment, shards: int) -> Partials:
        """Accumulate the items of one task by shard, key and session."""
        key = None if self.keys is None else self.keys[number]
        arrivals = Arrivals(items, key, moment.old, self.gives_late)
        return partial_sessions(arrivals, self.window.timeout, self.operation.on_input(number), shards, key is not None)

    def new(self) -> SessionState:
        """Return the state of a shard without items."""
        output = WindowOutput(self.operation, self.to, self.keys is not None)
        return SessionState(self.window, self.operation.on_input(0), output, copies_of(self.operation))
