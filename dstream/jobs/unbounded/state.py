"""State of the steps of a job: its versions, its compaction, and its entries as a source."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dstream.errors import EngineError, IllegalStateError
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


class _Checkpoint(NamedTuple):
    """A record with a complete index, as far as the compaction needs it: a job retains several a second for a day.

    Attributes:
        number: of the record.
        now: its reading of the clock.
        claims: how many records before it, and itself, are claims, up to a constant.
    """

    number: int
    now: float
    claims: int

    @staticmethod
    def of(record: LogRecord) -> _Checkpoint:
        # Each record counts an epoch, but for claims.
        return _Checkpoint(record.number, record.now, record.number - record.published)


_AT_ONCE = 2
"""Number of records removed after an epoch: more than one, so that they do not accumulate; a hundred is slow."""


class LogCompaction:
    """Removal of records that are older than an expired checkpoint.

    Records and files to remove are found when a checkpoint is written, and removed after the following epochs, *n*
    records after each. The cost does not depend on the number of retained records, which may be millions.

    Args:
        log: the log of the job.
        files: the files of its state; None if it has none.
        keep: seconds for which records are retained.
    """

    def __init__(self, log: EpochLog, files: StateFiles | None, keep: float) -> None:
        self._log = log
        self._files = files
        self._keep = keep
        self._checkpoints: deque[_Checkpoint] = deque()
        self._begun_with: list[int] = []
        self._left: deque[int] = deque()
        self._needed: set[str] = set()
        self._is_known = False

    def after(self, record: LogRecord) -> int:
        """Note a published record; remove a part of the records that are too old, and return their number.

        Raises:
            EngineError: the storage fails. Nothing is lost then: the next call continues.
        """
        if record.index is not None:
            self._find_checkpoints(record)
            # The search has found it, too, the first time: between a checkpoint and itself nothing is removed.
            self._checkpoints.append(_Checkpoint.of(record))
            self._drop(record.now - self._keep)
        return self._removed(record.number) if self._left else 0

    def _drop(self, until: float) -> None:
        """Drop the records before the newest checkpoint that is old enough: later records need its index."""
        while len(self._checkpoints) > 1 and self._checkpoints[1].now < until:
            first, then = self._checkpoints[0].number, self._checkpoints[1].number
            needed = self._needed_from(then, self._begun_with)
            # Before anything is removed: a driver that slept could write under a free number, and believe that it
            # decides.
            self._log.raise_floor(then)
            self._left += range(first, then)
            self._needed = needed
            self._checkpoints.popleft()

    def _find_checkpoints(self, last: LogRecord) -> None:
        """Find the checkpoints of earlier drivers, once, and the leftovers of those that died while removing any."""
        if not self._is_known:
            numbers = self._log.numbers()
            regular = (self._log.read(number) for number in numbers if number % EPOCHS_PER_CHECKPOINT == 0)
            checkpoints = [_Checkpoint.of(each) for each in regular if each and each.index is not None]
            first = numbers[0] if numbers else last.number
            begun_with = self._found_starts(first, [*checkpoints, _Checkpoint.of(last)])
            left, needed = self._log.numbers_before_floor(), self._needed_from(first, begun_with)
            # Together, after the calls in which the storage may fail: the next call searches again.
            self._checkpoints, self._begun_with = deque(checkpoints), begun_with
            self._left, self._needed, self._is_known = deque(left), needed, True

    def _found_starts(self, first: int, checkpoints: Iterable[_Checkpoint]) -> list[int]:
        """Return the numbers of the records by which a job went on at an earlier epoch, or with another pipeline.

        Such a record is a claim with a complete index. Between two checkpoints there is a claim for each record that
        counts no epoch, so the others are not read. While this driver decides, none is added.
        """
        found, claims = [], -1
        for each in checkpoints:
            if each.claims != claims:
                between = map(self._log.read, range(first, each.number + 1))
                found += [one.number for one in between if one is not None and one.is_claim and one.index is not None]
            first, claims = each.number + 1, each.claims
        return found

    def _needed_from(self, first: int, begun_with: Iterable[int]) -> set[str]:
        """Return the files of earlier records that a checkpoint, or any later record, needs.

        All these continue from its index, and name newer files, or have a complete index of an earlier record.
        """
        needed = set[str]()
        for number in (first, *(each for each in begun_with if each > first)):
            record = self._log.read(number)
            if record is None:
                raise EngineError(f"the record {number} of the job is gone: another driver has removed it")
            needed |= files_named_by(record)
        return needed

    def _removed(self, last: int) -> int:
        """Remove a number of records, and files that only they name, and return the number.

        Also those that a driver before has left.
        """
        if self._log.read(last + 1) is not None:
            return 0  # Another driver decides, and may need records that this one has not read.
        count = min(_AT_ONCE, len(self._left))
        for _ in range(count):
            record = self._log.read(self._left[0])
            if record is not None and self._files is not None:
                for name in removable([files_named_by(record)], [self._needed]):
                    self._files.remove(name)
            # After the files: if this process dies in between, the next driver finds the files by this record.
            self._log.remove(self._left[0])
            self._left.popleft()
        return count


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
        version: unique for each run of the job, so that workers do not reuse shards of the previous run.
        files: the files of the job; None if no step needs any.
        indexes: the index of each step, by its name.
        changed: the changes of the epoch that led to this, as a record contains them.
    """

    job: str
    version: str
    files: StateFiles | None
    indexes: Mapping[str, ShardIndex]
    changed: Mapping[str, Any] = field(default_factory=dict)

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
        plain = {step: changes_to_plain(changes) for step, changes in changed.items() if changes}
        return StatesOfSteps(self.job, self.version, self.files, indexes, plain)

    def deadlines(self, step: str) -> tuple[int | None, float | None]:
        """Return the deadlines of the shards of a step: the least watermark, and the least reading of the clock."""
        index = self.indexes[step]
        return index.deadline, index.clock_deadline

    def changes(self) -> dict[str, Any]:
        """Return the changes of the last epoch, as a record contains them."""
        return dict(self.changed)

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
    """Return the state of steps as of the last record.

    Args:
        job: its id.
        version: as in `StatesOfSteps`.
        files: the files of the job; None if there are no steps.
        steps: the operators of the plan, by the names of their stages.
        records: the last record with a complete index, and all later ones.
        shards: the number of shards of a step without a state.

    Raises:
        IllegalStateError: the plan has other steps than the job so far, or their state belongs to other operators.
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
    """Keys with their states, in no order; one task reads several shards."""

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
        hint: the number of a record that existed.
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
