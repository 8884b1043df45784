"""How a soak ends that somebody stops."""

from __future__ import annotations

import signal
import sys
from types import FrameType

__all__ = ["end_in_order"]


def end_in_order() -> None:
    """End this process on SIGTERM, as `timeout` sends it, with the processes that it started and without its files."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
