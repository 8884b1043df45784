"""What tests of pipelines share: a run without a job, and items to begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dstream as ds
from dstream.pipeline import BatchStage, Pipeline, PipelinePlan
from dstream.plan import explained, rewrite
from dstream.plan.walk import opened
from sources import Items


def run(context: ds.Context, plan: PipelinePlan) -> list[Any]:
    """Write all ends of a plan and commit them; return what their targets give."""
    targets = [each.sink.open(context) for each in plan.writes]
    jobs = [target.begin(None) for target in targets]
    several = opened(plan.several([job.writer for job in jobs]), context)
    with explained(several, "write_to"):
        receipts = context.running_engine().submit(rewrite(several)).result()
    for job, some in zip(jobs, receipts, strict=True):
        job.commit(some)
    return [target.result() for target in targets]


class Noted:
    """A sink that keeps what it is given in this process, and its own job and target: for tests alone."""

    collector = None
    job = None
    label = "noted()"
    is_done = False

    def __init__(self) -> None:
        self.items: list[Any] = []

    def open(self, context: Any) -> Noted:
        return self

    def begin(self, job: str | None, epoch: int = 1) -> Noted:
        return self

    @property
    def writer(self) -> AsReceipts:
        return AsReceipts()

    def commit(self, receipts: Any) -> None:
        self.items = [item for (item,) in receipts]

    def abort(self) -> None:
        self.items = []

    def result(self) -> list[Any]:
        return self.items


class AsReceipts:
    """A writer whose receipts are the items, each in a tuple."""

    def write(self, items: Any) -> Any:
        return ((item,) for item in items)


@pytest.fixture
def pipeline() -> Pipeline:
    """A pipeline of the test's own."""
    return Pipeline()


@pytest.fixture
def numbers(pipeline: Pipeline) -> BatchStage[int]:
    """A stage of `pipeline` that reads 0 to 5, in three parts."""
    return pipeline.read_from(Items(range(6), 3))


@pytest.fixture
def given(local_context: ds.Context) -> Callable[..., Any]:
    """Return what stages give, on the local engine: one list for each, or the only one."""
    return lambda *stages: _given(local_context, stages)


@pytest.fixture
def given_on(engine: Any) -> Callable[..., Any]:
    """The same on each engine."""
    return lambda *stages: _given(engine.context, stages)


def _given(context: ds.Context, stages: tuple[BatchStage[Any], ...]) -> Any:
    sinks = [Noted() for _ in stages]
    for stage, sink in zip(stages, sinks, strict=True):
        stage.write_to(sink)
    results = run(context, stages[0].pipeline.plan())
    return results[0] if len(stages) == 1 else results
