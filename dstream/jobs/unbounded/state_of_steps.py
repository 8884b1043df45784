"""`StatesOfSteps`: the state of the steps of a job as of one record. Each epoch that runs makes another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dstream.errors import IllegalStateError
from dstream.jobs.unbounded.log_record import LogRecord
from dstream.plan.core_of_epochs import OverEpochs
from dstream.spi.epochs import ShardChange, StepReceipt, StepState
from dstream.spi.state_files import StateFiles
from dstream.state.plain_index import changes_from_plain, changes_to_plain, index_from_plain, index_to_plain
from dstream.state.shard_index import ShardIndex
from dstream.state.step_state import StateOfStep

__all__ = ["StatesOfSteps", "states_of_steps"]


@dataclass(frozen=True, slots=True)
class StatesOfSteps:
    """Where the state of all steps of a job is, as of one record.

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
        return StateOfStep(self.indexes[step], self.files, self.job, epoch, self.version)

    def after(self, receipts: Iterable[StepReceipt]) -> StatesOfSteps:
        """Return what holds once an epoch with these receipts is committed."""
        changed: dict[str, list[ShardChange]] = {step: [] for step in self.indexes}
        for receipt in receipts:
            changed[receipt.stage] += receipt.changes
        indexes = {step: index.applied(changed[step]) for step, index in self.indexes.items()}
        return StatesOfSteps(self.job, self.version, self.files, indexes, changed)

    def deadlines(self, step: str) -> tuple[int | None, float | None]:
        """Return what the shards of a step wait for: the least watermark, and the least reading of the clock."""
        index = self.indexes[step]
        return index.deadline, index.clock_deadline

    def changes(self) -> dict[str, Any]:
        """Return what the epoch changed that led to this, as a record has it."""
        return {step: changes_to_plain(changes) for step, changes in self.changed.items() if changes}

    def index(self) -> dict[str, Any]:
        """Return where all of it is, as a record has it."""
        return {step: index_to_plain(index) for step, index in self.indexes.items()}


def states_of_steps(
    job: str,
    version: str,
    files: StateFiles | None,
    steps: Mapping[str, OverEpochs],
    records: Sequence[LogRecord],
    shards: int,
) -> StatesOfSteps:
    """Return the state of steps as of the last of some records.

    Args:
        job: its id.
        version: as of `StatesOfSteps`.
        files: those of the job; None if there are no steps.
        steps: of the plan, by their names.
        records: the last one with a whole index, and all after it.
        shards: how many a step gets that has no state yet.

    Raises:
        IllegalStateError: the plan has other steps than the job so far, or what they kept is that of other operators.
    """
    indexes = {step: index_from_plain(plain) for step, plain in (records[0].index or {}).items()}
    for step, each in steps.items():
        if step in indexes:
            indexes[step].check_fits(each.operator)
    for step in indexes.keys() - steps.keys():
        raise IllegalStateError(
            f"the job has a state of the step {step!r}, and this pipeline has no step of that name: give it that name"
        )
    indexes |= {s: ShardIndex.new(s, each.operator, shards) for s, each in steps.items() if s not in indexes}
    for record in records[1:]:
        for step, plain in record.changes.items():
            indexes[step] = indexes[step].applied(changes_from_plain(plain))
    return StatesOfSteps(job, version, files, indexes)
