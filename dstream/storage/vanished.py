"""What storages say of data that were there: a collection destroyed, a view overtaken, temporary data removed."""

from __future__ import annotations

from dstream.errors import CollectionDestroyedError, IllegalStateError
from dstream.spi.store import ListView

__all__ = ["ViewOvertakenError", "destroyed_error", "removed_error"]


def destroyed_error(collection: object) -> CollectionDestroyedError:
    """Return the error that says that a collection is no more."""
    return CollectionDestroyedError(f"{collection} was destroyed; ask for it again by its name")


def removed_error(collection: object) -> IllegalStateError:
    """Return the error that says that temporary data of a collection are no more."""
    return IllegalStateError(
        f"{collection}: what tasks wrote, or what a reader began to read, was removed by vacuum or is older than a "
        "day; run the job again"
    )


class ViewOvertakenError(IllegalStateError):
    """A list has changed since `change` began to look at it.

    Args:
        name: of the list.
        view: what cannot be read any more.
    """

    def __init__(self, name: str, view: ListView) -> None:
        super().__init__(f"list {name!r} has changed since this view of it was made")
        self.view = view
