"""The state of session windows: the open sessions of each key, and the watermark that closes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from dstream.operators.arrivals import LateItems, late_outputs
from dstream.operators.early_period import EarlyPeriod
from dstream.operators.held_sessions import HeldSessions
from dstream.operators.independent_copies import Copies
from dstream.operators.pickled_keys import with_keys_of_this_process
from dstream.operators.session_partials import SessionPartial
from dstream.operators.window_output import WindowOutput
from dstream.spi import Collector
from dstream.spi.state_operator import Applied, Moment
from dstream.values.event_time import NO_WATERMARK, Timed
from dstream.windows import SessionWindow

__all__ = ["SessionState"]


class SessionState:
    """The sessions of one shard.

    A delta holds the open sessions of the keys that were touched; what was closed follows from the watermark. It
    shares containers with the state, so it is to be pickled before more items come.

    Args:
        window: what a session is.
        collector: what a container is.
        output: makes the results.
        copies: of containers.
    """

    def __init__(
        self, window: SessionWindow, collector: Collector[Any, Any, Any], output: WindowOutput, copies: Copies
    ) -> None:
        self._output = output
        self._copies = copies
        self._sessions = HeldSessions(collector)
        self._early = EarlyPeriod(window.early)
        self._watermark = NO_WATERMARK
        self._has_changed = False

    def apply(self, partials: Sequence[tuple[int, SessionPartial]], moment: Moment) -> Applied:
        """Take the sessions of an epoch; those that are over are finished while the outputs are consumed."""
        late: LateItems = []
        for _, (of_keys, late_items) in partials:
            for key, sessions in with_keys_of_this_process(of_keys).items():
                self._sessions.take(key, sessions)
                self._has_changed = True
            late += late_items
        if len(self._sessions):
            self._early.begin(moment.now)
        return Applied(chain(late_outputs(late), self._outputs(moment)))

    def delta(self) -> Any | None:
        """Return (watermark, next early results, sessions of touched keys)."""
        if not self._has_changed:
            return None
        self._has_changed = False
        return self._watermark, self._early.next, self._sessions.touched()

    def dump(self) -> Any:
        """Return (watermark, next early results, sessions by key)."""
        sessions = {key: self._copied(sessions) for key, sessions in self._sessions.items()}
        return self._watermark, self._early.next, sessions

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped."""
        self._watermark, self._early.next, sessions = dumped
        for key, of_key in with_keys_of_this_process(sessions).items():
            self._sessions.put(key, of_key)

    def patch(self, delta: Any) -> None:
        """Become the state after an epoch."""
        self.load(delta)
        for _ in self._sessions.close(self._watermark):
            continue  # They were given when the epoch ran.

    def deadline(self) -> int | None:
        """Return the first watermark that closes a session: it closes strictly behind its end."""
        end = self._sessions.first_end()
        return None if end is None else end + 1

    def clock_deadline(self) -> float | None:
        """Return when early results are due."""
        return self._early.next

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Give each key with its open sessions as (start, end, container)."""
        return ((key, [tuple(session) for session in sessions]) for key, sessions in self._sessions.items())

    def __len__(self) -> int:
        return len(self._sessions)

    def _outputs(self, moment: Moment) -> Iterator[Timed]:
        for key, (start, end, container) in self._sessions.close(moment.new):
            self._has_changed = True
            yield end, self._output.last(start, end, key, container)
        self._watermark = moment.new
        if self._early.passes(moment) and len(self._sessions):
            self._has_changed = True
            yield from self._still_open()
        if not len(self._sessions):
            self._early.next = None

    def _still_open(self) -> Iterator[Timed]:
        """Give the early results of all open sessions."""
        for key, sessions in self._sessions.items():
            for start, end, container in sessions:
                yield end, self._output.passing(start, end, key, container, True)

    def _copied(self, sessions: list[Any]) -> list[Any]:
        copies = self._copies([container for _, _, container in sessions])
        return [[start, end, copy] for (start, end, _), copy in zip(sessions, copies, strict=True)]
