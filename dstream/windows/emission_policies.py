"""Emission policies: which of the watermarks that a policy gives are sent on, for `processors.insert_watermarks`.

One takes the watermark as it is now, and the last one that was sent, and returns the one to send; nothing is sent
unless that is greater than the last. The names and rules are those of Hazelcast Jet's `WatermarkEmissionPolicy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from dstream.values.time_units import milliseconds
from dstream.windows.definitions import FrameWindow

__all__ = ["EmissionPolicy", "emit_by_frame", "emit_by_min_step", "no_throttling"]

EmissionPolicy: TypeAlias = Callable[[int, int], int]
"""Takes (watermark now, last one sent), and returns what is to be sent."""


def no_throttling() -> EmissionPolicy:
    """Send every watermark that is greater than the last.

    Example:
        >>> no_throttling()(101, 100)
        101
    """
    return _now


def emit_by_min_step(step: int | timedelta) -> EmissionPolicy:
    """Send a watermark that is ahead of the last one by a step, or more.

    Args:
        step: in milliseconds or as a timedelta; at least 1 ms.

    Raises:
        TypeError: it is neither.
        ValueError: it is not positive.

    Example:
        >>> emit_by_min_step(10)(109, 100), emit_by_min_step(10)(110, 100)
        (100, 110)
    """
    length = milliseconds(step, "step")
    if not length:
        raise ValueError("step must be at least 1 ms, not 0")
    return _ByMinStep(length)


def emit_by_frame(window: FrameWindow) -> EmissionPolicy:
    """Send a watermark when a window can close: the borders between frames.

    Args:
        window: `tumbling(...)` or `sliding(...)`.

    Raises:
        TypeError: it is neither.

    Example:
        >>> from dstream.windows import sliding
        >>> emit_by_frame(sliding(30, by=10))(119, 100)
        110
    """
    if not isinstance(window, FrameWindow):
        raise TypeError(f"window must be what tumbling(...) or sliding(...) makes, not {type(window).__name__}")
    return _ByFrame(window)


def _now(watermark: int, last: int) -> int:
    return watermark


@dataclass(frozen=True, slots=True)
class _ByMinStep:
    step: int

    def __call__(self, watermark: int, last: int) -> int:
        return watermark if watermark - last >= self.step else last


@dataclass(frozen=True, slots=True)
class _ByFrame:
    window: FrameWindow

    def __call__(self, watermark: int, last: int) -> int:
        return self.window.floor_frame(watermark)
