"""State of a worker process: received payloads, shared services and the tables of its hash joins.

Spark cannot reach an idle worker. So a process that creates a shared service opens a connection to the driver: when
data arrive on it, or it breaks since the driver has exited, the run has ended. The process then destroys the services
of that run, and replies with their failures, or nothing.
"""

from __future__ import annotations

import atexit
import base64
import io
import os
import pickle
import shutil
import socket
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dstream.base.records import record
from dstream.errors import EngineError
from dstream.failures.transport import WorkerFailure, raise_to_driver
from dstream.operators.joins.lookup import LookupTable, table_of
from dstream.operators.rows.services import TaskServices
from dstream.plan.operations.elementwise import ServiceFunction
from dstream.plan.steps import Step
from dstream.values.attachments import JobFiles

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CARRIED",
    "MOST_CARRIED",
    "NO_RUN",
    "PARTITION",
    "DriverAddress",
    "InBroadcast",
    "InFile",
    "InFunction",
    "Payloads",
    "RunOfTask",
    "SentFiles",
    "SharedServices",
    "archived",
    "carried",
    "carried_stage",
    "leave_all",
    "numbered",
    "shared_services",
    "table_made_once",
    "tables_of_run",
    "unpacked",
]


CARRIED = "dstream.stage"
"""The property of a job that contains its stage, for each of its tasks."""
MOST_CARRIED = 32 * 1024
"""The largest stage in bytes that is sent with each task as a string, instead of once with the plan."""


def carried(stage: bytes) -> str:
    """Return a pickled stage as the string that a job carries."""
    return base64.b64encode(stage).decode()


def carried_stage() -> bytes:
    """Return the pickled stage that the job of this task carries."""
    from pyspark import TaskContext

    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(CARRIED)
    assert text is not None, "who runs the plan sets the property"
    return base64.b64decode(text)


class Payloads(Protocol):
    """Payloads that were sent to all workers."""

    @property
    def name(self) -> str:
        """The unique name of the payloads."""
        ...

    def payloads(self) -> Sequence[Any]:
        """Return them, on a worker."""
        ...


@record(slots=False)
class InFunction:
    """A small payload, which is pickled with the function that needs it."""

    name: str
    few: tuple[bytes, ...]

    def payloads(self) -> Sequence[Any]:
        return self.few


@record(slots=False)
class InBroadcast:
    """A broadcast variable of Spark, of which each executor has the bytes once."""

    name: str
    broadcast: Any

    def payloads(self) -> Sequence[Any]:
        payloads: Sequence[Any] = self.broadcast.value
        # A broadcast retains its value for the lifetime of the process (PySpark 4.3). The table that is made of it is
        # sufficient; if the value is needed again, it is in a file of the executor, unless Spark encrypts its files.
        if hasattr(self.broadcast, "_path"):
            self.broadcast.__dict__.pop("_value", None)
        return payloads


@record(slots=False)
class InFile:
    """A file that Spark Connect has sent to the server, which distributes it to the executors of its session."""

    name: str

    def payloads(self) -> Sequence[Any]:
        from pyspark import SparkFiles

        with open(SparkFiles.get(self.name), "rb") as file:
            payloads: Sequence[Any] = pickle.load(file)
        return payloads


_PIECE = 2**20


@record(slots=False)
class SentFiles:
    """Files and modules of a job, for its tasks.

    Attributes:
        sent: an archive of them; None if workers see the driver's folders.
    """

    files: JobFiles
    sent: Payloads | None

    def arrived(self) -> JobFiles:
        """Return the files on this machine, where the first task unpacks them."""
        if self.sent is None:
            return self.files
        from pyspark import SparkFiles

        target = Path(SparkFiles.getRootDirectory(), self.files.name)
        if not target.exists():
            unpacked(self.sent.payloads(), target)
        return replace(self.files, folder=str(target), is_elsewhere=True)


def archived(folder: str) -> list[bytes]:
    """Return a folder as an archive, in pieces."""
    import tarfile

    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.add(folder, arcname=".")
    return list(_pieces(written.getbuffer()))


def _pieces(data: memoryview) -> Iterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield bytes(data[start : start + _PIECE])


def unpacked(pieces: Sequence[bytes], target: Path) -> None:
    """Make a folder of an archive, which appears when it is complete. Several tasks may do so at once."""
    import tarfile

    unfinished = target.with_name(f"{target.name}-{uuid.uuid4().hex}")
    try:
        with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as archive:
            archive.extractall(unfinished, filter="data")
    except BaseException:  # On a full disk the remainder would take the space of the next attempt.
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    try:
        os.rename(unfinished, target)
    except OSError:  # Another task was first.
        shutil.rmtree(unfinished, ignore_errors=True)
        if not target.exists():
            raise


PARTITION = "partition long"
"""The schema of the rows."""


