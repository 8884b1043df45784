"""Whether this process runs a task of Spark, asked without loading PySpark."""

from __future__ import annotations

import sys

__all__ = ["inside_a_worker"]


def inside_a_worker() -> bool:
    """Say whether this process runs a Spark task: streams made there without a context run on the spot."""
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)  # It may be half imported.
    return context is not None and context.get() is not None
