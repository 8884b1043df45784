"""`upgrade_plan`: what becomes of all that a job remembers when it goes on with another pipeline, stage by stage.

It is judged from the job's records and the new pipeline alone: nothing is unpickled, and no source is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dstream.errors import IllegalStateError
from dstream.jobs.unbounded.steps_of_plan import steps_of_plan
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.state.plain_index import changes_from_plain, index_from_plain

if TYPE_CHECKING:
    from dstream.jobs.unbounded.epoch_log import EpochLog
    from dstream.jobs.unbounded.log_record import LogRecord
    from dstream.spi.state_operator import StateOperator
    from dstream.state.shard_index import ShardIndex

__all__ = ["Memory", "StageVerdict", "Verdict", "check_nothing_is_lost", "check_nothing_is_refused", "upgrade_plan"]

Verdict = Literal["keeps", "starts empty", "dropped", "refused"]


class StageVerdict(NamedTuple):
    """What becomes of one stage.

    Attributes:
        stage: its name.
        verdict: `"keeps"` what it remembers; `"starts empty"`, as one that is new; `"dropped"`, with what it remembers;
            `"refused"`, since what it remembers is of no use to the new one.
        why: in words.
    """

    stage: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What a job remembers, by the names of its stages.

    Attributes:
        sources: those that were read.
        steps: those that keep a state, and where it is.
    """

    sources: frozenset[str] = frozenset()
    steps: Mapping[str, ShardIndex] = field(default_factory=dict)

    @staticmethod
    def of(log: EpochLog, hint: int) -> Memory:
        """Return what stands in the log of a job.

        Args:
            log: of the job.
            hint: the number of a record that was there.
        """
        last = log.last(hint)
        return Memory() if last is None else Memory.of_records(log.since_checkpoint(last))

    @staticmethod
    def of_records(records: Sequence[LogRecord]) -> Memory:
        """Return what stands in the records since the last one with a whole index."""
        steps = {step: index_from_plain(plain) for step, plain in (records[0].index or {}).items()}
        for record in records[1:]:
            for step, plain in record.changes.items():
                steps[step] = steps[step].applied(changes_from_plain(plain))
        return Memory(frozenset(records[-1].sources), steps)

    def __contains__(self, stage: str) -> bool:
        return stage in self.sources or stage in self.steps


def upgrade_plan(plan: PipelinePlan, shape: Sequence[Sequence[Any]], memory: Memory) -> list[StageVerdict]:
    """Say what would become of each stage: those of the new pipeline in its order, then those that it has not.

    Args:
        plan: the new pipeline.
        shape: of the pipeline that the job runs: names, kinds and inputs of its stages.
        memory: what the job remembers.
    """
    return _Judging(plan, {name: kind for name, kind, _ in shape}, memory).verdicts()


class _Judging:
    def __init__(self, plan: PipelinePlan, before: Mapping[str, str], memory: Memory) -> None:
        self._before = before
        self._memory = memory
        self._after = {name: (kind, upstreams) for name, kind, upstreams in plan.shape()}
        self._steps = {name: each.operator for name, each in steps_of_plan(plan, memory.steps).items()}

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
    """Refuse a pipeline that cannot go on with what a job remembers.

    Raises:
        IllegalStateError: a stage is refused; the message says why.
    """
    refused = "; ".join(each.why for each in verdicts if each.verdict == "refused")
    if refused:
        raise IllegalStateError(f"{title} cannot go on with this pipeline: {refused}")


def check_nothing_is_lost(verdicts: Sequence[StageVerdict], memory: Memory, title: str, begins: str) -> None:
    """Refuse a pipeline with which a job would forget something that nobody has said it should.

    Args:
        verdicts: what becomes of each stage.
        memory: what the job remembers.
        title: what messages call the job.
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
