"""Errors of Spark in plain words: failed jobs, missing packages on workers, Ctrl-C, forked processes.

The text of such an error contains pages of Java. This module searches it for known causes; the full text remains in
`dstream.failure(error).remote_traceback`.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakSet

from dstream.base.threads import contextmanager
from dstream.engine.versions import requirement
from dstream.errors import EngineError, SetupError
from dstream.failures import Failure, attach, is_full, is_of_spark, known_of
from dstream.failures.transport import SECRET, from_worker

__all__ = [
    "NEEDED",
    "LookedAt",
    "cancelling",
    "check_process",
    "ended",
    "forked",
    "innermost",
    "interruptible",
    "is_forked",
    "keeping_cancellation",
    "lacking_on_workers",
    "left_to_parent",
    "seen_by_a_task",
    "stopped",
    "talks_to_a_server",
    "translated",
    "translating",
]


_LONGEST_CANCEL = 10.0
_awaited: list[tuple[int, Callable[[], None]]] = []
"""The waits of the main thread, innermost last: the process, and the function that cancels the wait there."""


@contextmanager
def interruptible(cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` on Ctrl-C while the main thread waits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _awaited.append((os.getpid(), cancel))
    try:
        yield
    finally:
        _awaited.pop()


@contextmanager
def cancelling() -> Iterator[None]:
    """Handle Ctrl-C by canceling `interruptible` waits, unless the user has set a handler.

    Python's own handler, which notebooks have, lets PySpark 4.3 wait for the end of the job before a
    KeyboardInterrupt is raised; PySpark's handler cancels the jobs of all users of the same Spark.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not _is_replaced(before):
        yield
        return
    signal.signal(signal.SIGINT, _cancel_and_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def keeping_cancellation() -> Iterator[None]:
    """Retain the handler of `cancelling` while Spark starts: a SparkContext of the main thread sets its own (4.3)."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is _cancel_and_interrupt and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _is_replaced(handler: Any) -> bool:
    return handler is signal.default_int_handler or getattr(handler, "__module__", "").startswith("pyspark.")


def _cancel_and_interrupt(number: int, frame: object) -> None:
    # In another thread: the connection of this one to Java may be waiting for a reply.
    cancelling = threading.Thread(target=_cancel, args=(list(_awaited),), name="dstream-cancel", daemon=True)
    cancelling.start()
    cancelling.join(_LONGEST_CANCEL)
    raise KeyboardInterrupt


def _cancel(awaited: list[tuple[int, Callable[[], None]]]) -> None:
    # The innermost wait first: it has the job that runs.
    for process, cancel in reversed(awaited):
        # A failure to reach Spark, such as a Java process that has exited, has ended the jobs as well.
        with suppress(Exception):
            if process == os.getpid():
                cancel()


NEEDED = {
    "cloudpickle": "cloudpickle>=3.0,<3.1.3",
    "fsspec": "fsspec>=2023.10",
    "more_itertools": "more-itertools>=10.1",
    "msgpack": "msgpack>=1.1,<2",
    "numpy": "numpy",
    "pandas": requirement("pandas"),
    "pyarrow": requirement("pyarrow"),
}
"""Modules that tasks import, and the packages that pip installs for them. dstream itself travels with the job."""

_NO_MODULE = re.compile(
    r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)|(PackageNotFoundError|PACKAGE_NOT_INSTALLED)"
)
_NO_PYTHON = re.compile(r"Cannot run program \"?([^\"\n]+?)\"?: .*?(No such file or directory|Permission denied)")
_TWO_PYTHONS = re.compile(
    r"PYTHON_VERSION_MISMATCH|different (?:minor )?version[s]? .*?than that in driver|different version in worker"
)
_CHOOSE = "or name another interpreter for them: set PYSPARK_PYTHON before Spark starts"


class LookedAt(NamedTuple):
    """The Python of a task, as it sees it."""

    executable: str
    version: str
    host: str
    missing: list[str]


def lacking_on_workers(text: str, session: Any) -> SetupError | None:
    """Return the error that lists what workers lack, if the message of a failed job shows that something is missing.

    Args:
        text: the message of Spark's exception.
        session: the session in which a job may check; None if none may.
    """
    found = _words(text, session)
    if found is None:
        return None
    made = SetupError(found)
    attach(made, Failure(None, remote_traceback=text))
    return made


def _words(text: str, session: Any) -> str | None:
    no_python = _NO_PYTHON.search(text)
    if no_python is not None:
        return (
            f"Spark's workers cannot start the Python {no_python[1]}: {no_python[2]}. Install it on each machine, "
            f"{_CHOOSE}"
        )
    here = ".".join(map(str, sys.version_info[:3]))
    lacks = _NO_MODULE.search(text)
    if lacks is None and not _TWO_PYTHONS.search(text):
        return None
    # Only now, since it runs a job: the message reports that a package or the right Python is missing.
    seen = None if session is None else seen_by_a_task(session)
    if _TWO_PYTHONS.search(text):
        theirs = "another Python" if seen is None else _shown(seen)
        return (
            f"Spark's workers run {theirs}, and this process Python {here}; both need the same minor version. Install "
            f"it on each machine, {_CHOOSE}"
        )
    if seen is None or not seen.missing:
        return None if lacks is None or lacks[1] not in NEEDED else _lines(f"Python lacks {lacks[1]}", [lacks[1]], None)
    return _lines(f"{_shown(seen)} lacks {', '.join(seen.missing)}", seen.missing, seen.executable)


def _lines(what: str, missing: list[str], executable: str | None) -> str:
    requirements = " ".join(f"'{NEEDED[name]}'" for name in missing)
    return (
        f"Spark's workers cannot run dstream: their {what}, which dstream needs. Install them on each machine: "
        f"{executable or 'python3'} -m pip install {requirements}; {_CHOOSE}"
    )


def _shown(seen: LookedAt) -> str:
    return f"Python {seen.version} ({seen.executable} on {seen.host})"


_LOOK = """
def look(_):
    import importlib.util, json, socket, sys
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return json.dumps([sys.executable, sys.version.split()[0], socket.gethostname(), missing])
"""


def seen_by_a_task(session: Any) -> LookedAt | None:
    """Run a job that needs nothing but Spark's own pickle; None if it fails as well."""
    from pyspark.sql.functions import udf

    # A function of a module is pickled by its name, and the worker may lack the module.
    names: dict[str, Any] = {"__name__": "__main__", "NEEDED": list(NEEDED)}
    exec(_LOOK, names)
    try:
        [row] = session.range(1).select(udf(names["look"], "string", useArrow=False)("id")).collect()
        return LookedAt(*json.loads(row[0]))
    except Exception:  # the failure that is being explained takes precedence
        return None


P = ParamSpec("P")
R = TypeVar("R")


class _Trouble(NamedTuple):
    """The meaning of a message of Spark.

    Attributes:
        sign: a regular expression that matches the message.
        words: what happened.
        advice: what to do.
    """

    sign: str
    words: str
    advice: str


_STOPPED = _Trouble(
    r"stopped SparkContext|SparkContext (?:was|has been|is) (?:shut|stopp)|SparkContext was shut down"
    r"|SparkSession.*(?:stopped|closed)|sparkContext.*null|INVALID_HANDLE\.SESSION|Cannot invoke RPC",
    "the Spark session of this context was stopped",
    "close this context and connect() again; let the context stop Spark, with ctx.close() or a with block",
)
_UNREACHABLE = _Trouble(
    r"failed to connect to all addresses|StatusCode\.UNAVAILABLE",
    "the server of Spark Connect cannot be reached",
    "look whether it runs, then close this context and connect() again",
)
_GONE = _Trouble(
    r"Connection refused|Answer from Java side is empty|Error while (?:sending or )?receiving|Connection reset by peer"
    r"|Py4JNetworkError|An error occurred while trying to connect to the Java server"
    r"|An error occurred while calling [\w.]+$",  # Java raised nothing: it gave no answer at all
    "Spark's Java process is gone: it was killed, crashed, or ran out of memory",
    "start this process again; if memory was short, connect(config={'spark.driver.memory': '4g'}) gives it more",
)
# The first sign that matches decides, so a lost Java process, whose signs many messages contain, is last.
_TROUBLES = (
    _UNREACHABLE,
    _Trouble(
        r"All masters are unresponsive|Master removed our application|Disconnected from Spark cluster"
        r"|Application has been killed",
        "the Spark master is gone, or it ended this application",
        "look whether the master runs, then close this context and connect() again",
    ),
    _STOPPED,
    _Trouble(
        r"No space left on device|Disk quota exceeded",
        "a disk is full where Spark keeps its temporary files",
        "free some space, or name a larger disk: connect(config={'spark.local.dir': '/large/disk'})",
    ),
    _Trouble(
        r"Python worker exited unexpectedly|Python worker .*crashed",
        "a Python worker died: it was killed, ran out of memory, or crashed in native code",
        "look for a function that needs much memory or calls native code; more partitions, as in .parallel(64), "
        "give each worker less at a time",
    ),
    _Trouble(
        r"Total size of serialized results .* is bigger than",
        "the results are larger than Spark lets a job bring to the caller",
        "write with a reducer, or iterate in place of to_list(); or let more come with "
        "connect(config={'spark.driver.maxResultSize': '4g'}), and as much 'spark.driver.memory'",
    ),
    _Trouble(
        r"OutOfMemoryError",
        "Spark's Java process ran out of memory",
        "give it more with connect(config={'spark.driver.memory': '4g'}) (on a cluster 'spark.executor.memory' too), "
        "or bring less to the caller: write with a reducer, or iterate in place of to_list()",
    ),
    _Trouble(
        r"ExecutorLostFailure|Executor heartbeat timed out|Checkpoint block \S+ not found|SlaveLost|executor .* exited",
        "a machine that ran part of the job was lost, and with it the rows that it held",
        "run the operation again; if it keeps happening, the executors need more memory: "
        "connect(config={'spark.executor.memory': '4g'})",
    ),
    _Trouble(
        r"RESOURCE_EXHAUSTED|(?:larger|bigger) than max|exceeds maximum size",
        "what the job takes along is larger than a message to the server of Spark Connect may be",
        "let the workers read it: from a file, or from a distributed map or list",
    ),
    _Trouble(
        r"SPARK_JOB_CANCELLED|OPERATION_CANCELED|cancelled part of|Job \d+ cancelled|was cancelled",
        "the job was cancelled",
        "run the operation again, if it was not you who cancelled it",
    ),
    _GONE,
)


@contextmanager
def translated(session: Any = None) -> Iterator[None]:
    """Turn Spark's exceptions into the user's own, or into an `EngineError` in plain words.

    Args:
        session: the Spark session, in which a small job may check for packages that workers lack.

    Raises:
        SetupError: the Python of the workers lacks what dstream needs.
        KeyboardInterrupt: the user interrupted the job, which is cancelled. PySpark 4.3 may raise an exception
            about the cancelled job instead.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with cancelling():
            yield
        return
    except (PySparkException, Py4JError, ConnectionError) as error:
        if known_of(error) is not None or not is_of_spark(error):
            raise  # A function of the user's raised it.
        of_spark = error
    if _was_interrupted(of_spark):
        raise KeyboardInterrupt from None
    text = str(of_spark)
    arrived = from_worker(text, SECRET) or lacking_on_workers(text, session) or ended(of_spark)
    if is_full():
        raise arrived from of_spark
    # Nothing of Spark's in the chain; the cause in the user's function is retained.
    raise arrived from arrived.__cause__


def translating(method: Callable[P, R]) -> Callable[P, R]:
    """Return `method` with its exceptions `translated`.

    A context manager would also work as a decorator, but leave a frame of the standard library between the user's call
    and dstream's, which would hide the source location of the call.
    """

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with translated():
            return method(*args, **kwargs)

    return called


def ended(error: BaseException) -> EngineError:
    """Return an error in plain words for one of Spark's."""
    text = f"{type(error).__name__}: {error}"
    found = next((trouble for trouble in _TROUBLES if re.search(trouble.sign, text)), None)
    words = found.words if found is not None else innermost(error)
    made = EngineError(f"Spark could not run the job: {words}")
    attach(made, Failure(None, remote_traceback=text, advice=None if found is None else found.advice))
    return made


def stopped() -> EngineError:
    """Return the error of a context whose Spark session was stopped by others."""
    return _refusal(_STOPPED.words, _STOPPED.advice)


def forked() -> EngineError:
    """Return the error of a forked process that uses the Spark session of its parent."""
    return _refusal(
        "this process was forked from the one that Spark works for, and would take its answers",
        "run the operation in the process that opened the context, or here with connect(engine='local'); "
        "a process that multiprocessing starts with 'spawn' has a Spark of its own",
    )


def _refusal(words: str, advice: str) -> EngineError:
    made = EngineError(f"Spark cannot run the job: {words}")
    attach(made, Failure(None, advice=advice))
    return made


def _was_interrupted(error: BaseException) -> bool:
    """Return whether `error` arose while a KeyboardInterrupt was handled."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None


def innermost(error: BaseException) -> str:
    """Return the innermost cause in the message of Spark's exception, without Java's stack."""
    stripped = [line.strip() for line in str(error).partition("JVM stacktrace")[0].splitlines()]
    lines = [line for line in stripped if line and not line.startswith("SQLSTATE:")]
    if len(lines) > 1 and lines[1].startswith(": "):  # py4j puts the call that failed before it
        lines = [lines[1].removeprefix(": "), *lines[2:]]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return _without_class(causes[-1].removeprefix("Caused by: "))
    if any(line.endswith("Traceback (most recent call last):") for line in lines):
        return f"a Python worker could not run it: {lines[-1]}"
    return _without_class(lines[0]) if lines else type(error).__name__


def _without_class(line: str) -> str:
    """Drop the name of the Java exception in front of its message."""
    return re.sub(r"^(?:[a-z]\w*\.)+\w+: ", "", line)


H = TypeVar("H")

_is_forked = False
_talks_to_a_server = False
_of_parent: WeakSet[Any] = WeakSet()


def is_forked() -> bool:
    """Return whether Spark, as this process has it, works for the process that this one was forked from."""
    return _is_forked


def check_process() -> None:
    """Refuse to talk to the Spark of a parent.

    Raises:
        EngineError: this process was forked from one that uses Spark.
    """
    if _is_forked:
        raise forked()


def talks_to_a_server() -> None:
    """Note that this process has a connection to a server of Spark Connect."""
    global _talks_to_a_server
    _talks_to_a_server = True


def left_to_parent(held: H) -> H:
    """Return `held`, which calls Spark when it is destroyed, and is never destroyed in forked child processes.

    In a child, an iterator would stop Spark from sending more, on the socket of the parent; a frame would release its
    rows (4.3).
    """
    _of_parent.add(held)
    return held


def _after_fork() -> None:
    global _is_forked
    pyspark = sys.modules.get("pyspark")
    context = getattr(pyspark, "SparkContext", None)  # It may be half imported.
    _is_forked = _talks_to_a_server or (context is not None and context._gateway is not None)
    for held in _of_parent:
        # A reference that is never released: the object is never destroyed, so its `__del__` never calls Spark.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


os.register_at_fork(after_in_child=_after_fork)
