"""`GraphRun`: the decisions of a physical plan while it runs, wherever its tasks run.

A decision is made when its result is requested, after the decisions that it depends on; each source is listed once. All
walks are loops: a plan may have 20,000 operations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

from dstream.engine.compiler import ClusterFacts
from dstream.engine.physical.graph import (
    Ask,
    AskForKept,
    Decision,
    Done,
    Finish,
    Graph,
    Last,
    PartitionCount,
    Report,
    SendToAll,
    Totalled,
    Wanted,
)
from dstream.engine.physical.vertices import (
    CachedInput,
    Input,
    Items,
    OutputPort,
    Pending,
    Rows,
    SourceSplits,
    Splits,
    Taken,
    Vertex,
    one_after_another,
    with_calls,
)
from dstream.engine.runs.item_use import ItemUse
from dstream.engine.runs.splits import ListedSplits
from dstream.failures import naming
from dstream.operators.rows.caches import Caches, read_here
from dstream.operators.rows.operations import Operation
from dstream.plan.operations.streams import ReadCache
from dstream.plan.walk import CacheContent

__all__ = ["GraphRun"]


class GraphRun(ABC):
    """One run of a graph: the results and requests of its decisions, as far as they are the same on every engine.

    Attributes:
        graph: the graph that runs.
        facts: the facts for which it was compiled.
        splits: the pieces of its sources.
        delivered: the vertices whose side rows have reached the caller.

    Args:
        caches: the contents of `cache()` steps.
        counting: returns the operation that counts the items that tasks read; None if they are not counted.
        use: the use of the caller's items that are read in this process; None: they are pickled.
    """

    def __init__(
        self,
        graph: Graph,
        facts: ClusterFacts,
        caches: Caches,
        counting: Callable[[], Operation | None],
        use: ItemUse | None = None,
    ) -> None:
        self.graph = graph
        self.facts = facts
        self.splits = ListedSplits(counting, use)
        self.delivered: set[int] = set()
        self._caches = caches
        self._inputs_of: dict[int, Items] = {}  # Of each decision, those that others read instead of it.
        self._last: Last | None = None

    @abstractmethod
    def count_of_others(self, each: Input) -> int:
        """Return how many partitions an input has that only this engine reads."""

    @abstractmethod
    def report(self, ask: Ask) -> Report:
        """Run the job of a vertex, and report the requested facts about its rows."""

    @abstractmethod
    def computed(self, ask: AskForKept) -> CacheContent:
        """Run a vertex whose items a `cache()` stores."""

    @abstractmethod
    def sent_to_all(self, payloads: Sequence[Any]) -> Any:
        """Have payloads at hand wherever tasks run; return the `Payloads`."""

    def last_vertex(self) -> tuple[Vertex, Finish]:
        """Return the vertex of the last job, and the function that finishes its rows; the jobs before it run."""
        if isinstance(self.graph.ending, Pending):
            self.decided((self.graph.ending,))
        ending = self.graph.ending if self._last is None else self._last
        assert isinstance(ending, Last), "what is pulled has no last job"
        return replace(ending.vertex, inputs=self.decided(ending.vertex.inputs)), ending.finish

    def port_of(self, taken: Taken) -> OutputPort:
        """Return the rows that are taken, without those that the caller has."""
        return taken.port.without_beside() if id(taken.vertex) in self.delivered else taken.port

    def decided(self, items: Items) -> Items:
        """Return inputs in which pending decisions are replaced by their inputs; those that they depend on are made."""
        pending = _pending(items)[::-1]
        while pending:
            number = pending[-1]
            decision = self.graph.decisions[number]
            before = [each for inputs in decision.inputs for each in _pending(inputs) if each not in self._inputs_of]
            if number in self._inputs_of:
                pending.pop()
            elif before:
                pending += reversed(before)
            else:
                self._inputs_of[number] = self._decide(decision)
                pending.pop()
        return self._replaced(items)

    def _replaced(self, items: Items) -> Items:
        """Replace pending inputs by those that were decided."""
        if not any(isinstance(each, Pending) for each in items):
            return items
        parts = (
            with_calls(self._inputs_of[each.decision], each.applied) if isinstance(each, Pending) else (each,)
            for each in items
        )
        return one_after_another(tuple(chain.from_iterable(parts)))

    def _decide(self, decision: Decision) -> Items:
        inputs = tuple(self._replaced(items) for items in decision.inputs)
        move = decision.begin(inputs, tuple(self._several(items, decision.counts) for items in inputs))
        while not isinstance(move, Done):
            move = move.then.next(self._answer(move))
        self._last = move.last
        return move.inputs

    def _several(self, items: Items, counts: bool) -> PartitionCount:
        """Return in how many partitions items are; at least whether in one."""
        if len(items) == 1 and self._has_one(items[0]):
            return 1
        return self.partitions(items) if counts else None

    def _has_one(self, each: Input) -> bool:
        if isinstance(each, Splits):
            # Two pieces suffice: counting all would divide the whole source.
            return len(list(islice(self.splits.pieces(each), 2))) == 1
        return self.partitions((each,)) == 1

    def partitions(self, items: Items) -> int:
        """Count the partitions; every source is divided for that."""
        return sum(map(self._count, items))

    def _count(self, each: Input) -> int:
        match each:
            case Splits():
                return sum(1 for _ in self.splits.pieces(each))
            case Rows(targets=None):
                return sum(self.partitions(taken.vertex.inputs) for taken in each.taken)
            case Rows(targets=int() as targets):
                return targets
        return self.count_of_others(each)

    def _answer(self, move: Wanted) -> Any:
        match move:
            case Totalled():
                with naming(move.step):
                    return move.fn(move.rows)
            case AskForKept():
                return self._cached(move)
            case SendToAll():
                return self.sent_to_all(move.payloads)
        if move.unless_empty and self.partitions(move.vertex.inputs) == 0:
            return Report(move.vertex, 0)
        return self.report(move)

    def _cached(self, ask: AskForKept) -> Input:
        """Return the content of a `cache()`; or compute it now, so that `peek` steps before it see something."""
        cached = self._caches.kept(ask.node, partial(self.computed, ask))
        recall = ReadCache(cached.items, cached.is_ordered, step=ask.node.step)
        read = read_here(recall)
        if read is None:
            return CachedInput(recall)
        # They are cached in this process, also for a context with a second engine.
        return Splits((SourceSplits(read, self.facts.parallelism),), tasks=1 if self.facts.is_sequential else None)


def _pending(items: Items) -> list[int]:
    return [each.decision for each in items if isinstance(each, Pending)]
