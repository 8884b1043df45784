"""`IStreamCache`: a distributed map of entries that expire, and the store that expires them.

Each value is stored with the time at which it was written and the time at which it expires. Expired entries are
invisible to every operation; they are removed when a lookup or a change finds them, or by `purge`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, cast, get_args, get_origin

from more_itertools import chunked

from dstream.base.records import record
from dstream.collections.map import IStreamMap
from dstream.errors import CacheNotExistsError, UnsupportedError
from dstream.keys import canonical
from dstream.spi.runtime import Runtime
from dstream.spi.sink import ForwardingWriter, MapWriter, WriteJob
from dstream.spi.source import InputSize, input_size
from dstream.spi.store import UNCHANGED, EntrySplit, Kind, MapStore, Merge, Options, Revision, Storage, Update
from dstream.values.entries import JournalEvent, UseEvent

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Clock",
    "Expiring",
    "ExpiringSplit",
    "ExpiringStore",
    "Expiry",
    "IStreamCache",
    "cache_store",
    "stored_options",
]


V = TypeVar("V")

Clock = Callable[[], float]
"""Returns the time in seconds since the epoch."""

_SLACK, _CHUNK = 0.1, 1000


class Expiring(NamedTuple, Generic[V]):
    """A value of a cache as it is stored; times are seconds since the epoch.

    Attributes:
        value: the value of the user.
        written: the time of the write.
        deadline: when it expires, infinity for never.
    """

    value: V
    written: float
    deadline: float


@record
class Expiry:
    """The lifetime of entries.

    To record every use would make every read a write. So the deadline is extended by a tenth of `max_idle`, and a use
    is recorded only when the recorded deadline no longer covers it: an entry lives at least `max_idle` after its last
    use, and at most 1.1 times that.

    Attributes:
        ttl: seconds from writing; None for ever.
        max_idle: seconds from the last use; None for ever.
    """

    ttl: float | None = None
    max_idle: float | None = None

    def __post_init__(self) -> None:
        for name, seconds in (("ttl", self.ttl), ("max_idle", self.max_idle)):
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be a positive number of seconds, not {seconds!r}")

    def stamped(self, value: Any, now: float) -> Expiring[Any]:
        """Return a value in its stored form, written at `now`."""
        return Expiring(value, now, self._deadline(now, now, 1 + _SLACK))

    def used(self, stored: Expiring[Any], now: float) -> Expiring[Any]:
        """Return the value to store when an entry is used now: the same object if nothing need be recorded."""
        if stored.deadline >= self._deadline(stored.written, now, 1):
            return stored
        return stored._replace(deadline=self._deadline(stored.written, now, 1 + _SLACK))

    def _deadline(self, written: float, used: float, factor: float) -> float:
        of_writing = math.inf if self.ttl is None else written + self.ttl
        of_use = math.inf if self.max_idle is None else used + self.max_idle * factor
        return min(of_writing, of_use)


def live(stored: Any, now: float) -> Any:
    """Return the value of a stored entry, or None if it is absent or has expired."""
    return stored.value if stored is not None and now < stored.deadline else None


def stored_options(options: Options) -> Options:
    """Return the options of the underlying store of a cache with `options`."""
    Expiry(options.ttl, options.max_idle)  # Made for its checks.
    inner = options.value_type
    return options if inner is None else replace(options, value_type=Expiring[inner])  # type: ignore[valid-type]


def cache_store(storage: Storage, name: str, options: Options) -> MapStore:
    """Return the store of a cache, created if the options contain the lifetime of its entries.

    Raises:
        CacheNotExistsError: it was never configured, and they do not contain it.
    """
    if options.ttl is not None or options.max_idle is not None:
        return cast("MapStore", storage.create("cache", name, stored_options(options)))
    store = storage.open("cache", name, stored_options(options))
    if store is None:
        raise CacheNotExistsError(
            f"cache {name!r} was never configured: get_cache({name!r}, ttl=...) or (..., max_idle=...) makes it"
        )
    return cast("MapStore", store)


class ExpiringStore:
    """A `MapStore` whose entries expire, over a store of the entries with their deadlines.

    Looking an entry up and changing it are uses; walking over all entries is not.

    Args:
        store: contains `Expiring` values; its options contain the lifetime of entries.
        clock: returns the time; it is sent to the tasks of a job, pickled.
    """

    def __init__(self, store: MapStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._expiry = Expiry(store.options.ttl, store.options.max_idle)

    @property
    def name(self) -> str:
        """The name of the cache."""
        return self._store.name

    @property
    def identity(self) -> str:
        """The identity of the cache, which differs from a later one of its name."""
        return self._store.identity

    @property
    def in_process(self) -> bool:
        """Return whether the splits contain the entries."""
        return self._store.in_process

    @property
    def location(self) -> str | None:
        """The location of the table for other tools."""
        return self._store.location

    @property
    def options(self) -> Options:
        """The options of the cache, with the type of its users' values."""
        options = self._store.options
        hint = options.value_type
        inner = get_args(hint)[0] if get_origin(hint) is Expiring else None
        return replace(options, value_type=inner)

    def stored_size(self) -> int:
        """Return the number of entries, those among them that have expired and were not removed yet."""
        return self._store.size()

    def input_size(self) -> InputSize:
        """Return the size of the store, which counts entries that have expired."""
        return input_size(self._store)

    def size(self) -> int:
        """Return the number of entries that have not expired; reads them all."""
        return sum(1 for split in self.splits(1) for _ in split.read())

    def get_many(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value of each key; record uses that count, remove expired entries."""
        now = self._clock()
        found = self._store.get_many(keys)
        met = [key for key, stored in zip(keys, found, strict=True) if self._after_use(stored, now) is not UNCHANGED]
        if met:  # Most look-ups record no use, and commit nothing.
            # Equal keys such as 1 and 1.0 are one entry, which is changed once.
            self._record_uses([*dict.fromkeys(map(canonical, met))])
        return [live(stored, now) for stored in found]

    def _record_uses(self, keys: list[Any]) -> None:
        def change(found: list[Any]) -> list[Any]:
            now = self._clock()  # The store calls this again after a conflict, at a later time.
            return [self._after_use(stored, now) for stored in found]

        self._store.update(keys, change)

    def update(self, keys: Sequence[Any], change: Callable[[list[Any]], list[Any]]) -> list[Any]:
        """Replace values; `change` does not see those that have expired."""
        now = self._clock()

        def change_stored(found: list[Any]) -> list[Any]:
            nonlocal now
            now = self._clock()
            new = change([live(stored, now) for stored in found])
            return [self._after_change(*pair, now) for pair in zip(found, new, strict=True)]

        return [live(stored, now) for stored in self._store.update(keys, change_stored)]

    def _after_change(self, stored: Any, new: Any, now: float) -> Any:
        if new is UNCHANGED:
            return self._after_use(stored, now)
        return None if new is None else self._expiry.stamped(new, now)

    def _after_use(self, stored: Any, now: float) -> Any:
        """Return the change of a stored entry that is used now."""
        if stored is None:
            return UNCHANGED
        if live(stored, now) is None:
            return None
        used = self._expiry.used(stored, now)
        return UNCHANGED if used is stored else used

    def purge(self) -> int:
        """Remove the entries that have expired; return their number."""
        now = self._clock()
        gone = (key for split in self._store.splits(1) for key, stored in split.read() if live(stored, now) is None)
        return sum(map(self._purge_some, chunked(gone, _CHUNK)))

    def _purge_some(self, keys: list[Any]) -> int:
        now = self._clock()

        def change(found: list[Any]) -> list[Any]:
            # Others may have changed or removed the entry since it was read.
            return [None if stored is not None and live(stored, now) is None else UNCHANGED for stored in found]

        removed = self._store.update(keys, change)
        return sum(stored is not None and live(stored, now) is None for stored in removed)

    def clear(self) -> None:
        """Remove all entries, atomically."""
        self._store.clear()

    def splits(self, parallelism: int) -> Sequence[EntrySplit]:
        """Divide the entries that have not expired yet."""
        now = self._clock()
        # One moment for all splits: which entries exist must not depend on when a task reads them.
        return [ExpiringSplit(split, now) for split in self._store.splits(parallelism)]

    def schema(self) -> pa.Schema:
        """Return the columns of `read_arrow`: the key and the users' values."""
        import pyarrow as pa

        stored = self._store.schema()
        return pa.schema([stored.field("key"), stored.field("value").type.field("value")])

    def journal(self, since: int) -> Iterator[JournalEvent]:
        """Yield the events, with the values of users; expired entries are removed when a call meets them."""
        return map(_unwrapped, self._store.journal(since))

    def journal_end(self) -> int:
        """Ask the store."""
        return self._store.journal_end()

    def journal_reach(self, since: int, most: int | None = None) -> int:
        """Ask the store."""
        return self._store.journal_reach(since, most)

    def journal_left(self, since: int) -> int | None:
        """Ask the store."""
        return self._store.journal_left(since)

    def shown_offset(self, offset: int) -> str:
        """Ask the store."""
        return self._store.shown_offset(offset)

    def journal_before(self, when: int) -> int:
        """Ask the store."""
        return self._store.journal_before(when)

    def begin(
        self, job: str | None, epoch: int = 1, *, merge: Merge | None = None, replace: bool = False
    ) -> WriteJob[MapWriter]:
        """Prepare a job whose values are stamped in the tasks that write them."""
        if isinstance(merge, Update):
            raise UnsupportedError(f"cache {self.name!r} takes entries from jobs; maps take updates, too")
        merging: Merge | None = None
        if isinstance(merge, Revision):
            merging = Revision(_LiveRevision(merge.fn, self._expiry, self._clock))
        elif merge is not None:
            merging = _LiveMerge(merge, self._clock)
        return _StampingJob(self._store.begin(job, epoch, merge=merging, replace=replace), self._expiry, self._clock)

    def destroy(self) -> None:
        """Remove the cache and its name."""
        self._store.destroy()

    def compact(self) -> None:
        """Rewrite the data of many small changes."""
        self._store.compact()

    def vacuum(self, older_than: float) -> int:
        """Remove data that no reader can need any more."""
        return self._store.vacuum(older_than)

    def cut_log(self, older_than: float) -> int:
        """Cut the log of a store that has one, as `Opened.tidy` of the sinks does."""
        cut = getattr(self._store, "cut_log", None)
        return 0 if cut is None else int(cut(older_than))


def _unwrapped(event: JournalEvent) -> JournalEvent:
    """Return an event of a store as one of the cache: an expired value is invisible when it is replaced."""
    old, new = event.old_value, event.new_value
    # A use changes the deadline alone.
    if old is not None and new is not None and old.written == new.written and old.deadline < new.deadline:
        return UseEvent(*event._replace(old_value=old.value, new_value=new.value))
    if new is None:
        return event._replace(old_value=None if old is None else old.value)
    before = live(old, new.written)
    return event._replace(kind="ADDED" if before is None else "UPDATED", old_value=before, new_value=new.value)


@record
class ExpiringSplit:
    """Part of the entries of a cache, without entries that had expired when it was created."""

    split: EntrySplit
    now: float

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Yield the entries."""
        now = self.now
        return ((key, stored.value) for key, stored in self.split.read() if now < stored.deadline)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries in columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in self.split.read_arrow():
            stored = batch.column("value")
            inner = pc.struct_field(stored, "value")  # pyright: ignore[reportAttributeAccessIssue]
            schema = pa.schema([batch.schema.field("key"), batch.schema.field("value").type.field("value")])
            alive = pc.less(self.now, pc.struct_field(stored, "deadline"))  # pyright: ignore[reportAttributeAccessIssue]
            yield pa.RecordBatch.from_arrays([batch.column("key"), inner], schema=schema).filter(alive)


@record
class _LiveMerge:
    """Merge of a job's output with present values, unless these have expired."""

    merge: Callable[[Any, Any], Any]
    clock: Clock

    def __call__(self, stored: Expiring[Any], new: Expiring[Any]) -> Expiring[Any] | None:
        old = live(stored, self.clock())
        value = new.value if old is None else self.merge(old, new.value)
        return None if value is None else new._replace(value=value)


@record
class _LiveRevision:
    """Function of new values of existing entries; expired entries remain expired."""

    fn: Callable[[Any, Any], Any]
    expiry: Expiry
    clock: Clock

    def __call__(self, key: Any, stored: Expiring[Any]) -> Expiring[Any]:
        now = self.clock()
        old = live(stored, now)
        return stored if old is None else self.expiry.stamped(self.fn(key, old), now)


@record
class _StampingJob:
    job: WriteJob[MapWriter]
    expiry: Expiry
    clock: Clock

    @property
    def writer(self) -> MapWriter:
        return _StampingWriter(self.job.writer, self.expiry, self.clock)

    @property
    def is_done(self) -> bool:
        return self.job.is_done

    def commit(self, receipts: Sequence[Any]) -> None:
        self.job.commit(receipts)

    def abort(self) -> None:
        self.job.abort()

    def end_empty(self) -> None:
        getattr(self.job, "end_empty", self.job.abort)()


@record
class _StampingWriter(ForwardingWriter):
    """Writer of entries, each with the time at which it is written.

    On re-run: an entry gets the time of the attempt that is committed.
    """

    expiry: Expiry
    clock: Clock

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Any]:
        stamped = ((key, self.expiry.stamped(value, self.clock())) for key, value in entries)
        return self.writer.write_bucket(bucket, stamped)


K = TypeVar("K")


class IStreamCache(IStreamMap[K, V]):
    """A map whose entries expire: `ttl` seconds after writing, `max_idle` seconds after the last use.

    An entry that expired is invisible to every operation. It is removed when a lookup meets it, or by `purge()`.

    Looking an entry up, also with `in`, and changing it are uses; iterating and streams are not. An entry lives at
    least `max_idle` seconds after its last use and at most 1.1 times that: a use is recorded, which is a write, only
    when a tenth of `max_idle` has passed since the last recorded use. `len` and `size()` read every entry, to skip
    expired entries.

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
        """Return whether there is no entry that has not expired; reads no further than the first one."""
        return next(self._pairs(), None) is None

    def purge(self) -> int:
        """Remove the entries that expired; return their number."""
        return self._expiring.purge()

    def journal(self, since: int = 0) -> Iterator[JournalEvent]:
        """Yield the changes after offset `since`, the oldest first; 0 is the start.

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
