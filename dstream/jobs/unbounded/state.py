"""State of the steps of a job: its versions, its compaction, and its entries as a source."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.errors import IllegalStateError
from dstream.jobs.unbounded.log import EPOCHS_PER_CHECKPOINT, EpochLog, LogRecord
from dstream.jobs.unbounded.plans import steps_of_plan
from dstream.jobs.upgrades import Memory
from dstream.operators.state.backend import ShardedStepState
from dstream.operators.state.index import ShardIndex
from dstream.operators.state.index_format import (
    changes_from_plain,
    changes_to_plain,
    files_of,
    index_from_plain,
    index_to_plain,
    removable,
)
from dstream.operators.state.shards import entries
from dstream.pipeline.plan import PipelinePlan
from dstream.spi.epochs import ShardChange, StateOperator, StepReceipt, StepState
from dstream.spi.records import StateFiles
from dstream.values.entries import Entry

__all__ = ["LogCompaction", "StateEntries", "StatesOfSteps", "files_named_by", "state_entries", "states_of_steps"]


class LogCompaction:
    """The removal of records that are older than a checkpoint of some time ago.

    What has to go is found when a checkpoint is written, so most epochs cost nothing.

    Args:
        log: of the job.
        files: where its state is; None if it has none.
        keep: for how many seconds records are kept.
    """

    def __init__(self, log: EpochLog, files: StateFiles | None, keep: float) -> None:
        self._log = log
        self._files = files
        self._keep = keep
        self._checkpoints: deque[LogRecord] = deque()
        self._left: list[int] = []
        self._is_known = False

    def after(self, record: LogRecord) -> int:
        """Note a published record; remove the records that its checkpoint makes useless, and return their number.

        Raises:
            EngineError: the storage fails. Nothing is lost then: the next fold finds the same.
        """
        if record.index is None:
            return 0
        self._find_checkpoints()
        # The search has found it, too, the first time: between a checkpoint and itself nothing is removed.
        self._checkpoints.append(record)
        removed = 0
        # The newest checkpoint that is old enough stays: the records behind it need its index.
        while len(self._checkpoints) > 1 and self._checkpoints[1].now < record.now - self._keep:
            removed += self._removed(self._checkpoints[0].number, self._checkpoints[1])
            self._checkpoints.popleft()
        return removed

    def _find_checkpoints(self) -> None:
        """Find the checkpoints of earlier drivers, once, and the leftovers of those that died while removing any."""
        if not self._is_known:
            self._left = self._log.numbers_before_floor()
            numbers = [number for number in self._log.numbers() if number % EPOCHS_PER_CHECKPOINT == 0]
            found = (self._log.read(number) for number in numbers)
            self._checkpoints.extend([each for each in found if each is not None and each.index is not None])
            self._is_known = True

    def _removed(self, first: int, then: LogRecord) -> int:
        """Remove the records from `first` up to, not including, the checkpoint `then`, and files that only they name.

        Also those that a driver before has left.
        """
        # Before anything is removed: a driver that slept could write under a free number, and believe that it decides.
        self._log.raise_floor(then.number)
        numbers = (*self._left, *range(first, then.number))
        dropped = [each for each in map(self._log.read, numbers) if each is not None]
        if self._files is not None:
            kept = [files_named_by(each) for each in self._log.since(then.number)]
            for name in removable(map(files_named_by, dropped), kept):
                self._files.remove(name)
        # Behind the files: if this process dies in between, the next fold finds the files by these records.
        for each in dropped:
            self._log.remove(each.number)
        self._left = []
        return len(dropped)


def files_named_by(record: LogRecord) -> set[str]:
    """Return the files of state that a record names."""
    changes: Iterable[set[str]] = (files_of(changes_from_plain(each)) for each in record.changes.values())
    indexes = (index_from_plain(each).files() for each in (record.index or {}).values())
    return set().union(*changes, *indexes)


@dataclass(frozen=True, slots=True)
class StatesOfSteps:
    """The locations of the state of all steps of a job, as of one record.

    Attributes:
        job: its id.
        version: another one for each run of the job, so that workers keep no shards of the one before.
        files: those of the job; None if no step needs any.
        indexes: of each step, by its name.
        changed: what the epoch changed that led to this.
    """

    job: str
    version: str
    files: StateFiles | None
    indexes: Mapping[str, ShardIndex]
    changed: Mapping[str, Sequence[ShardChange]] = field(default_factory=dict)

    def of(self, step: str, epoch: int) -> StepState:
        """Return the state of a step as tasks of an epoch get it."""
        assert self.files is not None, "there are files where there are steps"
        return ShardedStepState(self.indexes[step], self.files, self.job, epoch, self.version)

    def after(self, receipts: Iterable[StepReceipt]) -> StatesOfSteps:
        """Return the states after an epoch with these receipts is committed."""
        changed: dict[str, list[ShardChange]] = {step: [] for step in self.indexes}
        for receipt in receipts:
            changed[receipt.stage] += receipt.changes
        indexes = {step: index.applied(changed[step]) for step, index in self.indexes.items()}
        return StatesOfSteps(self.job, self.version, self.files, indexes, changed)

    def deadlines(self, step: str) -> tuple[int | None, float | None]:
        """Return the deadlines of the shards of a step: the least watermark, and the least reading of the clock."""
        index = self.indexes[step]
        return index.deadline, index.clock_deadline

    def changes(self) -> dict[str, Any]:
        """Return the changes of the last epoch, as a record contains them."""
        return {step: changes_to_plain(changes) for step, changes in self.changed.items() if changes}

    def index(self) -> dict[str, Any]:
        """Return where all of it is, as a record has it."""
        return {step: index_to_plain(index) for step, index in self.indexes.items()}


def states_of_steps(
    job: str,
    version: str,
    files: StateFiles | None,
    steps: Mapping[str, StateOperator],
    records: Sequence[LogRecord],
    shards: int,
) -> StatesOfSteps:
    """Return the state of steps as of the last of some records.

    Args:
        job: its id.
        version: as of `StatesOfSteps`.
        files: those of the job; None if there are no steps.
        steps: the operators of the plan, by the names of their stages.
        records: the last one with a whole index, and all after it.
        shards: how many a step gets that has no state yet.

    Raises:
        IllegalStateError: the plan has other steps than the job so far, or what they kept is that of other operators.
    """
    indexes = {step: index_from_plain(plain) for step, plain in (records[0].index or {}).items()}
    for step, each in steps.items():
        if step in indexes:
            indexes[step].check_fits(each)
    for step in indexes.keys() - steps.keys():
        raise IllegalStateError(
            f"the job has a state of the step {step!r}, and this pipeline has no step of that name: give it that name"
        )
    # A step that is new has no shards in any record, so their number may still be chosen.
    indexes |= {s: ShardIndex.new(s, each, shards) for s, each in steps.items() if s not in indexes}
    for record in records[1:]:
        for step, plain in record.changes.items():
            indexes[step] = indexes[step].applied(changes_from_plain(plain))
    return StatesOfSteps(job, version, files, indexes)


@dataclass(frozen=True, slots=True)
class StateEntries:
    """Keys with their states, in no order; one task reads some of the shards."""

    index: ShardIndex
    files: StateFiles
    operator: StateOperator

    ordered = False
    bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> Iterable[_Shards]:
        """Divide the shards among tasks."""
        count = len(self.index.shards)
        tasks = max(1, min(parallelism, count))
        return [_Shards(self, tuple(range(task, count, tasks))) for task in range(tasks)]

    def __repr__(self) -> str:
        return f"state({self.index.stage!r})"


@dataclass(frozen=True, slots=True)
class _Shards:
    state: StateEntries
    numbers: tuple[int, ...]

    def read(self) -> Iterator[Entry[Any, Any]]:
        found = entries(self.state.index, self.state.files, self.state.operator, self.numbers)
        return (Entry(key, state) for key, state in found)


def state_entries(
    plan: PipelinePlan, stage: str, log: EpochLog, hint: int, files: StateFiles, job: str
) -> StateEntries:
    """Return the state of a step.

    Args:
        plan: of the job.
        stage: the name of the step.
        log: of the job.
        hint: the number of a record that was there.
        files: of the job.
        job: its id.

    Raises:
        IllegalStateError: the job has not begun.
        ValueError: it has no such step.
    """
    last = log.last(hint)
    records = [] if last is None else log.since_checkpoint(last)
    steps = steps_of_plan(plan, Memory.of_records(records).steps if records else {})
    if stage not in steps:
        names = ", ".join(map(repr, steps)) or "none"
        raise ValueError(f"the job has no state of a stage {stage!r}; stages that keep state: {names}")
    if not records:
        raise IllegalStateError("the job has not begun, so it has no state yet")
    states = states_of_steps(job, "", files, steps, records, 1)
    return StateEntries(states.indexes[stage], files, steps[stage])
