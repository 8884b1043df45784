"""What holds for a plan: asked of the plan, never kept in a flag."""

from __future__ import annotations

from collections.abc import Sequence

from dstream.errors import IllegalStateError
from dstream.plan.caches_and_tables import Cache, Recall, Table
from dstream.plan.join_nodes import CoGroup, Join, Pairing
from dstream.plan.nodes import (
    Concat,
    Configure,
    Gather,
    Limit,
    Map,
    Node,
    Parallel,
    PartitionBy,
    Read,
    Skip,
    Sorted,
    TakeWhile,
    Union,
    Unordered,
    unchanged,
)
from dstream.plan.rewrite import Top
from dstream.plan.walk import each, fold, topological
from dstream.spi.source import SizedSource

__all__ = [
    "bounded_nodes",
    "check",
    "configuration",
    "is_bounded",
    "is_ordered",
    "is_ordered_after",
    "known_size",
    "ordered_nodes",
    "parallelism",
]


def check(root: Node, *, needs_end: bool) -> None:
    """Refuse a plan that could never finish.

    Args:
        root: the last node of the plan.
        needs_end: whether the terminal operation needs every item of `root`.

    A gatherer of the user's is trusted to stop, as a `take_while` is.

    Raises:
        IllegalStateError: an infinite stream is sorted, cached, the side of a join that must end, or read to its end.
    """
    bounded: dict[int, bool] = {}
    for node in topological(root):
        inputs = [bounded[id(upstream)] for upstream in node.inputs()]
        bounded[id(node)] = _bounded(node, inputs) or (isinstance(node, Gather) and node.gatherer.may_stop)
        refused = "" if all(inputs) else _refused(node, inputs)
        if refused:
            raise IllegalStateError(
                f"an infinite stream cannot be {refused}: {node.label()}{_place(node)}; limit() it before"
            )
    if needs_end and not bounded[id(root)]:
        raise IllegalStateError(
            "this operation needs every item and the stream is infinite; end it with limit() or take_while() before"
        )


def _refused(node: Node, ends: Sequence[bool]) -> str:
    """Say what is done to an infinite input that cannot be done."""
    match node:
        case Sorted():
            return "sorted"
        case Cache():
            return "cached"
        case PartitionBy():
            return "partitioned"
        case CoGroup():
            return "grouped"
        case Join() if not node.streams(ends):
            return "this side of a join"
    return ""


def _place(node: Node) -> str:
    return f" at {node.where}" if node.where else ""


def is_ordered(root: Node) -> bool:
    """Say whether the items of `root` have an encounter order that must be kept."""
    return fold(root, _ordered)


def is_ordered_after(node: Node, before: bool) -> bool:
    """Say whether the items of `node` have an encounter order, if those that it reads have one or not."""
    return _ordered(node, [before])


def is_bounded(root: Node) -> bool:
    """Say whether the items of `root` end; `take_while` is trusted to end."""
    return fold(root, _bounded)


def known_size(root: Node) -> int | None:
    """Return how many items `root` has if its sources know that and no function of the user's stands behind them.

    Nothing is read. None if only running the plan can tell.
    """
    return fold(root, _size)


def ordered_nodes(root: Node) -> dict[int, bool]:
    """Say of every node of the plan, by its `id`, whether its items have an encounter order."""
    return each(root, _ordered)


def bounded_nodes(root: Node) -> dict[int, bool]:
    """Say of every node of the plan, by its `id`, whether its items end."""
    return each(root, _bounded)


def parallelism(root: Node) -> int | None:
    """Return the number of partitions that the last `parallel` or `sequential` asked for, or None."""
    asked = [node.partitions for node in topological(root) if isinstance(node, Parallel)]
    return asked[-1] if asked else None


def configuration(root: Node) -> dict[str, str]:
    """Return the settings of every `configure`, the later ones winning."""
    settings: dict[str, str] = {}
    for node in topological(root):
        if isinstance(node, Configure):
            settings.update(node.settings)
    return settings


def _ordered(node: Node, inputs: Sequence[bool]) -> bool:
    if isinstance(node, Read):
        return node.source.ordered
    if isinstance(node, Recall):
        return node.is_ordered
    if isinstance(node, Sorted | Top):
        return True
    if isinstance(node, Unordered | Union | Pairing | PartitionBy | Table):
        return False
    return all(inputs)


def _bounded(node: Node, inputs: Sequence[bool]) -> bool:
    if isinstance(node, Read):
        return node.source.bounded
    if isinstance(node, Limit | Top | TakeWhile | Table | Recall):
        return True
    return all(inputs)


def _size(node: Node, inputs: Sequence[int | None]) -> int | None:
    if isinstance(node, Read):
        return node.source.size() if isinstance(node.source, SizedSource) else None
    sizes = [size for size in inputs if size is not None]
    if not sizes or len(sizes) < len(inputs):
        return None
    match node:
        case Concat():
            return sum(sizes)
        case Limit(count=count):
            return min(sizes[0], count)
        case Skip(count=count):
            return max(sizes[0] - count, 0)
        case Sorted(key=None) | Unordered() | Parallel() | Configure():
            return sizes[0]
        case Map(name="as_double_stream", fn=fn) if fn is unchanged:
            return sizes[0]
    return None
