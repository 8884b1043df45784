"""A plan as a string: the chain of calls that builds it, folded over lines."""

from __future__ import annotations

from dstream.plan.operations.pairs import TwoStreams
from dstream.plan.operations.streams import Concat, Node, Union

__all__ = ["describe"]


_WIDTH = 100
_MOST_CALLS = 40
_DEEPEST = 3


def describe(root: Node, depth: int = 0) -> str:
    """Return the calls that build the plan; a long chain is folded, a very long one cut in the middle."""
    nodes = _path(root)
    cut, half = max(len(nodes) - _MOST_CALLS, 0), _MOST_CALLS // 2
    if cut:
        first, last = nodes[:half], nodes[-half:]
        calls = [*_calls(first, depth), f"... {cut} more calls ...", *_calls(last, depth)]
    else:
        calls = _calls(nodes, depth)
    flat = "".join(calls)
    return flat if len(flat) <= _WIDTH or depth else "\n    ".join(calls)


def _path(root: Node) -> list[Node]:
    """Return the nodes from the source to `root`, along the streams that the methods were called on."""
    path = [root]
    while path[-1].inputs() and not _is_concat(path[-1]):
        path.append(path[-1].inputs()[0])
    path.reverse()
    return path


def _is_concat(node: Node) -> bool:
    return isinstance(node, Concat) and not isinstance(node, Union)


def _calls(nodes: list[Node], depth: int) -> list[str]:
    return [_call(node, depth) for node in nodes]


def _call(node: Node, depth: int) -> str:
    """Return the call of one node; a concat shows its parts, other calls their other streams, to a limited depth."""
    if isinstance(node, Union | TwoStreams):
        return node.label().replace("...", ", ".join(_other(part, depth) for part in node.inputs()[1:]), 1)
    if isinstance(node, Concat):
        return "concat(...)" if depth == _DEEPEST else f"concat({_parts(node, depth)})"
    return node.label()


def _parts(node: Concat, depth: int) -> str:
    return ", ".join(describe(part, depth + 1) for part in node.parts)


def _other(node: Node, depth: int) -> str:
    """Describe the other stream of a method; two levels at a time, since each call of a long chain may have one."""
    return "..." if depth + 2 > _DEEPEST else describe(node, depth + 2)
