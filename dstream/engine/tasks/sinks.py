"""Sinks: from the items of one task to rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice
from typing import Any

from dstream.base.memory import BatchPace, Bound, Growth, pieces, small_lists
from dstream.base.records import record
from dstream.engine.tasks.rows import COLUMNS, ITEMS, STOPPED, WAITING, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.failures import naming
from dstream.keys import canonical, stable_hash
from dstream.operators.rows.aggregates import finished_groups
from dstream.operators.rows.batches import Batcher, dumps_items
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected, groups_of_table, tables_of_groups
from dstream.operators.rows.loops import run_branches
from dstream.operators.rows.operations import by_bucket, ops_in_task, written
from dstream.operators.rows.spill import Run, partial_groups
from dstream.plan.steps import Op, Step
from dstream.schema.tables import batches_of, packed_batch
from dstream.spi.collector import Collector
from dstream.spi.sink import MapWriter, Writer

__all__ = [
    "Accumulate",
    "Act",
    "Branch",
    "RouteByKey",
    "RouteByPlace",
    "RoutePartialsToBuckets",
    "RouteToBuckets",
    "Router",
    "WriteColumns",
    "WriteEach",
    "WriteGroups",
    "WriteItems",
    "WriteParts",
    "WritePrefix",
    "first_ones_in_order",
]


_PIECE_BYTES = 4 * 2**20
_CHUNK = 512


@record(slots=False)
class WriteItems:
    """Write the items in batches, in order; `sequence` counts the items before a batch."""

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        written = 0
        for size, data in Batcher().batches(items):
            yield Row(0, task.partition, written, ITEMS, size, data)
            written += size


@record(slots=False)
class WriteParts:
    """Write the items in parts of `size` bytes or a little more: each has its own target, from 0.

    If there is more than one, a last row for target 0 has the number of the remaining rows, and of their bytes.
    """

    size: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        part = buffered = pending = 0
        for row in WriteItems()(items, task):
            if buffered >= self.size:
                part, buffered = part + 1, 0
            buffered += len(row.payload)
            pending += len(row.payload) if part else 0
            yield row._replace(target=part)
        if part:
            yield Row(0, task.partition, pending, WAITING, part, b"")


@record(slots=False)
class WritePrefix:
    """Write the items up to the first that does not satisfy a predicate, and mark its position.

    With `keep_rest`, write all items and mark the position too: where the prefix of all partitions
    ends is known only when every partition before this one has been looked at.
    """

    predicate: Callable[[Any], object]
    keep_rest: bool

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        failed: list[tuple[int, Any]] = []
        written = self._prefix(items, failed)
        if self.keep_rest:
            written = chain(written, (item for _, item in failed), items)
        yield from WriteItems()(written, task)
        for position, _ in failed:
            yield Row(0, task.partition, position, STOPPED, 0, b"")

    def _prefix(self, items: Iterator[Any], failed: list[tuple[int, Any]]) -> Iterator[Any]:
        for position, item in enumerate(items):
            if not self.predicate(item):
                failed.append((position, item))
                return
            yield item


@record(slots=False)
class Accumulate:
    """Write the container of the partition, or its parts, pickled, in pieces of a few megabytes."""

    collector: Collector[Any, Any, Any]
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        parts = self.collector.parts
        with naming(self.step):
            container = collected(self.collector, items)
            for part in (container,) if parts is None else parts(container):
                yield from self._pieces(part, task)

    def _pieces(self, container: Any, task: StageTask) -> Iterator[Row]:
        data = memoryview(dumps_items([container]))
        # In pieces, since Java copies each row several times.
        for number, start in enumerate(range(0, len(data), _PIECE_BYTES)):
            yield Row(0, task.partition, number, ITEMS, 1, bytes(data[start : start + _PIECE_BYTES]))


@record(slots=False)
class WriteGroups:
    """Write (rank, key, finished value) of each group of the only partition."""

    collector: Collector[Any, Any, Any]
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        with naming(self.step):
            found = ColumnItems(finished_groups(self.collector, items, task.bound))
            yield from WriteItems()(found, task)


@record(slots=False)
class WriteColumns:
    """Write the items as Arrow batches, and at the end their schemas, each once."""

    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        schemas: dict[bytes, None] = {}
        with naming(self.step):
            for number, batch in enumerate(batches_of(items)):
                schemas[batch.schema.serialize().to_pybytes()] = None
                yield Row(0, task.partition, number, ITEMS, batch.num_rows, packed_batch(batch))
        for number, schema in enumerate(schemas):
            yield Row(0, task.partition, number, COLUMNS, 0, schema)


@record(slots=False)
class Branch:
    """The chain from a fork to one of several sinks.

    Attributes:
        ops: the steps between the fork and the sink.
        step: the call that writes them.
    """

    ops: tuple[Op, ...]
    writer: Writer
    step: Step


@record(slots=False)
class WriteEach:
    """Pass the items to the writers of all branches in turn; write the receipts of each for its own target.

    The first writer takes the results of its branch as items arrive. The results of the other branches are buffered for
    their writers, on disk past the memory bound; the items themselves, which may be many more, are released.
    """

    branches: tuple[Branch, ...]

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        pending = [WriterBuffer() for _ in self.branches[1:]]
        coming = chain.from_iterable(self._divided(items, pending, task))
        for target, branch in enumerate(self.branches):
            given = iter(pending[target - 1]) if target else coming
            receipts = written(branch.writer, branch.step, given, task)
            for number, (size, data) in enumerate(Batcher().batches(receipts)):
                yield Row(target, task.partition, number, ITEMS, size, data)
            deque(coming, maxlen=0)  # A writer may stop before the last item, but the others need all of theirs.

    def _divided(self, items: Iterator[Any], pending: list[WriterBuffer], task: StageTask) -> Iterator[Iterator[Any]]:
        """Yield the first branch's results for a few items at a time; buffer the results of the other branches."""
        branches: list[list[Op]] = []
        few, pace = 1, BatchPace(_CHUNK)
        while some := list(islice(items, 1)):
            # Services begin with the first item.
            branches = branches or [ops_in_task(branch.ops, task) for branch in self.branches]
            yield run_branches(branches, chain(some, islice(items, few - 1)), [each.taker for each in pending])
            few = pace.look()
            if task.bound.exceeded():
                for each in pending:
                    each.to_disk()
                task.bound.spilled()


