"""Windows over event time: definitions, results, watermark and emission policies.

`tumbling`, `sliding` and `session` make the argument of `stage.window(...)`, which emits `WindowResult` and
`KeyedWindowResult`. The functions that begin with `limiting_` make watermark policies for `add_timestamps(...,
policy=)`; `no_throttling`, `emit_by_min_step` and `emit_by_frame` make emission policies for
`processors.insert_watermarks(..., emission=)`. Look into `definitions` for windows and into `policies` for policies.
"""

from __future__ import annotations

from dstream.values.time import KeyedWindowResult, WindowResult
from dstream.windows.definitions import FrameWindow, SessionWindow, Window, session, sliding, tumbling
from dstream.windows.policies import (
    EmissionPolicy,
    emit_by_frame,
    emit_by_min_step,
    limiting_lag,
    limiting_lag_and_delay,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
    no_throttling,
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
