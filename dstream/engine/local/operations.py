"""Operations of plans as iterators in one process, and `LocalTask`, their only task.

`start` opens operations without inputs, `apply` applies an operation to the items of its first input. Graphs of
processors and steps over epochs are registered in the module `processors`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import chain
from typing import Any

from dstream.base.memory import Bound, occupied_before
from dstream.base.threads import closing, closing_with
from dstream.engine.calls import Call, Cancellation, Progress
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.display import ProgressFacts
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.operators.rows import gatherers as gatherers
from dstream.operators.rows.aggregates import partial
from dstream.operators.rows.caches import CachedItems, Caches
from dstream.operators.rows.guards import HandlerOfMisread, items_of
from dstream.operators.rows.operations import ItemCount, Watermarks, operation
from dstream.operators.rows.services import TaskServices
from dstream.operators.rows.stack import Depth, relayed, stack_is_deep
from dstream.plan.operations.elementwise import CallResults, ServiceFunction
from dstream.plan.operations.keyed import Aggregate
from dstream.plan.operations.pairs import CoGroup
from dstream.plan.operations.streams import Cache, Concat, Hint, Node, Read, ReadCache, SeveralInputs, Spread, Table
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.properties import bounded_operations, guards_of, is_of_epoch, is_ordered, served_steps
from dstream.plan.steps import Guard, Op, Step
from dstream.plan.walk import CacheContent, topological

__all__ = ["Kinds", "LocalTask", "apply", "no_data_frames", "opened", "opened_later", "splits", "start"]


Kinds = frozenset[type[Node]]
"""The kinds of the operations of a plan."""

_ENDING = frozenset((CallResults, ProcessorGraph))
"""Kinds of operations that close something when their task ends."""


class LocalTask:
    """A task in the caller's process: `peek` calls the action itself.

    Attributes:
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
        caches: the contents of `cache()` steps.
        kinds: the kinds of the operations of the plan.
        operation: shows the progress of the task; None if it is not shown.
        watermarks: the watermarks of the task.
        reads_all: items that a writer has left are read, too.
    """

    partition = 0

    def __init__(
        self,
        worker_memory: int,
        broadcast_limit: int,
        progress: Progress,
        caches: Caches,
        call: Call,
        core: Node,
        kinds: Kinds,
        cancellation: Cancellation,
    ) -> None:
        operations = topological(core)
        self._recovered = RecoveryReport(operations, progress) if any(guards_of(operations)) else None
        self.watermarks = Watermarks()
        self.kinds = kinds
        self.reads_all = is_of_epoch(core)
        self._ending = ExitStack()
        self._services: TaskServices | None = None
        self._has_an_end = (
            self._recovered is not None or not kinds.isdisjoint(_ENDING) or any(True for _ in served_steps(operations))
        )
        self.bound = Bound(worker_memory, occupied_before())
        self.broadcast_limit = broadcast_limit
        self.caches = caches
        self.operation = progress.begin(self._facts)
        self._call = call
        self._core = core
        self._cancellation = cancellation
        self._read = 0

    @functools.cached_property
    def bounded(self) -> dict[int, bool]:
        """Whether the items of each operation are bounded, by its `id`."""
        return bounded_operations(self._core)

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        assert self._recovered is not None, "a plan with guards has a report"
        return self._recovered.taking(guard)

    def at_end(self, close: Callable[[], object]) -> None:
        self._ending.push(closing(close))

    def at_end_with(self, close: Callable[[BaseException | None], object]) -> None:
        self._ending.push(closing_with(close))

    def service(self, served: ServiceFunction, step: Step) -> Any:
        """Return the service of a step: one task is all there is, so there is one for the run."""
        if self._services is None:
            self._services = TaskServices()
            self.at_end(self._services.destroy)
        return self._services.get(served, step)

    def ending(self) -> ExitStack:
        """Close resources at the end, and deliver the dead letters of steps with guards."""
        # No generator of `contextlib`: it sets attributes of an exception, which may refuse them.
        ending = ExitStack()
        # Entered first, so left last: what fails while resources are closed fails the run, which sends no letters.
        if self._recovered is not None:
            ending.enter_context(self._recovered)
        ending.enter_context(self._ending)
        return ending

    def watching(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the items and run the end actions after them, if there are any."""
        return self._watching(items) if self._has_an_end else items

    def _watching(self, items: Iterator[Any]) -> Iterator[Any]:
        with self.ending():
            yield from items

    def peeking(self, op: Op) -> Callable[[Any], object]:
        return op.fn

    def counting(self, op: Op) -> ItemCount:
        counter = ItemCount()
        self.at_end(lambda: op.fn(counter.total()))
        return counter

    def waiting(self) -> AbstractContextManager[None]:
        """Show how far the task is, meanwhile."""
        return self.operation or nullcontext()

    def check(self) -> None:
        """Raise if the run was cancelled.

        Raises:
            CancelledError: it was.
        """
        self._cancellation.check()

    def counted(self, items: Iterable[Any]) -> Iterable[Any]:
        """Yield items as they are read: counted if their number is shown, until the run is cancelled."""
        if self.operation is None and not self._cancellation.is_watched:
            return items
        return self._counted(items)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        # `item` is the name by which a failure finds the item of a loop, and this loop does not look at it.
        for each in items:
            self._cancellation.check()
            self._read += 1
            yield each

    def _facts(self) -> ProgressFacts:
        return ProgressFacts(self._call.title(), self._read)


