"""The open sessions of a shard, found by the time at which they close, and what an epoch has changed in them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Any

from dstream.operators.open_sessions import EMPTY, Session, joined
from dstream.operators.session_partials import Sessions
from dstream.spi import Collector
from dstream.values.blaming import in_group

__all__ = ["HeldSessions"]


class HeldSessions:
    """Sessions by key. What an epoch costs follows the keys that it touches and the sessions that it closes.

    Args:
        collector: combines containers.
    """

    def __init__(self, collector: Collector[Any, Any, Any]) -> None:
        self._combined = collector.combined
        self._sessions: Sessions = {}
        self._touched: set[Any] = set()
        self._waiting: list[tuple[int, int, Any]] = []
        self._wakes: dict[Any, int] = {}
        self._numbers = count()

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._sessions)

    def take(self, key: Any, sessions: list[Session]) -> None:
        """Take sessions of a key that come later; they are used up."""
        self._touched.add(key)
        held = self._sessions.get(key)
        if held is None:
            self._sessions[key] = sessions
        else:
            self._join(key, held, sessions)
        self._wait(key)

    def put(self, key: Any, sessions: list[Session]) -> None:
        """Let sessions take the place of all of a key."""
        self._sessions[key] = [list(session) for session in sessions]
        self._wait(key)

    def close(self, watermark: int) -> Iterator[tuple[Any, Session]]:
        """Forget and give the sessions that end before `watermark`, ascending by end, with their keys."""
        while (end := self.first_end()) is not None and end < watermark:
            key = self._waiting[0][2]
            sessions = self._sessions[key]
            closed = sessions.pop(0)
            if not sessions:
                del self._sessions[key], self._wakes[key]
            yield key, closed

    def first_end(self) -> int | None:
        """Return the end of the session that ends first; it is that of the key that stands first in `_waiting`.

        A key waits under the end that its first session had when it came. That session has mostly grown since, and the
        key goes back into the queue.
        """
        while self._waiting:
            end, _, key = self._waiting[0]
            if self._wakes.get(key) != end:
                heapq.heappop(self._waiting)  # The key has closed, or waits under another end.
            elif (grown := self._sessions[key][0][1]) > end:
                self._wakes[key] = grown
                heapq.heapreplace(self._waiting, (grown, next(self._numbers), key))
            else:
                return end
        return None

    def items(self) -> Iterator[tuple[Any, list[Session]]]:
        """Give the keys with their sessions."""
        return iter(self._sessions.items())

    def touched(self) -> Sessions:
        """Return the open sessions of keys that got items since this was last called."""
        found = {key: self._sessions[key] for key in self._touched if key in self._sessions}
        self._touched = set()
        return found

    def _join(self, key: Any, held: list[Session], sessions: list[Session]) -> None:
        for start, end, container in sessions:
            try:
                session = joined(held, start, end, self._combined)
                session[2] = container if session[2] is EMPTY else self._combined(session[2], container)
            except Exception as error:
                in_group(error, key)
                raise

    def _wait(self, key: Any) -> None:
        """Let a key wait, unless it does already under an end that is no later than that of its first session."""
        end = self._sessions[key][0][1]
        if self._wakes.get(key, end + 1) > end:
            self._wakes[key] = end
            heapq.heappush(self._waiting, (end, next(self._numbers), key))
