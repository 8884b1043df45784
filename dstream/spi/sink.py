"""`Sink`: output that many tasks write and one commit makes visible.

Who does what, in which process, for one epoch of a job; a bounded job is one epoch, number 1:

1. The driver opens the target: `sink.open(context)`.
2. The driver begins: `target.begin(job, epoch)`. If `is_done`, the epoch was committed before; nothing else happens.
3. The tasks get `writer`, pickled, and write where no reader looks. Each attempt gives receipts: small plain data
   with the location of its output. An attempt may fail anywhere, or run twice at the same time; its receipts are
   lost then.
4. The driver has the receipts of one attempt of each task, in encounter order, and calls `commit(receipts)`: from
   then on everything that they name is visible, all at once. If anything fails before, it calls `abort()`.

**Any process can commit.** Receipts are all that a commit needs of the run that wrote them. A driver may keep them
before it commits, with the job and the number of the epoch. If it dies, another process opens the same sink, begins
the same epoch, which shows nothing and takes nothing back, and commits those receipts. What was written and not
committed stays for a day at least.

**Idempotence.** An epoch of a job is committed once, by any process and however often that asks: a commit of one that
is not newer than the last one of its job does nothing. Epochs of a job are committed in the order of their numbers. A
job has its name in a target for itself: two sinks of one job that write into one target call their jobs differently.

**What may fail.** `open`, `begin` and `commit` raise what stops them, such as a full disk or a server that is not
there. The target is then as it was or, if only the answer to a commit was lost, as it is after the commit; `commit`
may be called again in either case. What a writer raises is a failure of the step that writes. `abort` raises nothing.
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

    A sink that means all items of a job at once, so that a job without an end cannot write into it, has an attribute
    `instead_of_epochs`: a sentence on what to use. Others leave it out.

    `stream.collect(sink)` writes the items of a stream and returns what its target gives. The functions in `reducers`
    make the sinks of maps, lists and caches.
    """

    @property
    def label(self) -> str:
        """The call that made it as the user wrote it, such as `to_imap('counts')`, for messages and plans."""
        ...

    @property
    def collector(self) -> Collector[Any, Any, Any] | Grouped | None:
        """The collector that makes entries of the items; None: the items are written as they are.

        A keyed collector makes one entry for the items of each key. They are combined where the items are, then sent to
        the one task that has the bucket of the key, and the target's writer must be a `MapWriter`.
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
        classifier: gives the key of an item.
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
        """Return the collection of that kind and name, or None if there is none, which is then not made."""
        ...

    def get_map(self, name: str) -> Any:
        """Return the map of that name, made if there is none; its `store` is a `MapStore`."""
        ...

    def get_list(self, name: str) -> Any:
        """Return the list of that name, made if there is none; its `store` is a `ListStore`."""
        ...

    def get_set(self, name: str) -> Any:
        """Return the set of that name, made if there is none; its `store` is a `MapStore` of items and True."""
        ...

    def get_cache(self, name: str) -> Any:
        """Return the cache of that name; its `store` is a `MapStore`.

        Raises:
            CacheNotExistsError: it was never configured.
        """
        ...


class Target(Protocol[R_co]):
    """The opened destination of a sink, in the driver for as long as a job runs.

    A target that keeps something of each commit may have a method `tidy(older_than)`. A job without an end calls it
    behind each epoch that it has published: remove a little of what is older than this number of seconds.

    A target that makes one file of several epochs has two methods more, for jobs without an end. `begin_epoch(job,
    epoch)` takes the place of `begin`: what it returns may hold back what it commits, which is decided from then on
    and seen later. `show_held(job, is_over=)` shows what is held back, if it is time or the run of the job is over. It
    is called between epochs and when a run ends, also by a driver that has been replaced.
    """

    def begin(self, job: str | None, epoch: int = 1) -> WriteJob[Writer | MapWriter]:
        """Prepare to write one epoch of a job, or to commit receipts that another process has.

        Readers of the target see no difference, and what other processes have begun stays as it is.

        Args:
            job: names the job in this target; None: a job of its own, which only what this call returns can commit.
            epoch: its number, from 1 on.
        """
        ...

    def result(self) -> R_co:
        """Return the result for `collect`, once the write is committed, or was so before."""
        ...


W_co = TypeVar("W_co", bound="Writer | MapWriter", covariant=True)


class WriteJob(Protocol[W_co]):
    """One epoch of a job on its way into a target, in the driver: tasks write invisibly, the driver commits once."""

    @property
    def writer(self) -> W_co:
        """The part that travels to the tasks."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether this epoch of the job, or a later one, was committed before; then there is nothing to do."""
        ...

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Make everything that the receipts name visible at once, in their order if the target has one.

        If the epoch was committed meanwhile, nothing happens. It may be called again after a failure.

        Args:
            receipts: those of one attempt of each task, of this run of the epoch or of any other one.

        Raises:
            IllegalStateError: what they name is no more; nothing was changed.
        """
        ...

    def abort(self) -> None:
        """Remove the output of this run's tasks, as far as it is known; raises nothing.

        Afterwards receipts of this run must not be committed. After a commit it takes back nothing.

        An epoch of an unbounded job that gave no receipts calls `end_empty()` in its place, if there is such a method:
        most epochs may be so, and a search for what attempts have left takes its time.
        """
        ...


class Writer(Protocol):
    """The part of a write job that travels to the tasks, pickled.

    It may have a method `check_item(item)`, which raises what `write` would raise for this item, by its type and its
    fields; it writes nothing, and calls no function of the user's. A sort before it, which keeps all items, looks at
    its first ones with it, so that nothing is sorted that cannot be written. A `MapWriter` is given an entry.

    Parallelism: every task writes on its own, to a place of its own, which is invisible before the commit.
    On re-run: a task may run twice, also at the same time; the receipts of one attempt are committed.
    """

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Write the items of one task, in order; give receipts: small plain data with their location."""
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
        """Write all entries of one bucket, each key once; give receipts. Each bucket of an epoch has one call."""
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
    """Return a writer that does the same, and gives one more receipt: how many items or entries it wrote."""
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
    """A writer whose last receipt of each bucket is the number of entries; the others are in tuples."""

    def write_bucket(self, bucket: int, entries: Iterator[tuple[Any, Any]]) -> Iterator[Receipt]:
        return _counted(partial(self.writer.write_bucket, bucket), entries)


def _counted(write: Callable[[Iterator[Any]], Iterator[Receipt]], items: Iterator[Any]) -> Iterator[Receipt]:
    numbers = count(1)
    # `compress` takes a number behind each item, so the next one is their count, without a call for each item.
    for receipt in write(compress(items, numbers)):
        # In a tuple: a receipt of a user's writer may be an int, too.
        yield (receipt,)
    yield next(numbers) - 1
