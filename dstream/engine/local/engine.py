"""`LocalEngine`: a plan run with iterators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, cast

from dstream.engine.kernels import by_bucket, operation, partial_groups, written, written_entries
from dstream.engine.memory import Bound
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.plan import (
    Collect,
    Concat,
    Configure,
    ForEachPartition,
    Node,
    Op,
    Parallel,
    Read,
    Unordered,
    Write,
    rewrite,
)
from dstream.spi import MapWriter, Writer

__all__ = ["LocalEngine"]


class LocalEngine:
    """Runs plans in the caller's process, one item at a time."""

    name = "local"

    def __init__(self, worker_memory: int) -> None:
        self._worker_memory = worker_memory

    def iterate(self, node: Node) -> Iterator[Any]:
        """Give the items in encounter order, lazily."""
        return _open(rewrite(node), _LocalTask(self._worker_memory))

    def gather_all(self, node: Node) -> list[Any]:
        """Return all items in encounter order."""
        return list(self.iterate(node))

    def partitions(self, node: Node) -> list[Iterator[Any]]:
        """Return the one partition that there is."""
        return [self.iterate(node)]

    def collect(self, node: Collect) -> Any:
        """Reduce the items with the collector of `node`."""
        end = rewrite(node)
        assert isinstance(end, Collect)
        items = _open(end.upstream, _LocalTask(self._worker_memory))
        with naming(end.step):
            return end.collector.collect(items)

    def for_each_partition(self, node: ForEachPartition) -> None:
        """Run the action of `node` on all items, in this process."""
        end = rewrite(node)
        assert isinstance(end, ForEachPartition)
        items = _open(end.upstream, _LocalTask(self._worker_memory))
        with naming(end.step):
            end.action(items)

    def write(self, node: Write) -> list[Any]:
        """Let the writer of `node` take all items, in this process; return its receipts."""
        end = rewrite(node)
        assert isinstance(end, Write)
        assert end.step is not None
        task = _LocalTask(self._worker_memory)
        items = _open(end.upstream, task)
        if end.collector is None:
            return list(written(cast(Writer, end.writer), end.step, items, task))
        assert end.collector.keyed is not None, "entries come from a keyed collector"
        writer = cast(MapWriter, end.writer)
        with naming(end.step):
            groups = partial_groups(items, end.collector, task.bound)
            parts = [part for some in groups for part in by_bucket(writer, some)]
        batches = iter(sorted(parts, key=itemgetter(0)))
        return list(written_entries(writer, end.collector.keyed.downstream, end.step, batches, task))

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Refuse: there are no tables here.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("the local engine has no DataFrames: use to_arrow(), or connect() with the Spark engine")

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class _LocalTask:
    """A task in the caller's process: `peek` calls the action itself."""

    def __init__(self, worker_memory: int) -> None:
        self.bound = Bound(worker_memory)

    def peeking(self, op: Op) -> Callable[[Any], object]:
        return op.fn


def _open(root: Node, task: _LocalTask) -> Iterator[Any]:
    """Open a plan of core nodes: down to where the items come from, then up again, without recursion."""
    path: list[Node] = []
    node = root
    while node.inputs() and not isinstance(node, Concat):
        path.append(node)
        (node,) = node.inputs()
    items = _start(node, task)
    for node in reversed(path):
        items = _apply(node, items, task)
    return items


@functools.singledispatch
def _start(node: Node, task: _LocalTask) -> Iterator[Any]:
    raise AssertionError(f"{node!r} reads from nothing")


@_start.register
def _(node: Read, task: _LocalTask) -> Iterator[Any]:
    with naming(node.step):
        for split in node.source.splits(1):
            yield from split.read()


@_start.register
def _(node: Concat, task: _LocalTask) -> Iterator[Any]:
    return chain.from_iterable(_open(part, task) for part in node.parts)


@functools.singledispatch
def _apply(node: Node, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    return operation(node)(items, task)


@_apply.register(Unordered)
@_apply.register(Parallel)
@_apply.register(Configure)
def _(node: Node, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Leave the items alone: one process has one partition, which is in order."""
    return items
