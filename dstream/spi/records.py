"""`Records`: small named values of a storage that any process may read and replace, such as the state of a job."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Record", "Records"]


class Record(NamedTuple):
    """What a record holds.

    Attributes:
        version: how often it was written, from 1 on.
    """

    version: int
    data: bytes


class Records(Protocol):
    """Records by name. A name is parts of `a` to `z`, `0` to `9` and `-`, at most 64 of these each, divided by slashes.

    Each replacement has the next version, and of several processes that write one version exactly one succeeds. What
    was acknowledged survives the death of any process; no reader sees a part of it.
    """

    def read(self, name: str) -> Record | None:
        """Return the last version of a record; None if there is none.

        Raises:
            IllegalStateError: it is damaged.
        """
        ...

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Write a version: 1 of a new record, otherwise the one behind that which was read.

        Returns:
            False if somebody else has written this version, or a later one; nothing was changed then.
        """
        ...

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        ...

    def remove(self, name: str) -> None:
        """Remove a record with all its versions; one that is not there is no error."""
        ...
