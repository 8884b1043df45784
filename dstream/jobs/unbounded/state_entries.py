"""`StateEntries`: the state of a step of a job as a source, as of the last epoch that was committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dstream.errors import IllegalStateError
from dstream.jobs.unbounded.epoch_log import EpochLog
from dstream.jobs.unbounded.state_of_steps import states_of_steps
from dstream.jobs.unbounded.steps_of_plan import steps_of_plan
from dstream.jobs.upgrade_plan import Memory
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.spi.state_files import StateFiles
from dstream.spi.state_operator import StateOperator
from dstream.state.visible_entries import entries
from dstream.values.entry import Entry

if TYPE_CHECKING:
    from dstream.state.shard_index import ShardIndex

__all__ = ["StateEntries", "state_entries"]


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
    return StateEntries(states.indexes[stage], files, steps[stage].operator)
