"""`SessionWindows`: aggregation of session windows, and the state that a watermark closes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from dstream.failures.attribution import in_group
from dstream.keys.hashing import with_keys_of_this_process
from dstream.operators.windows.arrivals import Arrivals, Batch, LateItems, by_shard
from dstream.operators.windows.buffers import EMPTY, Session, joined
from dstream.operators.windows.results import Copies, WindowOutput, WindowState, check_keys, copies_of, signature_of
from dstream.spi import AggregateOperation, Collector
from dstream.spi.epochs import EpochTime, TaskPartials
from dstream.values.time import Timed
from dstream.windows import SessionWindow

__all__ = ["SessionBuffer", "SessionPartial", "SessionState", "SessionWindows", "Sessions", "partial_sessions"]


Sessions: TypeAlias = dict[Any, list[Session]]
"""Sessions by canonical key."""

SessionPartial: TypeAlias = tuple[Sessions, LateItems]
"""Input of one shard: sessions, and late items to emit."""


def partial_sessions(
    arrivals: Arrivals, timeout: int, collector: Collector[Any, Any, Any], shards: int, is_keyed: bool
) -> TaskPartials:
    """Accumulate items in sessions that end `timeout` milliseconds after their last item."""
    of_shards = by_shard(_accumulated(arrivals, timeout, collector), shards, is_keyed)
    late = arrivals.late_by_shard(shards)
    found = {shard: (of_shards.get(shard, {}), late.get(shard, [])) for shard in {**of_shards, **late}}
    return TaskPartials(found, arrivals.items, arrivals.late)


def _accumulated(batches: Iterable[Batch], timeout: int, collector: Collector[Any, Any, Any]) -> Sessions:
    create, accumulate, combined = collector.create, collector.accumulates[0], collector.combined
    of_key: Sessions = {}
    for timestamps, keys, items in batches:
        # A failure finds `item` by its name.
        for timestamp, key, item in zip(timestamps, keys, items):  # noqa: B905  # Without keys, they have no end.
            sessions = of_key.get(key)
            if sessions is None:
                session = [timestamp, timestamp + timeout, create()]
                of_key[key] = [session]
            elif sessions[-1][0] <= timestamp <= sessions[-1][1]:  # The usual case, without a call.
                session = sessions[-1]
                # Items arrive in any order: an earlier one must not shorten the session.
                session[1] = max(session[1], timestamp + timeout)
            else:
                session = joined(sessions, timestamp, timestamp + timeout, combined)
                if session[2] is EMPTY:
                    session[2] = create()
            following = accumulate(session[2], item)
            if following is not None:
                session[2] = following
    return of_key


class SessionBuffer:
    """Sessions by key. The cost of an epoch follows the keys that it touches and the sessions that it closes.

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
        """Return the number of keys."""
        return len(self._sessions)

    def take(self, key: Any, sessions: list[Session]) -> None:
        """Merge later sessions of a key, which are consumed."""
        self._touched.add(key)
        held = self._sessions.get(key)
        if held is None:
            self._sessions[key] = sessions
        else:
            self._join(key, held, sessions)
        self._wait(key)

    def put(self, key: Any, sessions: list[Session]) -> None:
        """Replace all sessions of a key."""
        self._sessions[key] = [list(session) for session in sessions]
        self._wait(key)

    def close(self, watermark: int) -> Iterator[tuple[Any, Session]]:
        """Remove and yield the sessions that end before `watermark`, ascending by end, with their keys."""
        while (end := self.first_end()) is not None and end < watermark:
            key = self._waiting[0][2]
            sessions = self._sessions[key]
            # Sessions of a key are ascending: the first one ends first.
            closed = sessions.pop(0)
            if not sessions:
                del self._sessions[key], self._wakes[key]
            yield key, closed

    def first_end(self) -> int | None:
        """Return the end of the session that ends first, which is the first session of the first key in `_waiting`.

        A key is queued with the end of its first session at that time. The session has mostly grown since, and the
        key is queued again.
        """
        while self._waiting:
            end, _, key = self._waiting[0]
            if self._wakes.get(key) != end:
                heapq.heappop(self._waiting)  # The key has closed, or is queued with another end.
            elif (grown := self._sessions[key][0][1]) > end:
                self._wakes[key] = grown
                heapq.heapreplace(self._waiting, (grown, next(self._numbers), key))
            else:
                return end
        return None

    def items(self) -> Iterator[tuple[Any, list[Session]]]:
        """Return the keys with their sessions."""
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
        """Queue a key, unless it is queued under an end that is no later than that of its first session."""
        end = self._sessions[key][0][1]
        if self._wakes.get(key, end + 1) > end:
            self._wakes[key] = end
            heapq.heappush(self._waiting, (end, next(self._numbers), key))


