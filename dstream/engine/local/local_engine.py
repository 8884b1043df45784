"""`LocalEngine`: a plan run with iterators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import chain, count
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from dstream.engine.kernels import concurrent_calls as concurrent_calls  # each registers its nodes
from dstream.engine.kernels import gather as gather
from dstream.engine.kernels import over_epochs as over_epochs
from dstream.engine.kernels import stamping as stamping
from dstream.engine.kernels import stateful as stateful
from dstream.engine.kernels.aggregates import partial
from dstream.engine.kernels.arrow_columns import batches_of, table_of
from dstream.engine.kernels.cached_items import KeptItems
from dstream.engine.kernels.caches import Caches
from dstream.engine.kernels.core_operations import by_bucket, operation, partial_groups, written, written_entries
from dstream.engine.kernels.graph_processing import in_turn, whole
from dstream.engine.kernels.guards import HandlerOfMisread, Recovered
from dstream.engine.kernels.hash_join import Matching, cogrouped, matched
from dstream.engine.kernels.join_sides import sides_of
from dstream.engine.kernels.long_plans import Depth, relayed, stack_is_deep
from dstream.engine.kernels.lookup_tables import LookupTable, RightSide, looked_up, table_here
from dstream.engine.kernels.made_services import MadeServices, closing
from dstream.engine.kernels.membership import Membership
from dstream.engine.kernels.nearest import Nearest
from dstream.engine.kernels.over_epochs import reducing
from dstream.engine.kernels.reading import items_of
from dstream.engine.kernels.supplied_graphs import supplied
from dstream.engine.kernels.watermarks import Watermarks
from dstream.engine.kernels.zipping import SideBySide
from dstream.engine.local.groups_of_graphs import entries_of_graph
from dstream.engine.memory_bound import DEFAULT_BROADCAST, Bound
from dstream.engine.progress import Call, Facts, Progress
from dstream.engine.submitted import Cancellation, Submitted
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.plan.core import (
    Cache,
    Called,
    Chain,
    Collect,
    Columns,
    Concat,
    Core,
    End,
    ForEachPartition,
    Hint,
    Loop,
    Partitions,
    Read,
    Recall,
    Table,
    ToList,
    Unary,
    Write,
)
from dstream.plan.core_of_epochs import OverEpochs
from dstream.plan.core_of_forks import Several
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_pairs import AsOf, CoGroup, HashJoin, Join, SemiJoin, TwoStreams, Zip
from dstream.plan.core_of_services import Served, served_steps
from dstream.plan.core_of_stages import Aggregate, Spread
from dstream.plan.graph_parallelism import cores_here
from dstream.plan.properties import bounded_operations, check, is_of_epoch, is_ordered
from dstream.plan.recalling import Cached, of_one_run, recalled
from dstream.plan.steps import Guard, Op, Step
from dstream.plan.walk import topological
from dstream.spi import MapWriter, Writer

if TYPE_CHECKING:
    from dstream.plan.vertex_graph import GraphEdge

__all__ = ["LocalEngine"]

_UNSEEN = Progress(asked=False)


class LocalEngine:
    """Runs plans in the caller's process, one item at a time.

    Args:
        caches: what is kept of `cache()` steps, also by another engine of the same context; unset, by this one alone.
        broadcast_limit: how many bytes the right side of a hash join may have that does not say it itself.
    """

    name = "local"

    def __init__(
        self,
        worker_memory: int,
        progress: Progress = _UNSEEN,
        caches: Caches | None = None,
        broadcast_limit: int = DEFAULT_BROADCAST,
    ) -> None:
        self._worker_memory = worker_memory
        self._broadcast_limit = broadcast_limit
        self._progress = progress
        self._caches = Caches() if caches is None else caches

    def submit(self, end: End | Several) -> Submitted:
        """Return a run of the plan in this process."""
        call = None if end.label() else Call.of_user()
        return Submitted(functools.partial(self._run, end, call))

    def _run(self, plan: End | Several, call: Call | None, cancellation: Cancellation) -> Any:
        if isinstance(plan, Several):
            check(plan, needs_end=True)
        end = recalled(of_one_run(plan), self._caches.found)
        call = call or Call.of_step(end.step)
        if isinstance(end, Loop | Partitions):
            return _lazily(end, self._task(end, call, cancellation))
        with supplied(end, cores_here) as end:
            task = self._task(end, call, cancellation)
            with task.ending(), task.waiting():
                if isinstance(end, Several):
                    return [self._result(each, task) for each in end.ends]
                return self._result(end, task)

    def _task(self, end: End | Several, call: Call, cancellation: Cancellation) -> _LocalTask:
        return _LocalTask(
            self._worker_memory, self._broadcast_limit, self._progress, self._caches, call, end, cancellation
        )

    def _result(self, end: End, task: _LocalTask) -> Any:
        entries = entries_of_graph(end, lambda node: _open(node, task), task) if isinstance(end, Write) else None
        items, step = _open(end.upstream, task) if entries is None else entries, end.step
        match end:
            case ToList():
                return list(items)
            case Write():
                return self._receipts(end, step, items, task)
            case Columns(is_frame=True):
                raise _no_data_frames()
        with naming(step):
            match end:
                case Collect(collector=collector):
                    return collector.finisher(collector.accumulated(collector.supplier(), items))
                case ForEachPartition(action=action):
                    action(items)
                    return None
                case Columns():
                    return table_of(batches_of(items))
        raise UnsupportedError(f"the local engine does not run a plan that ends in {end!r}")

    def _receipts(self, end: Write, step: Step, items: Iterator[Any], task: _LocalTask) -> list[Any]:
        if end.collector is None:
            return list(written(cast(Writer, end.writer), step, items, task))
        assert end.collector.keyed is not None, "entries come from a keyed collector"
        writer = cast(MapWriter, end.writer)
        with naming(step):
            groups = partial_groups(items, end.collector, task.bound)
            parts = [part for some in groups for part in by_bucket(writer, some)]
        batches = iter(sorted(parts, key=itemgetter(0)))
        return list(written_entries(writer, end.collector.keyed.downstream, step, batches, task))

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Refuse: there are no tables here.

        Raises:
            UnsupportedError: always.
        """
        raise _no_data_frames()

    def cores(self) -> int:
        """Return on how many cores this process may run; one task uses one of them."""
        return cores_here()

    def is_lost(self) -> bool:
        """Say no: it runs in this process."""
        return False

    def close(self) -> None:
        """Let go of what `cache()` steps keep."""
        self._caches.clear()


