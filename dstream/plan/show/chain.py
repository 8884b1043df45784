"""A plan as text: the chain of calls that builds it, folded over lines."""

from __future__ import annotations

from dstream.plan.nodes import Concat, Node

__all__ = ["describe"]

_WIDTH = 100
_MOST_CALLS = 40
_DEEPEST = 3


def describe(root: Node, depth: int = 0) -> str:
    """Return the calls that build the plan; a long chain is folded, a very long one cut in the middle."""
    calls = _calls(root, depth)
    if len(calls) > _MOST_CALLS:
        half = _MOST_CALLS // 2
        calls = [*calls[:half], f"... {len(calls) - 2 * half} more calls ...", *calls[-half:]]
    flat = "".join(calls)
    return flat if len(flat) <= _WIDTH or depth else "\n    ".join(calls)


def _calls(root: Node, depth: int) -> list[str]:
    """Return the calls from the source to `root`; a concat shows its parts, to a limited depth."""
    calls: list[str] = []
    node = root
    while not isinstance(node, Concat) and node.inputs():
        calls.append(node.label())
        (node,) = node.inputs()
    calls.append(_concat(node, depth) if isinstance(node, Concat) else node.label())
    calls.reverse()
    return calls


def _concat(node: Concat, depth: int) -> str:
    if depth == _DEEPEST:
        return "concat(...)"
    return f"concat({', '.join(describe(part, depth + 1) for part in node.parts)})"
