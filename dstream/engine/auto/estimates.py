"""`estimated`: the cost of a compiled plan in this process and on Spark, before it runs.

A `Flow` follows the items from the sources to the end. Its cost for each item is spent only for as many items as the
end asks for, up to the last operation that needs all of them; so a limit asks for little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from dstream.base.records import record
from dstream.engine.auto.constants import COSTS, Costs, StepCost
from dstream.engine.auto.flows import Flow, flow_of_source, flows_together
from dstream.engine.auto.measured import Calls, MeasuredCosts, calls_of
from dstream.engine.physical.graph import Decision, Each, Ending, Graph, Last, Pulled
from dstream.engine.physical.vertices import (
    CachedInput,
    Evaluation,
    FromTable,
    Input,
    Items,
    Pending,
    Rows,
    SourceSplits,
    Splits,
    StageCall,
    Vertex,
)
from dstream.engine.tasks.sinks import Accumulate, Act, WriteColumns, WriteEach, WriteGroups
from dstream.operators.columns.capabilities import left_to_python
from dstream.plan.operations.elementwise import CallResults, Chain, Gather, UsingBatches
from dstream.plan.operations.ends import Collect, Write
from dstream.plan.operations.keyed import Aggregate, Distinct
from dstream.plan.operations.sort_limit import DropWhile, Limit, Skip, TakeWhile, Top
from dstream.plan.operations.streams import Concat, Hint, Node
from dstream.plan.steps import Op, column_steps
from dstream.plan.walk import inputs_first
from dstream.spi import ByPlace, Collector, Gatherer

__all__ = ["Machine", "MeasuredCosts", "PlanEstimate", "estimated"]


@record
class Machine:
    """The machine that a plan may run on.

    Attributes:
        cores: how many tasks of Spark run at the same time.
        scale: how many times as long it takes as the machine of the constants.
        spark: whether Spark runs, could be started, or cannot.
    """

    cores: int = 1
    scale: float = 1.0
    spark: Literal["running", "startable", "absent"] = "startable"

    def start_seconds(self) -> float:
        """Return how long a plan waits for Spark: nothing if it runs, for ever if it cannot be started."""
        if self.spark == "startable":
            return COSTS.scaled(self.scale).start
        return 0.0 if self.spark == "running" else math.inf


@record
class PlanEstimate:
    """The expected cost of a plan.

    Attributes:
        seconds_here: of one thread in this process; `math.inf` if only Spark can run the plan.
        seconds_there: on Spark with all its cores, without its start.
        items: how many items the sources give, as far as they are read.
        is_sure: all numbers of items follow from sizes that the sources know.
        why: the input that costs most, in words such as "12.3 MB of 'words.txt'".
        is_measured: the cost of the functions that tasks call is known from earlier runs.
    """

    seconds_here: float
    seconds_there: float
    items: float
    is_sure: bool
    why: str
    is_measured: bool = True


def estimated(graph: Graph, machine: Machine, costs: MeasuredCosts, *, in_columns: bool = True) -> PlanEstimate:
    """Return the expected cost of a plan. It asks sources for their sizes, and runs nothing.

    Args:
        graph: the compiled plan.
        machine: where it may run.
        costs: the costs of functions that earlier runs have shown.
        in_columns: functions are read, so that sources may give columns.
    """
    return _Estimate(machine.cores, COSTS.scaled(machine.scale), costs, in_columns).of_graph(graph)


_ASSUMED = 1_000.0
"""The items of a source of unknown size: few, so that a run begins in this process, where they are counted."""
_ITEMS_OF_KEY = 10.0
_KEYS = 1_000.0
"""Items have about a tenth as many keys, and a few at least."""


class _Estimate:
    """The estimate of one graph.

    Attributes:
        read: the items of all sources.
        jobs: how many jobs of Spark run besides the last one.
        stages: how many stages they have besides the first of each.
    """

    def __init__(self, cores: int, costs: Costs, measured: MeasuredCosts, in_columns: bool) -> None:
        self._cores = max(1, cores)
        self._in_columns = in_columns
        self._costs = costs
        self._measured = measured
        self._decided: list[Flow] = []
        self._splits: dict[int, Flow] = {}
        self._vertices: dict[int, Flow] = {}
        self.read = 0.0
        self.jobs = self.stages = 0
        self.is_measured = True

    def of_graph(self, graph: Graph) -> PlanEstimate:
        for decision in graph.decisions:
            self._decided.append(self._of_decision(decision))
        flow = self._of_ending(graph.ending)
        costs = self._costs
        flow.finish(flow.items, _ASSUMED)
        there = costs.job * (1 + self.jobs) + costs.stage * self.stages + flow.there
        here = math.inf if flow.is_of_spark else costs.plan + flow.here
        return PlanEstimate(here, there, self.read, flow.is_sure, flow.why or "no items", self.is_measured)

    # ------------------------------------------------------------------------------------------------------- endings

    def _of_ending(self, ending: Ending) -> Flow:
        match ending:
            case Last(vertex):
                return self._of_sink(self._of_vertex_inputs(vertex), vertex)
            case Pulled(inputs, limit):
                flow = self._with_measured(self._of_items(inputs), calls_of(inputs))
                if limit is not None:
                    flow.limit(limit.count)
                return self._returned(flow)
            case Each(inputs):
                return self._returned(self._with_measured(self._of_items(inputs), calls_of(inputs)))
            case Pending():
                return self._of_items((ending,))

    def _of_sink(self, flow: Flow, vertex: Vertex) -> Flow:
        """Add what the last tasks do with their items, by the kind of their sink."""
        sink: Any = vertex.output
        if isinstance(sink, Accumulate | WriteGroups):
            self._reduce(flow, sink.collector, vertex.decided)
            is_keyed = sink.collector.keyed is not None
            flow.finish(_keys(flow.items) if is_keyed else min(flow.items, 1.0), _ASSUMED)
            flow.pickled = self._costs.pickled_object
            if is_keyed and flow.tasks > 1:
                self._shuffle(flow, flow.items)
            return self._returned(flow)
        if isinstance(sink, WriteColumns):
            flow.spend(self._costs.columnar if flow.is_columnar else self._costs.pickled_object)
            return flow
        if isinstance(sink, Act | WriteEach):
            flow.leave_columns()
            flow.spend(self._costs.called if isinstance(sink, Act) else self._costs.written * len(sink.branches))
            return flow
        return self._returned(flow)

    def _returned(self, flow: Flow) -> Flow:
        """Let the items come to the caller."""
        flow.leave_columns()
        flow.each_here += flow.pickled
        # One process receives what all tasks send.
        flow.each_there += flow.pickled + self._costs.returned
        return flow

    # ------------------------------------------------------------------------------------------------------- inputs

    def _of_vertex_inputs(self, vertex: Vertex) -> Flow:
        return self._with_measured(self._of_items(vertex.inputs), calls_of(vertex))

    def _with_measured(self, flow: Flow, calls: Calls) -> Flow:
        """Replace the cost of the items of a stage by what they took before."""
        seconds = self._measured.seconds_per_item(calls)
        self.is_measured &= seconds is not None or not calls.codes
        if seconds is not None and flow.ratio > 0:
            expected, flow.each_here = flow.each_here, seconds / flow.ratio
            flow.each_shared += flow.each_here - expected
        return flow

    def _of_items(self, items: Items) -> Flow:
        return flows_together([self._of_input(each) for each in items])

    def _of_input(self, each: Input) -> Flow:
        match each:
            case Splits():
                return replace(self._of_splits(each))
            case Rows():
                flow = self._of_rows(each)
            case Pending(decision):
                flow = replace(self._decided[decision])
            case FromTable(node) | CachedInput(node):
                flow = Flow(
                    math.inf, is_sure=False, is_of_spark=True, why=f"{_name(node)} is on Spark", weight=math.inf
                )
            case _:
                raise AssertionError(f"unknown input {each!r}")
        return self._through(flow, each.applied)

    def _of_splits(self, splits: Splits) -> Flow:
        # One after another, and each once: a stream that is added to itself 60 times has too many parts to be walked.
        for each in inputs_first(splits, Splits.inner):
            if id(each) not in self._splits:
                parts = [
                    self._of_source(part) if isinstance(part, SourceSplits) else self._splits[id(part)]
                    for part in each.parts
                ]
                self._splits[id(each)] = self._through(flows_together(parts), each.applied)
        return self._splits[id(splits)]

    def _of_source(self, source: SourceSplits) -> Flow:
        flow = flow_of_source(source.node, self._costs, self._cores, self._in_columns)
        self.read += flow.items if flow.items < math.inf else 0.0
        return flow

    def _of_rows(self, rows: Rows) -> Flow:
        flows = []
        for taken in rows.taken:
            known = self._vertices.get(id(taken.vertex))
            if known is None:
                known = self._vertices[id(taken.vertex)] = self._of_vertex_inputs(taken.vertex)
            flows.append(known)
        flow = flows_together(flows)
        self._shuffle(flow, flow.items)
        return flow

    def _through(self, flow: Flow, applied: Sequence[StageCall]) -> Flow:
        for each in applied:
            # Without an operation the call is shown there, and belongs to what was done before.
            if each.node is not None and each.operation is not None:
                self._apply(flow, each.node, each.decided)
        return flow

    # --------------------------------------------------------------------------------------------------- operations

    def _apply(self, flow: Flow, node: Node, decided: Sequence[Evaluation | None]) -> None:
        """Add the cost of an operation to the items that it reads, and change them as it does."""
        match node:
            case Chain():
                self._apply_chain(flow, node)
            case Hint() | Concat():
                pass
            case Limit(count=count):
                flow.limit(count)
            case Skip() | TakeWhile() | DropWhile():
                self._apply_prefix(flow, node)
            case Gather(gatherer=Gatherer(parallel=ByPlace(window=int()))) if flow.is_columnar:
                flow.spend(self._cost(node).columnar)
            case CallResults() | UsingBatches() | Gather():
                flow.leave_columns()
                flow.spend(self._costs.called)
                flow.is_even = False
            case Aggregate() | Collect():
                self._group(flow, node, decided)
            case Write():
                flow.leave_columns()
                flow.spend(self._costs.written)
                flow.pickled = self._costs.pickled_object
            case Top(count=count):
                self._meet(flow, node, float(count), decided)
            case _ if node.broadcast_inputs():
                flow.leave_columns()
                flow.spend(self._cost(node).item)
            case _:
                self._meet(flow, node, _results(node, flow.items), decided)

    def _apply_chain(self, flow: Flow, chain: Chain) -> None:
        costs, ops = self._costs, chain.ops
        in_columns = len(column_steps(ops)) if flow.is_columnar else 0
        for number, op in enumerate(ops):
            evaluation = op.evaluation
            if number < in_columns:
                columnar = costs.text_columnar if flow.is_text else costs.columnar
                flow.spend(columnar * max(1, evaluation.operators) + _called_inside(op, costs))
            else:
                flow.leave_columns()
                flow.spend(costs.called if evaluation.expression is None else _inlined(op, costs))
            if op.action == "filter":
                flow.filter()
            elif op.action == "flat_map":
                flow.flatten()
            elif op.action == "map" and number < in_columns:
                flow.pickled, flow.made, flow.text_bytes = costs.pickled_scalar, costs.item, 0.0
            if op.guards:
                flow.is_even = False

    def _apply_prefix(self, flow: Flow, node: Skip | TakeWhile | DropWhile) -> None:
        flow.is_even = False
        if isinstance(node, Skip):
            flow.spend(self._costs.columnar)
            return
        flow.leave_columns()
        flow.spend(self._costs.called)

    def _group(self, flow: Flow, node: Aggregate | Collect, decided: Sequence[Evaluation | None]) -> None:
        reductions = node.reductions if isinstance(node, Aggregate) else (node.collector,)
        self._reduce(flow, reductions[0], decided)
        is_keyed = any(each.keyed is not None for each in reductions)
        flow.finish(_keys(flow.items) if is_keyed else min(flow.items, 1.0), _ASSUMED)
        flow.pickled = self._costs.pickled_object
        flow.is_columnar = False

    def _reduce(self, flow: Flow, collector: Collector[Any, Any, Any], decided: Sequence[Evaluation | None]) -> None:
        """Add the cost of a collector for each item."""
        cost = self._costs.steps["Collect"]
        known = collector.on_columns()
        # The compiler takes the columns from a collector whose functions no columns can take, and may read none.
        if flow.is_columnar and known is not None and known.expression is not None:
            flow.spend(self._costs.text_key if flow.is_text and collector.keyed is not None else cost.columnar)
            return
        flow.leave_columns()
        # Each text is hashed anew, and many of them are seldom equal.
        flow.spend(cost.item + (self._costs.text_key if flow.is_text and collector.keyed is not None else 0.0))
        if any(each is not None and (each.unread is not None or each.obstacle) for each in decided):
            flow.spend(self._costs.called)
        downstream = collector if collector.keyed is None else collector.keyed.downstream
        if known is not None and downstream.accumulate_all is None:
            # It takes no batches, as that of windows: a call for each item, in which each function is called.
            flow.spend(self._costs.called * (1 + len(collector.functions)))

    def _meet(
        self, flow: Flow, node: Node, results: float, decided: Sequence[Evaluation | None] = (), *, is_wide: bool = True
    ) -> None:
        """Add the cost of an operation that needs all items, and let its results go on."""
        cost = self._cost(node)
        is_columnar = flow.is_columnar and not any(each is not None and each.obstacle for each in decided)
        if is_columnar:
            flow.spend(cost.columnar)
        else:
            flow.leave_columns()
            flow.spend(cost.item)
        if any(each is not None and each.unread is not None for each in decided):
            flow.spend(self._costs.called)
        assumed = results if flow.items < math.inf else _results(node, _ASSUMED)
        self.jobs += cost.jobs
        if cost.shuffles and is_wide:
            for _ in range(cost.shuffles):
                self._shuffle(flow, flow.items if cost.shuffles > 1 else assumed)
        else:
            flow.finish(assumed, _ASSUMED)
        flow.finish(assumed, _ASSUMED)

    def _cost(self, node: Node) -> StepCost:
        return self._costs.steps.get(type(node).__name__) or self._costs.steps[""]

    def _shuffle(self, flow: Flow, results: float) -> None:
        """Let the items of Spark's tasks change places; in this process, they do not move."""
        flow.each_shared += self._costs.shuffled + (0.0 if flow.is_columnar else flow.pickled)
        flow.finish(results, _ASSUMED)
        flow.spread(self._cores)
        self.stages += 1

    # ---------------------------------------------------------------------------------------------------- decisions

    def _of_decision(self, decision: Decision) -> Flow:
        found: Any = decision
        node: Node | None = getattr(found, "node", None) or getattr(found, "end", None)
        decided: Sequence[Evaluation | None] = getattr(found, "decided", ())
        if len(decision.inputs) == 2:
            return self._of_pair(decision.inputs, node, decided)
        flow = flows_together([self._of_items(items) for items in decision.inputs])
        calls = calls_of(tuple(chain.from_iterable(decision.inputs)), node)
        if node is None:
            return self._with_measured(flow, calls)
        if isinstance(node, Aggregate | Collect | Write):
            self._of_groups(flow, node, decided, calls)
        elif isinstance(node, Limit | Skip | TakeWhile | DropWhile):
            self._with_measured(flow, calls)
            self._apply(flow, node, decided)
            self.jobs += 1
        else:
            self._with_measured(flow, calls)
            self._meet(flow, node, _results(node, flow.items), decided)
        return flow

    def _of_groups(
        self, flow: Flow, node: Aggregate | Collect | Write, decided: Sequence[Evaluation | None], calls: Calls
    ) -> None:
        """Let each task combine what it has of each key; what it has of a key meets in one place."""
        if isinstance(node, Aggregate):  # Its items are containers already.
            self._with_measured(flow, calls)
        else:
            if node.collector is not None:
                self._reduce(flow, node.collector, decided)
            self._with_measured(flow, calls)
            flow.finish(_keys(flow.items), _ASSUMED)
        flow.is_columnar, flow.pickled = False, self._costs.pickled_object
        flow.spend(self._costs.written if isinstance(node, Write) else self._costs.item)
        self._shuffle(flow, flow.items)
        if isinstance(node, Collect):
            self._returned(flow)

    def _of_pair(self, inputs: tuple[Items, ...], node: Node | None, decided: Sequence[Evaluation | None]) -> Flow:
        """Let the items of two streams meet."""
        sides = [self._with_measured(self._of_items(items), calls_of(items)) for items in inputs]
        left, right = sides
        if node is not None and node.broadcast_inputs():
            self._meet(right, node, right.items, is_wide=False)
            left.here, left.there = left.here + right.here, left.there + right.there
            left.is_sure = left.is_sure and right.is_sure
            self._apply(left, node, decided)
            return left
        items = max(left.items, right.items)
        flow = flows_together(sides)
        # In this process too, one side is in rows while the other one passes.
        flow.each_here += flow.pickled
        self._meet(flow, node or _NO_NODE, items, decided)
        flow.pickled, flow.is_columnar, flow.is_even = self._costs.pickled_object, False, False
        return flow


_NO_NODE = Node()


def _inlined(op: Op, costs: Costs) -> float:
    """Return the cost of an expression in a loop."""
    return costs.inlined * (1 + op.evaluation.operators) + _called_inside(op, costs)


def _called_inside(op: Op, costs: Costs) -> float:
    """Return the cost of a call that Python makes for each item within an expression, in columns too."""
    expression = op.evaluation.expression
    reason = op.evaluation.obstacle or (expression and left_to_python(expression)) or ""
    return costs.library_call if reason.startswith("columns have no") else 0.0


def _results(node: Node, items: float) -> float:
    """Return how many results an operation has for `items` items."""
    if isinstance(node, Top):
        return min(items, float(node.count))
    return items * 0.5 if isinstance(node, Distinct) else items


def _keys(items: float) -> float:
    return min(items, _KEYS + items / _ITEMS_OF_KEY)


def _name(node: Any) -> str:
    label = getattr(node, "label", None)
    return label().removeprefix(".") if callable(label) else "what is kept"
