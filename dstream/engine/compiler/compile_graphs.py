"""What graphs of processors become: one task reads all inlets, in the order of their priorities, and runs the graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from dstream.engine.compiler.compile_inputs import in_the_caller
from dstream.engine.compiler.compiling import Compiling, compile_node
from dstream.engine.graph.vertices import Items, Rows, Splits, Taken, Vertex, in_one_task, one_after_another, piped
from dstream.engine.kernels.graph_processing import Inlet, InOneTask, by_priority, whole
from dstream.engine.kernels.stamping import telling
from dstream.engine.worker.sinks import WriteItems
from dstream.errors import UnsupportedError
from dstream.plan.core_of_graphs import Processing

__all__: list[str] = []


@compile_node.register
def _(node: Processing, inputs: Sequence[Items], compiling: Compiling) -> Items:
    if not inputs:
        raise UnsupportedError(f"the Spark engine does not run {node.label()}, which reads nothing")
    receipts = in_the_caller(telling(node.step, node.take), compiling)
    runs = InOneTask(whole(node, compiling.facts.cores, receipts))
    order = by_priority(node.graph.inlets)
    items = one_after_another(tuple(chain.from_iterable(piped(inputs[each], None, Inlet(each)) for each in order)))
    if all(isinstance(each, Splits) for each in items):
        items = in_one_task(items)
    else:
        written = Taken(Vertex(items, WriteItems(), node.step))
        items = (Rows((written,), 1, why="one task runs all processors of a graph"),)
    return piped(items, node, runs, "one task runs all processors of the graph")
