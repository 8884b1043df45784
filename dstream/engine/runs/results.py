"""`PlanRun`: one run of a plan by its graph, and the results that this process makes of the rows of its last job."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dstream.base.threads import contextmanager
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.compiler.inputs import parts_of
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.physical.graph import (
    Assembled,
    Combined,
    Finish,
    Framed,
    Graph,
    Listed,
    Nothing,
    Separated,
)
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.failures import naming
from dstream.operators.rows.batches import loads, loads_items
from dstream.operators.rows.caches import Caches
from dstream.operators.rows.guards import Action
from dstream.plan.capture_checks import check_captures
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.steps import Step
from dstream.plan.walk import recalled, topological
from dstream.processors.suppliers import supplied
from dstream.schema.tables import table_of, unpacked_batches
from dstream.spi import Collector

if TYPE_CHECKING:
    from typing import Self

    import pyarrow as pa

__all__ = ["PlanRun"]


R = TypeVar("R")


class PlanRun(ABC, Generic[R]):
    """One run of a plan, of whose last job the engine has the rows as an `R`.

    Attributes:
        end: the end of the plan, or several.
        recovered: takes the notes of guards; None if the plan has none.
    """

    end: End | Several
    recovered: RecoveryReport | None

    @property
    @abstractmethod
    def facts(self) -> ClusterFacts:
        """The facts that the graph depends on."""

    @property
    @abstractmethod
    def caches(self) -> Caches:
        """The contents of `cache()` steps."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *exc_info: Any) -> None: ...

    @abstractmethod
    def of_one_end(self, end: End | Several) -> PlanRun[R]:
        """Return the run of one of several graphs, which shares the rest with this one."""

    @abstractmethod
    def last(self) -> tuple[R, Finish]:
        """Return the rows of the last job, and the function that finishes them; the jobs before it run first."""

    @abstractmethod
    def rows(self, rows: R) -> Iterator[Row]:
        """Run a job and return its rows, without side rows, whose actions run at the end."""

    @abstractmethod
    def payloads(self, rows: R, channel: int = ITEMS) -> list[Any]:
        """Run a job and return the payloads of its rows on one channel; the actions of `peek` steps have run then."""

    @abstractmethod
    def data_frame(self, rows: R, step: Step) -> Any:
        """Return a DataFrame of the engine, whose rows are not moved."""

    @property
    def graph(self) -> Graph:
        """The graph that the plan is compiled to."""
        return self._compiled[0]

    @property
    def actions(self) -> dict[int, Action]:
        """The actions in this process for what each `peek` step saw, by its channel."""
        return self._compiled[1]

    @functools.cached_property
    def _compiled(self) -> tuple[Graph, dict[int, Action]]:
        return compiled(self.end, self.facts)

    @contextmanager
    def supplied(self) -> Iterator[End | Several]:
        """Request suppliers from the meta-suppliers of graphs, before anything runs, and close them at the end."""
        if not any(isinstance(each, ProcessorGraph) for each in topological(self.end)):
            yield self.end
            return
        with supplied(self.end, lambda: self.facts.cores) as end:
            # The plan was checked before, but these suppliers, which travel too, exist only now.
            check_captures(end)
            self.end = end
            yield end

    def watching(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the items; deliver the notes of guards at their end."""
        return items if self.recovered is None else self.recovered.watching(items)

    def items(self, rows: R) -> list[Any]:
        """Run a job and return its items."""
        items: list[Any] = []
        for row in self.rows(rows):
            items += row.payload if isinstance(row.payload, list) else loads_items(row.payload)
        return items

    def result(self) -> Any:
        """Run the plan to its last job, and return what becomes of the rows of that."""
        with self:
            if isinstance(self.end, Several):
                return self._of_each_end(self.end)
            return self._of_last_job(self.end.step)

    def _of_last_job(self, step: Step) -> Any:
        rows, finish = self.last()
        return self._finished(rows, finish, step)

    def _of_each_end(self, several: Several) -> list[Any]:
        """Run the graphs of a plan with several ends one after another; forks that several of them read are stored.

        Their side rows are delivered when all have run.
        """
        results: dict[int, Any] = {}
        for part in parts_of(several):
            # This graph reads what an earlier one has cached, so the operations before that are not compiled again.
            end = recalled(part.end, self.caches.found)
            graph = self.of_one_end(end)
            rows, finish = graph.last()
            result = graph._finished(rows, finish, end.step)
            results.update(zip(part.numbers, result if isinstance(finish, Separated) else [result], strict=True))
        return [results[number] for number in range(len(results))]

    def _finished(self, rows: R, finish: Finish, step: Step) -> Any:
        """Run the last job, and make the result of its rows."""
        match finish:
            case Listed():
                return self.items(rows)
            case Nothing():
                self.items(rows)
                return None
            case Combined(collector):
                return self._combined(rows, collector, step)
            case Assembled(collector, is_ordered):
                return self._assembled(rows, collector, is_ordered, step)
            case Separated(sinks):
                return self._by_target(rows, sinks)
            case Framed(is_frame):
                return self.data_frame(rows, step) if is_frame else self._table(rows, step)

    def _by_target(self, rows: R, targets: int) -> list[list[Any]]:
        """Return the items of each target."""
        items: list[list[Any]] = [[] for _ in range(targets)]
        for row in self.rows(rows):
            items[row.target] += loads_items(row.payload)
        return items

    def _containers(self, rows: R) -> Iterator[list[Any]]:
        """Yield the container of each partition, in order, each in its own list."""
        buffered = bytearray()
        for row in self.rows(rows):
            if row.sequence == 0 and buffered:
                yield loads(buffered)
                buffered = bytearray()
            if isinstance(row.payload, list):  # A container of this process.
                yield row.payload
            else:
                buffered += row.payload
        if buffered:
            yield loads(buffered)

    def _combined(self, rows: R, collector: Collector[Any, Any, Any], step: Step) -> Any:
        """Combine the containers of the tasks in encounter order, and finish once."""
        containers = self._containers(rows)
        with naming(step):
            (first,) = next(containers, None) or [collector.supplier()]
            combined = functools.reduce(collector.combined, (buffered for (buffered,) in containers), first)
            return collector.finisher(combined)

    def _assembled(self, rows: R, collector: Collector[Any, Any, Any], is_ordered: bool, step: Step) -> Any:
        """Put finished groups together."""
        assert collector.keyed is not None, "groups come from a keyed collector"
        finished = self.items(rows)
        if is_ordered:
            finished.sort(key=itemgetter(0))
        with naming(step):
            return collector.keyed.assemble(map(itemgetter(1, 2), finished))

    def _table(self, rows: R, step: Step) -> pa.Table:
        """Return columns as an Arrow table."""
        batches = [batch for payload in self.payloads(rows) for batch in unpacked_batches(payload)]
        with naming(step):
            return table_of(batches)
