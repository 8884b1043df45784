"""The core operations on the items of one partition, with item counts and watermarks of tasks.

`operation(node)` returns an operation as a function without the node's inputs, so that it can be sent to a worker. The
local engine runs nothing else; Spark runs the same functions inside its stages.

A task that reads a partition to its end has its watermark, which is sent after the items to the downstream tasks. So a
task that has read all its input has the watermarks of all partitions upstream of it.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, dropwhile, groupby, islice, takewhile
from operator import itemgetter
from typing import Any, Protocol

from dstream.base.memory import Bound, pieces
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.operators.rows.blocks import SEQUENCES, ColumnItems, blocks_behind, stretches
from dstream.operators.rows.guards import recovering
from dstream.operators.rows.loops import run_chain
from dstream.operators.rows.spill import distinct_items, merged, sorted_items, top_items
from dstream.operators.rows.stack import FRAMES_OF_AN_OPERATION, Depth
from dstream.plan.operations.elementwise import Chain, ServiceFunction
from dstream.plan.operations.keyed import Distinct
from dstream.plan.operations.sort_limit import DropWhile, Limit, Skip, Sorted, TakeWhile, Top
from dstream.plan.operations.streams import Node
from dstream.plan.steps import EarlyCheck, Guard, KeyInColumns, Op, Step, column_steps
from dstream.spi.collector import Collector, identity
from dstream.spi.sink import MapWriter, Writer
from dstream.values.time import END_OF_TIME

__all__ = [
    "ItemCount",
    "OfPartitions",
    "Operation",
    "Task",
    "Watermarks",
    "by_bucket",
    "in_chain",
    "one_by_one",
    "operated",
    "operation",
    "ops_in_task",
    "some",
    "written",
    "written_entries",
]


class ItemCount:
    """Counter of items.

    Attributes:
        each: counts one item, in C code.
        of_open_block: returns the number of items consumed of the current block.
    """

    __slots__ = ("_many", "_ones", "each", "of_open_block")

    def __init__(self) -> None:
        self._ones = count()
        self._many = 0
        self.each: Callable[[Any], object] = functools.partial(next, self._ones)
        self.of_open_block: Callable[[], int] | None = None

    def __call__(self, item: Any) -> object:
        return self.each(item)

    def add(self, items: int) -> None:
        """Count many items."""
        self._many += items

    def total(self) -> int:
        """Return the number; can be called once."""
        # Reading a `count` advances it by one: a second total would be too large.
        return next(self._ones) + self._many + (self.of_open_block() if self.of_open_block else 0)


def one_by_one(ops: Sequence[Op]) -> Sequence[Op]:
    """Return the steps for a loop over items: a step that counts is called for each of them."""
    if all(op.action != "count" for op in ops):
        return ops
    return [replace(op, action="peek", fn=op.fn.each) if isinstance(op.fn, ItemCount) else op for op in ops]


OfPartitions = dict[tuple[str, tuple[str, str]], int]
"""Watermarks by the stage that assigns timestamps and the partition of the source."""


class Watermarks:
    """The watermarks that have reached a task."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OfPartitions = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def take(self, of_partitions: Mapping[tuple[str, tuple[str, str]], int]) -> None:
        """Add watermarks; a partition that was read in parts has the least watermark of its parts."""
        known = self._known
        for partition, watermark in of_partitions.items():
            known[partition] = min(watermark, known.get(partition, watermark))

    def all(self) -> OfPartitions:
        """Return all watermarks."""
        return dict(self._known)

    def least(self, stamps: Collection[str]) -> int:
        """Return the least watermark of the stages `stamps`, which assign timestamps; `END_OF_TIME` by default."""
        of_these = (watermark for (stamp, _), watermark in self._known.items() if stamp in stamps)
        return min(of_these, default=END_OF_TIME)


class Task(Protocol):
    """The task that runs an operation.

    Attributes:
        partition: its number among the tasks of its stage.
        bound: the limit of its memory.
        watermarks: the watermarks that have arrived: of all upstream partitions, when all of its input is read.
        reads_all: items that a writer does not read are read too, since the range of an epoch counts as read.
    """

    partition: int
    bound: Bound
    watermarks: Watermarks
    reads_all: bool

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        """Return a function that records each item that a step failed on."""
        ...

    def at_end(self, close: Callable[[], object]) -> None:
        """Call `close` when the task ends, however it ends."""
        ...

    def at_end_with(self, close: Callable[[BaseException | None], object]) -> None:
        """Call `close` at the end of the task with its error; None if it did not fail, also if it was left early."""
        ...

    def peeking(self, op: Op) -> Callable[[Any], object]:
        """Return the function that a `peek` step calls for each item."""
        ...

    def counting(self, op: Op) -> ItemCount:
        """Return the counter of the items; the function of `op` gets the number at the end."""
        ...

    def service(self, served: ServiceFunction, step: Step) -> Any:
        """Return the service of a step: made now, or for an earlier step or task that shares it."""
        ...


