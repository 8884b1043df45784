"""Pipelines that tests of jobs make by hand, and a function that waits until the test lets it go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dstream.errors import EngineError
from dstream.pipeline.plan import PipelinePlan, PlannedStage, PlannedWrite
from dstream.plan import call_site
from dstream.plan.operations.streams import Fork
from dstream.stream import Stream
from reducers import to_ilist

__all__ = ["Gate", "Interrupted", "lose_worker", "plan_of"]

LONGEST = 30.0


def lose_worker() -> None:
    """Raise what the engine raises that has lost a worker, by code that belongs to it."""
    exec("raise EngineError('a worker was lost')", {"__name__": "dstream.engine.lost", "EngineError": EngineError})


def plan_of(stream: Stream[Any], *sinks: Any) -> PipelinePlan:
    """Return the plan of a pipeline that writes one stream to each of the sinks."""
    node = stream._node if len(sinks) < 2 else Fork(stream._node)
    names = [f"sink-{number}" for number, _ in enumerate(sinks, 1)]
    stages = [PlannedStage("source", "read_from", (), None)]
    stages += [PlannedStage(name, "write_to", ("source",), call_site()) for name in names]
    writes = [PlannedWrite(name, node, sink, call_site()) for name, sink in zip(names, sinks, strict=True)]
    return PipelinePlan(tuple(stages), tuple(writes), (("source", stream._node),))


class Gate:
    """A function that waits until a test lets it go on."""

    def __init__(self) -> None:
        self.was_reached = threading.Event()
        self.is_open = threading.Event()

    def __call__(self, item: Any) -> Any:
        self.was_reached.set()
        assert self.is_open.wait(LONGEST)
        return item


@dataclass
class Interrupted:
    """A sink that calls a function before it publishes into a list."""

    before: Callable[[int], object]
    name: str = "interrupted"
    job: str | None = None
    label = "interrupted()"
    collector = None

    def open(self, context: Any) -> Any:
        """Return the target."""
        return _Target(to_ilist(self.name).open(context), self.before)


@dataclass
class _Target:
    inner: Any
    before: Callable[[int], object]

    def begin(self, job: str | None, epoch: int = 1) -> Any:
        return _Interrupted(self.inner.begin(job, epoch), self.before)

    def result(self) -> Any:
        return self.inner.result()


@dataclass
class _Interrupted:
    inner: Any
    before: Callable[[int], object]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def commit(self, receipts: Sequence[Any]) -> None:
        self.before(len(receipts))
        self.inner.commit(receipts)
