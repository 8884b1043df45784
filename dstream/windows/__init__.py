"""Windows over event time: what they are, what they give, and how far the time of a source has come.

`tumbling`, `sliding` and `session` make what `stage.window(...)` takes; `WindowResult` and `KeyedWindowResult` come out
of it. The functions that begin with `limiting_` make what `add_timestamps(..., policy=)` takes.
"""

from dstream.values.window_results import KeyedWindowResult, WindowResult
from dstream.windows.definitions import FrameWindow, SessionWindow, Window, session, sliding, tumbling
from dstream.windows.watermark_policies import (
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
)

__all__ = [
    "FrameWindow",
    "KeyedWindowResult",
    "SessionWindow",
    "Window",
    "WindowResult",
    "limiting_lag",
    "limiting_lag_and_delay",
    "limiting_lag_and_lull",
    "limiting_timestamp_and_wall_clock_lag",
    "session",
    "sliding",
    "tumbling",
]


def __dir__() -> list[str]:
    return sorted(__all__)