def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read a partition, and yield one row with its number."""
    import pyarrow as pa
    from pyspark import TaskContext

    deque(batches, 0)
    context = TaskContext.get()
    assert context is not None, "a stage runs inside a Spark task"
    yield pa.RecordBatch.from_pydict({"partition": [context.partitionId()]})


_CONNECTING = 20.0


@record(slots=False)
class DriverAddress:
    """The address on which the driver of a run listens.

    Attributes:
        secret: authenticates connections that the driver caused; signs the failures in workers' replies.
    """

    host: str
    port: int
    secret: bytes


@record(slots=False)
class RunOfTask:
    """The run of a plan that a task belongs to.

    Attributes:
        name: the unique name of the run.
        home: the address of the driver; None if no service of the plan is shared, or workers cannot reach the driver.
    """

    name: str
    home: DriverAddress | None = None


NO_RUN = RunOfTask("")

_lock = threading.Lock()
_of_runs: dict[str, SharedServices] = {}


class SharedServices:
    """The services of one run that tasks of this process share."""

    def __init__(self, run: RunOfTask) -> None:
        assert run.home is not None, "what is shared has a driver that says when it ends"
        self._name, self._secret = run.name, run.home.secret
        self._made = TaskServices()
        self._idle = threading.Condition()
        self._users = 0
        self._connection = _connected(run.home)
        threading.Thread(target=self._end_with_the_run, name="dstream-services", daemon=True).start()

    def get(self, served: ServiceFunction, step: Step) -> Any:
        """Return the service of a step, made on first use."""
        return self._made.get(served, step)

    def use(self) -> Callable[[], None]:
        """Keep the services alive until the returned function is called: a running task may still need them."""
        with self._idle:
            self._users += 1
        return self._unused

    def _unused(self) -> None:
        with self._idle:
            self._users -= 1
            self._idle.notify_all()

    def _end_with_the_run(self) -> None:
        with suppress(OSError):
            self._connection.recv(1)
        with self._idle:
            self._idle.wait_for(lambda: self._users == 0)
        self.end()

    def end(self) -> None:
        """Destroy the services, and report to the driver; a second call finds nothing."""
        with _lock:
            # First, so that a task that begins now makes its own and gets none that is about to be destroyed.
            _of_runs.pop(self._name, None)
        with self._idle:
            answer = self._destroyed()
        with suppress(OSError):
            self._connection.sendall(answer.encode())
            self._connection.shutdown(socket.SHUT_RDWR)  # The thread that waits on it ends, too.
        self._connection.close()

    def _destroyed(self) -> str:
        """Destroy the services; return the failure, as it is sent to the driver."""
        try:
            self._made.destroy()
        except Exception as error:
            try:
                raise_to_driver(error, self._secret)
            except WorkerFailure as failure:
                return str(failure)
        return ""


def _connected(home: DriverAddress) -> socket.socket:
    try:
        connection = socket.create_connection((home.host, home.port), timeout=_CONNECTING)
        # The timeout is for the connection: the end of the run, which is waited for on it, may be days away.
        connection.settimeout(None)
        connection.sendall(home.secret)
    except OSError as error:
        raise EngineError(
            f"this worker does not reach the driver at {home.host}:{home.port}, which would report when to destroy a "
            f"shared service: {error}. Let workers connect to the driver, or make the service with shared=False"
        ) from error
    return connection


def shared_services(run: RunOfTask) -> SharedServices:
    """Return the shared services of a run in this process."""
    with _lock:
        if run.name not in _of_runs:
            _before_the_process_ends()
            _of_runs[run.name] = SharedServices(run)
        return _of_runs[run.name]


def leave_all() -> None:
    """Destroy the services of this process for all runs, since it is about to end."""
    while _of_runs:
        for each in list(_of_runs.values()):
            each.end()


_is_prepared = False


def _before_the_process_ends() -> None:
    """Destroy the remaining services before this process ends.

    PySpark's daemon ends the processes that it forked with `os._exit` (4.3), which runs nothing else: those that have
    been idle for a minute, those whose task failed, and each after its task if workers are not used again.
    """
    global _is_prepared
    if _is_prepared:
        return
    _is_prepared = True
    end_process = os._exit

    def leave_and_exit(status: int) -> None:
        with suppress(Exception):
            leave_all()
        end_process(status)

    os._exit = leave_and_exit  # type: ignore[assignment]
    atexit.register(leave_all)


_run = ""
_tables: dict[str, LookupTable] = {}


def tables_of_run(run: str) -> None:
    """Retain the tables of one run of a plan, and release those of any other.

    A worker process serves one run after another. Two concurrent runs that share it rebuild their tables more often.
    """
    global _run
    if run != _run:
        _run = run
        _tables.clear()


def table_made_once(sent: Payloads, step: Step) -> LookupTable:
    """Return the table of a right side; the first task of this process that needs it makes it."""
    if sent.name not in _tables:
        _tables[sent.name] = table_of(sent.payloads(), step)
    return _tables[sent.name]
