"""`estimated`: the cost of a compiled plan in this process and on Spark, before it runs.

A `SubplanEstimate` follows the items from the sources to the end. The cost per item counts only for the items that the
end requests, up to the last operation that needs all of them; so a plan with a limit is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from dstream.base.records import record
from dstream.engine.auto.cost_model import COSTS, Costs, StepCost
from dstream.engine.auto.measured import Calls, MeasuredCosts, calls_of
from dstream.engine.auto.subplan_estimates import SubplanEstimate, combined_estimates, estimate_of_source
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
        seconds_there: the seconds on Spark with all its cores, without its start.
        items: the number of items that are read from the sources.
        is_sure: all numbers of items follow from known sizes of sources.
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
    """Return the expected cost of a plan. Requests the sizes of sources, and runs nothing.

    Args:
        graph: the compiled plan.
        machine: the machine on which it may run.
        costs: the costs of functions as measured in earlier runs.
        in_columns: functions are compiled, so that sources may emit columns.
    """
    return _Estimate(machine.cores, COSTS.scaled(machine.scale), costs, in_columns).of_graph(graph)


_ASSUMED = 1_000.0
"""The items of a source of unknown size: small, so that a run begins in this process, where they are counted."""
_ITEMS_OF_KEY = 10.0
_KEYS = 1_000.0
"""The least number of distinct keys; more items have about a tenth of their number."""


class _Estimate:
    """The estimate of one graph.

    Attributes:
        read: the items of all sources.
        jobs: the number of Spark jobs before the last one.
        stages: the number of their stages without the first of each.
    """

    def __init__(self, cores: int, costs: Costs, measured: MeasuredCosts, in_columns: bool) -> None:
        self._cores = max(1, cores)
        self._in_columns = in_columns
        self._costs = costs
        self._measured = measured
        self._decided: list[SubplanEstimate] = []
        self._splits: dict[int, SubplanEstimate] = {}
        self._vertices: dict[int, SubplanEstimate] = {}
        self.read = 0.0
        self.jobs = self.stages = 0
        self.is_measured = True

    def of_graph(self, graph: Graph) -> PlanEstimate:
        for decision in graph.decisions:
            self._decided.append(self._of_decision(decision))
        subplan = self._of_ending(graph.ending)
        costs = self._costs
        subplan.finish(subplan.items, _ASSUMED)
        there = costs.job * (1 + self.jobs) + costs.stage * self.stages + subplan.there
        here = math.inf if subplan.is_of_spark else costs.plan + subplan.here
        return PlanEstimate(here, there, self.read, subplan.is_sure, subplan.why or "no items", self.is_measured)

    # ------------------------------------------------------------------------------------------------------- endings

    def _of_ending(self, ending: Ending) -> SubplanEstimate:
        match ending:
            case Last(vertex):
                return self._of_sink(self._of_vertex_inputs(vertex), vertex)
            case Pulled(inputs, limit):
                subplan = self._with_measured(self._of_items(inputs), calls_of(inputs))
                if limit is not None:
                    subplan.limit(limit.count)
                return self._returned(subplan)
            case Each(inputs):
                return self._returned(self._with_measured(self._of_items(inputs), calls_of(inputs)))
            case Pending():
                return self._of_items((ending,))

    def _of_sink(self, subplan: SubplanEstimate, vertex: Vertex) -> SubplanEstimate:
        """Add what the last tasks do with their items, by the kind of their sink."""
        sink: Any = vertex.output
        if isinstance(sink, Accumulate | WriteGroups):
            self._reduce(subplan, sink.collector, vertex.decided)
            is_keyed = sink.collector.keyed is not None
            subplan.finish(_keys(subplan.items) if is_keyed else min(subplan.items, 1.0), _ASSUMED)
            subplan.pickled = self._costs.pickled_object
            if is_keyed and subplan.tasks > 1:
                self._shuffle(subplan, subplan.items)
            return self._returned(subplan)
        if isinstance(sink, WriteColumns):
            subplan.spend(self._costs.columnar if subplan.is_columnar else self._costs.pickled_object)
            return subplan
        if isinstance(sink, Act | WriteEach):
            subplan.leave_columns()
            subplan.spend(self._costs.called if isinstance(sink, Act) else self._costs.written * len(sink.branches))
            return subplan
        return self._returned(subplan)

    def _returned(self, subplan: SubplanEstimate) -> SubplanEstimate:
        """Add the cost of returning the items to the caller."""
        subplan.leave_columns()
        subplan.each_here += subplan.pickled
        # One process receives what all tasks send.
        subplan.each_there += subplan.pickled + self._costs.returned
        return subplan

    # ------------------------------------------------------------------------------------------------------- inputs

    def _of_vertex_inputs(self, vertex: Vertex) -> SubplanEstimate:
        return self._with_measured(self._of_items(vertex.inputs), calls_of(vertex))

    def _with_measured(self, subplan: SubplanEstimate, calls: Calls) -> SubplanEstimate:
        """Replace the cost per item of a stage by its measured cost."""
        seconds = self._measured.seconds_per_item(calls)
        self.is_measured &= seconds is not None or not calls.codes
        if seconds is not None and subplan.ratio > 0:
            expected, subplan.each_here = subplan.each_here, seconds / subplan.ratio
            subplan.each_shared += subplan.each_here - expected
        return subplan

    def _of_items(self, items: Items) -> SubplanEstimate:
        return combined_estimates([self._of_input(each) for each in items])

    def _of_input(self, each: Input) -> SubplanEstimate:
        match each:
            case Splits():
                return replace(self._of_splits(each))
            case Rows():
                subplan = self._of_rows(each)
            case Pending(decision):
                subplan = replace(self._decided[decision])
            case FromTable(node) | CachedInput(node):
                subplan = SubplanEstimate(
                    math.inf, is_sure=False, is_of_spark=True, why=f"{_name(node)} is on Spark", weight=math.inf
                )
            case _:
                raise AssertionError(f"unknown input {each!r}")
        return self._through(subplan, each.applied)

    def _of_splits(self, splits: Splits) -> SubplanEstimate:
        # One after another, and each once: a stream that is added to itself 60 times has too many parts to be walked.
        for each in inputs_first(splits, Splits.inner):
            if id(each) not in self._splits:
                parts = [
                    self._of_source(part) if isinstance(part, SourceSplits) else self._splits[id(part)]
                    for part in each.parts
                ]
                self._splits[id(each)] = self._through(combined_estimates(parts), each.applied)
        return self._splits[id(splits)]

    def _of_source(self, source: SourceSplits) -> SubplanEstimate:
        subplan = estimate_of_source(source.node, self._costs, self._cores, self._in_columns)
        self.read += subplan.items if subplan.items < math.inf else 0.0
        return subplan

    def _of_rows(self, rows: Rows) -> SubplanEstimate:
        subplans = []
        for taken in rows.taken:
            known = self._vertices.get(id(taken.vertex))
            if known is None:
                known = self._vertices[id(taken.vertex)] = self._of_vertex_inputs(taken.vertex)
            subplans.append(known)
        subplan = combined_estimates(subplans)
        self._shuffle(subplan, subplan.items)
        return subplan

    def _through(self, subplan: SubplanEstimate, applied: Sequence[StageCall]) -> SubplanEstimate:
        for each in applied:
            # Without an operation the call is shown there, and belongs to what was done before.
            if each.node is not None and each.operation is not None:
                self._apply(subplan, each.node, each.decided)
        return subplan

    # --------------------------------------------------------------------------------------------------- operations

    def _apply(self, subplan: SubplanEstimate, node: Node, decided: Sequence[Evaluation | None]) -> None:
        """Add the cost of an operation to the items that it reads, and change them as it does."""
        match node:
            case Chain():
                self._apply_chain(subplan, node)
            case Hint() | Concat():
                pass
            case Limit(count=count):
                subplan.limit(count)
            case Skip() | TakeWhile() | DropWhile():
                self._apply_prefix(subplan, node)
            case Gather(gatherer=Gatherer(parallel=ByPlace(window=int()))) if subplan.is_columnar:
                subplan.spend(self._cost(node).columnar)
            case CallResults() | UsingBatches() | Gather():
                subplan.leave_columns()
                subplan.spend(self._costs.called)
                subplan.is_even = False
            case Aggregate() | Collect():
                self._group(subplan, node, decided)
            case Write():
                subplan.leave_columns()
                subplan.spend(self._costs.written)
                subplan.pickled = self._costs.pickled_object
            case Top(count=count):
                self._meet(subplan, node, float(count), decided)
            case _ if node.broadcast_inputs():
                subplan.leave_columns()
                subplan.spend(self._cost(node).item)
            case _:
                self._meet(subplan, node, _results(node, subplan.items), decided)

    def _apply_chain(self, subplan: SubplanEstimate, chain: Chain) -> None:
        costs, ops = self._costs, chain.ops
        in_columns = len(column_steps(ops)) if subplan.is_columnar else 0
        for number, op in enumerate(ops):
            evaluation = op.evaluation
            if number < in_columns:
                columnar = costs.text_columnar if subplan.is_text else costs.columnar
                subplan.spend(columnar * max(1, evaluation.operators) + _called_inside(op, costs))
            else:
                subplan.leave_columns()
                subplan.spend(costs.called if evaluation.expression is None else _inlined(op, costs))
            if op.action == "filter":
                subplan.filter()
            elif op.action == "flat_map":
                subplan.flatten()
            elif op.action == "map" and number < in_columns:
                subplan.pickled, subplan.made, subplan.text_bytes = costs.pickled_scalar, costs.item, 0.0
            if op.guards:
                subplan.is_even = False

    def _apply_prefix(self, subplan: SubplanEstimate, node: Skip | TakeWhile | DropWhile) -> None:
        subplan.is_even = False
        if isinstance(node, Skip):
            subplan.spend(self._costs.columnar)
            return
        subplan.leave_columns()
        subplan.spend(self._costs.called)

    def _group(self, subplan: SubplanEstimate, node: Aggregate | Collect, decided: Sequence[Evaluation | None]) -> None:
        reductions = node.reductions if isinstance(node, Aggregate) else (node.collector,)
        self._reduce(subplan, reductions[0], decided)
        is_keyed = any(each.keyed is not None for each in reductions)
        subplan.finish(_keys(subplan.items) if is_keyed else min(subplan.items, 1.0), _ASSUMED)
        subplan.pickled = self._costs.pickled_object
        subplan.is_columnar = False

    def _reduce(
        self, subplan: SubplanEstimate, collector: Collector[Any, Any, Any], decided: Sequence[Evaluation | None]
    ) -> None:
        """Add the cost of a collector for each item."""
        cost = self._costs.steps["Collect"]
        known = collector.on_columns()
        # The compiler takes the columns from a collector whose functions no columns can take, and may read none.
        if subplan.is_columnar and known is not None and known.expression is not None:
            subplan.spend(self._costs.text_key if subplan.is_text and collector.keyed is not None else cost.columnar)
            return
        subplan.leave_columns()
        # Each string is hashed anew, and often unequal to the others.
        subplan.spend(cost.item + (self._costs.text_key if subplan.is_text and collector.keyed is not None else 0.0))
        if any(each is not None and (each.unread is not None or each.obstacle) for each in decided):
            subplan.spend(self._costs.called)
        downstream = collector if collector.keyed is None else collector.keyed.downstream
        if known is not None and downstream.accumulate_all is None:
            # It takes no batches, like a collector of windows: one call per item, which calls each function.
            subplan.spend(self._costs.called * (1 + len(collector.functions)))

    def _meet(
        self,
        subplan: SubplanEstimate,
        node: Node,
        results: float,
        decided: Sequence[Evaluation | None] = (),
        *,
        is_wide: bool = True,
    ) -> None:
        """Add the cost of an operation that needs all items, and continue with its results."""
        cost = self._cost(node)
        is_columnar = subplan.is_columnar and not any(each is not None and each.obstacle for each in decided)
        if is_columnar:
            subplan.spend(cost.columnar)
        else:
            subplan.leave_columns()
            subplan.spend(cost.item)
        if any(each is not None and each.unread is not None for each in decided):
            subplan.spend(self._costs.called)
        assumed = results if subplan.items < math.inf else _results(node, _ASSUMED)
        self.jobs += cost.jobs
        if cost.shuffles and is_wide:
            for _ in range(cost.shuffles):
                self._shuffle(subplan, subplan.items if cost.shuffles > 1 else assumed)
        else:
            subplan.finish(assumed, _ASSUMED)
        subplan.finish(assumed, _ASSUMED)

    def _cost(self, node: Node) -> StepCost:
        return self._costs.steps.get(type(node).__name__) or self._costs.steps[""]

    def _shuffle(self, subplan: SubplanEstimate, results: float) -> None:
        """Add the cost of a shuffle of Spark; in this process, items do not move."""
        subplan.each_shared += self._costs.shuffled + (0.0 if subplan.is_columnar else subplan.pickled)
        subplan.finish(results, _ASSUMED)
        subplan.spread(self._cores)
        self.stages += 1

    # ---------------------------------------------------------------------------------------------------- decisions

    def _of_decision(self, decision: Decision) -> SubplanEstimate:
        found: Any = decision
        node: Node | None = getattr(found, "node", None) or getattr(found, "end", None)
        decided: Sequence[Evaluation | None] = getattr(found, "decided", ())
        if len(decision.inputs) == 2:
            return self._of_pair(decision.inputs, node, decided)
        subplan = combined_estimates([self._of_items(items) for items in decision.inputs])
        calls = calls_of(tuple(chain.from_iterable(decision.inputs)), node)
        if node is None:
            return self._with_measured(subplan, calls)
        if isinstance(node, Aggregate | Collect | Write):
            self._of_groups(subplan, node, decided, calls)
        elif isinstance(node, Limit | Skip | TakeWhile | DropWhile):
            self._with_measured(subplan, calls)
            self._apply(subplan, node, decided)
            self.jobs += 1
        else:
            self._with_measured(subplan, calls)
            self._meet(subplan, node, _results(node, subplan.items), decided)
        return subplan

    def _of_groups(
        self,
        subplan: SubplanEstimate,
        node: Aggregate | Collect | Write,
        decided: Sequence[Evaluation | None],
        calls: Calls,
    ) -> None:
        """Add the cost of combining the items of each key in each task, and then of merging those of all tasks."""
        if isinstance(node, Aggregate):  # Its items are containers already.
            self._with_measured(subplan, calls)
        else:
            if node.collector is not None:
                self._reduce(subplan, node.collector, decided)
            self._with_measured(subplan, calls)
            subplan.finish(_keys(subplan.items), _ASSUMED)
        subplan.is_columnar, subplan.pickled = False, self._costs.pickled_object
        subplan.spend(self._costs.written if isinstance(node, Write) else self._costs.item)
        self._shuffle(subplan, subplan.items)
        if isinstance(node, Collect):
            self._returned(subplan)

    def _of_pair(
        self, inputs: tuple[Items, ...], node: Node | None, decided: Sequence[Evaluation | None]
    ) -> SubplanEstimate:
        """Return the estimate of an operation on two streams."""
        sides = [self._with_measured(self._of_items(items), calls_of(items)) for items in inputs]
        left, right = sides
        if node is not None and node.broadcast_inputs():
            self._meet(right, node, right.items, is_wide=False)
            left.here, left.there = left.here + right.here, left.there + right.there
            left.is_sure = left.is_sure and right.is_sure
            self._apply(left, node, decided)
            return left
        items = max(left.items, right.items)
        subplan = combined_estimates(sides)
        # In this process too, one side is in rows while the other one passes.
        subplan.each_here += subplan.pickled
        self._meet(subplan, node or _NO_NODE, items, decided)
        subplan.pickled, subplan.is_columnar, subplan.is_even = self._costs.pickled_object, False, False
        return subplan


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
    return str(label()).removeprefix(".") if callable(label) else "what is kept"
