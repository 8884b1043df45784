"""Start of Spark and its Java process, and the filter of its output.

Many workers write to one pipe. Each writes a line that a user prints in one piece or more, and a traceback in separate
pieces: the first line, each frame with its line of source, the last line. Pieces of other workers are interleaved with
them, also between a user's output and the end of its line. An ambiguous line is shown: only directly after a frame does
an indented line count as its source.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from dstream.engine.spark.port.errors import keeping_cancellation
from dstream.engine.spark.session.java import ClassArchive, class_archive, find_java, has_java_options
from dstream.engine.spark.session.settings import Settings, defaults, starting
from dstream.engine.versions import Feature, has
from dstream.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "JVM_OPTIONS",
    "Pump",
    "StoppableStart",
    "archive_for",
    "end_java",
    "forget_java",
    "quiet_py4j",
    "started",
    "submitted",
]


E = TypeVar("E")


_CHATTER = (
    "Setting Spark log level to ",  # at each start of a session in a JVM that runs already (4.3)
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level to ",
    "To adjust logging level use ",
    "Current mem limits: ",  # from each worker whose memory is limited (4.3)
    "Setting mem limits to ",
)


class Pump:
    """Reader of the stderr of the JVM and the workers: buffered at first, then forwarded to `sys.stderr`."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._passes = False
        self._thread = threading.Thread(target=self._run, name="dstream-jvm-stderr", daemon=True)
        self._thread.start()

    def let_through(self) -> None:
        """Pass on output from now on."""
        self._passes = True

    def held_back(self) -> str:
        """Return the output so far, once the JVM has ended."""
        # Java's last words may still be in the pipe.
        self._thread.join(timeout=5)
        return "".join(self._lines[-20:]).strip() or "it wrote no message"

    def _run(self) -> None:
        with self._stream:
            for line in _without_last_words(self._stream):
                if not self._passes:
                    self._lines.append(line)
                elif sys.stderr is not None and not line.startswith(_CHATTER):
                    sys.stderr.write(line)


_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'  File "(.+)", line \d+')
_OF_PYSPARK = re.compile(r"(^|/)pyspark/\w+\.py$")
_BELOW_PYSPARK = re.compile(r"/(?:socket|struct|selectors)\.py$")
_SOURCE = re.compile(r"    \S")
_MARKS = re.compile(r"    [ ~^]+$")
_LAST = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?::|$)")
_CLOSED = ("BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError", "EOFError")
"""The errors of a worker whose socket Java has closed."""
_GLUED_LAST = re.compile(rf"(?<=[^\s(:'\"`])(?:{'|'.join(_CLOSED)})(?::.*)?$")
"""The last line of a traceback directly after other text. After a blank the name is a word of a user's line."""
_NOT_FLUSHED = "PySpark daemon failed to flush the output to the worker process:"
"""The line before a traceback of PySpark's (4.3), which an empty line follows."""


class _Workers:
    """The output of the workers: the tracebacks of PySpark's that have begun, as far as they arrived."""

    def __init__(self) -> None:
        self._begun: list[list[str]] = []
        self._newest: list[str] | None = None
        """The traceback that the line before belongs to."""
        self._of_users = 0
        self._lent = 0
        """The number of first lines shown with a frame of the user's that may have continued another traceback."""
        self._empty_lines = 0

    def take(self, line: str) -> Iterator[str]:
        """Yield the lines that the user should see, after `line` has arrived."""
        if start := self._start_of_piece(line):
            yield line[:start]  # The beginning of a line that another process writes.
            line = line[start:]
        text = line.rstrip("\n")
        frame = _FRAME.match(text)
        before, self._newest = self._newest, None
        if text.endswith(_BEGIN) and not text.endswith("Group " + _BEGIN):
            yield from filter(None, [text.removesuffix(_BEGIN)])
            self._begun.append([_BEGIN + "\n"])
        elif frame is not None:
            yield from self._frame(frame[1], line)
        elif before is not None and _goes_on(before[-1], text):
            self._newest = before
            before.append(line)
        elif _LAST.match(text):
            yield from self._last(line)
        elif text == _NOT_FLUSHED:
            self._empty_lines += 1
        elif not text and self._empty_lines:
            self._empty_lines -= 1
        else:
            yield line

    def _start_of_piece(self, line: str) -> int:
        """Return the index at which a piece of PySpark begins after unfinished text; 0 if none does."""
        if (start := line.find(_NOT_FLUSHED)) > 0:
            return start
        if not self._begun:
            return 0
        start = line.rfind('  File "')
        frame = _FRAME.match(line, start) if line[: max(start, 0)].strip(" |") else None
        if frame is not None and self._is_of_pyspark(frame[1]):
            return start
        last = _GLUED_LAST.search(line)
        return 0 if last is None else last.start()

    def _is_of_pyspark(self, file: str) -> bool:
        has_frames = any(len(lines) > 1 for lines in self._begun)
        return _OF_PYSPARK.search(file) is not None or (has_frames and _BELOW_PYSPARK.search(file) is not None)

    def _frame(self, file: str, line: str) -> Iterator[str]:
        of_pyspark = [lines for lines in self._begun if len(lines) > 1]
        empty = [lines for lines in self._begun if len(lines) == 1]
        if self._is_of_pyspark(file):
            if not self._begun:
                self._begun.append([""])  # Its first line was shown with another one.
            self._newest = (empty or of_pyspark or self._begun)[-1]
            self._newest.append(line)
            return
        # A user's frame: the traceback that it opens or continues is shown from this frame on.
        if empty:
            self._begun.remove(empty[-1])
            self._lent += bool(self._of_users)
            yield from empty[-1]
        self._of_users += bool(empty) or not self._of_users
        yield line

    def _last(self, line: str) -> Iterator[str]:
        if self._begun and line.startswith(_CLOSED):
            self._ended()  # Java has exited, or no longer needs the worker's results.
            return
        if self._lent and line.startswith(_CLOSED):
            self._lent -= 1
            return
        if self._begun and not self._of_users:
            yield from self._ended()
        self._of_users = max(0, self._of_users - 1)
        yield line

    def _ended(self) -> list[str]:
        """Forget one of the tracebacks: one that has frames, if there is any."""
        index = max(range(len(self._begun)), key=lambda number: len(self._begun[number]) > 1)
        return self._begun.pop(index)


