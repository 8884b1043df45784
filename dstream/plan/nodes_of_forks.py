"""The node of a fork."""

from __future__ import annotations

from dstream.plan.core import node
from dstream.plan.nodes import Node

__all__ = ["Shared"]


@node
class Shared(Node):
    """The same items for several nodes of one plan: what stands before it runs once.

    A plan has forks of its own: what was computed for one run is of no use to another. Pipelines put them behind each
    stage that several stages read; a stream that is used twice runs twice.
    """

    upstream: Node

    def label(self) -> str:
        return ""
