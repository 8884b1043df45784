"""`Reducer`: where a stream's result goes when it becomes a distributed collection.

A reducer is not a collector: it ends a stream and cannot stand downstream of another collector.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Reducer"]

T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)


@runtime_checkable
class Reducer(Protocol[T_co, R_co]):
    """Writes the items of a stream into a distributed collection and hands that collection back."""

    def reduce_into(self, context: Any, node: Any) -> R_co:
        """Run the plan that ends in `node` and return the collection that its items were written into."""
        ...
