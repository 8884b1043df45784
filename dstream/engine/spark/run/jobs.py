"""`OperationJobs`: the Spark jobs of one terminal operation, and their progress."""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from dstream.base.threads import contextmanager
from dstream.engine.display import ProgressFacts
from dstream.engine.progress import Call, Progress
from dstream.engine.spark.port.errors import interruptible
from dstream.engine.spark.port.protocols import Port
from dstream.engine.tasks.runtime import CountItems
from dstream.operators.rows.operations import Operation

__all__ = ["ItemCounts", "OperationJobs"]


_PROCESS = uuid.uuid4().hex[:8]
_numbers = itertools.count(1)


class OperationJobs:
    """Names the jobs of one terminal operation and looks after them.

    Attributes:
        tag: what Spark knows its jobs by.

    Args:
        port: the session that they run on.
        check: raises an exception if no further job may start.
    """

    def __init__(
        self, port: Port, progress: Progress, counts: ItemCounts, call: Call, check: Callable[[], object] = bool
    ) -> None:
        self.tag = f"dstream-{_PROCESS}-{next(_numbers)}"
        self.call = call
        self._jobs = port.jobs(self.tag)
        self._counts = counts
        self._check = check
        self._operation = progress.begin(self.facts)

    @contextmanager
    def job(self, call: Call) -> Iterator[None]:
        """Let the jobs that start meanwhile be for `call`."""
        self._check()
        self.call = call
        with self._jobs.named(call.description()), self.waiting():
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show how far the jobs are, meanwhile; let Ctrl-C cancel them."""
        with interruptible(self.cancel), self._operation or nullcontext():
            yield

    def cancel(self) -> None:
        """Cancel the jobs, also one that is about to begin, and nobody else's."""
        self._jobs.cancel()

    def counting(self) -> Operation | None:
        """Return an operation that counts items on the workers, if anybody wants to see the number, and Spark can."""
        if self._operation is None:
            return None
        weakref.finalize(self, self._counts.forget, self.tag)
        return self._counts.counting(self.tag)

    def facts(self) -> ProgressFacts:
        """Ask Spark how far the newest job is."""
        facts, how_far = ProgressFacts(self.call.title(), self._counts.of(self.tag)), self._jobs.how_far()
        return facts if how_far is None else replace(facts, tasks=how_far.tasks, stage=how_far.stage)


class ItemCounts:
    """How many items the tasks of each operation read, as far as tasks have ended.

    One accumulator serves an engine for ever: Spark forgets none (4.3).
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._accumulator: Any = None

    def counting(self, key: str) -> CountItems | None:
        """Return an operation that counts items for `key`; None if Spark has no accumulators here."""
        with self._lock:
            if self._accumulator is None:
                self._accumulator = self._port.sums(_Sums())
        return None if self._accumulator is None else CountItems(self._accumulator, key)

    def of(self, key: str) -> int | None:
        """Return how many items were counted for `key`; None if nobody counts."""
        return None if self._accumulator is None else self._accumulator.value.get(key, 0)

    def forget(self, key: str) -> None:
        """Drop the number of `key`."""
        if self._accumulator is not None:
            self._accumulator.value.pop(key, None)


class _Sums:
    """Adds dictionaries of numbers, as an `AccumulatorParam`, without loading PySpark when this module is."""

    def zero(self, value: dict[str, int]) -> dict[str, int]:
        return {}

    def addInPlace(self, value: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        for key, number in other.items():
            value[key] = value.get(key, 0) + number
        return value