def _goes_on(before: str, text: str) -> bool:
    """Return whether a line is the source of the frame in the line before it, or the marks below that source."""
    return (_SOURCE if _FRAME.match(before) else _MARKS).match(text) is not None


def _without_last_words(lines: Iterable[str]) -> Iterator[str]:
    """Leave out messages of workers whose sockets were closed, when Spark stops or another task fails a job (4.3).

    An unfinished rest is left out too: a worker may be stopped in the middle of a word.
    """
    workers = _Workers()
    for line in lines:
        yield from workers.take(line)


JVM_OPTIONS = (
    # The JVM runs short jobs on byte arrays. Its default garbage collector, G1, takes 10 % of the CPU of a word count
    # for concurrent marking.
    "-XX:+UseParallelGC "
    # Its second compiler costs more than it saves, unless code runs 40 times as often as its default thresholds.
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 "
    "-XX:Tier4CompileThreshold=600000 -XX:Tier4BackEdgeThreshold=1600000"
)


def archive_for(settings: Settings) -> ClassArchive | None:
    """Return the archive of classes, if Java starts for this session, and its options are not chosen elsewhere."""
    from pyspark import SparkContext

    is_possible = settings.class_archive and _chooses_java_options(settings.master or "local[*]", settings.config)
    starts = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    return class_archive(find_java()) if is_possible and starts else None


def _chooses_java_options(master: str, config: Mapping[str, str]) -> bool:
    return master.startswith("local") and not has_java_options(config)


def started(archive: ClassArchive | None, settings: Settings) -> SparkSession:
    """Start Spark; if Java does not start with an archive, once more without it. Ctrl-C ends the Java process."""
    start = _stoppable()
    logging.getLogger().addFilter(_is_news)  # py4j logs as the root logger.
    try:
        return start.run(lambda: _tried_twice(archive, settings, start))
    except BaseException:
        if start.has_ended_java:
            forget_java()
        raise


def _tried_twice(archive: ClassArchive | None, settings: Settings, start: StoppableStart) -> SparkSession:
    from pyspark import SparkContext

    options = "" if archive is None else archive.options()
    try:
        return _started(settings, options)
    except SetupError:
        if start.is_stopped:
            raise
        # With a gateway Java has started, so the archive is not to blame.
        if archive is None or not options or SparkContext._gateway is not None:
            raise
    archive.discard()
    return _started(settings)


