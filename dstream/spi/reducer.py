"""`Reducer`: where a stream's result goes when it becomes a distributed collection.

A reducer is not a collector: it ends a stream and cannot stand downstream of another collector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from dstream.spi.collector import Collector
from dstream.spi.store import Kind

__all__ = ["Output", "Reducer", "Writing"]

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


@runtime_checkable
class Reducer(Protocol[T_contra, R_co]):  # type: ignore[misc]  # No method shows that it takes items: it gets a plan.
    """Writes the items of a stream into a distributed collection and hands that collection back."""

    def reduce_into(self, context: Writing, node: Any) -> R_co:
        """Run the plan that ends in `node` and return the collection that its items were written into."""
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """What a stream writes, and where.

    Attributes:
        kind: what the collection is.
        name: its name.
        label: the reducer as the user wrote it, for messages.
        collector: a keyed collector; each of its groups becomes one entry.
        classifier: with `downstream` instead of a collector: the groups that `grouping_by` makes.
        downstream: what happens to the items of a group; unset, they become a list.
        merge: makes one value of the value that is there already and the new one; unset, the new one replaces it.
        replace: the collection's old content disappears in the same commit.
        job: what names the job, so that it writes once however often it runs.
    """

    kind: Kind
    name: str
    label: str
    collector: Collector[Any, Any, Any] | None = None
    classifier: Callable[[Any], Any] | None = None
    downstream: Collector[Any, Any, Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    replace: bool = False
    job: str | None = None


class Writing(Protocol):
    """What a reducer needs of the context that its stream belongs to."""

    def write(self, node: Any, output: Output) -> Any:
        """Run the plan that ends in `node`, commit what it gives as `output` says, and return the collection.

        The collection is as it was before if anything fails.
        """
        ...
