"""`ConnectPort`: a Spark session on a server, which is reached through Spark Connect.

Spark Connect (4.3) lacks: the number of partitions of a frame, which a job counts; accumulators, so that
the number of items read is not shown; rows that are cached for a session are not visible to another, not even to its
clone. They remain on the server until Java's garbage collector runs, after the client has released them.

Rows are stored by local checkpoints, as in a classic session. `persist()` is unsuitable: Spark finds cached rows by
comparing plans, so that a second stream of the same functions would read the rows of the first.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from dstream.base.threads import contextmanager
from dstream.engine.spark.port.code import Code
from dstream.engine.spark.port.errors import is_forked, left_to_parent
from dstream.engine.spark.port.protocols import ArrowFunction, HowFar
from dstream.engine.tasks.process import PARTITION, InFile, numbered

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

__all__ = ["ConnectPort"]

_MANY = 2**20
_LONGEST_CANCEL = 10.0
_BETWEEN_CANCELS = 0.05
_UNITS = {"k": 2**10, "": 2**20, "m": 2**20, "g": 2**30, "t": 2**40}
_in_thread = threading.local()
"""The jobs that run in a thread, innermost last: Spark reports progress to a session, not to a job."""


def _bytes_of(setting: str) -> int:
    """Return the size of a Spark setting, in mebibytes if it has no unit; 1 GiB if it cannot be parsed.

    Example:
        >>> _bytes_of("512m"), _bytes_of("2")
        (536870912, 2097152)
    """
    found = re.fullmatch(r"(\d+)([kmgt]?)i?b?", setting.strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else 2**30


class ConnectPort:
    """A session on a server.

    Args:
        session: a `pyspark.sql.connect.session.SparkSession`.
        of: the port to the session that it was cloned from.

    Attributes:
        clones: the clones of the session that are referenced.
    """

    def __init__(self, session: Any, of: ConnectPort | None = None) -> None:
        send = functools.partial(session.addArtifacts, pyfile=True)
        self.session = session
        self.clones: WeakSet[Any] = WeakSet()
        self._code: Code = Code(send) if of is None else of._code.of_clone(send)
        self._cores: int | None = None if of is None else of.cores()
        self._java_memory: int | None = None if of is None else of._java_memory
        session.registerProgressHandler(_on_progress)

    def cores(self) -> int:
        """Return the initial number of cores: the number of partitions of a job over a range."""
        if self._cores is None:
            self._cores = self.partitions(self.session.range(_MANY))
        return self._cores

    def java_memory(self) -> int:
        """Return the memory in the settings, or Spark's default: the server's Java cannot be asked."""
        if self._java_memory is None:
            settings = ("spark.driver.memory", "spark.executor.memory")
            self._java_memory = min(_bytes_of(self.session.conf.get(name, "1g")) for name in settings)
        return self._java_memory

    def is_running(self) -> bool:
        return not is_forked() and not self.session.is_stopped

    def is_alive(self) -> bool:
        if not self.is_running():
            return False
        try:
            self.session.conf.get("spark.sql.adaptive.enabled")
        except Exception:  # The exceptions of gRPC and of PySpark have no class in common.
            return False
        return True

    def with_settings(self, settings: Mapping[str, str]) -> ConnectPort:
        clone: Any = self.session.cloneSession()
        # A clone begins with PySpark's policies, which retry for ten minutes.
        clone.client.set_retry_policies(self.session.client.get_retry_policies())
        self.clones.add(clone)
        weakref.finalize(clone, _end, clone.client).atexit = False
        # So it ends by Python's collector, which calls `_end` first; its `__del__` closes the channel to the server
        # (4.3).
        clone.dstream_itself = clone
        for name, value in settings.items():
            clone.conf.set(name, value)
        return ConnectPort(clone, self)

    def workers_see_files(self) -> bool:
        return False

    def reads(self, frame: DataFrame) -> bool:
        return frame.sparkSession is self.session

    def column(self, name: str) -> Column:
        from pyspark.sql.connect import functions

        return functions.col(name)

    def mapped(
        self, frame: DataFrame, function: ArrowFunction, schema: StructType | str, names: Sequence[str] | None = None
    ) -> DataFrame:
        self._code.ship()
        return frame.mapInArrow(function, schema)

    def placed(self, frame: DataFrame, partitions: int, place: Column) -> DataFrame:
        return frame.repartitionById(partitions, place)

    def frame_of(self, table: pa.Table) -> DataFrame:
        frame: DataFrame = self.session.createDataFrame(table)
        return frame

    def may_carry(self) -> bool:
        return False

    def local_folder(self) -> str | None:
        return None

    def batches(self, frame: DataFrame, stage: str | None = None) -> list[pa.RecordBatch]:
        assert stage is None, "a job may carry none"
        batches: list[pa.RecordBatch] = frame.toArrow().to_batches()
        return batches

    def pinned(self, frame: DataFrame) -> DataFrame:
        with _active(self.session):
            pinned_frame: Any = frame.localCheckpoint(eager=False)
        left_to_parent(pinned_frame._plan)  # Its end releases the rows on the server.
        return pinned_frame  # type: ignore[no-any-return]

    def partitions(self, pinned: DataFrame) -> int:
        """Run a job that reads the rows, which computes them."""
        return int(self.mapped(pinned, numbered, PARTITION).count())

    def release(self, pinned: DataFrame) -> None:
        """Do nothing: the frame itself releases them on the server when it is collected."""

    def in_turn(self, frame: DataFrame) -> Iterator[Row]:
        rows = frame.toLocalIterator(prefetchPartitions=True)
        return _followed(list(islice(rows, 1)), rows)  # The request, and its tag, are made with the first row.

    def jobs(self, tag: str) -> ConnectJobs:
        return ConnectJobs(self.session, tag)

    def where_workers_connect(self) -> None:
        return None

    def send_to_all(self, name: str, payloads: Sequence[Any], holder: object) -> InFile:
        """Send a file, in pieces: a message has a maximal size. The server stores it until the session ends (4.3)."""
        with tempfile.TemporaryDirectory(prefix="dstream-") as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                pickle.dump(payloads, file, protocol=5)
            self.session.addArtifacts(path, file=True)
        return InFile(name)

    def sums(self, adding: Any) -> None:
        return None


class ConnectJobs:
    """Operations of a session that have a tag."""

    def __init__(self, session: Any, tag: str) -> None:
        self._session = session
        self._tag = tag
        self._running = 0
        self._lock = threading.Lock()
        self._how_far: HowFar | None = None

    @contextmanager
    def named(self, description: str) -> Iterator[None]:
        running = _running_here()
        self._count(1)
        running.append(self)
        self._session.addTag(self._tag)
        try:
            yield
        finally:
            self._session.removeTag(self._tag)
            running.pop()
            self._how_far = None
            self._count(-1)

    def cancel(self) -> None:
        """Interrupt the operations, also of a loop between two items; repeat it for operations in transit."""
        until = time.monotonic() + _LONGEST_CANCEL
        while not self._session.interruptTag(self._tag) and self._running and time.monotonic() < until:
            time.sleep(_BETWEEN_CANCELS)

    def how_far(self) -> HowFar | None:
        return self._how_far

    def update(self, stages: list[Any]) -> None:
        """Take note of the stages of the operation that runs."""
        ended = sum(stage.done for stage in stages)
        if ended < len(stages):
            done, tasks = (sum(getattr(stage, name) for stage in stages) for name in _TASKS)
            self._how_far = HowFar((done, tasks), (ended + 1, len(stages)))

    def _count(self, change: int) -> None:
        with self._lock:
            self._running += change


def _end(client: Any) -> None:
    """End the session of a clone without references, in a thread: the garbage collector waits for no server."""
    if not is_forked() and not client.is_closed:
        threading.Thread(target=_released, args=(client,), name="dstream-clone", daemon=True).start()


def _released(client: Any) -> None:
    with suppress(Exception):  # The server, which may be gone, ends unused sessions.
        client.release_session()
        client.close()


def _followed(first: list[Row], rows: Iterator[Row]) -> Iterator[Row]:
    yield from first
    yield from rows


@contextmanager
def _active(session: Any) -> Iterator[None]:
    """Make a session the active one of the thread: the client attributes a frame on the server to it (4.3)."""
    thread, theirs = type(session)._active_session, type(session).getActiveSession()
    thread.session = session
    try:
        yield
    finally:
        thread.session = theirs


_TASKS = ("num_completed_tasks", "num_tasks")


def _running_here() -> list[ConnectJobs]:
    running: list[ConnectJobs] = _in_thread.__dict__.setdefault("running", [])
    return running


def _on_progress(stages: Any, **_: Any) -> None:
    """Record a session's reports on the operation whose answer this thread waits for."""
    running = _running_here()
    if running and stages is not None:
        running[-1].update(list(stages))