class SessionState(WindowState[Sessions, SessionBuffer]):
    """The sessions of one shard; a delta contains all open sessions of the touched keys.

    Args:
        window: the definition of the sessions.
        collector: the collector of the containers.
        output: creates the results.
        copies: copies containers.
    """

    def __init__(
        self, window: SessionWindow, collector: Collector[Any, Any, Any], output: WindowOutput, copies: Copies
    ) -> None:
        super().__init__(SessionBuffer(collector), window.early, output, copies)

    def dump(self) -> Any:
        """Return (watermark, next early results, sessions by key)."""
        sessions = {key: self._copied(sessions) for key, sessions in self._buffer.items()}
        return self._watermark, self._early.next, sessions

    def load(self, dumped: Any) -> None:
        """Become the state that was dumped."""
        self._watermark, self._early.next, sessions = dumped
        for key, of_key in with_keys_of_this_process(sessions).items():
            self._buffer.put(key, of_key)

    def patch(self, delta: Any) -> None:
        """Become the state after an epoch."""
        # A delta has the form of a dump, with the keys that were touched.
        self.load(delta)
        for _ in self._buffer.close(self._watermark):
            continue  # They were emitted when the epoch ran.

    def deadline(self) -> int | None:
        """Return the first watermark that closes a session: it closes strictly after its end."""
        end = self._buffer.first_end()
        return None if end is None else end + 1

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Return each key with its open sessions as (start, end, container)."""
        return ((key, [tuple(session) for session in sessions]) for key, sessions in self._buffer.items())

    def _take(self, found: Sessions) -> None:
        for key, sessions in with_keys_of_this_process(found).items():
            self._buffer.take(key, sessions)
            self._has_changed = True

    def _has_items(self) -> bool:
        return len(self._buffer) > 0

    def _outputs(self, moment: EpochTime) -> Iterator[Timed]:
        for key, (start, end, container) in self._buffer.close(moment.new):
            self._has_changed = True
            yield end, self._output.last(start, end, key, container)
        self._watermark = moment.new
        if self._early.passes(moment) and self._has_items():
            self._has_changed = True
            yield from self._still_open()
        if not self._has_items():
            self._early.next = None

    def _still_open(self) -> Iterator[Timed]:
        """Yield the early results of all open sessions."""
        for key, sessions in self._buffer.items():
            for start, end, container in sessions:
                yield end, self._output.passing(start, end, key, container, True)

    def _copied(self, sessions: list[Any]) -> list[Any]:
        copies = self._copies([container for _, _, container in sessions])
        return [[start, end, copy] for (start, end, _), copy in zip(sessions, copies, strict=True)]


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Operator that emits the result of each session of a key, when the watermark has passed its end.

    Results have the end of their session as timestamp: the timestamp of its last item plus the timeout. An item is
    late when its timestamp is below the watermark at the start of its epoch.

    Args:
        window: the definition of the sessions.
        keys: returns the key of an item, one function for each input; None: all items are one group.
        operation: aggregates the items of each input. Sessions that an item joins are combined, the earlier first.
        to: receives (start, end, result), or (start, end, key, result) with keys, and returns the emitted item;
            None: a `WindowResult` or `KeyedWindowResult`.
        gives_late: late items are emitted as `(timestamp, Late(item))`.

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
        """Return the facts that the layout of state depends on."""
        return (self.window.timeout, *signature_of(self.keys, self.operation))

    @property
    def inputs(self) -> int:
        """Return the number of inputs of the operation."""
        return self.operation.arity

    def partial(self, number: int, items: Iterator[Timed], moment: EpochTime, shards: int) -> TaskPartials:
        """Accumulate the items of one task by shard, key and session."""
        key = None if self.keys is None else self.keys[number]
        arrivals = Arrivals(items, key, moment.old, self.gives_late)
        return partial_sessions(arrivals, self.window.timeout, self.operation.on_input(number), shards, key is not None)

    def new(self) -> SessionState:
        """Return the state of a shard without items."""
        output = WindowOutput(self.operation, self.to, self.keys is not None)
        return SessionState(self.window, self.operation.on_input(0), output, copies_of(self.operation))
