"""`Settings` of a session, and the settings that Spark starts with beside those of the user."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from dstream.engine.compiler import ColumnMode
from dstream.engine.memory_bound import DEFAULT_BROADCAST

__all__ = ["Settings", "defaults", "is_this_machine", "sql_settings"]

_OURS = {
    "spark.app.name": "dstream",
    "spark.executorEnv.PYTHONHASHSEED": "0",
    # A worker whose task was cancelled holds a core, for which the next job waits: it gets no two seconds more (4.3).
    "spark.python.task.killTimeout": "10ms",
    "spark.ui.showConsoleProgress": "false",
}
_OUR_SQL = {
    "spark.sql.adaptive.enabled": "false",
    # A row is a batch of up to 256 KB: the default of 10,000 rows would be gigabytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    # Since Spark 4.1 a union of equally partitioned frames zips their partitions, which would lose the order.
    "spark.sql.unionOutputPartitioning": "false",
    # A part that is computed again, since an executor was lost with its rows, may come out in another way: Spark then
    # runs everything again that has read it, or fails. Otherwise items would be lost and come twice.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
}
_ON_ONE_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_DAEMON = "dstream.engine.worker.worker_daemon"
_SEARCH_PATH = "spark.executorEnv.PYTHONPATH"
_LOCAL_DIR = "spark.local.dir"
_UNIX_SOCKETS = "spark.python.unix.domain.socket"
_LONGEST_PARENT = 42
"""In bytes: the folder's own name adds 17, Spark 43 for a socket in it; Java on macOS allows 102."""


@dataclass(frozen=True)
class Settings:
    """What a context asks of Spark.

    Attributes:
        master: the Spark master, or a server of Spark Connect; None for all cores of this machine, or whatever is
            running already.
        config: Spark settings by name.
        log_level: the level of Spark's own messages, `"OFF"` for none.
        worker_memory: how many bytes a worker may hold before operations spill.
        progress: whether long jobs show how far they are; None for in terminals and notebooks.
        broadcast_limit: how many bytes the right side of a hash join may have that does not say it itself.
        columns: whether functions are read, so that their expressions run in their place.
        class_archive: whether Java may map the classes that it loads from a file in the user's folder of caches.
    """

    master: str | None
    config: Mapping[str, str]
    log_level: str
    worker_memory: int
    progress: bool | None = None
    broadcast_limit: int = DEFAULT_BROADCAST
    columns: ColumnMode = "auto"
    class_archive: bool = False


def defaults(master: str, settings: Settings) -> dict[str, str]:
    """Return the settings that Spark starts with, as far as the user has not chosen them."""
    found = {**_OURS, **_OUR_SQL, "spark.log.level": settings.log_level}
    if not master.startswith("local"):
        return found
    found[_SEARCH_PATH] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    found |= {**_ON_ONE_MACHINE, **_sockets(settings.config), **_blocks(settings.config)}
    # Elsewhere our modules come with the first job, when Spark's own daemon runs.
    if is_this_machine(master) and _SEARCH_PATH not in settings.config:
        found["spark.python.daemon.module"] = _DAEMON
    return found


def sql_settings(settings: Settings) -> dict[str, str]:
    """Return what the session of an engine is set to, unless the user says otherwise."""
    return {name: value for name, value in _OUR_SQL.items() if name not in settings.config}


def is_this_machine(master: str | None) -> bool:
    """Say whether workers see the driver's own files: `local-cluster[...]` counts as a cluster."""
    return master is not None and (master == "local" or master.startswith("local["))


def _sockets(config: Mapping[str, str]) -> dict[str, str]:
    """Let Spark and its workers talk over sockets in a folder of ours, where the system and the user let it.

    Over TCP the end of a job waits 40 ms for an acknowledgement (4.3), half of what a small job takes.
    """
    has_own = any(name.startswith(_UNIX_SOCKETS) for name in config)
    folder = None if has_own or not hasattr(socket, "AF_UNIX") else _folder_of_sockets()
    return {} if folder is None else {f"{_UNIX_SOCKETS}.enabled": "true", f"{_UNIX_SOCKETS}.dir": folder}


@functools.cache
def _folder_of_sockets() -> str | None:
    """Make a folder that only this user may enter, for all sessions: a JVM remembers that of the first (4.3)."""
    for parent in map(os.path.realpath, (tempfile.gettempdir(), "/tmp")):
        if len(os.fsencode(parent)) <= _LONGEST_PARENT and os.access(parent, os.W_OK):
            with suppress(OSError):  # A full disk: Spark keeps to TCP.
                return _private_folder(parent)
    return None


def _blocks(config: Mapping[str, str]) -> dict[str, str]:
    """Let Spark keep what it shuffles and spills in a folder of ours, unless the user has named one.

    Its own folders in the temporary folder may be read by every user of the machine (4.3).
    """
    if _LOCAL_DIR in config or "SPARK_LOCAL_DIRS" in os.environ:
        return {}
    with suppress(OSError):  # A full disk: Spark says so as soon as it needs it.
        return {_LOCAL_DIR: _folder_of_blocks()}
    return {}


@functools.cache
def _folder_of_blocks() -> str:
    """Make a folder that only this user may enter, for all sessions: a JVM remembers that of the first (4.3)."""
    return _private_folder(None)


def _private_folder(parent: str | None) -> str:
    """Make a folder that only this user may enter, and that goes when this process ends."""
    folder = tempfile.mkdtemp(prefix="dstream-", dir=parent)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
