"""Event time: the two instants that no event has, items with their timestamps, and items that came too late.

Instants and durations are milliseconds. In a plan with a step over epochs, every item travels as the pair
`(timestamp, item)`; without a timestamp, that is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["END_OF_TIME", "NO_WATERMARK", "Late", "Timed"]

NO_WATERMARK = -(2**63)
"""The watermark of what has given no event yet."""

END_OF_TIME = 2**63 - 1
"""The watermark of what has ended: every window closes."""

Timed = tuple[int | None, Any]
"""A timestamp and an item."""


@dataclass(frozen=True, slots=True)
class Late:
    """An item that came behind the watermark, on its way to where the user wants such items.

    Attributes:
        item: as it came to the step.
    """

    item: Any
