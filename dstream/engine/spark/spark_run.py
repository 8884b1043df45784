"""`SparkRun`: one run of a plan on Spark, and how the rows of its jobs become items in the driver."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dstream.engine.compiler import Facts, compiled
from dstream.engine.graph.decisions import Graph
from dstream.engine.graph.output_ports import BESIDE, EVERYTHING, OutputPort
from dstream.engine.graph.results import Finish
from dstream.engine.graph.vertices import Items
from dstream.engine.kernels.guards import Recovered
from dstream.engine.kernels.item_batches import loads, loads_items
from dstream.engine.kernels.supplied_graphs import supplied
from dstream.engine.spark.chosen_rows import chosen_rows
from dstream.engine.spark.cluster import CarriedStage, Cluster, LastRows
from dstream.engine.spark.graphs import SparkGraphRun
from dstream.engine.spark.port.forked_processes import is_forked
from dstream.engine.spark.ports import Ports
from dstream.engine.spark.rows_here import FilesOfRows
from dstream.engine.spark.segments import Flow
from dstream.engine.spark.service_home import ServiceHome
from dstream.engine.spark.spark_facts import facts_of
from dstream.engine.worker.rows import ITEMS, WAITING, Row
from dstream.engine.worker.side_channels import FEW_BYTES, SideRows
from dstream.plan.capture_checks import check_captures
from dstream.plan.core import End
from dstream.plan.core_of_forks import Several
from dstream.values.contexts import contextmanager

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkRun"]


@dataclass
class SparkRun:
    """One run of a plan: what its `peek` steps saw, and what its guards noted.

    Attributes:
        home: where workers with shared services wait for its end; None if there are none.
        files: hold what is large of the rows that go through this process.
    """

    end: End | Several
    cluster: Cluster
    recovered: Recovered
    in_small_pieces: bool = False
    home: ServiceHome | None = None
    files: FilesOfRows = field(default_factory=FilesOfRows)
    _peeked_before: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ports = Ports(self.recovered.actions())

    def __enter__(self) -> SparkRun:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if is_forked():
            return  # What was noted is the parent's to deliver.
        self.files.remove()
        self._end_services(*exc_info)
        self.recovered.__exit__(*exc_info)

    def _end_services(self, kind: type[BaseException] | None, *exc_info: Any) -> None:
        """Let workers destroy shared services; a failure there does not hide one that came before."""
        failed = None if self.home is None else self.home.end()
        if failed is not None and (kind is None or issubclass(kind, GeneratorExit)):
            raise failed

    @contextmanager
    def supplied(self) -> Iterator[End | Several]:
        """Let the meta-suppliers of graphs say what makes processors, before anything runs, and close at the end."""
        with supplied(self.end, lambda: self.facts.cores) as end:
            if end is not self.end:
                check_captures(end)
                self.end = end
            yield end

    def together(self, iterators: Sequence[Iterator[Any]]) -> list[Iterator[Any]]:
        """Return iterators of one run, which ends with the last of them."""
        if self.home is None:
            return list(iterators)
        running = len(iterators)

        def one_of(items: Iterator[Any]) -> Iterator[Any]:
            nonlocal running
            try:
                yield from items
            finally:
                running -= 1
                if running == 0 and not is_forked():
                    self._end_services(*sys.exc_info())

        return [one_of(each) for each in iterators]

    @functools.cached_property
    def graph(self) -> Graph:
        """What the plan is compiled to."""
        graph, actions = compiled(self.end, self.facts)
        self._ports.add(actions)
        return graph

    @functools.cached_property
    def _running(self) -> SparkGraphRun:
        # It has what a `cache()` keeps, which this run may still read when its context is closed.
        return SparkGraphRun(self.graph, self.facts, self.cluster, self._ports, self.files)

    def flow(self, items: Items) -> Flow:
        """Return where items of the graph are; the jobs run that are needed to know that."""
        with self.cluster.waiting():
            return self._running.flow(items)

    def last(self) -> tuple[LastRows, Finish]:
        """Return the rows of the last job, and what becomes of them; the jobs run that are needed before."""
        with self.cluster.waiting():
            return self._running.last(self.recovered.has_letters)

    @functools.cached_property
    def facts(self) -> Facts:
        """What the graph depends on."""
        return facts_of(self.end, self.cluster, in_small_pieces=self.in_small_pieces)

    def items(self, frame: LastRows) -> list[Any]:
        """Run a job and return its items; then run the actions of the `peek` steps."""
        items: list[Any] = []
        for row in self._without_peeked(self._rows(frame)):
            items += loads_items(row.payload)
        return items

    def items_by_target(self, frame: LastRows, targets: int) -> list[list[Any]]:
        """Run a job and return the items of each target; then run the actions of the `peek` steps."""
        items: list[list[Any]] = [[] for _ in range(targets)]
        for row in self._without_peeked(self._rows(frame)):
            items[row.target] += loads_items(row.payload)
        return items

    @contextmanager
    def in_parts(self, frame: DataFrame) -> Iterator[tuple[int, Iterator[Row]]]:
        """Run a job over rows of `WriteParts`; give how many bytes its items take, and the rows that carry them.

        The rows are in order. The first part of each partition is here; others stay where they were written, for as
        long as the context lasts, and come one after another. The actions of `peek` steps have run before that.
        """
        pinned = self.cluster.port.pinned(frame)
        try:
            rows = list(self._without_peeked(self._with_letters(pinned, EVERYTHING.to_targets(0, 1))))
            written = sum(row.sequence if row.channel == WAITING else len(row.payload) for row in rows)
            yield written, self._completed(rows, pinned)
        finally:
            self.cluster.port.release(pinned)

    def _completed(self, rows: Iterable[Row], pinned: DataFrame) -> Iterator[Row]:
        """Give the rows that carry items; where further parts wait, those too."""
        for row in rows:
            if row.channel == ITEMS:
                yield row
                continue
            for part in range(1, row.size + 1):
                yield from self.cluster.rows(pinned.where(f"source = {row.source} and target = {part}"))

    def payloads(self, frame: LastRows, channel: int = ITEMS) -> list[Any]:
        """Run a job and return what its rows on one channel carry; then run the actions of the `peek` steps."""
        rows = list(self.cluster.rows(frame))
        list(self._without_peeked(rows))
        return [row.payload for row in rows if row.channel == channel]

    def items_again(self, frame: DataFrame) -> list[Any]:
        """Run a job that starts over; the actions see only what they have not seen before."""
        counted: dict[int, int] = {}
        items: list[Any] = []
        for row in self._without_peeked(self._rows(frame), self._peeked_before, counted):
            items += loads_items(row.payload)
        self._peeked_before.update(counted)
        return items

    def lazily(self, frame: DataFrame) -> Iterator[Any]:
        """Run a job partition by partition and give its items."""
        for row in self._without_peeked(self.cluster.rows_one_partition_at_a_time(frame)):
            yield from loads(row.payload)

    def containers(self, frame: LastRows) -> Iterator[list[Any]]:
        """Run a job and give the container of each partition, in order, each in a list of its own."""
        held = bytearray()
        for row in self._without_peeked(self._rows(frame)):
            if row.sequence == 0 and held:
                yield loads(held)
                held = bytearray()
            held += row.payload
        if held:
            yield loads(held)

    def _rows(self, frame: LastRows) -> Iterator[Row]:
        """Run a job and give its rows; dead letters come behind the others."""
        if isinstance(frame, CarriedStage) or not self.recovered.has_letters:
            return self.cluster.rows(frame)
        return self._with_letters(self.cluster.port.pinned(frame), EVERYTHING)

    def _with_letters(self, pinned: DataFrame, port: OutputPort) -> Iterator[Row]:
        """Give the rows of a port; dead letters come behind them, a part at a time."""
        if not self.recovered.has_letters:
            return self.cluster.rows(chosen_rows(pinned, port))
        items = self.cluster.rows(chosen_rows(pinned, port.without_beside()))
        return chain(items, self._letters(chosen_rows(pinned, BESIDE)))

    def _letters(self, frame: DataFrame) -> Iterator[Row]:
        size = sum(payload for _, payload in self.cluster.sizes(frame))
        if size == 0:
            return iter(())
        return self.cluster.rows(frame) if size <= FEW_BYTES else self.cluster.rows_one_partition_at_a_time(frame)

    def _without_peeked(
        self,
        rows: Iterable[Row],
        before: Mapping[int, int] = MappingProxyType({}),
        counted: dict[int, int] | None = None,
    ) -> Iterator[Row]:
        """Give the rows that carry items; at the end run the actions on what `peek` steps saw.

        Args:
            rows: all rows of a job.
            before: how many items the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        beside = SideRows()
        try:
            for row in rows:
                if row.channel <= ITEMS:
                    yield row
                else:
                    beside.add(row)
        except GeneratorExit:  # Who asked for items wants no more; what was seen of those before is known.
            if not is_forked():
                self._ports.deliver(beside.in_order(), before, counted)
            raise
        self._ports.deliver(beside.in_order(), before, counted)
