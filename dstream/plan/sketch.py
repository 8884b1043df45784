"""`Sketch`: how an engine draws the stages of a plan, step by step, without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dstream.plan.stages import Amount, Call, Exchange, Job, Stage, Stages, exactly

__all__ = ["Sketch"]


@dataclass
class _Draft:
    """A stage that still grows."""

    tasks: Amount
    inputs: tuple[Exchange, ...]
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_ordered: bool = True
    is_closed: bool = False
    jobs: list[int] = field(default_factory=list)


class Sketch:
    """The stages and jobs drawn so far; a stage is known by its number."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._jobs: list[Job] = []

    def stage(self, tasks: Amount, *inputs: Exchange) -> int:
        """Begin a stage; those that it reads from end here."""
        for exchange in inputs:
            self.close(exchange.source)
        self._drafts.append(_Draft(tasks, inputs))
        return len(self._drafts) - 1

    def call(self, stage: int, calls: Iterable[Call]) -> int:
        """Let calls run at the end of a stage, or in one that goes on from it if others read it too."""
        draft = self._drafts[stage]
        if draft.is_closed:
            stage = self.stage(draft.tasks, Exchange(stage, "pipe"))
        self._drafts[stage].calls += calls
        return stage

    def close(self, stage: int) -> None:
        """End a stage: what follows begins another."""
        self._drafts[stage].is_closed = True

    def note(self, stage: int, text: str) -> None:
        """Say something about a stage."""
        self._drafts[stage].notes.append(text)

    def in_one_task(self, stage: int) -> None:
        """Let one task run a stage that was drawn with more."""
        self._drafts[stage].tasks = exactly(1)

    def order(self, stage: int, is_ordered: bool) -> None:
        """Say whether what leaves a stage has an order that is kept."""
        self._drafts[stage].is_ordered = is_ordered

    def job(self, job: Job) -> None:
        """Add a job that runs up to its last stage, after those that were added before."""
        self.close(job.end)
        self._jobs.append(job)

    def finished(self, engine: str, end: Call, outcome: str, notes: Iterable[str]) -> Stages:
        """Return the stages with the jobs that each runs in, and what all of them cost."""
        shuffles = python_stages = exactly(0)
        for number, job in enumerate(self._jobs):
            python_stages += job.python_stages
            for exchange in self._exchanges(number, job):
                is_sure = exchange.is_sure and job.is_whole
                ended = exchange.python_stages
                python_stages += ended if is_sure else ended.or_none()
                if exchange.how == "shuffle":
                    shuffles += exactly(1) if is_sure else Amount(0, 1)
        stages = tuple(
            Stage(tuple(d.calls), d.inputs, d.tasks, d.is_ordered, tuple(d.jobs), tuple(d.notes)) for d in self._drafts
        )
        return Stages(engine, end, outcome, stages, tuple(self._jobs), shuffles, python_stages, tuple(notes))

    def _exchanges(self, number: int, job: Job) -> Iterator[Exchange]:
        """Give the exchanges of a job, each once, back to what earlier jobs left; mark the stages."""
        open_stages = [job.end]
        while open_stages:
            draft = self._drafts[open_stages.pop()]
            if number in draft.jobs[-1:]:
                continue
            draft.jobs.append(number)
            for exchange in draft.inputs:
                if exchange.how != "kept":
                    yield exchange
                    open_stages.append(exchange.source)
