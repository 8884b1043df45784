"""`to_ilist`: items appended to a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dstream.spi import Reducer
from dstream.values.places import Place, checked_place, shown_place
from reducers.writing import ListSink, checked_text

if TYPE_CHECKING:
    from dstream.distributed import IStreamList

__all__ = ["to_ilist"]

T = TypeVar("T")


def to_ilist(name: str, *, job: str | None = None, storage: Place | None = None) -> Reducer[T, IStreamList[T]]:
    """Append the items to the list `name`, made if there is none, and return it.

    An ordered stream keeps its order. Nothing is shuffled.

    **Parallelism**: each partition writes its own items.
    **Guarantee**: all items of a job appear at once, next to each other, or none does.
    **On re-run**: the items are appended again, unless `job` names the job.

    Args:
        name: the name of the list.
        job: a job of this name is committed once, however often it runs.
        storage: a folder or a URL, as for `connect`, of another storage that has the collection; unset, that of the
            context.

    Example:
        >>> from reducers import to_ilist
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     list(ctx.stream([3, 1, 2]).sorted().collect(to_ilist("numbers")))
        [1, 2, 3]
    """
    checked_text(name, "name")
    if job is not None:
        checked_text(job, "job")
    place = checked_place(storage)
    return ListSink(name, f"to_ilist({name!r}{shown_place(place)})", job=job, storage=place)
