"""`Engine`: who runs a plan. Each method is a terminal operation in its most general form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

__all__ = ["Engine", "Runtime"]


class Engine(Protocol):
    """Runs plans. `node` is the last node of a plan (`dstream.plan.Node`)."""

    @property
    def name(self) -> str:
        """What users call it: `"local"` or `"spark"`."""
        ...

    def iterate(self, node: Any) -> Iterator[Any]:
        """Give the items in encounter order, lazily, looking at no more partitions than asked for."""
        ...

    def gather_all(self, node: Any) -> list[Any]:
        """Return all items in encounter order; every partition runs at once."""
        ...

    def partitions(self, node: Any) -> list[Iterator[Any]]:
        """Return one lazy iterator for each partition, in encounter order."""
        ...

    def collect(self, node: Any) -> Any:
        """Reduce in parallel as the `Collect` node says, combine in encounter order, finish once."""
        ...

    def for_each_partition(self, node: Any) -> None:
        """Run the action of the `ForEachPartition` node where each partition is."""
        ...

    def close(self) -> None:
        """Release what the engine holds; calling it again does nothing."""
        ...


class Runtime(Protocol):
    """What a stream needs of the context that it belongs to."""

    def running_engine(self) -> Engine:
        """Return the engine, started if it was not.

        Raises:
            IllegalStateError: the context is closed.
            SetupError: the engine cannot start on this machine.
        """
        ...
