"""Operations on two streams on the local engine. Loaded by the first plan that has one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from dstream.base.memory import Bound
from dstream.engine.local.operations import LocalTask, apply, opened_later
from dstream.operators.joins.hash import Matching, Membership, cogrouped, matched
from dstream.operators.joins.lookup import LookupTable, RightSide, looked_up, table_here
from dstream.operators.joins.nearest import Nearest
from dstream.operators.joins.pairs import SideBySide
from dstream.operators.rows.keys import sides_of
from dstream.plan.operations.pairs import AsOf, CoGroup, HashJoin, Join, SemiJoin, Zip
from dstream.plan.operations.streams import Node

__all__: list[str] = []


@apply.register
def _(node: Join, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Buffer the right side, unless it is endless, and stream the left one."""
    left, right = sides_of(node)
    lefts, rights = left.pairs(items), right.pairs(opened_later(node.right, task))
    bound = task.bound if task.bounded[id(node)] else _NONE
    if task.bounded[id(node.right)]:
        return matched(rights, lefts, Matching.of(node.how, holds_left=False), bound)
    return matched(lefts, rights, Matching.of(node.how, holds_left=True), bound)


_NONE = Bound(2**62)
"""An endless side can only be joined with a side in memory."""


@apply.register
def _(node: SemiJoin, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Buffer the keys of the right side and stream the left one."""
    left, right = sides_of(node)
    bound = task.bound if task.bounded[id(node)] else _NONE
    rights = right.pairs(opened_later(node.right, task))
    return Membership(not node.is_anti).joined(rights, left.pairs(items), bound)


@apply.register
def _(node: AsOf, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Sort both sides, and merge them."""
    left, right = sides_of(node)
    return Nearest.of(node).pairs(left.pairs(items), right.pairs(opened_later(node.right, task)), task.bound)


@apply.register
def _(node: Zip, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Read one item of each side at a time."""
    return SideBySide.of(node).items(items, opened_later(node.right, task))


@apply.register
def _(node: HashJoin, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    """Read the right side when the first pair is asked for, before the left one."""
    assert node.left_key is not None, "a hash join has two keys"
    side = RightSide.of(node, task.broadcast_limit)
    table = functools.partial(_table, side, node.right, task)
    return looked_up(table, node.left_key, node.is_inner, node.step, items)


def _table(side: RightSide, right: Node, task: LocalTask) -> LookupTable:
    return table_here(side, opened_later(right, task))


@apply.register
def _(node: CoGroup, items: Iterator[Any], task: LocalTask) -> Iterator[Any]:
    left, right = sides_of(node)
    return cogrouped(left.pairs(items), right.pairs(opened_later(node.right, task)), task.bound)
