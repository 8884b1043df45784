"""Launch of the Spark session of the contexts of this process, local or on a server.

A session that the user started already is used and left running. Otherwise the first context starts one (`startup`),
the following ones share it, and the last one to close stops it. On a server each context has its own session, which
ends with it; the server continues.
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

from dstream.base.environment import pip_install
from dstream.base.threads import RenewedLock
from dstream.engine.calls import Progress
from dstream.engine.spark.port.classic import ClassicPort
from dstream.engine.spark.port.code import Code
from dstream.engine.spark.port.connect import ConnectPort
from dstream.engine.spark.port.errors import check_process, ended, is_forked, lacking_on_workers, talks_to_a_server
from dstream.engine.spark.port.protocols import Port
from dstream.engine.spark.run.backend import SparkBackend
from dstream.engine.spark.run.engine import SparkEngine
from dstream.engine.spark.session.java import ClassArchive, find_java
from dstream.engine.spark.session.settings import Settings, check_master, is_this_machine, sql_settings, starting
from dstream.engine.spark.session.startup import archive_for, forget_java, started, submitted
from dstream.engine.versions import Feature, check_connect, check_version, has
from dstream.errors import IllegalStateError, SetupError
from dstream.operators.rows.caches import Caches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "activate",
    "check_machine",
    "check_master_of",
    "connected_port",
    "has_session_of_the_user",
    "is_cluster",
    "is_connect",
    "is_running",
    "is_server",
    "known_cores",
    "leave",
    "start",
    "starts_here",
]


_SCHEME = "sc://"
_FEW_RETRIES, _RETRIES = 3, 6
_LONGEST_WAIT = 4000
"""In milliseconds, between two attempts: together a second, or twelve. PySpark's own take ten minutes, after which no
server has the session."""


def is_server(master: str | None) -> bool:
    """Return whether a master is a server of Spark Connect."""
    return master is not None and master.startswith(_SCHEME)


def is_connect(session: object) -> bool:
    """Return whether a session of the user's is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def connected_port(master: str | None, theirs: Any, settings: Mapping[str, str]) -> ConnectPort:
    """Return a port to a new session, on which the functions of this process run.

    Args:
        master: the server; None for the server of `theirs`.
        theirs: a user's session.
        settings: SQL settings of the new session.

    Raises:
        SetupError: the server cannot be reached, or cannot run dstream; the message has the reason.
    """
    from pyspark.errors import PySparkException

    check_connect()
    server = "the Spark server" if master is None else master.partition("/;")[0]  # What follows may be a token.
    try:
        session = theirs.newSession() if master is None else _session(master)
        talks_to_a_server()
        port = ConnectPort(session)
        try:
            check_connect(session.version)
            for name, value in settings.items():
                session.conf.set(name, value)
            port.cores()  # A first job shows whether the interpreter of the server has the packages.
        except PySparkException as error:
            lacking = lacking_on_workers(str(error), session)
            leave(port)
            raise lacking or error from None
        except BaseException:
            leave(port)
            raise
        # Few retries before this: an unreachable server is reported to the user within a second.
        _retry(session, _RETRIES)
    except PySparkException as error:
        raise SetupError(f"{server} cannot run dstream: {ended(error)}") from error
    return port


def leave(port: ConnectPort) -> None:
    """End the session of a port and its clones, also one whose server is gone; a parent's is left to the parent."""
    if is_forked():
        return
    for session in (*port.clones, port.session):
        _retry(session, _FEW_RETRIES)
        session.stop()


def _session(master: str) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise SetupError(f"Spark Connect needs further packages: {pip_install('connect')} ({error})") from error
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")  # An exception reports it.
    session = SparkSession(master)
    _retry(session, _FEW_RETRIES)
    return session


def _retry(session: Any, times: int) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=times, max_backoff=_LONGEST_WAIT)])


@dataclass
class _Running:
    """The session that this module started, and the number of contexts that use it.

    Attributes:
        archive: the class archive of its Java, if it may have one.
    """

    spark: SparkSession
    settings: Settings
    archive: ClassArchive | None
    users: int = 0


_lock = RenewedLock()
_running: _Running | None = None


