"""`InProcessEngine`: terminal operations of compiled graphs in the caller's process."""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Sequence
from typing import Any

from dstream.base.memory import DEFAULT_BROADCAST, largest_side
from dstream.engine.calls import Call, Cancellation, Operation, Progress, Submitted
from dstream.engine.compiler import ClusterFacts, ColumnMode
from dstream.engine.dead_letters import RecoveryReport
from dstream.engine.display import ProgressFacts
from dstream.engine.inprocess.run import NO_DATA_FRAMES, InProcessRun
from dstream.engine.inprocess.tasks import SharedByTasks
from dstream.engine.physical.graph import Each, Pulled
from dstream.engine.runs.moves import RunHere
from dstream.engine.runs.rows import ShuffleFiles
from dstream.errors import UnsupportedError
from dstream.keys.hashing import hash_without_seed
from dstream.operators.rows.caches import Caches
from dstream.plan.capture_checks import check_captures, has_immutable_captures, shares_with_classes
from dstream.plan.operations.ends import End, Loop, Partitions, Several, ToList, Write
from dstream.plan.operations.streams import Read
from dstream.plan.properties import check, guards_of, is_of_epoch, parallelism
from dstream.plan.walk import of_one_run, recalled, topological

__all__ = ["InProcessEngine"]


_UNSEEN = Progress(asked=False)
_PLACE = "in this process"


class InProcessEngine:
    """The engine for compiled graphs in the caller's process, one task after another: one per input by default.

    Args:
        worker_memory: the bytes of memory that a task may use before its operations spill.
        caches: the contents of `cache()` steps, also by another engine of the same context.
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
        columns: whether functions are compiled to expressions, which run instead of them.
    """

    name = "inprocess"

    def __init__(
        self,
        worker_memory: int,
        progress: Progress = _UNSEEN,
        caches: Caches | None = None,
        broadcast_limit: int = DEFAULT_BROADCAST,
        columns: ColumnMode = "auto",
    ) -> None:
        self._worker_memory = worker_memory
        self._progress = progress
        self._caches = Caches() if caches is None else caches
        self._broadcast_limit = broadcast_limit
        self._columns: ColumnMode = columns
        # Before the first task: one that is putting keys into files by their hashes must not see that change.
        hash_without_seed(True)
        self._verdicts: deque[tuple[list[Any], bool]] = deque(maxlen=_MOST_JOBS)

    def submit(self, end: End | Several, how: RunHere | None = None) -> Submitted:
        """Return a run of the plan in this process; one that may move runs its last tasks elsewhere."""
        # Determined now: a run in another thread has no user's frame on its stack.
        call = None if end.label() else Call.of_user()
        return Submitted(functools.partial(self._run, end, call, how or self.in_one_task(end)))

    def in_one_task(self, end: End | Several, cores: int = 1) -> RunHere:
        """Return the configuration of a plan whose tasks all run in this process, with one partition by default."""
        return RunHere(
            ClusterFacts(
                parallelism(end) or cores,
                cores,
                largest_side(self._worker_memory),
                None,
                self._broadcast_limit,
                self._columns,
            )
        )

    def _run(self, plan: End | Several, call: Call | None, how: RunHere, cancellation: Cancellation) -> Any:
        is_shared = self._judged(plan)
        if isinstance(plan, Several):
            check(plan, needs_end=True)
        end = recalled(of_one_run(plan), self._caches.found)
        run, operation = self._begun(end, call or Call.of_step(end.step), how, cancellation, is_shared)
        if isinstance(end, Loop | Partitions):
            return _lazily(end, run, operation)
        with run.supplied() as end:
            if operation is None:
                return _result(end, run)
            with operation:
                return _result(end, run)

    def _judged(self, plan: End | Several) -> bool:
        """Refuse captures that cannot travel, and return whether the functions of a plan may run as they are.

        An epoch has the functions of the one before, which are judged once: that takes as long as a small epoch itself.
        """
        if not (isinstance(plan, Several) and plan.is_epoch):
            check_captures(plan)
            return has_immutable_captures(plan) or shares_with_classes(plan)
        functions = _functions_over_epochs(plan)
        for known, is_shared in list(self._verdicts):  # A list, since epochs of other jobs add theirs meanwhile.
            if len(known) == len(functions) and all(map(operator.is_, known, functions)):
                # Another job may have the same functions, or none, before writers of another kind.
                return is_shared and has_immutable_captures(plan, Write)
        check_captures(plan)
        is_shared = has_immutable_captures(plan) or shares_with_classes(plan)
        self._verdicts.append((functions, is_shared))
        return is_shared

    def _begun(
        self, end: End | Several, call: Call, how: RunHere, cancellation: Cancellation, is_shared: bool
    ) -> tuple[InProcessRun, Operation | None]:
        operations = topological(end)
        recovered = RecoveryReport(operations, self._progress) if any(guards_of(operations)) else None
        shared = SharedByTasks(
            self._worker_memory,
            {},
            recovered,
            cancellation,
            is_counting=False,
            is_shared=is_shared,
            reads_all=is_of_epoch(end),
        )
        operation = self._progress.begin(lambda: ProgressFacts(call.title(), shared.items, place=_PLACE))
        shared.is_counting = operation is not None or how.border is not None
        # To count blocks of items loads the packages of columns.
        shared.counts_blocks = operation is not None or how.facts.reads_functions
        border = None if how.border is None else how.border(call, cancellation)
        files, may_read = ShuffleFiles(), self._columns != "off"
        run = InProcessRun(end, how.facts, self._caches, shared, files, recovered, border, may_read, how.compiled)
        return run, operation

    def data_frame(self, splits: Sequence[Any], schema: Any) -> Any:
        """Refuse: this engine has no DataFrames.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(NO_DATA_FRAMES)

    def cores(self) -> int:
        """Return how many tasks run at the same time."""
        return 1

    def is_lost(self) -> bool:
        """Return False: it runs in this process."""
        return False

    def close(self) -> None:
        """Release the contents of `cache()` steps."""
        self._caches.clear()


def _functions_over_epochs(plan: Several) -> list[Any]:
    """Return the functions of the steps of an epoch, without those of its sources and sinks."""
    steps = (each for each in topological(plan) if not isinstance(each, Read | Write))
    return [value for each in steps for _, value in each.shipped()]


_MOST_JOBS = 16
"""The number of cached verdicts, each with the functions of a job."""


def _result(end: End | Several, run: InProcessRun) -> Any:
    """Run a plan, and return its result."""
    ending = None if isinstance(end, Several) else run.graph.ending
    if isinstance(ending, Pulled):
        items = run.pulled(ending)
        return list(items) if isinstance(end, ToList) else items
    return run.result()


def _lazily(end: Loop | Partitions, run: InProcessRun, operation: Operation | None) -> Any:
    """Return the items in sequence, or by partition."""
    match run.graph.ending:
        case Pulled() as ending:
            items = run.pulled(ending) if operation is None else operation.lazily(run.pulled(ending))
            return [items] if isinstance(end, Partitions) else items
        case Each(inputs):
            return run.partitions(inputs)
    raise AssertionError("the items of a loop are pulled")
