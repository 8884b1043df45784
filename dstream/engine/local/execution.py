"""`LocalEngine`: the execution of plans with iterators."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any, TypeVar, cast

from dstream.base.environment import cores_here
from dstream.base.functions import refuse_awaitable
from dstream.base.memory import DEFAULT_BROADCAST
from dstream.engine.calls import Call, Cancellation, Progress, Submitted
from dstream.engine.local.operations import Kinds, LocalTask, no_data_frames, opened
from dstream.errors import UnsupportedError
from dstream.failures import naming
from dstream.operators.rows.caches import Caches
from dstream.operators.rows.operations import by_bucket, written, written_entries
from dstream.operators.rows.spill import partial_groups
from dstream.plan.operations.ends import (
    Collect,
    Columns,
    End,
    ForEachPartition,
    Loop,
    Partitions,
    Several,
    ToList,
    Write,
)
from dstream.plan.operations.pairs import TwoStreams
from dstream.plan.operations.streams import Cache, Fork
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.properties import check
from dstream.plan.steps import Step
from dstream.plan.walk import of_one_run, recalled, topological
from dstream.spi import MapWriter, Writer

__all__ = ["LocalEngine"]


E = TypeVar("E", bound=End | Several)

_UNSEEN = Progress(asked=False)


class LocalEngine:
    """The engine that runs plans in the caller's process, one item at a time.

    Args:
        caches: the contents of `cache()` steps, shared with other engines of the context; unset, of this engine alone.
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
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
        # Determined now: a run in another thread has no user's frame on its stack.
        call = None if end.label() else Call.of_user()
        return Submitted(functools.partial(self._run, end, call))

    def _run(self, plan: End | Several, call: Call | None, cancellation: Cancellation) -> Any:
        if isinstance(plan, Several):
            check(plan, needs_end=True)
        end, kinds = plan, _kinds_of(plan)
        if not kinds.isdisjoint(_KEPT):
            end = recalled(of_one_run(plan), self._caches.found)
            kinds = _kinds_of(end)
        _register(kinds)
        call = call or Call.of_step(end.step)
        if isinstance(end, Loop | Partitions):
            # Nothing is closed, since the caller continues reading after this returns.
            return _lazily(end, self._task(end, kinds, call, cancellation))
        with _supplied(end, kinds) as end:
            task = self._task(end, kinds, call, cancellation)
            with task.ending(), task.waiting():
                if isinstance(end, Several):
                    return [self._result(each, task) for each in end.ends]
                return self._result(end, task)

    def _task(self, end: End | Several, kinds: Kinds, call: Call, cancellation: Cancellation) -> LocalTask:
        return LocalTask(
            self._worker_memory, self._broadcast_limit, self._progress, self._caches, call, end, kinds, cancellation
        )

    def _result(self, end: End, task: LocalTask) -> Any:
        items, step = _items_of(end, task), end.step
        match end:
            case ToList():
                return list(items)
            case Write():
                return self._receipts(end, step, items, task)
            case Columns(is_frame=True):
                raise no_data_frames()
        with naming(step):
            match end:
                case Collect(collector=collector):
                    return collector.finisher(collector.accumulated(collector.supplier(), items))
                case ForEachPartition(action=action):
                    refuse_awaitable(action(items))
                    return None
                case Columns():
                    from dstream.schema.tables import batches_of, table_of

                    return table_of(batches_of(items))
        raise UnsupportedError(f"the local engine does not run a plan that ends in {end!r}")

    def _receipts(self, end: Write, step: Step, items: Iterator[Any], task: LocalTask) -> list[Any]:
        if end.collector is None:
            return list(written(cast(Writer, end.writer), step, items, task))
        assert end.collector.keyed is not None, "entries come from a keyed collector"
        writer = cast(MapWriter, end.writer)
        with naming(step):
            groups = partial_groups(items, end.collector, task.bound, writer.bucket_of)
            parts = [part for some in groups for part in by_bucket(writer, some)]
        # As a shuffle brings them: bucket after bucket, and the parts of a bucket in the order of their items.
        batches = iter(sorted(parts, key=itemgetter(0)))
        return list(written_entries(writer, end.collector.keyed.downstream, step, batches, task))

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Refuse: this engine has no DataFrames.

        Raises:
            UnsupportedError: always.
        """
        raise no_data_frames()

    def cores(self) -> int:
        """Return on how many cores this process may run; one task uses one of them."""
        return cores_here()

    def is_lost(self) -> bool:
        """Return False: it runs in this process."""
        return False

    def close(self) -> None:
        """Release the contents of `cache()` steps."""
        self._caches.clear()


def _items_of(end: End, task: LocalTask) -> Iterator[Any]:
    """Return the items of the end of a plan."""
    if isinstance(end, Write) and ProcessorGraph in task.kinds:
        from dstream.engine.local.processors import entries_of_graph

        entries = entries_of_graph(end, lambda node: opened(node, task), task)
        if entries is not None:
            return entries
    return opened(end.upstream, task)


def _kinds_of(plan: End | Several) -> Kinds:
    """Return the kinds of operations of a plan: a separate walk for each kind would take longer for a small plan."""
    return frozenset(map(type, topological(plan)))


_KEPT = (Cache, Fork)
"""Operations whose items are stored."""


@functools.lru_cache(maxsize=64)
def _register(kinds: Kinds) -> None:
    """Load the runners of rare operations, which takes longer than a small plan: they register themselves."""
    if any(issubclass(kind, TwoStreams) for kind in kinds):
        from dstream.engine.local import joins as joins
    if any(kind.is_of_epoch or kind is ProcessorGraph for kind in kinds):
        from dstream.engine.local import processors as processors


def _supplied(end: E, kinds: Kinds) -> AbstractContextManager[E]:
    """Open a context with a plan whose graphs have suppliers of processors."""
    if ProcessorGraph not in kinds:
        return nullcontext(end)
    from dstream.processors.suppliers import supplied

    return supplied(end, cores_here)


def _lazily(end: Loop | Partitions, task: LocalTask) -> Any:
    """Return the items one after another, or the one partition that there is."""
    items = opened(end.upstream, task)
    items = task.watching(items if task.operation is None else task.operation.lazily(items))
    return items if isinstance(end, Loop) else [items]
