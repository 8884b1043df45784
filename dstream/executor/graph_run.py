"""`GraphRun`: all processors of some instances of a graph, run in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dstream.executor.arrivals_of_graphs import GraphArrival, GraphBlock
from dstream.plan.vertex_graph import VertexGraph

__all__ = ["GraphRun"]

Saved = dict[tuple[str, int], dict[Any, Any]]
"""What processors saved, by their vertex and number: values by their keys."""


class GraphRun:
    """The processors of a graph that are in this process.

    Args:
        graph: what runs; its suppliers are asked here.
        parallelism: how many processors each vertex has, by its name.
        here: the numbers of the processors that run here; None: all.
        guarantee: what processors are told.
        senders: how many tasks or processors send by each inlet, in order.
    """

    def __init__(
        self,
        graph: VertexGraph,
        parallelism: Mapping[str, int],
        here: Sequence[int] | None = None,
        guarantee: str = "none",
        senders: Sequence[int] = (),
    ) -> None:
        raise NotImplementedError

    def restore(self, saved: Saved) -> None:
        """Give processors what they saved; at most once, before anything runs."""
        raise NotImplementedError

    def run(self, arrivals: Iterator[GraphArrival], *, is_last: bool = True) -> Iterator[GraphBlock]:
        """Run until all that arrives has been processed, and give what goes on.

        Args:
            arrivals: in any order of inlets; what has to wait for an edge of an earlier priority is kept, on disk if it
                is much.
            is_last: the inlets have ended with these, and the processors complete; otherwise they stay as they are, and
                sources get a slice of time.

        Raises:
            Exception: what a processor raised, with its vertex and item.
        """
        raise NotImplementedError

    def save(self) -> Iterator[GraphBlock]:
        """Let every processor save, between two runs, and give what processors emit then; `saved` holds it afterwards."""
        raise NotImplementedError

    def close(self, error: BaseException | None = None) -> None:
        """Close processors and suppliers; what they raise is logged."""
        raise NotImplementedError
