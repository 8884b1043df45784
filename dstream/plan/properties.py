"""What holds for a plan: asked of the plan, never kept in a flag."""

from __future__ import annotations

from collections.abc import Sequence

from dstream.errors import IllegalStateError
from dstream.plan.nodes import Concat, Configure, Limit, Node, Parallel, Read, Sorted, TakeWhile, Unordered
from dstream.plan.rewrite import Top
from dstream.plan.walk import each, fold, topological

__all__ = ["bounded_nodes", "check", "configuration", "is_bounded", "is_ordered", "ordered_nodes", "parallelism"]


def check(root: Node, *, needs_end: bool) -> None:
    """Refuse a plan that could never finish.

    Args:
        root: the last node of the plan.
        needs_end: whether the terminal operation needs every item of `root`.

    Raises:
        IllegalStateError: an infinite stream is sorted, or read to its end.
    """
    bounded: dict[int, bool] = {}
    for node in topological(root):
        bounded[id(node)] = _bounded(node, [bounded[id(upstream)] for upstream in node.inputs()])
        if isinstance(node, Sorted) and not bounded[id(node)]:
            raise IllegalStateError(
                f"an infinite stream cannot be sorted: {node.label()}{_place(node)}; limit() it before"
            )
    if needs_end and not bounded[id(root)]:
        raise IllegalStateError(
            "this operation needs every item and the stream is infinite; end it with limit() or take_while() before"
        )


def _place(node: Node) -> str:
    return f" at {node.where}" if node.where else ""


def is_ordered(root: Node) -> bool:
    """Say whether the items of `root` have an encounter order that must be kept."""
    return fold(root, _ordered)


def is_bounded(root: Node) -> bool:
    """Say whether the items of `root` end; `take_while` is trusted to end."""
    return fold(root, _bounded)


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
    if isinstance(node, Sorted | Top):
        return True
    if isinstance(node, Unordered):
        return False
    return all(inputs)


def _bounded(node: Node, inputs: Sequence[bool]) -> bool:
    if isinstance(node, Read):
        return node.source.bounded
    if isinstance(node, Limit | Top | TakeWhile):
        return True
    if isinstance(node, Concat):
        return all(inputs)
    return inputs[0]