def _lazily(end: Loop | Partitions, task: _LocalTask) -> Any:
    """Return the items one after another, or the one partition that there is."""
    items = _open(end.upstream, task)
    items = task.watching(items if task.operation is None else task.operation.lazily(items))
    return items if isinstance(end, Loop) else [items]


def _no_data_frames() -> UnsupportedError:
    """Return what is raised where only Spark has tables."""
    return UnsupportedError("the local engine has no DataFrames: use to_arrow(), or connect() with the Spark engine")


class _LocalTask:
    """A task in the caller's process: `peek` calls the action itself.

    Attributes:
        broadcast_limit: how many bytes the right side of a hash join may have that does not say it itself.
        caches: what is kept of `cache()` steps.
        operation: shows how far the task is; None if nobody wants to see it.
        watermarks: those that it knows.
        reads_all: also what a writer leaves is read.
    """

    partition = 0

    def __init__(
        self,
        worker_memory: int,
        broadcast_limit: int,
        progress: Progress,
        caches: Caches,
        call: Call,
        core: Core,
        cancellation: Cancellation,
    ) -> None:
        self._recovered = Recovered(core, progress)
        self.watermarks = Watermarks()
        self.reads_all = is_of_epoch(core)
        self._ending = ExitStack()
        self._services = MadeServices()
        has_calls = any(isinstance(each, Called) for each in topological(core))
        self._has_an_end = bool(self._recovered) or has_calls or any(True for _ in served_steps(core))
        self.bound = Bound(worker_memory)
        self.broadcast_limit = broadcast_limit
        self.caches = caches
        self.operation = progress.begin(self._facts)
        self._call = call
        self._core = core
        self._cancellation = cancellation
        self._read = 0

    @functools.cached_property
    def bounded(self) -> dict[int, bool]:
        """Whether the items of each operation end, by its `id`."""
        return bounded_operations(self._core)

    def noting(self, guard: Guard) -> Callable[[Any], object]:
        return self._recovered.taking(guard)

    def at_end(self, close: Callable[[], object]) -> None:
        self._ending.push(closing(close))

    def service(self, served: Served, step: Step) -> Any:
        """Return what the service of a step gives: one task is all there is, so there is one for the run."""
        if not self._services:
            self.at_end(self._services.destroy)
        return self._services.get(served, step)

    def ending(self) -> ExitStack:
        """Close at the end what has to be closed, and deliver what steps with guards failed on."""
        # No generator of `contextlib`: it sets attributes of an exception, which may refuse them.
        ending = ExitStack()
        ending.enter_context(self._recovered)
        ending.enter_context(self._ending)
        return ending

    def watching(self, items: Iterator[Any]) -> Iterator[Any]:
        """Give the items and do the same at their end; most plans need no end."""
        return self._watching(items) if self._has_an_end else items

    def _watching(self, items: Iterator[Any]) -> Iterator[Any]:
        with self.ending():
            yield from items

    def peeking(self, op: Op) -> Callable[[Any], object]:
        return op.fn

    def counting(self, op: Op) -> Callable[[Any], object]:
        counter = count()
        self.at_end(lambda: op.fn(next(counter)))
        return functools.partial(next, counter)

    def waiting(self) -> AbstractContextManager[None]:
        """Show how far the task is, meanwhile."""
        return self.operation or nullcontext()

    def check(self) -> None:
        """Go on only if nobody has cancelled the run.

        Raises:
            CancelledError: somebody has.
        """
        self._cancellation.check()

    def counted(self, items: Iterable[Any]) -> Iterable[Any]:
        """Give items as they are read: counted if anybody wants to see the number, until the run is cancelled."""
        if self.operation is None and not self._cancellation.is_watched:
            return items
        return self._counted(items)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        # `item` is the name by which a failure finds the item of a loop, and this loop does not look at it.
        for each in items:
            self._cancellation.check()
            self._read += 1
            yield each

    def _facts(self) -> Facts:
        return Facts(self._call.title(), self._read)


