"""The walk over a plan that is drawn instead of run, and the registry of how each core node is drawn.

Each handler tells what the handler of the same node in `lowering` does, in the order in which it
does it; `tests/engine/test_true_stages.py` holds the two together. Spark is neither started nor needed.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from dstream.engine.spark.reach import Drawn, Reach
from dstream.errors import UnsupportedError
from dstream.plan import Node, topological

__all__ = ["draw_across", "draw_node", "reach_of"]


def reach_of(last: Node, drawn: Drawn) -> Reach:
    """Draw a plan up to a node; what several others read from is drawn once."""
    nodes = topological(last)
    readers = Counter(id(upstream) for node in nodes for upstream in node.inputs())
    reached: dict[int, Reach] = {}
    for node in nodes:
        reach = reached[id(node)] = draw_node(node, [reached[id(upstream)] for upstream in node.inputs()], drawn)
        drawn.sketch.order(reach.stage, drawn.ordered[id(node)])
        if readers[id(node)] > 1:
            drawn.sketch.close(reach.stage)
            drawn.sketch.note(
                reach.stage, f"{readers[id(node)]:,} others go on from here: it runs once for each of them"
            )
    return reached[id(last)]


@functools.singledispatch
def draw_node(node: Node, inputs: Sequence[Reach], drawn: Drawn) -> Reach:
    """Draw `node` after its inputs; each module of this package registers some nodes."""
    raise UnsupportedError(f"the Spark engine cannot explain {node.label()}")


@functools.singledispatch
def draw_across(node: Node, reach: Reach, drawn: Drawn) -> Reach:
    """Draw a node whose items stand in several partitions, or may do so."""
    raise UnsupportedError(f"the Spark engine cannot explain {node.label()} across partitions")
