"""Launch: the Spark session behind the contexts of this process, and who shares it.

A session that the user started already is used and left running. Otherwise the first context
starts one (`spark_start`), the following ones share it, and the last one to close stops it.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dstream.engine.kernels.caches import Caches
from dstream.engine.progress import Progress
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.port.classic_port import ClassicPort
from dstream.engine.spark.port.forked_processes import check_process, is_forked
from dstream.engine.spark.port.shipped_code import Code
from dstream.engine.spark.port.spark_port import Port
from dstream.engine.spark.session.class_archive import ClassArchive
from dstream.engine.spark.session.java import find_java
from dstream.engine.spark.session.spark_connect import connected_port, is_connect, is_server, leave
from dstream.engine.spark.session.spark_settings import Settings, is_this_machine, sql_settings
from dstream.engine.spark.session.spark_start import archive_for, forget_java, started
from dstream.engine.spark.session.start_failures import check_master, starting
from dstream.engine.spark.spark_engine import SparkEngine
from dstream.engine.worker.spark_versions import Feature, check_version, has
from dstream.errors import IllegalStateError
from dstream.values.forked_locks import RenewedLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["activate", "check_machine", "known_cores", "start", "starts_here"]


@dataclass
class _Running:
    """The session that this module started, and how many contexts use it.

    Attributes:
        archive: that of the classes of its Java, if it may have one.
    """

    spark: SparkSession
    settings: Settings
    archive: ClassArchive | None
    users: int = 0


_lock = RenewedLock()
_running: _Running | None = None


def check_machine(master: str | None, config: Mapping[str, Any]) -> None:
    """Make sure, before anything starts, that Spark can run here, unless it runs on a server.

    Raises:
        SetupError: Java or PySpark is missing, too old or too new, or there is no such master.
    """
    check_version()
    if is_server(master) or _session_of_the_user() is not None:
        return
    check_master(master, config)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        find_java()


def start(settings: Settings, caches: Caches) -> SparkEngine:
    """Return an engine on a running session; close the engine to let go of it.

    Args:
        settings: how Spark starts, if it does not run.
        caches: what is kept of `cache()` steps in the context that the engine is for.

    Raises:
        EngineError: this process was forked from one that uses Spark.
        IllegalStateError: Spark runs already, with another master or other settings.
        SetupError: Spark cannot start.
    """
    check_process()
    theirs = _session_of_the_user()
    if is_server(settings.master) or is_connect(theirs):
        port = connected_port(settings.master, theirs, {**sql_settings(settings), **settings.config})
        return _engine(port, settings, caches, functools.partial(leave, port))
    with _lock:
        if theirs is not None and _running is None:
            return _engine(_classic_port(_guest_session(theirs, settings), settings), settings, caches, _nothing)
        running = _shared_session(settings)
        return _engine(_classic_port(running.spark, settings), settings, caches, _Release(running))


def starts_here(master: str | None) -> bool:
    """Say whether a context would start Spark on this machine, rather than use one that runs, or a server."""
    is_elsewhere = is_server(master) or "PYSPARK_GATEWAY_PORT" in os.environ
    return not is_elsewhere and _running is None and _session_of_the_user() is None


def activate(engine: SparkEngine) -> None:
    """Make the session of an engine the active one of this thread, as if Spark had been started here."""
    spark: Any = engine.spark
    java = spark._get_j_spark_session_class(spark._jvm) if has(Feature.SESSION_CLASS) else spark._jvm.SparkSession
    java.setActiveSession(spark._jsparkSession)


def known_cores(master: str | None, config: Mapping[str, Any]) -> int | None:
    """Return how many tasks run at the same time: of the Spark that runs, or if its settings say so.

    None if that is known only when Spark runs. Nothing is started.
    """
    session = _session_of_the_user() if _running is None or is_forked() else _running.spark
    if is_server(master) or is_connect(session):
        return None
    if session is not None:
        return session.sparkContext.defaultParallelism
    if str(config.get("spark.default.parallelism", "")).isdecimal():
        return int(config["spark.default.parallelism"])
    local = re.fullmatch(r"local(?:\[(\d+)(?:, *\d+)?\])?", master or "")
    return None if local is None else int(local[1] or 1)


class _Release:
    """Lets go of a shared session, once."""

    def __init__(self, running: _Running) -> None:
        self._running = running
        self._is_released = False

    def __call__(self) -> None:
        global _running
        if is_forked():
            return  # It is the parent's session, and so may be a lock that is held.
        with _lock:
            if self._is_released:
                return
            self._is_released = True
            self._running.users -= 1
            if self._running.users == 0 and _running is self._running:
                _running = None
                _stop(self._running)


def _nothing() -> None:
    """Leave the user's own session running."""