class WriterBuffer:
    """The buffer of a writer: pending items in order, first those on disk, then those in memory."""

    def __init__(self) -> None:
        self._run = Run()
        self._held: list[Any] = []

    @property
    def taker(self) -> Callable[[Any], None]:
        """Appends an item; good until `to_disk`."""
        return self._held.append

    def to_disk(self) -> None:
        """Move the buffered rows to disk."""
        self._run.extend(self._held)
        self._held = []

    def __iter__(self) -> Iterator[Any]:
        yield from self._run
        buffered, self._held = self._held, []
        yield from buffered


@record(slots=False)
class Act:
    """Run the user's action on the items; write nothing."""

    action: Callable[[Iterator[Any]], object]
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        with naming(self.step):
            self.action(items)
        return iter(())


class Router:
    """Buffers of each target until a batch is full."""

    def __init__(self, targets: int, task: StageTask) -> None:
        self._task = task
        self._held: list[list[Any]] = [[] for _ in range(targets)]
        self._batcher = Batcher()
        self._sequence = 0

    def rows(self, placed: Iterable[tuple[int, Any]]) -> Iterator[Row]:
        """Take (target, value) pairs; yield a row whenever a batch is full, and at the end the remaining rows."""
        batcher, all_held = self._batcher, self._held
        growth = Growth()
        for piece in pieces(placed, _CHUNK):
            batcher.begin([piece[0][1]])
            count = batcher.count
            for target, value in piece:
                buffered = all_held[target]
                buffered.append(value)
                if len(buffered) >= count:
                    yield self._row(target)
                    count = batcher.count
            # Checked before the names are deleted: a piece can be large and must not be referenced while the next one
            # is made.
            is_much = growth.exceeded(piece)
            del piece, value, buffered  # pyright: ignore[reportPossiblyUnboundVariable] (no piece is empty)
            if is_much:
                yield from self._few_at_a_time()
                growth.start()
        yield from (self._row(target) for target, buffered in enumerate(self._held) if buffered)

    def _few_at_a_time(self) -> Iterator[Row]:
        """Yield the buffers in batches of a few megabytes: containers may have grown since the last measurement."""
        for target in range(len(self._held)):
            buffered, self._held[target] = self._held[target], []
            for few in small_lists(buffered):
                yield self._packed(target, few)

    def _row(self, target: int) -> Row:
        buffered, self._held[target] = self._held[target], []
        return self._packed(target, buffered)

    def _packed(self, target: int, buffered: list[Any]) -> Row:
        data = dumps_items(buffered)
        self._batcher.learn(len(buffered), len(data))
        self._sequence += 1
        return Row(target, self._task.partition, self._sequence, ITEMS, len(buffered), data)


