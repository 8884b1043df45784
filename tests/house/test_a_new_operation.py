"""The places of a new operation: its class, the work of one partition, and that of several."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dstream.connectors.memory import Range
from dstream.engine.compiler import ClusterFacts, compiled
from dstream.engine.compiler.walk import Compiling, Wide, across, compile_node
from dstream.engine.local import LocalEngine
from dstream.engine.physical.graph import Done, Move
from dstream.engine.physical.vertices import Items, Rows, Taken, Vertex, piped
from dstream.engine.tasks.sinks import WriteItems
from dstream.errors import UnsupportedError
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.plan import Node
from dstream.plan.operations.ends import End, ToList
from dstream.plan.operations.streams import OrderPreserving, Read, node
from dstream.plan.steps import Step
from dstream.stream import Stream


@node
class Last(OrderPreserving):
    """The last `count` items."""

    count: int

    def _arguments(self) -> Iterable[str]:
        return (str(self.count),)


@operation.register
def _(node: Last) -> Operation:
    return functools.partial(last_ones, node.count)


def last_ones(count: int, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Give the last items of one partition."""
    return iter(deque(items, count))


@compile_node.register
def _(node: Last, inputs: Sequence[Items], compiling: Compiling) -> Items:
    return across(node, inputs[0], compiling, functools.partial(LastOfEach, node))


@dataclass(frozen=True, eq=False)
class LastOfEach(Wide):
    """The last items of each partition meet in one task."""

    node: Last
    counts = False

    def begin(self, inputs: Items, partitions: int) -> Move:
        last = operation(self.node)
        written = Vertex(piped(inputs, self.node, last, "of each partition"), WriteItems(), self.node.step)
        met = Rows((Taken(written),), 1, why="the last items of each partition meet in one task")
        return Done(piped((met,), self.node, last, "of all of them"))


def last(stream: Stream[Any], count: int) -> Stream[Any]:
    """Return the last items of a stream: the fluent method, which stands alone here."""
    return Stream(Last(stream._node, count), stream._runtime)


@pytest.mark.parametrize("partitions", [1, 3, 5])
def test_a_new_operation_runs_on_both_engines(engine, partitions):
    """In one partition and across several, in the middle of a plan."""
    numbers = engine.context.stream(range(10), partitions)

    assert last(numbers.map(str), 4).map(int).to_list() == [6, 7, 8, 9]
    assert last(numbers, 4).filter(lambda n: n % 2).limit(1).to_list() == [7]
    assert last(numbers, 20).sorted(reverse=True).to_list() == list(range(9, -1, -1))


def test_a_new_operation_is_explained(spark_context):
    """Nobody has drawn it: what is said comes from the graph."""
    text = str(last(spark_context.stream(range(10), 3), 4).explain("mermaid"))

    assert "the last items of each partition meet in one task" in text
    assert ".last#40;4#41;" in text


@node
class Unheard(OrderPreserving):
    """An operation that no engine has a handler for."""


@node
class Unread(Node):
    """One without a handler that reads from nothing."""


@node
class Unended(End):
    """An end that no engine has a handler for."""


STEP = Step(".other()", None, 2, 2)
SOURCE = Read(Range(0, 1), step=STEP)


@pytest.mark.parametrize("plan", [ToList(Unheard(SOURCE, step=STEP), step=STEP), Unended(SOURCE, step=STEP)])
def test_what_has_no_handler_names_itself_and_the_engine(plan):
    """Nothing falls through."""
    with pytest.raises(UnsupportedError, match=r"the Spark engine does not run .*\.other\(\)"):
        compiled(plan, ClusterFacts(2, 2, 100))
    with pytest.raises(UnsupportedError, match=r"the local engine .*\.other\(\)"):
        LocalEngine(2**20).submit(plan).result()


def test_a_source_without_a_handler_names_itself_and_the_engine():
    """Also one that reads from nothing."""
    plan = ToList(Unread(step=STEP), step=STEP)

    with pytest.raises(UnsupportedError, match=r"the local engine does not read from \.other\(\)"):
        LocalEngine(2**20).submit(plan).result()
