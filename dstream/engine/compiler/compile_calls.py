"""Compile the calls of a gatherer, such as `map_concurrent`.

Calls without a rate and without a cache run where the items are. Tasks that run at the same time share a rate: each
may call once in so many intervals, so the step runs in no more tasks than there are cores. With a cache, equal items
are shuffled to one task, and their results are put back in the order of the items.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dstream.engine.compiler.called_functions import called_by
from dstream.engine.compiler.compile_by_key import back_in_place
from dstream.engine.compiler.compiling import Compiling, Facts, OfOne, Wide, across, compile_node
from dstream.engine.graph import output_ports
from dstream.engine.graph.decided import Decided
from dstream.engine.graph.decisions import Ask, Done, Move, Report, Several
from dstream.engine.graph.vertices import Items, Rows, Taken, Vertex, piped
from dstream.engine.kernels.concurrent_calls import called_once, calls_of
from dstream.engine.kernels.core_operations import operation
from dstream.engine.worker.readers import read_places, without_places
from dstream.engine.worker.routing import RouteByInput, RouteTogether
from dstream.engine.worker.sinks import RouteByPlace, WriteItems
from dstream.plan.core import Called, Core
from dstream.plan.properties import is_bounded
from dstream.plan.walk import topological

__all__ = ["calls_run_first"]


@compile_node.register
def _(node: Called, inputs: Sequence[Items], compiling: Compiling) -> Items:
    decided = called_by(node, compiling.facts)
    if not node.calling.is_shared:
        return piped(inputs[0], node, operation(node), "several calls at a time in each task", decided)
    wide = CalledOnce if node.calling.cache else AtRate
    items = across(
        node,
        inputs[0],
        compiling,
        functools.partial(wide, node, compiling.facts, compiling.is_ordered(node.upstream)),
        decided=decided,
    )
    return (compiling.decide(CallsFirst(items, node)),) if calls_run_first(node, compiling.root) else items


def calls_run_first(node: Called, root: Core) -> bool:
    """Say whether calls that have a rate or a cache run in a job of their own: more than one way leads from them on."""
    ways = {id(root): 1}
    for each in reversed(topological(root)):
        for upstream in each.inputs():
            ways[id(upstream)] = ways.get(id(upstream), 0) + ways[id(each)]
    return ways[id(node)] > 1 and is_bounded(node)


@dataclass(frozen=True, eq=False)
class AtRate(Wide):
    """Makes the calls in no more tasks than can run at once, which share the rate; neighbouring partitions together."""

    node: Called
    facts: Facts
    is_ordered: bool

    def begin(self, inputs: Items, partitions: int) -> Move:
        targets, step = self.facts.cores, self.node.step
        if partitions <= targets:
            return Done(
                piped(inputs, self.node, operation(replace(self.node, slots=partitions)), self._rate(), self._decided())
            )
        together = Vertex(inputs, RouteTogether(partitions, targets), step)
        why = "neighbouring partitions come together, as many as can run at once"
        some = Rows((Taken(together),), targets, why=why, counted="one for each core")
        return Done(
            piped((some,), self.node, operation(replace(self.node, slots=targets)), self._rate(), self._decided())
        )

    def _decided(self) -> Sequence[Decided]:
        return called_by(self.node, self.facts)

    def _rate(self) -> str:
        return f"{self.node.calling.rate:g} calls a second at most, which the tasks share"


@dataclass(frozen=True, eq=False)
class CalledOnce(Wide):
    """Makes one call for equal items, which meet in one task."""

    node: Called
    facts: Facts
    is_ordered: bool

    def begin(self, inputs: Items, partitions: int) -> Move:
        node, step = self.node, self.node.step
        targets = self.facts.targets(partitions)
        if node.calling.rate is not None:
            targets = min(targets, self.facts.cores)
        routed = Taken(Vertex(inputs, RouteByInput(targets, step), step))
        calls = functools.partial(called_once, calls_of(replace(node, slots=targets)))
        met = Rows((routed,), targets, read_places, is_ordered=False, why="equal items meet in one place")
        results = piped((met,), node, calls, "one call for equal items", called_by(node, self.facts))
        if not self.is_ordered:
            return Done(piped(results, None, without_places))
        back = Taken(Vertex(results, RouteByPlace(partitions, targets), step))
        return Done(back_in_place(node, back, targets))


@dataclass(frozen=True, eq=False)
class CallsFirst(OfOne):
    """Makes calls now and keeps the results: several that read them would make them several times at once."""

    node: Called

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[Several, ...]) -> Move:
        step = self.node.step
        results = Vertex(inputs[0], WriteItems(), step, is_kept=True)
        return Ask(self, results, "places", output_ports.ITEMS, step, "calls, for several that read the results")

    def next(self, report: Report) -> Move:
        return Done((Rows((Taken(report.vertex),), None, why="the results stay where they are"),))