def _open(root: Core, task: _LocalTask) -> Iterator[Any]:
    """Open a plan: down to where the items come from, then up again, without recursion."""
    path: list[Core] = []
    node = root
    while isinstance(node, Unary | TwoStreams | Aggregate | OverEpochs) and node.inputs():
        path.append(node)
        node = node.inputs()[0]
    items, depth = _start(node, task), Depth()
    for node in reversed(path):
        given = _apply(node, items, task)
        items = depth.add(given, _FRAMES_PUT_ASIDE) if isinstance(node, _PUT_ASIDE) else depth.add(given)
    return items


_PUT_ASIDE = (Aggregate, Cache, CoGroup, OverEpochs)
_FRAMES_PUT_ASIDE = 12
"""How many frames one has that puts all items aside, at most: an aggregate by key has ten (CPython 3.11)."""


def _open_later(root: Core, task: _LocalTask) -> Iterator[Any]:
    """Open a plan that another one reads beside its own when the first item is asked for, on a stack with room."""
    yield from relayed(_open_later(root, task)) if stack_is_deep() else _open(root, task)


@functools.singledispatch
def _start(node: Core, task: _LocalTask) -> Iterator[Any]:
    raise UnsupportedError(f"the local engine does not read from {node.label()}")


@_start.register
def _(node: Read, task: _LocalTask) -> Iterator[Any]:
    return chain.from_iterable(map(task.counted, _splits(node, task)))


def _splits(node: Read, task: _LocalTask) -> Iterator[Iterator[Any]]:
    misread = HandlerOfMisread(node.guards, task) if node.guards else None
    with naming(node.step):
        for split in node.source.splits(1):
            yield items_of(split, node.step, misread)


@_start.register
def _(node: Recall, task: _LocalTask) -> Iterator[Any]:
    return iter(node.items)


@_start.register
def _(node: Table, task: _LocalTask) -> Iterator[Any]:
    raise _no_data_frames()


@_start.register
def _(node: Concat, task: _LocalTask) -> Iterator[Any]:
    return chain.from_iterable(_open_later(part, task) for part in node.parts)


