"""`Lowering`: one plan on its way to Spark, and the registry of what each core node becomes there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dstream.engine.batches import loads
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow
from dstream.engine.spark.rows import Row
from dstream.errors import UnsupportedError
from dstream.failures import blame
from dstream.plan import Node, Step, fold, parallelism

__all__ = ["Lowering", "lower_across", "lower_node", "step_of"]


Action = tuple[Step, Callable[[Any], object]]


class Lowering:
    """One plan on its way to Spark.

    Attributes:
        root: its last core node.
        cluster: where it will run.
        actions: what to call in the driver for what each `peek` step saw and each guard noted, by its channel.
        in_small_pieces: what the caller holds is divided so that a task gives few items, for a loop in the caller.
    """

    def __init__(
        self,
        root: Node,
        cluster: Cluster,
        actions: Mapping[int, Action] | None = None,
        in_small_pieces: bool = False,
    ) -> None:
        self.root = root
        self.cluster = cluster
        self.actions = dict(actions or {})
        wanted = parallelism(root)
        self.parallelism = wanted or cluster.cores
        self.in_small_pieces = in_small_pieces and wanted is None
        self.is_sequential = self.parallelism == 1

    def lower(self, root: Node) -> Flow:
        """Return the flow of `root`; a node that several others read from is lowered once."""
        return fold(root, lambda node, inputs: lower_node(node, inputs, self))

    def targets(self, partitions: int) -> int:
        """Return in how many partitions to shuffle what stands in `partitions` partitions."""
        return max(1, min(partitions, max(self.parallelism, 3 * self.cluster.cores)))

    def act(self, beside: Iterable[Row], before: Mapping[int, int], counted: dict[int, int]) -> None:
        """Run the actions on what came beside the items of a job.

        Args:
            beside: the rows of their channels, channel by channel, in encounter order.
            before: how many items the action of each channel has seen in an earlier run of the same job.
            counted: takes how many it has seen now.
        """
        for row in beside:
            step, action = self.actions[row.channel]
            for item in loads(row.payload):
                number = counted.get(row.channel, 0)
                counted[row.channel] = number + 1
                if number >= before.get(row.channel, 0):
                    _act(step, action, item)


def _act(step: Step, action: Callable[[Any], object], item: Any) -> None:
    try:
        action(item)
    except Exception as error:
        blame(error, step, item)
        raise


@functools.singledispatch
def lower_node(node: Node, inputs: Sequence[Flow], lowering: Lowering) -> Flow:
    """Return the flow of `node`, given the flows of its inputs; each module of this package registers some nodes."""
    raise UnsupportedError(f"the Spark engine does not run {node.label()}")


@functools.singledispatch
def lower_across(node: Node, flow: Flow, lowering: Lowering) -> Flow:
    """Return the flow of a node whose items stand in several partitions, or may do so."""
    raise UnsupportedError(f"the Spark engine does not run {node.label()} across partitions")


def step_of(node: Node) -> Step:
    """Return how a node of a rewritten plan names itself."""
    assert node.step is not None, "rewrite gives every node its step"
    return node.step
