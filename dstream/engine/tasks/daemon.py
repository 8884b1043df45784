"""The process from which Spark forks its Python workers on this machine, with their modules loaded.

PySpark's own (4.3) loads nothing, so each worker spends half a second of CPU on imports, and at the end of each task
scans all imported objects for garbage. It does so since libraries may start threads when they are imported, and thread
locks do not survive a fork. The modules imported by this daemon start none.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

__all__ = ["MODULES", "Collecting", "main"]


MODULES = (
    "numpy",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "dstream.engine.tasks.process",
    "dstream.engine.tasks.stage",
    "dstream.engine.tasks.sinks",
    "dstream.operators.rows.loops",
    "dstream.session",
)
"""The modules that are loaded before the first fork."""

_TIMES = 20
"""The ratio of the work between two collections of garbage to the time of a collection."""

_NO_THREADS = {
    # Memory is returned to the system on allocation, not by a background thread.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OMP_NUM_THREADS": "1",  # Spark sets the same, unless a task has several cores.
}


def main() -> None:
    """Import the packages of workers, and fork a worker whenever Spark requests one."""
    for name, value in _NO_THREADS.items():
        os.environ.setdefault(name, value)
    _prefer_installed_packages()
    from pyspark import daemon

    try:
        for name in MODULES:
            import_module(name)
    except Exception:
        pass  # What cannot be loaded fails in the task that needs it, where the user sees it.
    os.register_at_fork(after_in_child=_renew_chance)
    gc.collect()
    gc.freeze()  # A worker looks for garbage at the end of each task: the objects of the daemon are none.
    daemon.__dict__["gc"] = Collecting()  # It calls `gc.collect()` there, and nothing else of it.
    daemon.manager()


def _prefer_installed_packages() -> None:
    """Import PySpark and Py4J from the installed packages, if they belong to the running Spark.

    Spark puts its zips first (4.3), whose modules Python compiles at every start: 0.6 s of CPU before the first
    task. `pip` installs the same files in the same folder, compiled once.
    """
    for each in [entry for entry in sys.path if entry.endswith(_ZIP)]:
        package = Path(each.removesuffix(_ZIP))
        if (package / "__init__.py").is_file() and str(package.parent) in sys.path:
            sys.path.sort(key=lambda entry: entry.startswith(f"{package}{os.sep}") and entry.endswith(".zip"))


_ZIP = os.sep + os.path.join("python", "lib", "pyspark.zip")


class Collecting:
    """The garbage collection at the end of a worker's tasks, for at most a twentieth of the time.

    Its duration grows with the number of objects, so after small tasks of a job with much state it would be most of a
    worker's work. Python itself collects when there are a quarter more objects than last time.
    """

    def __init__(
        self, collect: Callable[[], object] = gc.collect, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._collect = collect
        self._clock = clock
        self._ended = 0.0
        self._took = 0.0

    def collect(self) -> None:
        """Collect garbage, unless it was collected a moment ago."""
        began = self._clock()
        if began - self._ended >= _TIMES * self._took:
            self._collect()
            self._ended = self._clock()
            self._took = self._ended - began


def _renew_chance() -> None:
    """Seed the random numbers of a worker.

    Python's generator does that itself; NumPy's would continue at the state of the parent.
    """
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


if __name__ == "__main__":
    main()
