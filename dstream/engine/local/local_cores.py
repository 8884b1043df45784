"""On how many cores a plan of the local engine may run."""

from __future__ import annotations

import os

__all__ = ["cores_here"]


def cores_here() -> int:
    """Return on how many cores this process may run: as many tasks Spark has at a time on one machine."""
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known is not None else os.cpu_count() or 1
