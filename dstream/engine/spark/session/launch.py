"""Launch: the Spark session behind the contexts of this process.

A session that the user started already is used and left running. Otherwise the first context
starts one, the following ones share it, and the last one to close stops it.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dstream.engine.compiler import ColumnMode
from dstream.engine.kernels.caches import Caches
from dstream.engine.memory_bound import DEFAULT_BROADCAST
from dstream.engine.progress import Progress
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.port.classic_port import ClassicPort
from dstream.engine.spark.port.forked_processes import check_process, is_forked
from dstream.engine.spark.port.shipped_code import Code
from dstream.engine.spark.port.spark_port import Port
from dstream.engine.spark.session.class_archive import ClassArchive, class_archive
from dstream.engine.spark.session.java import find_java, has_java_options
from dstream.engine.spark.session.jvm_output import Pump
from dstream.engine.spark.session.spark_connect import connected_port, is_connect, is_server, leave
from dstream.engine.spark.spark_engine import SparkEngine
from dstream.errors import IllegalStateError, SetupError
from dstream.values.forked_locks import RenewedLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JVM_OPTIONS", "Settings", "activate", "check_machine", "end_java", "known_cores", "start", "starts_here"]

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
JVM_OPTIONS = (
    # What the JVM does for us are short jobs on byte arrays. Its own choice of a collector, G1, takes 10 % of the CPU
    # of a word count for marking beside it.
    "-XX:+UseParallelGC "
    # Its second compiler takes more than it gives back, unless code runs 40 times as often as it would wait for.
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 "
    "-XX:Tier4CompileThreshold=600000 -XX:Tier4BackEdgeThreshold=1600000"
)
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


def check_machine(master: str | None) -> None:
    """Make sure, before anything starts, that Spark can run here, unless it runs on a server.

    Raises:
        SetupError: Java is missing or too old.
    """
    if not is_server(master) and "PYSPARK_GATEWAY_PORT" not in os.environ and _session_of_the_user() is None:
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
        port = connected_port(settings.master, theirs, {**_sql(settings), **settings.config})
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
    spark = engine.spark
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def known_cores(master: str | None, config: Mapping[str, Any]) -> int | None:
    """Return how many tasks run at the same time: of the Spark that runs, or if its settings say so.

    None if that is known only when Spark runs. Nothing is started.
    """
    session = _session_of_the_user() if _running is None or is_forked() else _running.spark
    if is_server(master) or is_connect(session):
        return None
    if session is not None:
        return session.sparkContext.defaultParallelism
    if "spark.default.parallelism" in config:
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
    for name, value in _sql(settings).items():
        spark.conf.set(name, value)
    context = spark.sparkContext
    return ClassicPort(spark, None if _is_this_machine(context.master) else Code(context.addPyFile))


def _sql(settings: Settings) -> dict[str, str]:
    """Return what the session of an engine is set to, unless the user says otherwise."""
    return {name: value for name, value in _OUR_SQL.items() if name not in settings.config}


def _engine(port: Port, settings: Settings, caches: Caches, stop: Any) -> SparkEngine:
    cluster = Cluster(port, settings.worker_memory, caches, settings.broadcast_limit, settings.columns)
    return SparkEngine(cluster, stop, Progress(settings.progress))


def _is_this_machine(master: str | None) -> bool:
    """Say whether workers see the driver's own files: `local-cluster[...]` counts as a cluster."""
    return master is not None and (master == "local" or master.startswith("local["))


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
    if _running is not None and _has_died(_running):
        _stop(_running)
        _running = None
    if _running is None:
        archive = _archive(settings)
        _running = _Running(_launched_with(archive, settings), settings, archive)
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
    """Say whether the Java process of a session is gone, which contexts may still hold."""
    process = getattr(getattr(running.spark.sparkContext, "_gateway", None), "proc", None)
    return process is not None and process.poll() is not None


def _settings_named(config: Mapping[str, str]) -> str:
    """Name settings without their values, which may be secrets."""
    return f"the settings {', '.join(sorted(config))}" if config else "no settings of its own"


def _archive(settings: Settings) -> ClassArchive | None:
    """Return the archive of classes, if Java starts for this session, and nobody else chooses its options."""
    from pyspark import SparkContext

    is_possible = settings.class_archive and _chooses_java_options(settings.master or "local[*]", settings.config)
    starts = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    return class_archive(find_java()) if is_possible and starts else None


def _launched_with(archive: ClassArchive | None, settings: Settings) -> SparkSession:
    """Start Spark; if Java does not start with an archive, once more without it."""
    from pyspark import SparkContext

    options = "" if archive is None else archive.options()
    try:
        return _launched(settings, options)
    except SetupError:
        if archive is None or not options or SparkContext._gateway is not None:
            raise
    archive.discard()
    return _launched(settings)


