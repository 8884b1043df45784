"""What the tests of plans share: nothing here runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dstream.connectors.memory import Items
from dstream.plan import Node, Read, Step


@pytest.fixture
def source() -> Node:
    """The node of a source with three items."""
    return Read(Items([3, 1, 2]), step=Step("source"))


@pytest.fixture
def shape() -> Callable[[Node], str]:
    """Write a plan of one input for each node as names: `Read Chain Limit`."""

    def names(root: Node) -> str:
        found = [type(root).__name__]
        while root.inputs():
            (root,) = root.inputs()
            found.append(type(root).__name__)
        return " ".join(reversed(found))

    return names
