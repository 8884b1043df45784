"""The installed distribution with its version, and the check for a running Spark task.

The project on PyPI whose name is `dstream` is another one. What is imported is `dstream`, what is installed is
`dstream-spark`, and every message that names a line for pip takes it from here. `pyproject.toml` says the same;
`tests/house/test_distribution_name.py` compares both, and every such line of the pages and docstrings.
"""

from __future__ import annotations

import math
import os
import sys

__all__ = ["DISTRIBUTION", "VERSION", "__version__", "cores_here", "inside_a_worker", "pip_install"]


def inside_a_worker() -> bool:
    """Say whether this process runs a Spark task: streams made there without a context run on the spot."""
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)  # It may be half imported.
    return context is not None and context.get() is not None


def cores_here() -> int:
    """Return on how many cores this process may run: as many tasks Spark has at a time on one machine."""
    known = getattr(os, "sched_getaffinity", None)
    cores = len(known(0)) if known is not None else os.cpu_count() or 1
    return min(cores, _quota() or cores)


def _quota() -> int | None:
    """Return the number of cores that a container may use, rounded up as Java does; None if it is not limited."""
    try:
        with open(_CGROUP, encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError, ZeroDivisionError):  # No Linux, no second version of cgroups, or "max".
        return None


_CGROUP = "/sys/fs/cgroup/cpu.max"

DISTRIBUTION = "dstream-spark"

VERSION = __version__ = "0.1.0"
"""The second name is that of `dstream.__version__`."""


def pip_install(extra: str) -> str:
    """Return the command that installs the packages of an extra of dstream.

    It is quoted, since shells such as zsh read brackets themselves.

    Example:
        >>> pip_install("sql")
        "pip install 'dstream-spark[sql]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
