"""`IStreamQueue`: items that are delivered to many processes, each to one of them, and the state of their leases.

The items of a queue have numbers, in the order in which they were put. `0 <= head <= tail`: items from `head` up to
`tail` are pending; of earlier items, leased ones are stored, the others were taken. An item whose lease has expired is
pending again, and precedes items that were put later.
"""

from __future__ import annotations

import math
import operator
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from dstream.arguments import kind_of
from dstream.base.showing import add_note
from dstream.base.threads import contextmanager
from dstream.collections.base import NoTable
from dstream.errors import IllegalStateError
from dstream.spi.runtime import Runtime
from dstream.spi.store import UNCHANGED, Kind, MapStore

__all__ = ["IStreamQueue", "Lease", "QueueState"]


class Lease(NamedTuple):
    """The lease of an item: its end, and the token of its holder.

    Attributes:
        until: seconds since 1970; from then on the item is pending again.
        token: known only to the holder, so that no other process ends its lease.
    """

    until: float
    token: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """The state of a queue without its items.

    Attributes:
        head: the number of the first item that was never leased nor taken.
        tail: the number of the next item that will be put.
        leases: the leased items, by number.
    """

    head: int = 0
    tail: int = 0
    leases: Mapping[int, Lease] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: tuple[Any, ...] | None) -> QueueState:
        """Return the state that `stored()` made; None is the state of a new queue."""
        if stored is None:
            return cls()
        head, tail, leases = stored
        return cls(head, tail, {number: Lease(*lease) for number, lease in leases.items()})

    def stored(self) -> tuple[Any, ...]:
        """Return the state in plain values."""
        return self.head, self.tail, {number: tuple(lease) for number, lease in self.leases.items()}

    @property
    def size(self) -> int:
        """The number of items, pending and leased."""
        return self.tail - self.head + len(self.leases)

    def waiting(self, now: float) -> int | None:
        """Return the number of the next item, or None if none is pending."""
        ended = min((number for number, lease in self.leases.items() if lease.until <= now), default=None)
        return ended if ended is not None else self.head if self.head < self.tail else None

    def put(self, count: int) -> QueueState:
        """Return the state with this number of further items."""
        return replace(self, tail=self.tail + count)

    def taken(self, number: int) -> QueueState:
        """Return the state without a pending or leased item."""
        leases = {each: lease for each, lease in self.leases.items() if each != number}
        return replace(self, head=max(self.head, number + 1), leases=leases)

    def leased(self, number: int, lease: Lease) -> QueueState:
        """Return the state in which an item is leased."""
        return replace(self, head=max(self.head, number + 1), leases={**self.leases, number: lease})

    def has(self, number: int, token: str) -> bool:
        """Return whether a lease still belongs to the holder of the token, be it over or not."""
        lease = self.leases.get(number)
        return lease is not None and lease.token == token

    def numbers(self) -> list[int]:
        """Return the numbers of all items, in order."""
        return [*sorted(self.leases), *range(self.head, self.tail)]


T = TypeVar("T")

_STATE = -1
"""The key of the state in the map that a queue is stored as; the other keys are the numbers of items."""

_AHEAD = 4
"""The numbers beyond the next one that a change reads, so that it need not start again for each that others took."""

_READ_TOGETHER = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
"""Seconds between two polls of an empty queue: short at first, longer with each poll."""

_Change = Callable[[QueueState, int], QueueState]

_end_of: Callable[[QueueState], int] = operator.attrgetter("tail")


