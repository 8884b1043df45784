"""The node of a fork."""

from __future__ import annotations

import dataclasses

from dstream.plan.core import CacheIdentity, node
from dstream.plan.nodes import Node

__all__ = ["Shared"]


@node
class Shared(Node):
    """The same items for several nodes of one plan: what stands before it runs once.

    A plan has forks of its own: what was computed for one run is of no use to another. Pipelines put them behind each
    stage that several stages read; a stream that is used twice runs twice.

    Attributes:
        identity: under which the items are kept while the plan runs.
    """

    upstream: Node
    identity: CacheIdentity = dataclasses.field(default_factory=CacheIdentity)

    def label(self) -> str:
        return ""
