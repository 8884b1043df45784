"""`Sink`: output that many tasks write and one commit makes visible.

The steps of one epoch of a job, and the process of each; a bounded job is one epoch, number 1:

1. The driver opens the target: `sink.open(context)`.
2. The driver begins: `target.begin(job, epoch)`. If `is_done`, the epoch was committed before; nothing else happens.
3. The tasks receive `writer`, pickled, and write where readers do not see it. Each attempt returns receipts: small
   plain data with the location of its output. An attempt may fail at any point, or run twice at the same time; its
   receipts are lost then.
4. The driver collects the receipts of one attempt of each task, in encounter order, and calls `commit(receipts)`, which
   makes everything that they name visible atomically. If anything fails before, it calls `abort()`.

**Any process can commit.** A commit needs only the receipts of the run that wrote the output. A driver may store them
before it commits, with the job and the number of the epoch. If it dies, another process opens the same sink, begins the
same epoch, which publishes and removes nothing, and commits the stored receipts. Output that was not committed is
retained for at least a day.

**Idempotence.** An epoch of a job is committed once, by any process and for any number of calls: the commit of an epoch
that is not newer than the last epoch of its job does nothing. Epochs of a job are committed in the order of their
numbers. The name of a job is unique in a target: two sinks of one job that write into one target use different names.

**What may fail.** `open`, `begin` and `commit` raise an error such as a full disk or an unreachable server. The target
is then unchanged or, if only the response to a commit was lost, in its state after the commit; `commit` may be called
again in either case. An exception of a writer is a failure of the step that writes. `abort` raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from dstream.base.records import record
from dstream.spi.collector import Collector

if TYPE_CHECKING:
    from dstream.spi.store import Kind

__all__ = [
    "Collections",
    "CountingEntries",
    "ForwardingWriter",
    "Grouped",
    "MapWriter",
    "Receipt",
    "Reducer",
    "Sink",
    "Target",
    "WriteJob",
    "Writer",
    "counted_receipts",
    "counting",
]


T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

Receipt: TypeAlias = (
    "bool | int | float | str | bytes | tuple[Receipt, ...] | list[Receipt] | dict[str, Receipt] | None"
)
"""Plain data: what any program can store and load again without running code of anybody."""


@runtime_checkable
class Sink(Protocol[T_contra, R_co]):  # type: ignore[misc]  # No method takes items: the tasks have them.
    """Destination and format of items. A value: it can be pickled, opened many times and in any process.

    A sink that needs all items of a job, so that an unbounded job cannot write into it, has an attribute
    `instead_of_epochs`: a sentence that names the alternative. Other sinks omit it.

    `stream.collect(sink)` writes the items of a stream and returns the result of its target. The functions in
    `reducers` make the sinks of maps, lists and caches.
    """

    @property
    def label(self) -> str:
        """The call that made it as the user wrote it, such as `to_imap('counts')`, for messages and plans."""
        ...

    @property
    def collector(self) -> Collector[Any, Any, Any] | Grouped | None:
        """The collector that makes entries of the items; None: the items are written unchanged.

        A keyed collector makes one entry for the items of each key. They are combined before the shuffle, then sent to
        the one task that writes the bucket of the key, and the target's writer must be a `MapWriter`.
        """
        ...

    @property
    def job(self) -> str | None:
        """The user's name for the job of this sink, which then writes once however often it runs; None: none."""
        ...

    def open(self, context: Collections) -> Target[R_co]:
        """Return the target, made if it is one that can be made; in the driver. Nothing is written to it.

        Args:
            context: has the collections of the storage.
        """
        ...


Reducer = Sink
"""The name of a sink for users of streams: the functions in `reducers` return one."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Entries that `collectors.grouping_by` makes, for sinks that do not import it.

    Attributes:
        classifier: returns the key of an item.
        downstream: collects the items of one key; unset, they become a list.
    """

    classifier: Callable[[Any], Any]
    downstream: Collector[Any, Any, Any] | None = None


class Collections(Protocol):
    """The collections of the context that opens a sink or a source, as users get them from its storage.

    A collection shows its `store`, which sinks write into, and its `source`, which streams read.
    """

    def elsewhere(self, storage: str) -> Collections:
        """Return the collections of another storage.

        Raises:
            ValueError: no storage has such a URL.
            SetupError: a package that it needs is not installed.
        """
        ...

    def existing(self, kind: Kind, name: str) -> Any:
        """Return the collection of that kind and name, or None if it does not exist; it is not created."""
        ...

    def get_map(self, name: str) -> Any:
        """Return the map of that name, created if it does not exist; its `store` is a `MapStore`."""
        ...

    def get_list(self, name: str) -> Any:
        """Return the list of that name, created if it does not exist; its `store` is a `ListStore`."""
        ...

    def get_set(self, name: str) -> Any:
        """Return the set of that name, created if it does not exist; its `store` is a `MapStore` of items and True."""
        ...

    def get_cache(self, name: str) -> Any:
        """Return the cache of that name; its `store` is a `MapStore`.

        Raises:
            CacheNotExistsError: it was never configured.
        """
        ...


