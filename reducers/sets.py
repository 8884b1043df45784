"""`to_iset`: items added to a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dstream.errors import NullElementError
from dstream.spi import Collections, Reducer
from reducers.entries import entries
from reducers.writing import MapSink, Opened, checked_text

if TYPE_CHECKING:
    from dstream.distributed.set import IStreamSet

__all__ = ["to_iset"]

T = TypeVar("T")
R = TypeVar("R")


def to_iset(name: str, *, job: str | None = None) -> Reducer[T, IStreamSet[T]]:
    """Add the items to the set `name`, made if there is none, and return it.

    Costs one shuffle of the distinct items of each partition.

    **Parallelism**: each task writes the buckets of its items.
    **Guarantee**: all items of a job appear at once or none does; tasks that fail, are retried or run twice change
    nothing.
    **On re-run**: nothing changes: what is in a set is in it once.

    Args:
        name: the name of the set.
        job: a job of this name is committed once, however often it runs.

    Raises:
        TypeError: `name` is no str.
        NullElementError: when it runs: an item is None.
        UnstableKeyError: when it runs: an item has no hash, or one that other processes do not share.

    Example:
        >>> from reducers import to_iset
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     sorted(ctx.stream("abca").collect(to_iset("letters")))
        ['a', 'b', 'c']
    """
    checked_text(name, "name")
    if job is not None:
        checked_text(job, "job")
    return SetSink(name, f"to_iset({name!r})", entries(_member, _there, None), job=job)


def _member(item: Any) -> Any:
    if item is None:
        raise NullElementError("a set holds no None, and an item is None")
    return item


def _there(item: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True, repr=False)
class SetSink(MapSink[T, R]):
    """Writes items into a set: the keys of its map."""

    def open(self, context: Collections) -> Opened[R]:
        """Return the set."""
        return self._opened(context.get_set(self.name))
