"""Payloads of jobs: stages, functions, broadcasts and files that workers receive."""

from __future__ import annotations

import base64
import io
import os
import pickle
import shutil
import tarfile
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dstream.values.attachments import JobFiles

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CARRIED",
    "MOST_CARRIED",
    "PARTITION",
    "InBroadcast",
    "InFile",
    "InFunction",
    "Payloads",
    "SentFiles",
    "archived",
    "carried",
    "carried_stage",
    "numbered",
    "unpacked",
]


CARRIED = "dstream.stage"
"""The property of a job that holds its stage, for each of its tasks."""
MOST_CARRIED = 32 * 1024
"""So many bytes may a stage have, which travels with each task as text, where a plan would have it once."""


def carried(stage: bytes) -> str:
    """Return a pickled stage as the text that a job carries."""
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
        """Their name, unlike that of any others."""
        ...

    def payloads(self) -> Sequence[Any]:
        """Return them, on a worker."""
        ...


@dataclass(frozen=True)
class InFunction:
    """A few bytes, which travel with the function that needs them."""

    name: str
    few: tuple[bytes, ...]

    def payloads(self) -> Sequence[Any]:
        return self.few


@dataclass(frozen=True)
class InBroadcast:
    """A broadcast variable of Spark, of which each executor has the bytes once."""

    name: str
    broadcast: Any

    def payloads(self) -> Sequence[Any]:
        payloads: Sequence[Any] = self.broadcast.value
        # A broadcast holds its value for as long as the process lives (PySpark 4.3). The table that is made of it is
        # enough; if it is wanted again, it is in a file of the executor, unless Spark encrypts its files.
        if hasattr(self.broadcast, "_path"):
            self.broadcast.__dict__.pop("_value", None)
        return payloads


@dataclass(frozen=True)
class InFile:
    """A file that Spark Connect has sent to the server, which gives it to the executors of its session."""

    name: str

    def payloads(self) -> Sequence[Any]:
        from pyspark import SparkFiles

        with open(SparkFiles.get(self.name), "rb") as file:
            payloads: Sequence[Any] = pickle.load(file)
        return payloads


_PIECE = 2**20


@dataclass(frozen=True)
class SentFiles:
    """Files and modules of a job, for its tasks.

    Attributes:
        sent: an archive of them; None if workers see the driver's folders.
    """

    files: JobFiles
    sent: Payloads | None

    def arrived(self) -> JobFiles:
        """Return them as they stand on this machine, where the first task unpacks them."""
        if self.sent is None:
            return self.files
        from pyspark import SparkFiles

        target = Path(SparkFiles.getRootDirectory(), self.files.name)
        if not target.exists():
            unpacked(self.sent.payloads(), target)
        return replace(self.files, folder=str(target), is_elsewhere=True)


def archived(folder: str) -> list[bytes]:
    """Return a folder as an archive, in pieces."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.add(folder, arcname=".")
    return list(_pieces(written.getbuffer()))


def _pieces(data: memoryview) -> Iterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield bytes(data[start : start + _PIECE])


def unpacked(pieces: Sequence[bytes], target: Path) -> None:
    """Make a folder of an archive, which nobody sees before it is whole. Several tasks may do so at once."""
    unfinished = target.with_name(f"{target.name}-{uuid.uuid4().hex}")
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as archive:
        archive.extractall(unfinished, filter="data")
    try:
        os.rename(unfinished, target)
    except OSError:  # Another task was first.
        shutil.rmtree(unfinished, ignore_errors=True)
        if not target.exists():
            raise


PARTITION = "partition long"
"""The schema of the rows."""


def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read a partition, and give one row with its number."""
    import pyarrow as pa
    from pyspark import TaskContext

    deque(batches, 0)
    context = TaskContext.get()
    assert context is not None, "a stage runs inside a Spark task"
    yield pa.RecordBatch.from_pydict({"partition": [context.partitionId()]})
