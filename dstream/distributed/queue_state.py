"""`QueueState`: which items of a queue wait, and which are leased until when. A change makes the next one of it.

The items of a queue have numbers, in the order in which they were put. `0 <= head <= tail`: those from `head` up to
`tail` wait; of those below, the leased ones are there, the others were taken. A lease that has ended is an item that
waits, and comes before those that were put later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

__all__ = ["Lease", "QueueState"]


class Lease(NamedTuple):
    """Who has an item, and until when.

    Attributes:
        until: seconds since 1970; from then on the item waits again.
        token: what only the holder knows, so that nobody ends the lease of another one.
    """

    until: float
    token: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """What is known of a queue beside its items.

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
        """Return the state that `stored()` made; None is that of a new queue."""
        if stored is None:
            return cls()
        head, tail, leases = stored
        return cls(head, tail, {number: Lease(*lease) for number, lease in leases.items()})

    def stored(self) -> tuple[Any, ...]:
        """Return the state in plain values."""
        return self.head, self.tail, {number: tuple(lease) for number, lease in self.leases.items()}

    @property
    def size(self) -> int:
        """How many items there are: those that wait and those that are leased."""
        return self.tail - self.head + len(self.leases)

    def waiting(self, now: float) -> int | None:
        """Return the number of the item that comes next, or None if none waits."""
        ended = min((number for number, lease in self.leases.items() if lease.until <= now), default=None)
        return ended if ended is not None else self.head if self.head < self.tail else None

    def put(self, count: int) -> QueueState:
        """Return the state with so many more items."""
        return replace(self, tail=self.tail + count)

    def taken(self, number: int) -> QueueState:
        """Return the state without an item that waits, or that is leased."""
        leases = {each: lease for each, lease in self.leases.items() if each != number}
        return replace(self, head=max(self.head, number + 1), leases=leases)

    def leased(self, number: int, lease: Lease) -> QueueState:
        """Return the state in which somebody has an item."""
        return replace(self, head=max(self.head, number + 1), leases={**self.leases, number: lease})

    def has(self, number: int, token: str) -> bool:
        """Say whether a lease still belongs to who holds the token, be it over or not."""
        lease = self.leases.get(number)
        return lease is not None and lease.token == token

    def numbers(self) -> list[int]:
        """Return the numbers of all items, in order."""
        return [*sorted(self.leases), *range(self.head, self.tail)]