class StoppableStart:
    """A start of Spark in a thread, which another thread may stop: it ends the Java process that is waited for.

    Java removes its folders when it is asked to end. Once `started` has returned, nothing is stopped: the session may
    have other users.
    """

    def __init__(self) -> None:
        self.is_stopped = self.has_ended_java = self._has_run = False
        self._java: subprocess.Popen[Any] | None = None
        self._lock = threading.Lock()

    def run(self, start: Callable[[], E]) -> E:
        """Start Spark in this thread by a function; another start by it later, as after a loss, only Ctrl-C stops."""
        before = getattr(_of_thread, "start", None)
        if self._has_run and before is not self:
            return start()  # What stopped this one would stop that, too.
        self._has_run, _of_thread.start = True, self
        try:
            return start()
        finally:
            _of_thread.start = before

    def stop(self) -> None:
        """End the Java process, also one that will be started; the thread of the start gets a SetupError."""
        with self._lock:
            self.is_stopped = True
            java, self._java = self._java, None
            self.has_ended_java |= java is not None
        if java is not None:
            _end(java)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the Java process that PySpark starts, until the end of the block; end it after Ctrl-C.

        Raises:
            SetupError: Java was ended meanwhile, and the block has not noticed.
        """
        from pyspark import java_gateway

        gateway: Any = java_gateway
        original = gateway.Popen
        gateway.Popen = lambda *args, **options: self._noted(original(*args, **options))
        try:
            yield
        except Exception:
            raise
        except BaseException:
            self.stop()
            raise
        finally:
            gateway.Popen = original
            with self._lock:
                self._java = None
        if self.has_ended_java:
            raise SetupError("the start of Spark was stopped")

    def _noted(self, java: subprocess.Popen[Any]) -> subprocess.Popen[Any]:
        with self._lock:
            self._java = java
        if self.is_stopped:
            self.stop()
        return java


_of_thread = threading.local()


def _end(java: subprocess.Popen[Any]) -> None:
    java.terminate()
    try:
        java.wait(timeout=10)
    except subprocess.TimeoutExpired:
        java.kill()
    if java.stdin is not None:
        java.stdin.close()


def _stoppable() -> StoppableStart:
    """Return the start in this thread, which another thread may stop, or a new one, which only Ctrl-C stops."""
    return getattr(_of_thread, "start", None) or StoppableStart()


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
        _stoppable().watching(),  # Around the loading, which may take longer than Java.
        _loading_beside(),
        keeping_cancellation(),
        _quiet_jvm(conf, settings.log_level),
    ):
        spark: SparkSession = SparkSession.builder.master(master).config(conf=conf).getOrCreate()
    if settings.log_level == "INFO":
        _let_information_through(spark)
    if settings.log_level == "OFF":
        quiet_py4j()
    return spark


def submitted(name: str) -> str | None:
    """Return the value of a setting for `spark-submit`; None if it has not started this process."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    java: Any = SparkContext._jvm
    found: str | None = java.java.lang.System.getProperty(name)
    return found


@contextmanager
def _environment(master: str, config: Mapping[str, str], java_options: str) -> Iterator[None]:
    """Set this interpreter for workers, and the location of Spark for its own cluster on one machine."""
    import pyspark

    wanted = {"PYSPARK_PYTHON": sys.executable}
    if _chooses_java_options(master, config):
        wanted["SPARK_SUBMIT_OPTS"] = f"{JVM_OPTIONS} {java_options}"
    if master.startswith("local-cluster"):
        wanted["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    # What the user has set decides.
    missing = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        # Java has read them at its start, and later children of this process get none of them.
        for name in missing:
            os.environ.pop(name, None)


_NEEDED = ("pyarrow", "pandas", "pyspark.sql.pandas.map_ops")
"""Modules that PySpark loads before a first result, unless they are there."""
_NEEDED_SINCE_4 = ("pyspark.testing.utils", "pyspark.sql.classic.dataframe")
"""Modules that it loads since 4.0, too. The first of them loads pandas-on-Spark in 3.5, which warns."""


@contextmanager
def _loading_beside() -> Iterator[None]:
    """Load the packages of the first job while Java starts, which uses another core."""
    thread = threading.Thread(target=_load, args=(_stoppable(),), name="dstream-loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load(start: StoppableStart) -> None:
    for name in (*_NEEDED, *(_NEEDED_SINCE_4 if has(Feature.CLASSIC_MODULES) else ())):
        if start.is_stopped:
            return
        with suppress(Exception):  # What cannot be loaded fails where it is needed.
            import_module(name)


@contextmanager
def _quiet_jvm(conf: Any, log_level: str) -> Iterator[None]:
    """Start the JVM, if there is none yet, with its start-up messages suppressed unless they are enabled."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or log_level != "OFF":
        yield
        return
    reading, writing = os.pipe()
    pump = Pump(os.fdopen(reading, "r", errors="replace"))
    try:
        # A JVM that cannot start reports the reason on stdout.
        gateway = launch_gateway(conf, {"stdout": writing, "stderr": writing})  # type: ignore[no-untyped-call]
    except Exception:
        os.close(writing)
        raise SetupError(f"the Java virtual machine did not start: {pump.held_back()}") from None
    except BaseException:
        os.close(writing)
        raise
    # Java alone has the writing end open from now on, so the pump ends with it.
    os.close(writing)
    SparkContext._ensure_initialized(gateway=gateway)
    yield
    pump.let_through()


def _let_information_through(spark: SparkSession) -> None:
    """Lift the filter that Spark puts before a shell: asked for INFO, which it has already, 4.3 leaves it."""
    for level in ("WARN", "INFO"):
        spark.sparkContext.setLogLevel(level)


def quiet_py4j() -> None:
    """Exclude py4j's messages on each connection from the user's log, unless its level is set."""
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a record is not py4j's of a call that was interrupted on purpose: it has a traceback (0.10.9)."""
    if "py4j" not in Path(record.pathname).parts:
        return True
    kind = record.exc_info[0] if record.exc_info else None
    return kind is not KeyboardInterrupt and not _stoppable().is_stopped


def end_java() -> str:
    """Disconnect the Java of this process, whose session has stopped, so that it ends; return its class path."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    class_path = str(gateway.jvm.java.lang.System.getProperty("java.class.path"))
    gateway.proc.stdin.close()
    gateway.proc.wait()
    forget_java()
    return class_path


def forget_java() -> None:
    """Forget the lost Java process, so that the next session starts one: PySpark (4.3) retains the connection to it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
