"""Upgrades of jobs: the state that a job has, and a verdict for each stage of another pipeline.

Verdicts need the job's records and the new pipeline alone: nothing is unpickled, and no source is opened. `snapshots`
exports the state of a job, with which another begins; the same checks decide whether its pipeline fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dstream.errors import IllegalStateError
from dstream.jobs.state import JobState
from dstream.jobs.unbounded.log import EpochLog, LogRecord
from dstream.jobs.unbounded.plans import steps_of_plan
from dstream.operators.state.index_format import changes_from_plain, index_from_plain
from dstream.pipeline.plan import PipelinePlan

if TYPE_CHECKING:
    from dstream.operators.state.index import ShardIndex
    from dstream.spi.epochs import StateOperator

__all__ = [
    "Memory",
    "StageVerdict",
    "Verdict",
    "check_nothing_is_lost",
    "check_nothing_is_refused",
    "check_still_fits",
    "upgrade_plan",
]


Verdict = Literal["keeps", "starts empty", "dropped", "refused"]


class StageVerdict(NamedTuple):
    """The effect of an update on one stage.

    Attributes:
        stage: its name.
        verdict: `"keeps"` its state; `"starts empty"`, as a new stage; `"dropped"`, with its state; `"refused"`, since
            its state does not fit the new stage.
        why: the reason.
    """

    stage: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a job, by the names of its stages.

    Attributes:
        sources: the sources that were read.
        steps: the steps with state, and its location.
    """

    sources: frozenset[str] = frozenset()
    steps: Mapping[str, ShardIndex] = field(default_factory=dict)

    @staticmethod
    def of(log: EpochLog, hint: int) -> Memory:
        """Return the state in the log of a job.

        Args:
            log: of the job.
            hint: the number of a record that existed.
        """
        last = log.last(hint)
        return Memory() if last is None else Memory.of_records(log.since_checkpoint(last))

    @staticmethod
    def of_records(records: Sequence[LogRecord]) -> Memory:
        """Return the state in the records since the last one with a complete index."""
        steps = {step: index_from_plain(plain) for step, plain in (records[0].index or {}).items()}
        for record in records[1:]:
            for step, plain in record.changes.items():
                steps[step] = steps[step].applied(changes_from_plain(plain))
        return Memory(frozenset(records[-1].sources), steps)

    def __contains__(self, stage: str) -> bool:
        return stage in self.sources or stage in self.steps


def upgrade_plan(plan: PipelinePlan, shape: Sequence[Sequence[Any]], memory: Memory) -> list[StageVerdict]:
    """Report the effect on each stage: the stages of the new pipeline in its order, then the removed stages.

    Args:
        plan: the new pipeline.
        shape: of the pipeline that the job runs: names, kinds and inputs of its stages.
        memory: the state of the job.
    """
    return _Judging(plan, {name: kind for name, kind, _ in shape}, memory).verdicts()


class _Judging:
    def __init__(self, plan: PipelinePlan, before: Mapping[str, str], memory: Memory) -> None:
        self._before = before
        self._memory = memory
        self._after = {name: (kind, upstreams) for name, kind, upstreams in plan.shape()}
        self._steps = steps_of_plan(plan, memory.steps)

    def verdicts(self) -> list[StageVerdict]:
        names = dict.fromkeys((*self._before, *self._memory.sources, *self._memory.steps))
        gone = [StageVerdict(name, "dropped", self._lost(name)) for name in names if name not in self._after]
        return [StageVerdict(name, *self._verdict(name)) for name in self._after] + gone

    def _verdict(self, name: str) -> tuple[Verdict, str]:
        kind, upstreams = self._after[name]
        if name in self._steps and name in self._memory.steps:
            return _of_state(self._memory.steps[name], self._steps[name])
        if name in self._memory.sources and not upstreams:
            return "keeps", "it goes on behind what was read of it"
        if name in self._memory:
            return "dropped", f"it is {kind} now: {self._lost(name)}"
        if name not in self._before:
            return "starts empty", "it is new" if upstreams else "it is new, and begins where its source begins"
        if self._before[name] != kind:
            return "starts empty", f"it was {self._before[name]}, and is {kind} now"
        return "keeps", "it is as it was, and has nothing to remember"

    def _lost(self, name: str) -> str:
        if name in self._memory.steps:
            return f"the state of {self._memory.steps[name].keys} keys goes with it"
        return "how far it was read is forgotten" if name in self._memory.sources else "it has nothing to remember"


def _of_state(index: ShardIndex, operator: StateOperator) -> tuple[Verdict, str]:
    try:
        index.check_fits(operator)
    except IllegalStateError as misfit:
        return "refused", str(misfit)
    return "keeps", f"it goes on with the state of {index.kind}"


def check_nothing_is_refused(verdicts: Sequence[StageVerdict], title: str) -> None:
    """Refuse a pipeline that cannot use the state of a job.

    Raises:
        IllegalStateError: a stage is refused; the message contains the reason.
    """
    refused = "; ".join(each.why for each in verdicts if each.verdict == "refused")
    if refused:
        raise IllegalStateError(f"{title} cannot go on with this pipeline: {refused}")


def check_still_fits(plan: PipelinePlan, state: JobState, log: EpochLog) -> None:
    """Refuse the pipeline of an update that cannot use the current state of the job.

    Raises:
        IllegalStateError: a stage is refused; the message contains the reason.
        Exception: the log cannot be read.
    """
    verdicts = upgrade_plan(plan, state.shape, Memory.of(log, state.log))
    check_nothing_is_refused(verdicts, state.title)


def check_nothing_is_lost(verdicts: Sequence[StageVerdict], memory: Memory, title: str, begins: str) -> None:
    """Refuse a pipeline with which a job would forget something without `force=True`.

    Args:
        verdicts: the verdict on each stage.
        memory: the state of the job.
        title: the name of the job in messages.
        begins: where it begins, in words.

    Raises:
        IllegalStateError: a stage is refused, or one that remembers something would be dropped.
    """
    check_nothing_is_refused(verdicts, title)
    lost = [each for each in verdicts if each.verdict == "dropped" and each.stage in memory]
    if lost:
        words = "; ".join(f"of the stage {each.stage!r}, {each.why}" for each in lost)
        raise IllegalStateError(
            f"{title} {begins}, and this is another pipeline: {words}. Give its stages the names that they had, submit "
            "it under another name, or with JobConfig(force=True) to let the job forget that"
        )