@record(slots=False)
class RouteToBuckets:
    """Combine the items of this partition by key and send keys and their containers to the bucket of each key.

    Attributes:
        targets: the number of tasks that write the buckets.
    """

    collector: Collector[Any, Any, Any]
    writer: MapWriter
    step: Step
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        with naming(self.step):
            yield from _to_buckets(self._groups(items, task), self.writer, task)

    def _groups(self, items: Iterator[Any], task: StageTask) -> Iterator[dict[Any, Any]]:
        tables = tables_of_groups(self.collector, items, task.bound)
        for each in (items,) if tables is None else tables:
            if isinstance(each, Iterable):
                yield from partial_groups(each, self.collector, task.bound, self.writer.bucket_of)
            else:
                yield from groups_of_table(self.collector, each)


@record(slots=False)
class RoutePartialsToBuckets:
    """Send groups, as (keys, containers), to the bucket of each key.

    Attributes:
        targets: the number of tasks that write the buckets.
    """

    writer: MapWriter
    step: Step
    targets: int

    def __call__(self, items: Iterator[tuple[list[Any], list[Any]]], task: StageTask) -> Iterator[Row]:
        groups = (dict(zip(keys, containers, strict=True)) for keys, containers in items)
        with naming(self.step):
            yield from _to_buckets(groups, self.writer, task)


def _to_buckets(all_groups: Iterable[dict[Any, Any]], writer: MapWriter, task: StageTask) -> Iterator[Row]:
    sequence, batcher = count(), Batcher()
    for groups in all_groups:
        for bucket, (keys, containers) in by_bucket(writer, groups):
            for size, data in batcher.pairs(keys, containers):
                yield Row(bucket, task.partition, next(sequence), ITEMS, size, data)


@record(slots=False)
class RouteByKey:
    """Send (position, item) to the target of the item's key, leaving out repetitions in this partition.

    Attributes:
        before: the position of the first item.
    """

    key: Callable[[Any], Any] | None
    targets: int
    step: Step
    before: int = 0

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        placed = (
            (stable_hash(key) % self.targets, (position, item))
            for position, key, item in first_ones_in_order(enumerate(items, self.before), self.key, task.bound)
        )
        with naming(self.step):
            yield from Router(self.targets, task).rows(placed)


def first_ones_in_order(
    placed: Iterator[tuple[int, Any]], key: Callable[[Any], Any] | None, bound: Bound
) -> Iterator[tuple[int, Any, Any]]:
    """Yield (position, canonical key, item) of the first item of each key, again after a key was forgotten."""
    seen: set[Any] = set()
    for piece in pieces(placed, _CHUNK):
        for position, item in piece:
            found = canonical(item if key is None else key(item))
            if found not in seen:
                seen.add(found)
                yield position, found, item
        if bound.exceeded():
            # A forgotten key is sent twice, and its target takes the first of the two.
            seen.clear()
            bound.spilled()


@record(slots=False)
class RouteByPlace:
    """Send ((source, position), item) back to the source of the item, several sources to a target."""

    sources: int
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        # Neighbouring sources share a target, so the order of the targets is that of the sources.
        placed = ((position[0] * self.targets // self.sources, (position, item)) for position, item in items)
        yield from Router(self.targets, task).rows(placed)
