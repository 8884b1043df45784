"""What Spark's own errors mean, in plain words: what happened, and what to do.

The text of such an error holds pages of Java. Here it is searched for what is known to happen; all of
it stays in `dstream.failure(error).remote_traceback`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, ParamSpec, TypeVar

from dstream.engine.spark.interrupts import cancelling
from dstream.engine.spark.worker_packages import lacking_on_workers
from dstream.engine.worker.exception_transport import from_worker
from dstream.errors import EngineError
from dstream.failures import Failure, attach, is_full, is_of_spark, known_of
from dstream.values.contexts import contextmanager

__all__ = ["ended", "forked", "innermost", "stopped", "translated", "translating"]

P = ParamSpec("P")
R = TypeVar("R")


class _Trouble(NamedTuple):
    """What a text of Spark's means.

    Attributes:
        sign: found in the text, as a regular expression.
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
        session: that of Spark, where a small job may look for packages that workers lack.

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
    arrived = from_worker(text) or lacking_on_workers(text, session) or ended(of_spark)
    if is_full():
        raise arrived from of_spark
    # Nothing of Spark's in the chain; what the user's function raised it from stays.
    raise arrived from arrived.__cause__


def translating(method: Callable[P, R]) -> Callable[P, R]:
    """Return `method` with its exceptions `translated`.

    A context manager would do as a decorator too, and leave a frame of the standard library between the user's
    call and ours, where one looks for the place of that call.
    """

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with translated():
            return method(*args, **kwargs)

    return called


def ended(error: BaseException) -> EngineError:
    """Return the error that says in plain words what Spark's means."""
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
    """Say whether `error` arose while a KeyboardInterrupt was handled."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None


def innermost(error: BaseException) -> str:
    """Return the innermost cause in the text of Spark's exception, without Java's stack."""
    said = [line.strip() for line in str(error).partition("JVM stacktrace")[0].splitlines()]
    lines = [line for line in said if line and not line.startswith("SQLSTATE:")]
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
