"""Windows over event time: what they are, what they give, and how far the time of a source has come.

`tumbling`, `sliding` and `session` make what `stage.window(...)` takes; `WindowResult` and `KeyedWindowResult` come out
of it. The functions that begin with `limiting_` make what `add_timestamps(..., policy=)` takes; `no_throttling`,
`emit_by_min_step` and `emit_by_frame` what `processors.insert_watermarks(..., emission=)` does.
"""

from dstream.values.window_results import KeyedWindowResult, WindowResult
from dstream.windows.definitions import FrameWindow, SessionWindow, Window, session, sliding, tumbling
from dstream.windows.emission_policies import EmissionPolicy, emit_by_frame, emit_by_min_step, no_throttling
from dstream.windows.watermark_policies import (
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
)

__all__ = [
    "EmissionPolicy",
    "FrameWindow",
    "KeyedWindowResult",
    "SessionWindow",
    "Window",
    "WindowResult",
    "emit_by_frame",
    "emit_by_min_step",
    "limiting_lag",
    "limiting_lag_and_delay",
    "limiting_lag_and_lull",
    "limiting_timestamp_and_wall_clock_lag",
    "no_throttling",
    "session",
    "sliding",
    "tumbling",
]


def __dir__() -> list[str]:
    return sorted(__all__)