@_start.register
def _(node: Processing, task: _LocalTask) -> Iterator[Any]:
    """Run all processors in this process."""
    inlets = node.graph.inlets
    streams = [_of_senders(edge, each, task) for edge, each in zip(inlets, node.upstreams, strict=True)]
    runs = whole(node, cores_here(), list(map(len, streams)), task.check)
    return runs(in_turn(inlets, streams, task), task)


def _of_senders(edge: GraphEdge, node: Core, task: _LocalTask) -> list[Iterator[Any]]:
    """Return the items of each part of a source that sends by an edge, if that matters."""
    path, root = [], node
    while isinstance(root, Chain):
        path.append(root)
        root = root.upstream
    if not edge.knows_senders or not isinstance(root, Read):
        return [_open_later(node, task)]
    parts = [iter(task.counted(split)) for split in _splits(root, task)]
    for each in reversed(path):
        parts = [_apply(each, items, task) for items in parts]
    return parts


@_start.register
def _(node: OverEpochs, task: _LocalTask) -> Iterator[Any]:
    """Let time pass for a step that reads nothing."""
    return operation(node)(iter(()), task)


@functools.singledispatch
def _apply(node: Core, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    return operation(node)(items, task)


@_apply.register
def _(node: Cache, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Keep all items when the first one is asked for."""

    def computed() -> Cached:
        kept = KeptItems(items, task.bound)
        return Cached(kept, is_ordered(node), len(kept))

    yield from task.caches.kept(node, computed).items


@_apply.register
def _(node: Join, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Hold the right side, unless it never ends, while the left one passes by."""
    left, right = sides_of(node)
    lefts, rights = left.pairs(items), right.pairs(_open_later(node.right, task))
    bound = task.bound if task.bounded[id(node)] else _NONE
    if task.bounded[id(node.right)]:
        return matched(rights, lefts, Matching.of(node.how, holds_left=False), bound)
    return matched(lefts, rights, Matching.of(node.how, holds_left=True), bound)


_NONE = Bound(2**62)
"""An endless side can only pass by what is held in memory."""


@_apply.register
def _(node: SemiJoin, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Hold the keys of the right side while the left one passes by."""
    left, right = sides_of(node)
    bound = task.bound if task.bounded[id(node)] else _NONE
    rights = right.pairs(_open_later(node.right, task))
    return Membership(not node.is_anti).joined(rights, left.pairs(items), bound)


@_apply.register
def _(node: AsOf, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Sort both sides, and go along them."""
    left, right = sides_of(node)
    return Nearest.of(node).pairs(left.pairs(items), right.pairs(_open_later(node.right, task)), task.bound)


@_apply.register
def _(node: Zip, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Read one item of each side at a time."""
    return SideBySide.of(node).items(items, _open_later(node.right, task))


@_apply.register
def _(node: HashJoin, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Read the right side when the first pair is asked for, before the left one."""
    assert node.left_key is not None, "a hash join has two keys"
    side = RightSide.of(node, task.broadcast_limit)
    table = functools.partial(_table, side, node.right, task)
    return looked_up(table, node.left_key, node.is_inner, node.step, items)


def _table(side: RightSide, right: Core, task: _LocalTask) -> LookupTable:
    return table_here(side, _open_later(right, task))


@_apply.register
def _(node: CoGroup, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    left, right = sides_of(node)
    return cogrouped(left.pairs(items), right.pairs(_open_later(node.right, task)), task.bound)


@_apply.register
def _(node: Aggregate, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Reduce one input after another, then finish."""
    inputs = [items, *(_open_later(each, task) for each in node.upstreams[1:])]
    parts = (partial(node, number)(each, task) for number, each in enumerate(inputs))
    return operation(node)(chain.from_iterable(parts), task)


@_apply.register
def _(node: OverEpochs, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Reduce one input after another, then let the shards take what came, and time pass."""
    inputs = [items, *(_open_later(each, task) for each in node.upstreams[1:])]
    arrivals = (reducing(node, number)(each, task) for number, each in enumerate(inputs))
    return operation(node)(chain.from_iterable(arrivals), task)


@_apply.register
def _(node: Spread, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Leave the items alone, as a hint does."""
    return items


@_apply.register
def _(node: Hint, items: Iterator[Any], task: _LocalTask) -> Iterator[Any]:
    """Leave the items alone: one process has one partition, which is in order."""
    return items
