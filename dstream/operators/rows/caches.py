"""`Caches`: the cached items of the plans of a context, by engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn
from weakref import WeakKeyDictionary

from dstream.base.threads import RenewedLock
from dstream.errors import SerializationError
from dstream.plan.operations.streams import Cache, CacheIdentity
from dstream.plan.walk import CacheContent

__all__ = ["Caches", "HeldByContext"]


class Caches:
    """The contents of `cache()` steps, which the engines of one context share until it is closed.

    A step is known by its identity, which is not held here: what is kept goes with the last plan that has the step.
    """

    def __init__(self) -> None:
        self._slots: WeakKeyDictionary[CacheIdentity, _Slot] = WeakKeyDictionary()

    def found(self, node: Cache) -> CacheContent | None:
        """Return the cached content of a step; None if there is none, or its holder is gone."""
        slot = self._slots.get(node.identity)
        return None if slot is None else slot.found()

    def kept(self, node: Cache, compute: Callable[[], CacheContent]) -> CacheContent:
        """Return the cached content of a step; compute it if there is none, and let other threads wait.

        A failure of `compute` leaves nothing.
        """
        slot = self._slots.setdefault(node.identity, _Slot())  # Two threads get the same one.
        with slot.lock:
            cached = slot.found()
            if cached is None:
                cached = slot.cached = compute()
        return cached

    def clear(self) -> None:
        """Let go of everything."""
        self._slots = WeakKeyDictionary()


class HeldByContext:
    """Items that are kept for a context: they do not travel, as a plan does that has nothing kept."""

    def __reduce__(self) -> NoReturn:
        raise SerializationError(
            "what cache() keeps belongs to its context and cannot be pickled; pickle the plan, which is computed again"
        )


class _Slot:
    """The place of one step.

    Attributes:
        lock: held while the items are computed. It lets its own thread in again: where a function of the user's reads
            the stream that it stands in, Python's error for endless recursion is better than a wait without end.
    """

    __slots__ = ("cached", "lock")

    def __init__(self) -> None:
        self.lock = RenewedLock()
        self.cached: CacheContent | None = None

    def found(self) -> CacheContent | None:
        cached = self.cached
        return cached if cached is not None and cached.is_there() else None
