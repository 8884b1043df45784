"""`Engine`: who runs a plan. Each method is a terminal operation in its most general form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from dstream.spi.reducer import Writing

__all__ = ["Engine", "Runtime"]


class Engine(Protocol):
    """Runs plans. `node` is the last node of a plan (`dstream.plan.Node`)."""

    @property
    def name(self) -> str:
        """What users call it: `"local"`, `"spark"` or `"auto"`."""
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

    def write(self, node: Any) -> list[Any]:
        """Let the writer of the `Write` node take the items where they are; return its receipts in encounter order."""
        ...

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Return a lazy table of the engine's own kind over splits with `read_arrow`, such as those of a map.

        Raises:
            UnsupportedError: the engine has no tables.
        """
        ...

    def to_arrow(self, node: Any) -> Any:
        """Return all items of the `Columns` node as a `pyarrow.Table`, in encounter order.

        Raises:
            TypeError: the items have no common columns.
        """
        ...

    def to_data_frame(self, node: Any) -> Any:
        """Run the plan of the `Columns` node; return its items as a table of the engine's own kind, where they are.

        Raises:
            UnsupportedError: the engine has no tables.
            TypeError: the items have no common columns.
        """
        ...

    def close(self) -> None:
        """Release what the engine holds; calling it again does nothing."""
        ...


class Runtime(Writing, Protocol):
    """What a stream needs of the context that it belongs to: an engine, and a way to write for reducers."""

    def check_open(self) -> None:
        """Refuse what a closed context was asked for.

        Raises:
            IllegalStateError: the context is closed.
        """
        ...

    def running_engine(self) -> Engine:
        """Return the engine, started if it was not.

        Raises:
            IllegalStateError: the context is closed.
            SetupError: the engine cannot start on this machine.
        """
        ...

    def write_here(self, node: Any, output: Any) -> Any:
        """Do what `write` does, in this process, without the engine: for a few items that are here already."""
        ...

    def stages(self, node: Any, into: Any) -> Any:
        """Return the stages that a plan would run as (`dstream.plan.Stages`); nothing runs or starts.

        Args:
            node: the last node of the plan.
            into: a `Collector`, the `Output` of a reducer, or None for a list of all items.
        """
        ...
