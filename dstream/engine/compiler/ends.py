"""What the end of a plan may know of the operations before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dstream.engine.compiler.gatherers import reads_ahead
from dstream.plan import (
    Chain,
    Concat,
    Configure,
    Gather,
    Node,
    Parallel,
    Read,
    Union,
    Unordered,
    is_bounded,
    topological,
)
from dstream.spi import ByPlace, Collector

__all__ = ["Apart", "reads_only", "reduced_apart"]


def reads_only(root: Node) -> bool:
    """Say whether one stage gives the items of a plan, so that dividing its sources further changes nothing else."""
    return all(isinstance(node, _READING) for node in topological(root))


_READING = (Read, Chain, Concat, Union, Unordered, Parallel, Configure)


@dataclass(frozen=True)
class Apart:
    """A gatherer inside of whose partitions the work can begin before the neighbours are known.

    Attributes:
        gather: its node.
        kind: what it does in parallel.
        behind: the nodes behind it, each of which needs one item only.
    """

    gather: Gather
    kind: ByPlace[Any, Any]
    behind: tuple[Chain, ...]


def reduced_apart(last: Node, collector: Collector[Any, Any, Any]) -> Apart | None:
    """Return the gatherer whose results are only reduced, if they can be so apart from those across borders.

    What `peek` steps see and what is noted of failures would not be in order then.
    """
    behind: list[Chain] = []
    node = last
    while isinstance(node, Chain | Unordered | Parallel | Configure):
        if isinstance(node, Chain):
            behind.append(node)
        node = node.upstream
    if collector.keyed is not None or not isinstance(node, Gather) or not is_bounded(node.upstream):
        return None
    kind = node.gatherer.parallel
    if not isinstance(kind, ByPlace) or kind.gather_ahead is None or reads_ahead(node):
        return None
    if any(op.action == "peek" or op.guards for chain in behind for op in chain.ops):
        return None
    return Apart(node, kind, tuple(reversed(behind)))
