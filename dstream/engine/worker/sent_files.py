"""The files that travel with a job: workers on this machine see the driver's folder, others get an archive of it."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dstream.engine.worker.sent_payloads import Sent
from dstream.values.attached_files import JobFiles

__all__ = ["SentFiles", "archived", "unpacked"]

_PIECE = 2**20


@dataclass(frozen=True)
class SentFiles:
    """Files and modules of a job, for its tasks.

    Attributes:
        sent: an archive of them; None if workers see the driver's folders.
    """

    files: JobFiles
    sent: Sent | None

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
