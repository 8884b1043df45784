"""`Work`: the Spark jobs of one terminal operation, in the user's words, and how far they are."""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from dstream.engine.kernels.core_operations import Operation
from dstream.engine.progress import Call, Facts, Progress
from dstream.engine.spark.interrupts import interruptible
from dstream.engine.worker.item_counts import CountItems
from dstream.values.contexts import contextmanager

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["ItemCounts", "Work"]

_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"
_PROCESS = uuid.uuid4().hex[:8]
_numbers = itertools.count(1)


class Work:
    """Names the jobs of one terminal operation and looks after them.

    Attributes:
        group: the job group, or job tag, of all its jobs.

    Args:
        check: raises an exception if no further job may start.
    """

    def __init__(
        self,
        context: SparkContext,
        progress: Progress,
        counts: ItemCounts,
        call: Call,
        check: Callable[[], object] = bool,
    ) -> None:
        self.group = f"dstream-{_PROCESS}-{next(_numbers)}"
        self.call = call
        self._context = context
        self._counts = counts
        self._check = check
        self._is_tagged = False
        self._operation = progress.begin(self.facts)

    @contextmanager
    def job(self, call: Call) -> Iterator[None]:
        """Let the jobs that start meanwhile be for `call`.

        What the user's thread says about jobs is as before at the end. An iterator that Spark makes
        meanwhile keeps the words for the jobs that it starts later.
        """
        self._check()
        self.call = call
        with self._named(call.description()), self.waiting():
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show how far the jobs are, meanwhile; let Ctrl-C cancel them."""
        with interruptible(self.cancel), self._operation or nullcontext():
            yield

    def cancel(self) -> None:
        """Cancel the jobs, also one that is about to begin, and nobody else's."""
        if self._is_tagged:
            self._context.cancelJobsWithTag(self.group)
        else:
            java: Any = self._context._jsc  # `cancelJobGroup` of PySpark 4.3 leaves a job alone that is not known yet.
            java.sc().cancelJobGroupAndFutureJobs(self.group)

    def counting(self) -> Operation | None:
        """Return an operation that counts items on the workers, if anybody wants to see the number."""
        if self._operation is None:
            return None
        weakref.finalize(self, self._counts.forget, self.group)
        return self._counts.counting(self.group)

    def facts(self) -> Facts:
        """Ask Spark how far the newest job is."""
        title, items = self.call.title(), self._counts.of(self.group)
        java: Any = self._context._jsc
        spark = java.sc()
        tracker = spark.statusTracker()
        numbers = tracker.getJobIdsForTag(self.group) if self._is_tagged else tracker.getJobIdsForGroup(self.group)
        if len(numbers) == 0:
            return Facts(title, items)
        job = spark.statusStore().job(numbers[0])
        stages, ended = job.stageIds().size(), job.numCompletedStages() + job.numSkippedStages()
        if ended >= stages:  # The next one has yet to begin.
            return Facts(title, items)
        return Facts(
            title, items, (job.numCompletedTasks(), job.numTasks() - job.numSkippedTasks()), (ended + 1, stages)
        )

    @contextmanager
    def _named(self, description: str) -> Iterator[None]:
        context = self._context
        theirs, their_group = context.getLocalProperty(_DESCRIPTION), context.getLocalProperty(_GROUP)
        self._is_tagged = their_group is not None
        context.setLocalProperty(_DESCRIPTION, description)
        context.addJobTag(self.group) if self._is_tagged else context.setLocalProperty(_GROUP, self.group)
        try:
            yield
        finally:
            with suppress(Exception):  # Spark may have died, which the job's own exception says.
                context.setLocalProperty(_DESCRIPTION, theirs)  # type: ignore[arg-type]  # None removes it
                if self._is_tagged:
                    context.removeJobTag(self.group)
                else:
                    context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


class ItemCounts:
    """How many items the tasks of each operation read, as far as tasks have ended.

    One accumulator serves an engine for ever: Spark forgets none (4.3).
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._accumulator: Any = None

    def counting(self, key: str) -> CountItems:
        """Return an operation that counts items for `key`."""
        with self._lock:
            if self._accumulator is None:
                sums: Any = _Sums()
                self._accumulator = self._context.accumulator({}, sums)
        return CountItems(self._accumulator, key)

    def of(self, key: str) -> int:
        """Return how many items were counted for `key`."""
        counted: int = 0 if self._accumulator is None else self._accumulator.value.get(key, 0)
        return counted

    def forget(self, key: str) -> None:
        """Drop the number of `key`."""
        self._accumulator.value.pop(key, None)


class _Sums:
    """Adds dictionaries of numbers, as an `AccumulatorParam`, without loading PySpark when this module is."""

    def zero(self, value: dict[str, int]) -> dict[str, int]:
        return {}

    def addInPlace(self, value: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        for key, number in other.items():
            value[key] = value.get(key, 0) + number
        return value
