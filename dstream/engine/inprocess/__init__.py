"""The engine of this process for compiled graphs: the same stages as on Spark, one task after another, without Java.

`engine` runs terminal operations, `run` one plan, `graphs` one graph, task after task; `tasks` has their shared state,
`moving` a run whose later tasks may run elsewhere.
"""

from __future__ import annotations

from dstream.engine.inprocess.engine import InProcessEngine

__all__ = ["InProcessEngine"]