def no_data_frames() -> UnsupportedError:
    """Return the error where only Spark has tables."""
    return UnsupportedError("the local engine has no DataFrames: use to_arrow(), or connect() with the Spark engine")


def opened(root: Node, task: LocalTask) -> Iterator[Any]:
    """Open a plan: down to the sources, then up again, without recursion."""
    path: list[Node] = []
    node = root
    while node.inputs() and not isinstance(node, _STARTING):
        path.append(node)
        node = node.inputs()[0]
    items, depth = start(node, task), Depth()
    for node in reversed(path):
        applied = apply(node, items, task)
        items = depth.add(applied, _FRAMES_PUT_ASIDE) if isinstance(node, _PUT_ASIDE) else depth.add(applied)
    return items


_STARTING = (Concat, ProcessorGraph)
"""Operations that open each of their inputs themselves."""

_PUT_ASIDE = (Cache, CoGroup, SeveralInputs)
_FRAMES_PUT_ASIDE = 12
"""The most frames of an operation that buffers all items: an aggregate by key has ten (CPython 3.11)."""


def opened_later(root: Node, task: LocalTask) -> Iterator[Any]:
    """Open the plan of a second input when the first item is requested, on a stack with enough room."""
    yield from relayed(opened_later(root, task)) if stack_is_deep() else opened(root, task)


@functools.singledispatch
def start(node: Node, task: LocalTask) -> Iterator[Any]:
    """Open an operation that reads from no other one.

    Raises:
        UnsupportedError: it is none that this engine runs.
    """
    raise UnsupportedError(f"the local engine does not read from {node.label()}")


@start.register
def _(node: Read, task: LocalTask) -> Iterator[Any]:
    return chain.from_iterable(map(task.counted, splits(node, task)))


def splits(node: Read, task: LocalTask) -> Iterator[Iterator[Any]]:
    """Yield the items of each part of a source."""
    misread = HandlerOfMisread(node.guards, task) if node.guards else None
    with naming(node.step):
        for split in node.source.splits(node.parts or 1):
            yield items_of(split, node.step, misread)


@start.register
def _(node: ReadCache, task: LocalTask) -> Iterator[Any]:
    return iter(node.items)


@start.register
def _(node: Table, task: LocalTask) -> Iterator[Any]:
    raise no_data_frames()


@start.register
def _(node: Concat, task: LocalTask) -> Iterator[Any]:
    # Each when it is wanted: the first one may have all that is read, or never end.
    return chain.from_iterable(opened_later(part, task) for part in node.parts)


@functools.singledispatch
def apply(node: Node, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Return the results of an operation for the items of its first input."""
    return operation(node)(items, task)


@apply.register
def _(node: Cache, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Cache all items when the first one is requested."""

    def computed() -> CacheContent:
        kept = CachedItems(items, task.bound)
        return CacheContent(kept, is_ordered(node), len(kept))

    yield from task.caches.kept(node, computed).items


@apply.register
def _(node: Aggregate, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Reduce one input after another, then finish."""
    inputs = [items, *(opened_later(each, task) for each in node.upstreams[1:])]
    parts = (partial(node, number)(each, task) for number, each in enumerate(inputs))
    return operation(node)(chain.from_iterable(parts), task)


@apply.register
def _(node: Spread, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Leave the items alone, as a hint does."""
    return items


@apply.register
def _(node: Hint, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Leave the items alone: one process has one partition, which is in order."""
    return items