Operation = Callable[[Iterator[Any], Task], Iterator[Any]]


def operated(operations: Sequence[Operation], items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Return the results of any number of operations, one after another."""
    # One half of Python's limit is for the operations, the other for the caller and the user's functions.
    is_deep = len(operations) * FRAMES_OF_AN_OPERATION >= sys.getrecursionlimit() // 2
    depth = Depth() if is_deep else None
    for each in operations:
        made = each(items, task)
        items = made if depth is None else depth.add(made)
    return items


@functools.singledispatch
def operation(node: Node) -> Operation:
    """Return the operation of `node` on its input, as a function that can be pickled."""
    raise UnsupportedError(f"neither the local engine nor a task of Spark runs {node.label()} on its items")


@operation.register
def _(node: Chain) -> Operation:
    return functools.partial(_chain, node.ops)


def _chain(ops: Sequence[Op], items: Iterator[Any], task: Task) -> Iterator[Any]:
    if any(op.guards or op.action in ("peek", "count") or isinstance(op.fn, ServiceFunction) for op in ops):
        if any(isinstance(op.fn, ServiceFunction) for op in ops):
            return _served(ops, items, task)
        ops = [_in_task(op, task) for op in ops]
    return in_chain(ops, items)


def in_chain(ops: Sequence[Op], items: Iterator[Any]) -> Iterator[Any]:
    """Return the results of steps that need nothing of a task any more: in columns, if possible."""
    return _in_columns(ops, items) or run_chain(one_by_one(ops), items)


def _in_columns(ops: Sequence[Op], items: Iterator[Any]) -> Iterator[Any] | None:
    """Return the results of steps in columns; None if the items are no columns, or the first step takes none.

    Steps that count take columns and items alike.
    """
    if type(items) is not ColumnItems and type(items) not in SEQUENCES:
        return None
    first = column_steps(ops)
    if not first:
        return _counted_in_columns(ops, items)
    work = sum(op.evaluation.operators for op in first)
    # To put items into pairs is no reason to make columns of them.
    blocks = items.blocks() if type(items) is ColumnItems else stretches(items, work) if work else None
    if blocks is None:
        return None
    from dstream.operators.columns.chain_evaluation import column_chain  # loads NumPy

    return column_chain(ops, first, blocks)


def _counted_in_columns(ops: Sequence[Op], items: Iterator[Any]) -> Iterator[Any] | None:
    if type(items) is not ColumnItems or any(op.action != "count" for op in ops):
        return None
    from dstream.operators.columns.chain_evaluation import counted_items  # loads NumPy, which made the columns

    return counted_items(ops, items)


def _served(ops: Sequence[Op], items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Bind services when the first item arrives; a task without items needs none."""
    # The loop runs once, or not at all without items: the chain uses up the iterator.
    for first in items:
        bound = [_bound(op, task) for op in ops]
        yield from _chain(bound, chain((first,), items), task)


def _bound(op: Op, task: Task) -> Op:
    if not isinstance(op.fn, ServiceFunction):
        return op
    return dataclasses.replace(op, fn=op.fn.bound(task.service(op.fn, op.step)))


def ops_in_task(ops: Iterable[Op], task: Task) -> list[Op]:
    """Return steps with the services and the channels of a task, which has an item."""
    return [*one_by_one([_in_task(_bound(op, task), task) for op in ops])]


def _in_task(op: Op, task: Task) -> Op:
    if op.action == "peek":
        return dataclasses.replace(op, fn=task.peeking(op))
    if op.action == "count":
        return dataclasses.replace(op, fn=task.counting(op))
    return recovering(op, task) if op.guards else op


@operation.register
def _(node: Limit) -> Operation:
    return functools.partial(_limit, node.count)


def _limit(count: int, items: Iterator[Any], task: Task) -> Iterator[Any]:
    return some(items, 0, count)


def some(items: Iterator[Any], start: int, stop: int | None) -> Iterator[Any]:
    """Return the items from position `start` to `stop`, which may be larger than `islice` accepts."""
    return islice(items, min(start, sys.maxsize), None if stop is None else min(stop, sys.maxsize))


@operation.register
def _(node: Skip) -> Operation:
    return functools.partial(_skip, node.count)


def _skip(count: int, items: Iterator[Any], task: Task) -> Iterator[Any]:
    if type(items) is not ColumnItems:
        return some(items, count, None)
    blocks = blocks_behind(items.blocks(), count)
    return ColumnItems(blocks, some(items, count, None) if items.is_read else None)


@operation.register
def _(node: TakeWhile) -> Operation:
    return functools.partial(_take_while, node.step.guard(node.predicate, is_predicate=True))


def _take_while(predicate: Callable[[Any], object], items: Iterator[Any], task: Task) -> Iterator[Any]:
    return takewhile(predicate, items)


@operation.register
def _(node: DropWhile) -> Operation:
    return functools.partial(_drop_while, node.step.guard(node.predicate, is_predicate=True))


def _drop_while(predicate: Callable[[Any], object], items: Iterator[Any], task: Task) -> Iterator[Any]:
    return dropwhile(predicate, items)


@operation.register
def _(node: Distinct) -> Operation:
    return functools.partial(_distinct, node.step, guarded(node))


def _distinct(step: Step, key: Callable[[Any], Any] | None, items: Iterator[Any], task: Task) -> Iterator[Any]:
    with naming(step):
        yield from distinct_items(items, key, task.bound)


@operation.register
def _(node: Sorted) -> Operation:
    return functools.partial(_sorted, node.step, node.key, node.reverse, node.looks)


def _sorted(
    step: Step,
    key: Callable[[Any], Any] | None,
    reverse: bool,
    looks: Sequence[EarlyCheck],
    items: Iterator[Any],
    task: Task,
) -> Iterator[Any]:
    items = _looked_at(items, looks)
    with naming(step):
        yield from sorted_items(items, key, reverse, task.bound)


def _looked_at(items: Iterator[Any], looks: Sequence[EarlyCheck]) -> Iterator[Any]:
    """Return the items after passing the first one to the early checks."""
    if not looks:
        return items
    # The range is first: it ends the `zip` before a second item is read.
    first = list(zip(range(1), items, strict=False))
    for _, item in first:
        for look in looks:
            look.at(item)
    return chain((item for _, item in first), items)


@operation.register
def _(node: Top) -> Operation:
    return functools.partial(_top, node.step, node.count, node.key, node.reverse, node.columns)


def _top(
    step: Step,
    count: int,
    key: Callable[[Any], Any] | None,
    reverse: bool,
    columns: KeyInColumns | None,
    items: Iterator[Any],
    task: Task,
) -> Iterator[Any]:
    with naming(step):
        if columns is not None and columns.expression is not None and type(items) is ColumnItems and count:
            from dstream.operators.columns.top import top_of_blocks  # loads NumPy, which made the columns

            yield from top_of_blocks(items.blocks(), count, key, reverse, columns, step.label)
        else:
            yield from top_items(items, count, key, reverse)


def written(writer: Writer, step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Write the items with `writer`; yield its receipts."""
    with naming(step):
        yield from writer.write(items)
        # A writer may stop early, and the whole range of an epoch counts as read.
        if task.reads_all:
            deque(items, maxlen=0)


def by_bucket(writer: MapWriter, groups: Mapping[Any, Any]) -> list[tuple[int, tuple[list[Any], list[Any]]]]:
    """Return (bucket, (keys, containers)) of {key: container}, in the order of the buckets.

    Two lists are pickled and concatenated faster than a list of pairs.
    """
    buckets: dict[int, tuple[list[Any], list[Any]]] = {}
    for bucket, key, container in zip(map(writer.bucket_of, groups), groups, groups.values(), strict=True):
        if bucket not in buckets:
            buckets[bucket] = ([], [])
        keys, containers = buckets[bucket]
        keys.append(key)
        containers.append(container)
    return sorted(buckets.items(), key=itemgetter(0))


def written_entries(
    writer: MapWriter,
    downstream: Collector[Any, Any, Any],
    step: Step,
    batches: Iterator[Any],
    task: Task,
    through: Collector[Any, Any, Any] | None = None,
) -> Iterator[Any]:
    """Combine (bucket, (keys, containers)), sorted by bucket; write the entries with `writer`; yield its receipts.

    With a collector `through`, each finished entry passes through it before it is written.
    """
    with naming(step):
        for bucket, parts in groupby(batches, key=itemgetter(0)):
            entries: Iterator[Any] = merged((batch for _, batch in parts), downstream.combined, task.bound)
            if downstream.finisher is not identity:
                entries = downstream.finished(entries)
            if through is not None:
                groups = (through.accumulated(through.supplier(), some) for some in pieces(entries, _CHUNK))
                entries = chain.from_iterable(each.items() for each in groups)
            yield from writer.write_bucket(bucket, entries)


_CHUNK = 512


def guarded(node: Distinct) -> Callable[[Any], Any] | None:
    """Return the key function of `node` so that its exceptions name the step and the item."""
    return None if node.key is None else node.step.guard(node.key)
