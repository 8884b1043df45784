"""Running a graph in this process, the tasks of a stage one after another, without Spark: for tests of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.physical.graph import Done, Last, Report
from dstream.engine.physical.vertices import (
    Input,
    Items,
    OutputPort,
    Pending,
    Rows,
    Splits,
    Taken,
    Vertex,
    one_after_another,
    operations_of,
    with_calls,
)
from dstream.engine.spark.run.segments import ListedSplits
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.operators.rows.operations import operated
from dstream.plan.operations.ends import End

__all__ = ["GraphHere"]

_BOUND = 2**40


class _Uncounted:
    """Stands for the cluster, of which a listing of splits asks this alone."""

    def counting(self) -> None:
        return None


class GraphHere:
    """A graph whose tasks run in this process.

    Attributes:
        ran: the vertices whose tasks have run, as they ran.
    """

    def __init__(self, end: End, facts: ClusterFacts) -> None:
        self._graph = compiled(end, facts)[0]
        self._splits = ListedSplits(_Uncounted())  # type: ignore[arg-type]
        self._decided: dict[int, Items] = {}
        self._last: Last | None = None
        self._rows: dict[int, tuple[Vertex, list[Row]]] = {}

    @property
    def ran(self) -> list[Vertex]:
        return [vertex for vertex, _ in self._rows.values()]

    def run(self) -> list[Row]:
        """Run all jobs of the graph; return what the tasks of the last one give."""
        ending = self._graph.ending
        if isinstance(ending, Pending):
            self._settled((ending,))
            ending = self._last or ending
        assert isinstance(ending, Last), "a program of the tests has a last job"
        return self._rows_of(replace(ending.vertex, inputs=self._settled(ending.vertex.inputs)))

    def _settled(self, items: Items) -> Items:
        """Make the decisions that stand in the place of inputs."""
        parts: list[Items] = []
        for each in items:
            if isinstance(each, Pending):
                parts.append(with_calls(self._decision(each.decision), each.applied))
            else:
                parts.append((each,))
        return one_after_another(tuple(chain.from_iterable(parts)))

    def _decision(self, number: int) -> Items:
        if number not in self._decided:
            decision = self._graph.decisions[number]
            inputs = tuple(map(self._settled, decision.inputs))
            move = decision.begin(inputs, tuple(sum(map(self._count, items)) for items in inputs))
            while not isinstance(move, Done):
                move = move.then.next(self._answer(move))
            self._last = move.last or self._last
            self._decided[number] = move.inputs
        return self._decided[number]

    def _answer(self, asked: Any) -> Report:
        rows = list(_chosen(self._rows_of(asked.vertex), asked.port))
        partitions = sum(map(self._count, asked.vertex.inputs))
        if partitions == 0 and asked.unless_empty:
            return Report(asked.vertex, 0)
        told: list[Any] = rows
        if asked.what == "places":
            told = [(row.source, row.sequence, row.channel, row.size) for row in rows]
        elif asked.what == "bytes":
            told = [(row.channel, len(row.payload)) for row in rows]
        return Report(asked.vertex, partitions, told)

    def _count(self, each: Input) -> int:
        if isinstance(each, Splits):
            return sum(1 for _ in self._splits.pieces(each))
        assert isinstance(each, Rows), "a program of the tests has no other inputs"
        if each.targets is not None:
            return each.targets
        return sum(self._count(one) for taken in each.taken for one in taken.vertex.inputs)

    def _rows_of(self, vertex: Vertex) -> list[Row]:
        if id(vertex) not in self._rows:
            rows: list[Row] = []
            for number, (task, items) in enumerate(self._tasks(vertex), vertex.first):
                task.partition = number
                rows += vertex.output(items, task)
            self._rows[id(vertex)] = vertex, rows
        return self._rows[id(vertex)][1]

    def _tasks(self, vertex: Vertex) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        for each in vertex.inputs:
            if isinstance(each, Splits):
                for piece in self._splits.pieces(each):
                    task = StageTask(0, _BOUND)
                    yield task, piece.open(task)
            else:
                assert isinstance(each, Rows), "a program of the tests has no other inputs"
                yield from self._reading(each)

    def _reading(self, each: Rows) -> Iterator[tuple[StageTask, Iterator[Any]]]:
        rows = list(chain.from_iterable(map(self._taken, each.taken)))
        for number in range(self._count(each)):
            if each.targets is None:
                mine = [row for row in rows if row.source == number]
            else:
                mine = [row for row in rows if row.target % each.targets == number]
            mine.sort(key=lambda row: (row.target, row.source, row.sequence))
            task = StageTask(0, _BOUND)
            yield task, operated(operations_of(each.applied), each.reader(iter(mine)), task)

    def _taken(self, taken: Taken) -> Iterator[Row]:
        for row in _chosen(self._rows_of(taken.vertex), taken.port):
            channel = ITEMS if taken.as_items else row.channel
            if channel == ITEMS:
                yield row._replace(target=row.target + taken.behind, channel=channel)


def _chosen(rows: list[Row], port: OutputPort) -> Iterator[Row]:
    return (
        row for row in rows if row.channel in port.channels and (port.sources is None or row.source in port.sources)
    )
