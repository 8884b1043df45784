"""`InProcessRun`: one run of a plan in the caller's process, from its graph to its results."""

from __future__ import annotations

import functools
import os
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.inprocess.graphs import InProcessGraphRun
from dstream.engine.inprocess.moving import MovingGraphRun
from dstream.engine.inprocess.tasks import InProcessTask, SharedByTasks
from dstream.engine.physical.graph import Combined, Finish, Graph, Listed, Pulled
from dstream.engine.physical.vertices import Items
from dstream.engine.runs.item_use import ItemUse, use_of_items
from dstream.engine.runs.moves import Border, CompiledPlan
from dstream.engine.runs.results import PlanRun
from dstream.engine.runs.rows import ShuffleFiles
from dstream.engine.tasks.rows import ITEMS, WATERMARKS, Row
from dstream.engine.tasks.sinks import Accumulate, WriteItems
from dstream.errors import UnsupportedError
from dstream.failures.account import blame_copy
from dstream.operators.rows.batches import copies
from dstream.operators.rows.caches import Caches
from dstream.operators.rows.guards import Action
from dstream.operators.rows.operations import some
from dstream.plan.operations.ends import End, Loop, Several
from dstream.plan.steps import Step

__all__ = ["NO_DATA_FRAMES", "InProcessRun"]


NO_DATA_FRAMES = "only Spark has DataFrames: use to_arrow(), or connect() with the Spark engine"


@dataclass
class InProcessRun(PlanRun[Iterator[Row]]):
    """One run of a plan in this process.

    Attributes:
        shared: the state of all its tasks.
        files: store the large payloads of rows between its tasks.
        border: decides where the rest of its tasks runs; None: all of them run in this process.
        may_read: functions may be compiled, so that items of which they read only parts need no copies.
        known: a plan that was compiled for these facts before, if any.
        process: the id of the process that has begun it.
    """

    end: End | Several
    cluster_facts: ClusterFacts
    context_caches: Caches
    shared: SharedByTasks
    files: ShuffleFiles
    recovered: RecoveryReport | None = None
    border: Border | None = None
    may_read: bool = False
    known: CompiledPlan | None = None
    process: int = field(default_factory=os.getpid)

    @property
    def facts(self) -> ClusterFacts:
        return self.cluster_facts

    @property
    def caches(self) -> Caches:
        return self.context_caches

    def __enter__(self) -> InProcessRun:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if os.getpid() != self.process:
            return  # A fork that leaves a loop: files, services and notes are the parent's.
        # A run of several graphs has none itself.
        if exc_info[1] is not None and "use" in vars(self) and self.use.copied == "if needed":
            blame_copy(exc_info[1], lambda item: copies([item])[0])
        self.files.remove()
        # Before the letters: a service that fails at its end fails the run, whose letters are not delivered then.
        try:
            self.shared.services.destroy()
        except Exception:
            if exc_info[1] is None or isinstance(exc_info[1], GeneratorExit):
                raise
        finally:
            if self.border is not None:
                self.border.end(exc_info[1])
        if self.recovered is not None:
            self.recovered.__exit__(*exc_info)

    def of_one_end(self, end: End | Several) -> InProcessRun:
        return replace(self, end=end)

    @functools.cached_property
    def _compiled(self) -> tuple[Graph, dict[int, Action]]:
        known = self.known
        # The plan of the run is another one if a cache was filled meanwhile, or suppliers were asked for processors.
        if known is None or known.end is not self.end:
            return compiled(self.end, self.facts)
        return known.graph, known.actions

    @functools.cached_property
    def use(self) -> ItemUse:
        """Use of the caller's items."""
        return use_of_items(self.graph, self.facts, may_read=self.may_read, is_loop=isinstance(self.end, Loop))

    @functools.cached_property
    def running(self) -> InProcessGraphRun:
        """The run of its graph."""
        self.shared.actions.update(self.actions)
        if self.border is None:
            return InProcessGraphRun(self.graph, self.facts, self.caches, self.shared, self.files, self.use)
        return MovingGraphRun(self.graph, self.facts, self.caches, self.shared, self.files, self.border, self, self.use)

    def last(self) -> tuple[Iterator[Row], Finish]:
        vertex, finish = self.running.last_vertex()
        if isinstance(finish, Listed | Combined) and isinstance(vertex.output, WriteItems | Accumulate):
            self.running.give(vertex)
        return self.running.rows(vertex), finish

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        return (row for row in rows if row.channel <= ITEMS and row.channel != WATERMARKS)

    def payloads(self, rows: Iterator[Row], channel: int = ITEMS) -> list[Any]:
        return [row.payload for row in rows if row.channel == channel]

    def data_frame(self, rows: Iterator[Row], step: Step) -> Any:
        raise UnsupportedError(NO_DATA_FRAMES)

    def pulled(self, ending: Pulled) -> Iterator[Any]:
        """Yield the items one after another, as the caller requests them."""
        items = self._pulled(ending.inputs)
        if ending.limit is None:
            yield from items
            return
        # Closed before the end is reported, so that notes and services precede it.
        with closing(items):
            yield from some(items, ending.skipped, ending.limit.count)

    def _pulled(self, inputs: Items) -> Generator[Any, None, None]:
        with self:
            yield from self.running.items(inputs)

    def partitions(self, inputs: Items) -> list[Iterator[Any]]:
        """Return one lazy iterator for each partition; the run ends with the last of them."""
        tasks = list(self.running.tasks(self.running.decided(inputs), 0))
        running = len(tasks)

        def one_of(task: InProcessTask, items: Iterator[Any]) -> Iterator[Any]:
            nonlocal running
            error: BaseException | None = None
            try:
                yield from self.running.items_of_task(task, items)
            except BaseException as raised:
                error = raised
                raise
            finally:
                running -= 1
                if running == 0:
                    self.__exit__(None if error is None else type(error), error)

        return [one_of(*each) for each in tasks]