def _classic_port(spark: SparkSession, settings: Settings) -> ClassicPort:
    with starting(settings.master):  # Java looks at the user's own SQL settings when it is first asked for one (4.3).
        for name, value in sql_settings(settings).items():
            spark.conf.set(name, value)
    context = spark.sparkContext
    return ClassicPort(spark, None if is_this_machine(context.master) else Code(context.addPyFile))


def _engine(port: Port, settings: Settings, caches: Caches, stop: Any) -> SparkEngine:
    cluster = Cluster(port, settings.worker_memory, caches, settings.broadcast_limit, settings.columns)
    return SparkEngine(cluster, stop, Progress(settings.progress))


def _session_of_the_user() -> SparkSession | None:
    module = sys.modules.get("pyspark.sql")
    session = getattr(module, "SparkSession", None)  # It may be half imported, by a thread that starts Spark.
    return None if session is None or is_forked() else session.getActiveSession()


def _guest_session(theirs: SparkSession, settings: Settings) -> SparkSession:
    """Return a session beside the user's, so that SQL settings stay apart."""
    running = theirs.sparkContext.master
    if settings.master not in (None, running):
        raise IllegalStateError(
            f"Spark runs already, with master {running}; stop it, or connect() without a master to use it"
        )
    guest = theirs.newSession()
    for name, value in settings.config.items():
        guest.conf.set(name, value)
    return guest


def _shared_session(settings: Settings) -> _Running:
    global _running
    if _running is not None and not ClassicPort(_running.spark).is_alive():  # Contexts may still hold it.
        _stop(_running)
        _running = None
    if _running is None:
        archive = archive_for(settings)
        _running = _Running(started(archive, settings), settings, archive)
        atexit.register(_stop_at_exit, _running)
    ours = _running.settings
    if settings.master not in (None, ours.master) or (settings.config and dict(settings.config) != dict(ours.config)):
        raise IllegalStateError(
            f"another open context runs Spark with master {ours.master or 'local[*]'} and "
            f"{_settings_named(ours.config)}; "
            "close it first, or use the same settings"
        )
    _running.users += 1
    return _running


def _has_died(running: _Running) -> bool:
    """Say whether the Java process of a session is gone."""
    process = getattr(getattr(running.spark.sparkContext, "_gateway", None), "proc", None)
    return process is not None and process.poll() is not None


def _settings_named(config: Mapping[str, str]) -> str:
    """Name settings without their values, which may be secrets."""
    return f"the settings {', '.join(sorted(config))}" if config else "no settings of its own"


def _stop_at_exit(running: _Running) -> None:
    if _running is running:
        _stop(running)


def _stop(running: _Running) -> None:
    """Stop a session, also one whose Java process is gone: there is nothing left to stop then."""
    from py4j.protocol import Py4JError

    if is_forked():
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # PySpark says that Java has crashed, which is known.
            running.spark.stop()
    except (Py4JError, ConnectionError):
        if _has_died(running):
            forget_java()
    else:
        if running.archive is not None and running.archive.is_wanted():
            running.archive.make_beside()
