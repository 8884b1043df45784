"""The core operation of graphs of processors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

from dstream.plan.core import Core, node
from dstream.plan.vertex_graph import VertexGraph

__all__ = ["Processing"]


@node
class Processing(Core):
    """What a graph of processors makes of its inputs: blocks `(number of the outlet, number of the processor, items)`.

    Watermarks and marks are among the items of a block. Who reads one outlet takes the items of its blocks.

    Attributes:
        upstreams: one for each inlet of the graph, in order.
        graph: the vertices and edges.
        guarantee: what processors are told.
    """

    upstreams: tuple[Core, ...]
    graph: VertexGraph
    guarantee: str = "none"

    def inputs(self) -> tuple[Core, ...]:
        return self.upstreams

    def with_inputs(self, inputs: Sequence[Core]) -> Self:
        return dataclasses.replace(self, upstreams=tuple(inputs))
