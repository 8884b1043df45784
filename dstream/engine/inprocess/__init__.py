"""The engine of this process for compiled graphs: the same stages as on Spark, one task after another, without Java."""

from __future__ import annotations

from dstream.engine.inprocess.engine import InProcessEngine

__all__ = ["InProcessEngine"]
