"""How a soak ends that somebody stops."""

from __future__ import annotations

import signal
import sys
from types import FrameType

__all__ = ["end_in_order"]


def end_in_order() -> None:
    """Let SIGTERM, as `timeout` sends it, end this process so that it ends what it started and removes its files."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
