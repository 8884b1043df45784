"""A sink around another one, which notes in a folder what each task hands over."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from dstream.spi import Collections, Receipt

__all__ = ["NotedSink", "tasks_that_wrote"]


@dataclass(frozen=True)
class NotedSink:
    """The sink.

    Attributes:
        sink: the other one.
        folder: gets a file for each call of a writer, which names the task.
    """

    sink: Any
    folder: Path

    @property
    def label(self) -> str:
        return str(self.sink.label)

    @property
    def collector(self) -> Any:
        return self.sink.collector

    @property
    def job(self) -> Any:
        return self.sink.job

    def open(self, context: Collections) -> NotedTarget:
        return NotedTarget(self.sink.open(context), self.folder)


@dataclass(frozen=True)
class NotedTarget:
    """Its target, in the driver."""

    target: Any
    folder: Path

    def begin(self, job: str | None, epoch: int = 1) -> NotedJob:
        return NotedJob(self.target.begin(job, epoch), self.folder)

    def result(self) -> Any:
        return self.target.result()


@dataclass(frozen=True)
class NotedJob:
    """One epoch, in the driver."""

    inner: Any
    folder: Path

    @property
    def is_done(self) -> bool:
        return bool(self.inner.is_done)

    @property
    def writer(self) -> NotedWriter:
        return NotedWriter(self.inner.writer, self.folder)

    def commit(self, receipts: Any) -> None:
        self.inner.commit(receipts)

    def abort(self) -> None:
        self.inner.abort()


@dataclass(frozen=True)
class NotedWriter:
    """Travels to the tasks."""

    inner: Any
    folder: Path

    @property
    def buckets(self) -> int:
        return int(self.inner.buckets)

    def bucket_of(self, key: Any) -> int:
        return int(self.inner.bucket_of(key))

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Write items with the other one."""
        yield from self._noted(self.inner.write, items)

    def write_bucket(self, bucket: int, entries: Iterable[Any]) -> Iterator[Receipt]:
        """Write entries with it."""
        yield from self._noted(lambda each: self.inner.write_bucket(bucket, each), entries)

    def _noted(self, write: Any, items: Iterable[Any]) -> Iterator[Receipt]:
        taken: list[Any] = []

        def passing() -> Iterator[Any]:
            for item in items:
                taken.append(item)
                yield item

        receipts = list(write(passing()))
        if taken and not _hold_all(receipts, taken):
            task = TaskContext.get()
            (self.folder / f"{task.partitionId() if task else 'caller'} {uuid.uuid4().hex}").touch()
        yield from receipts


def _hold_all(receipts: list[Receipt], items: list[Any]) -> bool:
    """Say whether the items travel in the receipts, so that whoever has those writes them."""
    return all(repr(item) in repr(receipts) for item in items)


def tasks_that_wrote(folder: Path) -> set[str]:
    """Return the tasks that handed items over themselves."""
    return {path.name.split()[0] for path in folder.iterdir()}
