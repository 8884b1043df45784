"""Programs of their own that measure how long Spark takes to its first result."""

from __future__ import annotations

import subprocess
import sys

__all__ = ["time_of_first_job"]

_PROGRAM = """
import time
import dstream as ds
start = time.perf_counter()
with ds.connect("local[2]") as ctx:
    assert ctx.stream(range(3)).map(str).to_list() == ["0", "1", "2"]
    print(time.perf_counter() - start)
"""


def time_of_first_job() -> float:
    """Return the seconds from `connect` to the first result on Spark, in a program of its own."""
    return float(subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True).stdout)