class Target(Protocol[R_co]):
    """The opened destination of a sink, in the driver for as long as a job runs.

    A target that retains data of each commit may have a method `tidy(older_than)`. An unbounded job calls it after each
    epoch that it has published, to remove a limited part of the data that is older than this number of seconds.

    A target that writes one file for several epochs has two more methods, for unbounded jobs. `begin_epoch(job, epoch)`
    replaces `begin`: the write job that it returns may defer the publication of its commit, which is final from then on
    and visible later. `show_held(job, is_over=)` publishes deferred output, if it is due or the run of the job is over.
    It is called between epochs and when a run ends, also by a driver that has been replaced.
    """

    def begin(self, job: str | None, epoch: int = 1) -> WriteJob[Writer | MapWriter]:
        """Prepare to write one epoch of a job, or to commit receipts that another process has.

        The target is unchanged for readers, and epochs that other processes have begun are not affected.

        Args:
            job: the name of the job in this target; None: an anonymous job, which only the result of this call can
                commit.
            epoch: its number, from 1 on.
        """
        ...

    def result(self) -> R_co:
        """Return the result for `collect`, once the write is committed, or was so before."""
        ...


W_co = TypeVar("W_co", bound="Writer | MapWriter", covariant=True)


class WriteJob(Protocol[W_co]):
    """Transaction of one epoch of a job, in the driver: tasks write invisibly, the driver commits once."""

    @property
    def writer(self) -> W_co:
        """The part that travels to the tasks."""
        ...

    @property
    def is_done(self) -> bool:
        """Return whether this epoch of the job, or a later one, was committed before; then there is nothing to do."""
        ...

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Make the output that the receipts name visible atomically, in their order if the target is ordered.

        If the epoch was committed meanwhile, nothing happens. It may be called again after a failure.

        Args:
            receipts: the receipts of one attempt of each task, of this run of the epoch or of any other run.

        Raises:
            IllegalStateError: what they name is no more; nothing was changed.
        """
        ...

    def abort(self) -> None:
        """Remove the known output of this run's tasks; raise nothing.

        Afterwards receipts of this run must not be committed. After a commit it has no effect.

        An epoch of an unbounded job without receipts calls `end_empty()` instead, if that method exists: most epochs
        may be empty, and a search for the output of failed attempts is slow.
        """
        ...


class Writer(Protocol):
    """The part of a write job that travels to the tasks, pickled.

    It may have a method `check_item(item)`, which raises the exception that `write` would raise for this item, by its
    type and its fields; it writes nothing, and calls no function of the user's. A sort before it, which buffers all
    items, checks the first items with it, so that items that cannot be written are not sorted. A `MapWriter` receives
    an entry.

    Parallelism: every task writes to a separate location, which is invisible before the commit.
    On re-run: a task may run twice, also at the same time; the receipts of one attempt are committed.
    """

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Write the items of one task, in order; yield receipts: small plain data with their location."""
        ...


class MapWriter(Protocol):
    """A writer of entries, with the contract of `Writer`."""

    @property
    def buckets(self) -> int: ...

    def bucket_of(self, key: Any) -> int:
        """Return the bucket of a key; all keys of a bucket must be written by one task.

        Raises:
            NullElementError: the key is None.
            UnstableKeyError: the type of the key has no stable encoding.
        """
        ...

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Receipt]:
        """Write all entries of one bucket, each key once; yield receipts. Called once for each bucket of an epoch."""
        ...


@record
class ForwardingWriter:
    """A `MapWriter` with the buckets of another one, to which its `write_bucket` forwards the entries."""

    writer: MapWriter

    @property
    def check_item(self) -> Any:
        """The check of the writer, if it has one."""
        return getattr(self.writer, "check_item", None)

    @property
    def buckets(self) -> int:
        return self.writer.buckets

    def bucket_of(self, key: Any) -> int:
        return self.writer.bucket_of(key)


def counting(writer: Writer | MapWriter) -> Writer | MapWriter:
    """Return an equivalent writer that yields one more receipt: the number of items or entries it wrote."""
    if getattr(writer, "write_bucket", None) is not None:
        return CountingEntries(cast(MapWriter, writer))
    return _CountingItems(cast(Writer, writer))


def counted_receipts(receipts: Iterable[Any]) -> tuple[list[Receipt], int]:
    """Return the receipts of the writer itself, and how many items or entries it wrote."""
    found = list(receipts)
    its_own = [receipt[0] for receipt in found if type(receipt) is not int]
    return its_own, sum(receipt for receipt in found if type(receipt) is int)


@record
class _CountingItems:
    writer: Writer

    @property
    def check_item(self) -> Any:
        """The check of the writer, if it has one."""
        return getattr(self.writer, "check_item", None)

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        return _counted(self.writer.write, items)


@record
class CountingEntries(ForwardingWriter):
    """A writer whose last receipt of each bucket is the number of entries; the other receipts are in tuples."""

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Receipt]:
        return _counted(partial(self.writer.write_bucket, bucket), entries)


def _counted(write: Callable[[Iterator[Any]], Iterator[Receipt]], items: Iterator[Any]) -> Iterator[Receipt]:
    numbers = count(1)
    # `compress` takes a number after each item, so the next number is their count, without a call for each item.
    for receipt in write(compress(items, numbers)):
        # In a tuple: a receipt of a user's writer may be an int, too.
        yield (receipt,)
    yield next(numbers) - 1
