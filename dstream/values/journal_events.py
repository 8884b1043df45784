"""`JournalEvent`: one change of one entry of a map."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

__all__ = ["JournalEvent"]


class JournalEvent(NamedTuple):
    """What happened to one entry.

    Attributes:
        kind: `"ADDED"`, `"UPDATED"` or `"REMOVED"`.
        old_value: the value before; None for `"ADDED"`.
        new_value: the value after; None for `"REMOVED"`.
        offset: where it stands in the journal: larger than every offset before it, never 0, and no
            number without gaps. `journal(since=offset)` gives what came after it.
    """

    kind: Literal["ADDED", "UPDATED", "REMOVED"]
    key: Any
    old_value: Any
    new_value: Any
    offset: int
