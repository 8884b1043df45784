"""Event time: the two instants that no event has, items with their timestamps, and items that came too late.

Instants and durations are milliseconds. In a plan with a step over epochs, every item travels as the pair
`(timestamp, item)`; without a timestamp, that is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["END_OF_TIME", "NO_WATERMARK", "Late", "Timed", "shown_time"]

NO_WATERMARK = -(2**63)
"""The watermark of what has given no event yet."""

END_OF_TIME = 2**63 - 1
"""The watermark of what has ended: every window closes."""

Timed = tuple[int | None, Any]
"""A timestamp and an item."""


def shown_time(milliseconds: int | None) -> str:
    """Return an instant for people, such as `2026-01-31 23:59:00.250Z`; one that no calendar has as the number."""
    if milliseconds is None or milliseconds == NO_WATERMARK:
        return ""
    if milliseconds == END_OF_TIME:
        return "the end"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds") + "Z"


@dataclass(frozen=True, slots=True)
class Late:
    """An item that came behind the watermark, on its way to where the user wants such items.

    Attributes:
        item: as it came to the step.
    """

    item: Any