class IStreamQueue(NoTable, Generic[T]):
    """A queue in a storage, first in, first out. Get one with `Context.get_queue`.

    Any number of threads and processes put and take; no item is lost or taken twice. An item may be None. `take()`
    removes an item permanently: if its process dies afterwards, the item is lost. `lease(seconds)` removes it at the
    end of the block, and returns it to the queue if the block fails or its process dies.

    Each call is one commit or two; items that are returned precede those that were put later.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     jobs = ctx.get_queue("jobs")
        ...     jobs.put("index")
        ...     jobs.put_all(["mail", "print"])
        ...     with jobs.lease(60) as job:
        ...         print(job)
        ...     jobs.take(), len(jobs)
        index
        ('mail', 1)
    """

    _kind: ClassVar[Kind] = "queue"
    _unit = ("item", "items")
    _columns = ("item",)
    _brackets = "[{}]"
    _instead = "take() what you need before"

    def __init__(
        self,
        store: MapStore,
        runtime: Runtime,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        super().__init__(store, runtime)
        self._clock = clock
        self._pause = pause

    @property
    def value_type(self) -> None:
        """None: a queue accepts items of any type."""
        return

    def size(self) -> int:
        """Return the number of items, pending and leased."""
        return self._state().size

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return not self.is_empty()

    def put(self, item: T) -> None:
        """Put an item at the end."""
        self.put_all([item])

    def put_all(self, items: Iterable[T]) -> None:
        """Put items at the end, next to each other, all in one commit."""
        # In tuples, since an item may be None and a value of a map may not.
        new = [(item,) for item in items]
        is_put = not new
        while not is_put:
            # Others may put items before the commit; then this changes nothing and is tried again.
            first = self._state().tail
            numbers = range(first, first + len(new) + _AHEAD)
            is_put = bool(self._change(numbers, _end_of, lambda state, _: state.put(len(new)), new))

    def take(self, timeout: float | None = None) -> T:
        """Remove and return the first pending item.

        Args:
            timeout: seconds to wait for an item; 0 polls once, None waits without limit. An empty queue is polled ten
                times a second, more often at first.

        Raises:
            TimeoutError: none arrived in time.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     ctx.get_queue("jobs").take(timeout=0)
            Traceback (most recent call last):
            ...
            TimeoutError: queue 'jobs' had no item within 0 seconds
        """
        item: T
        _, item = self._next(timeout, QueueState.taken, None)
        return item

    @contextmanager
    def lease(self, seconds: float, timeout: float | None = None) -> Iterator[T]:
        """Lease the first pending item for a `with` block, and remove it at the end of the block.

        If the block raises, the item returns to its position. If the process dies, or the block takes longer, it is
        available again after `seconds`: then another process may receive it too. Clocks of several machines should
        agree.

        Args:
            seconds: how long no other process receives the item.
            timeout: as for `take`.

        Raises:
            IllegalStateError: at the end of the block: it took longer, and another process has, or had, the item; or
                the queue was cleared.
            TimeoutError: no item arrived in time.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     jobs = ctx.get_queue("jobs")
            ...     jobs.put("index")
            ...     try:
            ...         with jobs.lease(60) as job:
            ...             raise OSError("no disk")
            ...     except OSError:
            ...         jobs.take()
            'index'
        """
        length = _seconds(seconds, "seconds")
        token = uuid.uuid4().hex
        number, item = self._next(
            timeout, lambda state, number: state.leased(number, Lease(self._clock() + length, token)), UNCHANGED
        )
        try:
            yield item
        # An interrupt, too: the work on the item was not done.
        except BaseException as error:
            self._give_back(number, token, error)
            raise
        if not self._end(number, token, QueueState.taken, None):
            raise IllegalStateError(
                f"queue {self.name!r} did not hold the leased item any more at the end of the block: that had it for "
                f"longer than its lease of {seconds} seconds, and another process got it meanwhile, so make the lease "
                "longer; or somebody cleared the queue"
            )

    def clear(self) -> None:
        """Remove all items, atomically, also those that are leased."""
        self.store.clear()

    def _why_no_table(self) -> str:
        return f"queue {self.name!r} is no table; take() its items, or put them into a list too"

    # How it works

    def _state(self) -> QueueState:
        (stored,) = self.store.get_many([_STATE])
        return QueueState.of(stored)

    def _next(self, timeout: float | None, change: _Change, value: Any) -> tuple[int, Any]:
        """Wait for an item, change the state and the value of its number, and return both."""
        limit = math.inf if timeout is None else _seconds(timeout, "timeout", least=0)
        end, pause = time.monotonic() + limit, _FIRST_PAUSE
        while True:
            # Read before the commit, so that nothing is written for an empty queue.
            number = self._state().waiting(self._clock())
            if number is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"queue {self.name!r} had no item within {timeout} seconds")
                self._pause(min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE)
            elif found := self._change(range(number, number + 1 + _AHEAD), self._waiting, change, [value]):
                return found

    def _waiting(self, state: QueueState) -> int | None:
        return state.waiting(self._clock())

    def _end(self, number: int, token: str, change: _Change, value: Any) -> bool:
        """End a lease; return whether it still was the holder's."""
        numbers = range(number, number + 1)
        return bool(self._change(numbers, lambda state: number if state.has(number, token) else None, change, [value]))

    def _give_back(self, number: int, token: str, error: BaseException) -> None:
        try:
            # A lease that is over, so that the item is the next one.
            self._end(number, token, lambda state, number: state.leased(number, Lease(0.0, token)), UNCHANGED)
        # Of any kind, a full disk as well: what failed in the block matters more, and the lease has an end.
        except Exception as failed:
            add_note(error, f"queue {self.name!r} gets the item back at the end of its lease, for now: {failed}")

    def _change(
        self, numbers: range, choose: Callable[[QueueState], int | None], change: _Change, values: list[Any]
    ) -> tuple[int, Any] | None:
        """Change the state and the values of `numbers`, in one commit.

        Args:
            numbers: the candidates: concurrent changes may lead to another one than the first.
            choose: returns a number for the current state; None for none.
            change: returns the next state for the current state and the number.
            values: the values to store under the number, and under the following numbers.

        Returns:
            The number and the item that was stored there; None if `choose` returned none of them, and nothing was
            changed.
        """
        found: tuple[int, Any] | None = None

        def changed(old: list[Any]) -> list[Any]:
            nonlocal found
            # The store calls this again after a conflict.
            state, found = QueueState.of(old[0]), None
            number = choose(state)
            new: list[Any] = [UNCHANGED] * len(old)
            if number is not None and numbers.start <= number <= numbers.stop - len(values):
                place = 1 + number - numbers.start
                found = number, self._item(number, state, old[place])
                new[0], new[place : place + len(values)] = change(state, number).stored(), values
            return new

        self.store.update([_STATE, *numbers], changed)
        return found

    def _item(self, number: int, state: QueueState, held: Any) -> Any:
        """Return the item of a number, None after the last one.

        Raises:
            IllegalStateError: it is missing.
        """
        if held is None and number < state.tail:
            raise IllegalStateError(f"queue {self.name!r} is damaged: its item number {number} is not there")
        return None if held is None else held[0]

    def _walk(self) -> Iterator[Sequence[object]]:
        from more_itertools import chunked  # imported on use: it takes 7 ms to import, and each context has queues

        for numbers in chunked(self._state().numbers(), _READ_TOGETHER):
            yield from (held for held in self.store.get_many(numbers) if held is not None)

    def _types_shown(self, rows: Sequence[Sequence[object]]) -> str:
        return ""

    def _splits(self) -> Sequence[Any]:
        return ()


def _seconds(value: Any, name: str, least: float | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {kind_of(value)}")
    if not (value > 0 if least is None else value >= least):
        raise ValueError(f"{name} must be {'above 0' if least is None else 'at least 0'}, not {value}")
    return value
