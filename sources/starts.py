"""Where a job begins in a source without an end."""

from __future__ import annotations

import datetime
from typing import Any, Literal, TypeAlias

__all__ = ["Start", "checked_start"]

Start: TypeAlias = 'Literal["oldest", "current"] | datetime.datetime'


def checked_start(start: Any) -> Start:
    """Return `start` if it is a place to begin.

    Raises:
        TypeError: it is neither a text nor a datetime.
        ValueError: it is another text, or a datetime that may be meant in any time zone.
    """
    if isinstance(start, datetime.datetime):
        if start.tzinfo is None:
            raise ValueError(f"start must be a datetime with a time zone, not {start!r}: start.astimezone() gives one")
        return start
    if not isinstance(start, str):
        raise TypeError(f"start must be 'oldest', 'current' or a datetime, not {type(start).__name__}")
    if start not in ("oldest", "current"):
        raise ValueError(f"start must be 'oldest', 'current' or a datetime, not {start!r}")
    return start  # type: ignore[return-value]  # mypy narrows no texts here.
