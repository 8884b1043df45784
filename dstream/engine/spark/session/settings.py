"""`Settings` of a Spark session, the check of its master, and the failures of its start."""

from __future__ import annotations

import atexit
import functools
import os
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from dstream.base.environment import TemporaryFolder
from dstream.base.memory import DEFAULT_BROADCAST
from dstream.base.records import record
from dstream.base.threads import contextmanager, in_this_process
from dstream.engine.compiler import ColumnMode
from dstream.engine.spark.port.errors import innermost
from dstream.errors import DStreamError, SetupError

__all__ = ["Settings", "check_master", "defaults", "is_this_machine", "sql_settings", "starting"]


_OURS = {
    "spark.app.name": "dstream",
    "spark.executorEnv.PYTHONHASHSEED": "0",
    # A worker whose task was cancelled occupies a core, for which the next job waits: the default is two seconds (4.3).
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
    # A partition that is recomputed, since its executor was lost, may have its items in another order: Spark then
    # recomputes all its readers, or fails. Otherwise items would be lost and duplicated.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
}
_ON_ONE_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_DAEMON = "dstream.engine.tasks.daemon"
_SEARCH_PATH = "spark.executorEnv.PYTHONPATH"
_LOCAL_DIR = "spark.local.dir"
_UNIX_SOCKETS = "spark.python.unix.domain.socket"
_LONGEST_PARENT = 42
"""In bytes: the folder's own name adds 17, Spark 43 for a socket in it; Java on macOS allows 102."""


@record(slots=False)
class Settings:
    """The requests of a context to Spark.

    Attributes:
        master: the Spark master, or a server of Spark Connect; None for all cores of this machine, or the Spark that is
            running already.
        config: Spark settings by name.
        log_level: the level of Spark's own messages, `"OFF"` for none.
        worker_memory: the bytes of memory that a worker may use before operations spill.
        progress: whether long jobs show their progress; None for in terminals and notebooks.
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
        columns: whether functions are compiled to expressions, which run instead of them.
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
    # On other machines dstream's modules are sent with the first job, when Spark's own daemon runs.
    if is_this_machine(master) and _SEARCH_PATH not in settings.config:
        found["spark.python.daemon.module"] = _DAEMON
    return found


def sql_settings(settings: Settings) -> dict[str, str]:
    """Return the settings of an engine's session, unless the user has others."""
    return {name: value for name, value in _OUR_SQL.items() if name not in settings.config}


def is_this_machine(master: str | None) -> bool:
    """Return whether workers see the driver's own files: `local-cluster[...]` counts as a cluster."""
    return master is not None and (master == "local" or master.startswith("local["))


def _sockets(config: Mapping[str, str]) -> dict[str, str]:
    """Connect Spark and its workers by sockets in a folder of ours, where the system and the user allow it.

    Over TCP the end of a job waits 40 ms for an acknowledgement (4.3), half of what a small job takes.
    """
    has_own = any(name.startswith(_UNIX_SOCKETS) for name in config)
    folder = None if has_own or not hasattr(socket, "AF_UNIX") else _folder_of_sockets()
    return {} if folder is None else {f"{_UNIX_SOCKETS}.enabled": "true", f"{_UNIX_SOCKETS}.dir": folder}


@functools.cache
def _folder_of_sockets() -> str | None:
    """Make a folder that only this user may enter, for all sessions: a JVM uses the folder of the first one (4.3)."""
    # A temporary folder may be too long for the path of a socket, as on macOS.
    for parent in map(os.path.realpath, (tempfile.gettempdir(), "/tmp")):
        if len(os.fsencode(parent)) <= _LONGEST_PARENT and os.access(parent, os.W_OK):
            with suppress(OSError):  # A full disk: Spark uses TCP.
                return _private_folder(parent)
    return None


def _blocks(config: Mapping[str, str]) -> dict[str, str]:
    """Set a folder of ours for Spark's shuffle and spill files, unless the user has named one.

    Its own folders in the temporary folder may be read by every user of the machine (4.3).
    """
    if _LOCAL_DIR in config or "SPARK_LOCAL_DIRS" in os.environ:
        return {}
    with suppress(OSError):  # A full disk: Spark reports it as soon as it writes there.
        return {_LOCAL_DIR: _folder_of_blocks()}
    return {}


@functools.cache
def _folder_of_blocks() -> str:
    """Make a folder that only this user may enter, for all sessions: a JVM uses the folder of the first one (4.3)."""
    return _private_folder(tempfile.gettempdir())


def _private_folder(parent: str) -> str:
    """Make a folder that only this user may enter, and that is removed when this process ends."""
    folder = TemporaryFolder(parent)
    _removals.append(in_this_process(folder.remove))
    return folder.path


_removals: list[Callable[[], None]] = []


@atexit.register
def _remove_folders() -> None:
    """Remove the folders, also those of a start that the end of the program stops.

    An exit handler that is registered while others run is not called (3.11), so the folders share one handler.
    """
    for remove in _removals:
        remove()


_ANSWERS_WITHIN = 5.0
_SHOW = "connect(log_level='INFO') shows Spark's own messages"
_FORMS = (
    "local, local[4], local[*], spark://host:7077, yarn, k8s://https://host:443, or sc://host:15002 for Spark Connect"
)
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)( *, *[1-9]\d*)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]")
_URL = re.compile(r"[a-z][\w+.-]*://.+", re.DOTALL)
_STANDALONE = "spark://"
_OF_YARN = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def check_master(master: str | None, config: Mapping[str, Any]) -> None:
    """Check, before Java starts, that the master is valid, and that a standalone one is reachable.

    Raises:
        SetupError: the master has no valid form, or is not reachable.
    """
    if master is None or _LOCAL.fullmatch(master):
        return
    if master == "yarn":
        if not any(name in os.environ for name in _OF_YARN) and not any(".yarn." in name for name in config):
            raise SetupError(
                "the master yarn needs the configuration files of Hadoop: set HADOOP_CONF_DIR or YARN_CONF_DIR to "
                "their folder"
            )
    elif not _URL.fullmatch(master):
        raise SetupError(f"{master!r} is no master of Spark; write {_FORMS}")
    elif master.startswith(_STANDALONE):
        _check_answers(master)


def _check_answers(master: str) -> None:
    problems = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise SetupError(f"{master!r} is no master of Spark: write spark://host:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN).close()
            return
        except OSError as error:
            problems.append(f"{address}: {error}")
    raise SetupError(
        f"no Spark master answers at {master} ({'; '.join(problems)}); look whether it runs, under this name and port"
    )


@contextmanager
def starting(master: str | None) -> Iterator[None]:
    """Turn any error of Spark and its Java at their start into one error in words.

    Raises:
        SetupError: Spark did not start.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    # Some dstream errors are subclasses of the classes below, and describe the problem already.
    except DStreamError:
        raise
    # A constructor in Java raises a Py4JJavaError, which is no PySparkException (4.3).
    except (PySparkException, Py4JError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise SetupError(f"Spark did not start: {_words(error, master)}. {_SHOW}") from error


def _words(error: BaseException, master: str | None) -> str:
    if re.search(r"All masters are unresponsive|on a stopped SparkContext", str(error)):
        return f"the master {master} did not take this application; look at its log, and at the release of its Spark"
    missing = re.search(r"ClassNotFoundException: ([\w.$]+)", str(error))
    if missing is not None:
        return f"Java has no class {missing[1]}; name the jar that holds it in spark.jars or spark.jars.packages"
    if isinstance(error, ConnectionError) or "Answer from Java side is empty" in str(error):
        return "its Java process ended while it started"
    return innermost(error).rstrip(". ")