def check_machine(master: str | None, config: Mapping[str, Any]) -> None:
    """Make sure, before anything starts, that Spark can run on this machine, unless it runs on a server.

    Raises:
        SetupError: Java or PySpark is missing, too old or too new, or there is no such master.
    """
    check_version()
    check_master_of(master, config)
    # `spark-submit` has started a Java for this process already.
    if not _runs_elsewhere(master) and "PYSPARK_GATEWAY_PORT" not in os.environ:
        find_java()


def check_master_of(master: str | None, config: Mapping[str, Any]) -> None:
    """Make sure, before anything starts, that there can be such a master, unless a session runs or it is a server.

    Raises:
        SetupError: there is no such master.
    """
    if not _runs_elsewhere(master):
        check_master(master, config)


def _runs_elsewhere(master: str | None) -> bool:
    return is_server(master) or _session_of_the_user() is not None


def start(settings: Settings, caches: Caches) -> SparkEngine:
    """Return an engine on a running session; close the engine to let go of it.

    Args:
        settings: how Spark starts, if it does not run.
        caches: the contents of `cache()` steps in the context of the engine.

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
        # Where this module has started Spark, the active session is its own.
        if theirs is not None and _running is None:
            return _engine(_classic_port(_guest_session(theirs, settings), settings), settings, caches, _nothing)
        running = _shared_session(settings)
    release = _Release(running)
    try:
        return _engine(_classic_port(running.spark, settings), settings, caches, release)
    except BaseException:
        release()  # Otherwise a start with other settings would be refused, for a context that there is not.
        raise


def starts_here(master: str | None) -> bool:
    """Return whether a context would start Spark on this machine, rather than use one that runs, or a server."""
    is_elsewhere = is_server(master) or "PYSPARK_GATEWAY_PORT" in os.environ
    return not is_elsewhere and _running is None and _session_of_the_user() is None


def is_running(master: str | None) -> bool:
    """Return whether a context uses a Spark that runs in this process already."""
    return not is_server(master) and (_running is not None or _session_of_the_user() is not None)


def has_session_of_the_user() -> bool:
    """Return whether a session runs in this process that this module has not started."""
    theirs = _session_of_the_user()
    # Where this module has started Spark, the active session is its own, unless it is one of a server.
    return theirs is not None and (_running is None or is_connect(theirs))


def activate(engine: SparkEngine) -> None:
    """Make the session of an engine the active one of this thread, as if Spark had been started in it."""
    spark: Any = engine.spark
    if is_connect(spark):
        return  # It has no Java in this process, and functions reach it by its port.
    java = spark._get_j_spark_session_class(spark._jvm) if has(Feature.SESSION_CLASS) else spark._jvm.SparkSession
    java.setActiveSession(spark._jsparkSession)


def known_cores(master: str | None, config: Mapping[str, Any]) -> int | None:
    """Return how many tasks run at the same time: of the Spark that runs, or of its settings.

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


def is_cluster(master: str | None) -> bool:
    """Return whether the master, the running Spark, or `spark-submit` has workers on other machines."""
    session = _session_of_the_user() if _running is None or is_forked() else _running.spark
    if master is None and is_connect(session):
        return True
    known = master or (submitted("spark.master") if session is None else session.sparkContext.master)
    return known is not None and not is_this_machine(known)


class _Release:
    """Lets go of a shared session, once."""

    def __init__(self, running: _Running) -> None:
        self._running = running
        self._is_released = False

    def __call__(self) -> None:
        global _running
        if is_forked():
            return  # It is the parent's session, and a lock may be held by a thread of the parent.
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
    cluster = SparkBackend(port, settings.worker_memory, caches, settings.broadcast_limit, settings.columns)
    return SparkEngine(cluster, stop, Progress(settings.progress))


def _session_of_the_user() -> SparkSession | None:
    module = sys.modules.get("pyspark.sql")
    session = getattr(module, "SparkSession", None)  # It may be half imported, by a thread that starts Spark.
    return None if session is None or is_forked() else session.getActiveSession()


def _guest_session(theirs: SparkSession, settings: Settings) -> SparkSession:
    """Return a second session next to the user's, so that SQL settings are separate."""
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
    """Return whether the Java process of a session is gone."""
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
            warnings.simplefilter("ignore", RuntimeWarning)  # PySpark warns that Java has crashed, which is known.
            running.spark.stop()
    except (Py4JError, ConnectionError):
        if _has_died(running):
            forget_java()
    else:
        if running.archive is not None and running.archive.is_wanted():
            running.archive.make_beside()
