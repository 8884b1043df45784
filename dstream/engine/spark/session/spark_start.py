"""Start Spark and its Java process; what they print meanwhile is held back, unless it is wanted."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dstream.engine.spark.session.class_archive import ClassArchive, class_archive
from dstream.engine.spark.session.java import find_java, has_java_options
from dstream.engine.spark.session.jvm_output import Pump
from dstream.engine.spark.session.spark_settings import Settings, defaults
from dstream.engine.spark.session.start_failures import starting
from dstream.engine.worker.spark_versions import Feature, has
from dstream.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JVM_OPTIONS", "archive_for", "end_java", "forget_java", "quiet_py4j", "started", "submitted"]

JVM_OPTIONS = (
    # What the JVM does for us are short jobs on byte arrays. Its own choice of a collector, G1, takes 10 % of the CPU
    # of a word count for marking beside it.
    "-XX:+UseParallelGC "
    # Its second compiler takes more than it gives back, unless code runs 40 times as often as it would wait for.
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 "
    "-XX:Tier4CompileThreshold=600000 -XX:Tier4BackEdgeThreshold=1600000"
)


def archive_for(settings: Settings) -> ClassArchive | None:
    """Return the archive of classes, if Java starts for this session, and nobody else chooses its options."""
    from pyspark import SparkContext

    is_possible = settings.class_archive and _chooses_java_options(settings.master or "local[*]", settings.config)
    starts = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    return class_archive(find_java()) if is_possible and starts else None


def _chooses_java_options(master: str, config: Mapping[str, str]) -> bool:
    return master.startswith("local") and not has_java_options(config)


def started(archive: ClassArchive | None, settings: Settings) -> SparkSession:
    """Start Spark; if Java does not start with an archive, once more without it."""
    from pyspark import SparkContext

    options = "" if archive is None else archive.options()
    try:
        return _started(settings, options)
    except SetupError:
        if archive is None or not options or SparkContext._gateway is not None:
            raise
    archive.discard()
    return _started(settings)


def _started(settings: Settings, java_options: str = "") -> SparkSession:
    find_java()
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    master = settings.master or submitted("spark.master") or "local[*]"
    title = submitted("spark.app.name")
    conf = SparkConf(loadDefaults=False)
    for name, value in {
        **defaults(master, settings),
        **({"spark.app.name": title} if title else {}),
        **settings.config,
    }.items():
        conf.set(name, value)
    with (
        starting(master),
        _environment(master, settings.config, java_options),
        _loading_beside(),
        _quiet_jvm(conf, settings.log_level),
    ):
        spark: SparkSession = SparkSession.builder.master(master).config(conf=conf).getOrCreate()
    if settings.log_level == "INFO":
        _let_information_through(spark)
    if settings.log_level == "OFF":
        quiet_py4j()
    return spark


def submitted(name: str) -> str | None:
    """Return what `spark-submit` was given for a setting; None if it has not started this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    java: Any = SparkContext._jvm
    found: str | None = java.java.lang.System.getProperty(name)
    return found


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


_NEEDED = ("pyarrow", "pandas", "pyspark.sql.pandas.map_ops")
"""Modules that PySpark loads before a first result, unless they are there."""
_NEEDED_SINCE_4 = ("pyspark.testing.utils", "pyspark.sql.classic.dataframe")
"""Modules that it loads since 4.0, too. The first of them loads pandas-on-Spark in 3.5, which warns."""


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
    for name in (*_NEEDED, *(_NEEDED_SINCE_4 if has(Feature.CLASSIC_MODULES) else ())):
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


def _let_information_through(spark: SparkSession) -> None:
    """Lift the filter that Spark puts before a shell: asked for INFO, which it has already, 4.3 leaves it."""
    for level in ("WARN", "INFO"):
        spark.sparkContext.setLogLevel(level)


def quiet_py4j() -> None:
    """Keep what py4j tells of each connection out of the user's log, unless somebody has given it a level."""
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def end_java() -> str:
    """Let the Java of this process, whose session has stopped, end by itself; return the path of its classes."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    class_path = str(gateway.jvm.java.lang.System.getProperty("java.class.path"))
    gateway.proc.stdin.close()
    gateway.proc.wait()
    forget_java()
    return class_path


def forget_java() -> None:
    """Let the next session start a Java process: PySpark (4.3) keeps the way to the one that is gone."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