def _launched(settings: Settings, java_options: str = "") -> SparkSession:
    find_java()
    from pyspark import SparkConf
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    master = settings.master or "local[*]"
    conf = SparkConf(loadDefaults=False)
    for name, value in {**_defaults(master, settings), **settings.config}.items():
        conf.set(name, value)
    try:
        with (
            _environment(master, settings.config, java_options),
            _loading_beside(),
            _quiet_jvm(conf, settings.log_level),
        ):
            spark: SparkSession = SparkSession.builder.master(master).config(conf=conf).getOrCreate()
    except SetupError:
        raise
    except (PySparkException, OSError, RuntimeError) as error:
        raise SetupError(f"Spark did not start: {error}. connect(log_level='INFO') shows its own messages") from error
    if settings.log_level == "INFO":
        _let_information_through(spark)
    if settings.log_level == "OFF":
        quiet_py4j()
    return spark


def quiet_py4j() -> None:
    """Keep what py4j tells of each connection out of the user's log, unless somebody has given it a level."""
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


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


def _let_information_through(spark: SparkSession) -> None:
    """Lift the filter that Spark puts before a shell: asked for INFO, which it has already, 4.3 leaves it."""
    for level in ("WARN", "INFO"):
        spark.sparkContext.setLogLevel(level)


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
            _forget_java()
    else:
        if running.archive is not None and running.archive.is_wanted():
            running.archive.make_beside()


def end_java() -> str:
    """Let the Java of this process, whose session has stopped, end by itself; return the path of its classes."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    class_path = str(gateway.jvm.java.lang.System.getProperty("java.class.path"))
    gateway.proc.stdin.close()
    gateway.proc.wait()
    _forget_java()
    return class_path


def _forget_java() -> None:
    """Let the next session start a Java process: PySpark (4.3) keeps the way to the one that is gone."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def _defaults(master: str, settings: Settings) -> dict[str, str]:
    defaults = {**_OURS, **_OUR_SQL, "spark.log.level": settings.log_level}
    if not master.startswith("local"):
        return defaults
    defaults[_SEARCH_PATH] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    defaults |= {**_ON_ONE_MACHINE, **_sockets(settings.config), **_blocks(settings.config)}
    # Elsewhere our modules come with the first job, when Spark's own daemon runs.
    if _is_this_machine(master) and _SEARCH_PATH not in settings.config:
        defaults["spark.python.daemon.module"] = _DAEMON
    return defaults


def _chooses_java_options(master: str, config: Mapping[str, str]) -> bool:
    return master.startswith("local") and not has_java_options(config)


@contextmanager
def _environment(master: str, config: Mapping[str, str], java_options: str) -> Iterator[None]:
    """Let workers run this interpreter, and Spark's own cluster on one machine find Spark."""
    import pyspark

    wanted = {"PYSPARK_PYTHON": sys.executable}
    if _chooses_java_options(master, config):
        wanted["SPARK_SUBMIT_OPTS"] = f"{JVM_OPTIONS} {java_options}"
    if master.startswith("local-cluster"):
        wanted["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


_NEEDED = ("pyarrow", "pyspark.testing.utils", "pyspark.sql.classic.dataframe", "pyspark.sql.pandas.map_ops")
"""What PySpark (4.3) loads before a first result, pandas among it, unless it is there."""


@contextmanager
def _loading_beside() -> Iterator[None]:
    """Load what the first job needs while Java starts, which has a core of its own."""
    thread = threading.Thread(target=_load, name="dstream-loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load() -> None:
    for name in _NEEDED:
        with suppress(Exception):  # What cannot be loaded fails where it is needed.
            import_module(name)


@contextmanager
def _quiet_jvm(conf: Any, log_level: str) -> Iterator[None]:
    """Start the JVM, if there is none yet, with its start-up messages held back unless they are wanted."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or log_level != "OFF":
        yield
        return
    reading, writing = os.pipe()
    pump = Pump(os.fdopen(reading, "r", errors="replace"))
    try:
        # A JVM that cannot start says why on stdout.
        gateway = launch_gateway(conf, {"stdout": writing, "stderr": writing})  # type: ignore[no-untyped-call]
    except Exception:
        os.close(writing)
        raise SetupError(f"the Java virtual machine did not start: {pump.held_back()}") from None
    os.close(writing)
    SparkContext._ensure_initialized(gateway=gateway)
    yield
    pump.let_through()
