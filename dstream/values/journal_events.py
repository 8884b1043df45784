"""`JournalEvent`: one change of one entry of a map."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

__all__ = ["JournalEvent", "UseEvent"]


class JournalEvent(NamedTuple):
    """What happened to one entry.

    Attributes:
        kind: `"ADDED"`, `"UPDATED"` or `"REMOVED"`.
        old_value: the value before; None for `"ADDED"`.
        new_value: the value after; None for `"REMOVED"`.
        offset: where it stands in the journal: larger than every offset before it, never 0, and no
            number without gaps. `journal(since=offset)` gives what came after it.
        timestamp: when it was committed, in milliseconds since 1970, by the clock of the process that wrote it, or of
            the server; None if an older dstream has written it.
    """

    kind: Literal["ADDED", "UPDATED", "REMOVED"]
    key: Any
    old_value: Any
    new_value: Any
    offset: int
    timestamp: int | None = None


class UseEvent(JournalEvent):
    """An entry of a cache lives longer, since it was looked up.

    It stands among the changes in the store, has an offset as they have, and is given to no user: nothing has changed.
    """

    __slots__ = ()
