"""The installed distribution with its version, the check for a running Spark task, and temporary folders.

The project named `dstream` on PyPI is not this one. The package to import is `dstream`, the distribution to install is
`dstream-spark`, and every message with a command for pip takes it from this module. `pyproject.toml` contains the same
name; `tests/house/test_distribution_name.py` compares both, and every such line of the pages and docstrings.
"""

from __future__ import annotations

import functools
import math
import os
import re
import sys
import time
from contextlib import suppress

__all__ = ["DISTRIBUTION", "VERSION", "TemporaryFolder", "__version__", "cores_here", "inside_a_worker", "pip_install"]


def inside_a_worker() -> bool:
    """Return whether this process runs a Spark task: streams made in it without a context run locally."""
    context = getattr(sys.modules.get("pyspark.taskcontext"), "TaskContext", None)  # It may be half imported.
    return context is not None and context.get() is not None


def cores_here() -> int:
    """Return the number of cores that this process may use: the number of concurrent tasks of Spark on one machine."""
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
"""The second name is for `dstream.__version__`."""


def pip_install(extra: str) -> str:
    """Return the command that installs the packages of an extra of dstream.

    It is quoted, since shells such as zsh read brackets themselves.

    Example:
        >>> pip_install("sql")
        "pip install 'dstream-spark[sql]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"


class TemporaryFolder:
    """A new folder that only this user may enter, with a lock of the kernel that ends with this process.

    A process that is killed cannot remove its folder: the next process that creates one in the same parent does.

    Args:
        parent: the folder in which it is created, with its missing parents.
        purpose: the beginning of its name, after `.dstream-`; empty where paths have to be short, as for sockets.

    Attributes:
        path: its location.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, parent: str, purpose: str = "") -> None:
        import tempfile  # imported on use: most processes that load this module create no folder

        os.makedirs(parent, exist_ok=True)  # A cleaner of temporary folders may have removed it.
        _remove_abandoned(parent)
        self.path = tempfile.mkdtemp(prefix=_LOCKED + purpose, dir=parent)
        try:
            self._lock: int | None = _opened(self.path)
        except OSError:  # Too many files are open: without a lock, another process would remove it.
            os.rmdir(self.path)
            raise
        _lock(self._lock)

    def remove(self) -> None:
        """Remove it with its files.

        Others may still write, as tasks of a run that was cancelled do. They do not find the folder under its name,
        so none of them adds a file while it is removed.
        """
        import shutil

        ended = f"{self.path}-ended"
        with suppress(OSError):
            os.rename(self.path, ended)
        shutil.rmtree(ended, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


_LOCKED = ".dstream-"
"""Prefix of the names of folders with a lock; folders without one, as of earlier versions, have other names."""
_OURS = re.compile(re.escape(_LOCKED) + "(?:[a-z]+-)?[a-z0-9_]{8}(?:-ended)?")
"""The names that `tempfile` makes with that prefix: a user may have folders such as `.dstream-backup`."""
_YOUNG = 60.0
"""Seconds in which a folder is left alone: it may not be locked yet, and Java outlives a killed driver for a while."""


@functools.cache
def _remove_abandoned(parent: str) -> None:
    """Remove the folders of processes that were killed, once for this process."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name):
                _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    import shutil

    try:
        folder = _opened(path)
    except OSError:
        return
    try:
        found = os.fstat(folder)
        is_old = time.time() - found.st_mtime > _YOUNG
        is_private = found.st_uid == os.getuid() and found.st_mode & 0o777 == 0o700
        if is_old and is_private and _lock(folder):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)


def _opened(folder: str) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _lock(folder: int) -> bool:
    """Acquire the lock of a folder, if its file system supports locks and no other process has it."""
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
