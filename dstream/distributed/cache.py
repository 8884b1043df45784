"""`IStreamCache`: a distributed map whose entries expire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar, Literal, TypeVar, cast

from dstream.distributed.expiring import Clock, ExpiringStore
from dstream.distributed.map import IStreamMap
from dstream.errors import UnsupportedError
from dstream.spi.engine_contract import Runtime
from dstream.spi.store import Kind, MapStore
from dstream.values.journal_events import JournalEvent, UseEvent

__all__ = ["IStreamCache"]

K = TypeVar("K")
V = TypeVar("V")


class IStreamCache(IStreamMap[K, V]):
    """A map whose entries expire: `ttl` seconds after writing, `max_idle` seconds after the last use.

    An entry that expired is invisible to every operation. It is removed when a lookup meets it, or by `purge()`.

    Looking an entry up, also with `in`, and changing it are uses; iterating and streams are not. An entry lives at
    least `max_idle` seconds after its last use and at most 1.1 times that: a use is recorded, which is
    a write, only when a tenth of `max_idle` went by since the last one that was. `len` and `size()` read
    every entry, to leave out those that expired.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     sessions = ctx.get_cache("sessions", ttl=1800)
        ...     sessions["Ada"] = "token"
        ...     sessions.get("Ada"), sessions.get("Alan")
        ('token', None)
    """

    _kind: ClassVar[Kind] = "cache"
    _at_most = "up to "

    def __init__(self, store: MapStore, runtime: Runtime, clock: Clock = time.time) -> None:
        super().__init__(ExpiringStore(store, clock), runtime)

    def is_empty(self) -> bool:
        """Say whether there is no entry that has not expired; reads no further than the first one."""
        return next(self._pairs(), None) is None

    def purge(self) -> int:
        """Remove the entries that expired; return how many there were."""
        return self._expiring.purge()

    def journal(self, since: int = 0) -> Iterator[JournalEvent]:
        """Give the changes after offset `since`, the oldest first; 0 is the start.

        That an entry was looked up is no change. One that expired is `"REMOVED"` when a lookup or `purge()` meets it,
        and `"ADDED"` when it is put again.

        Raises:
            IllegalStateError: the cache was made without `journal=True`.

        Example:
            >>> with connect(engine="local", storage="memory:") as ctx:
            ...     sessions = ctx.get_cache("sessions", ttl=1800, journal=True)
            ...     sessions["Ada"] = "token"
            ...     [(event.kind, event.key, event.new_value) for event in sessions.journal()]
            [('ADDED', 'Ada', 'token')]
        """
        return (event for event in super().journal(since) if not isinstance(event, UseEvent))

    def add_index(self, field: str, kind: Literal["hash", "sorted"] = "hash") -> None:
        """Refuse: a lookup in a cache is a use of its entries, and a search must be none.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(f"{self._kind} {self.name!r} has no indexes; maps have")

    def _most(self) -> int:
        return self._expiring.stored_size()

    @property
    def _expiring(self) -> ExpiringStore:
        return cast("ExpiringStore", self.store)
