"""`JobState`: all that the storage knows of a job, as plain data. Reading it loads no class and runs no code."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dstream.errors import IllegalStateError
from dstream.jobs.job_config import JobConfig
from dstream.jobs.job_drivers import Driver
from dstream.jobs.job_status import JobStatus
from dstream.pipeline.pipeline_plan import PipelinePlan

__all__ = ["FailureText", "JobState", "Shape", "read_state", "shape_of", "written_state"]

T = TypeVar("T")
Shape = list[list[Any]]
"""Names, kinds and inputs of the stages of a pipeline."""


@dataclass(frozen=True, slots=True)
class FailureText:
    """What a job failed with, as texts."""

    type_name: str
    message: str
    notes: tuple[str, ...] = ()
    traceback: str = ""


@dataclass(frozen=True)
class JobState:
    """A job as its driver left it.

    Attributes:
        shape: that of its pipeline.
        driver: who runs it, or ran it last.
        beat_at: when that driver was last known to live, by its own clock.
        times: when the job reached each status for the last time, by the names of these.
        epoch: the last one that was committed; 1 for a bounded job whose sinks publish or have published.
        runs: how often it was started.
        answered: the number of the last request that its driver has looked at.
        obeyed: the marks of the requests of other processes that it has obeyed last.
        metrics: what was counted in its last run; of an unbounded job, in all of them.
        is_unbounded: it runs epoch after epoch.
        log: the number of a record of its log that was there; later ones may be.
    """

    id: str
    name: str | None
    config: JobConfig
    shape: Shape
    submitted_at: float
    driver: Driver
    beat_at: float
    status: JobStatus = JobStatus.NOT_RUNNING
    started_at: float | None = None
    ended_at: float | None = None
    epoch: int = 0
    runs: int = 0
    answered: int = 0
    obeyed: tuple[str, ...] = ()
    failure: FailureText | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Any] | None = None
    is_unbounded: bool = False
    log: int = 0

    @property
    def title(self) -> str:
        """What messages call the job."""
        return f"the job {self.id}" if self.name is None else f"the job {self.name!r}"

    def starting(self, now: float) -> JobState:
        """Return the state of the same job at the moment in which a driver starts it."""
        started = JobStatus.STARTING
        times = {**self.times, started.name: now}
        return dataclasses.replace(self, status=started, runs=self.runs + 1, beat_at=now, ended_at=None, times=times)


def shape_of(plan: PipelinePlan) -> Shape:
    """Return the shape of a pipeline."""
    return [[name, kind, list(upstreams)] for name, kind, upstreams in plan.shape()]


def written_state(state: JobState) -> bytes:
    """Return a state as JSON."""
    content = {each.name: getattr(state, each.name) for each in dataclasses.fields(state)}
    content["config"] = state.config.to_json()
    content["status"] = state.status.name
    content["driver"] = dataclasses.asdict(state.driver)
    content["failure"] = None if state.failure is None else dataclasses.asdict(state.failure)
    return json.dumps(content, default=dict).encode()


def read_state(data: bytes, wanted: str) -> JobState:
    """Return the state that a record holds.

    Args:
        data: the content of the record.
        wanted: the job whose record it is.

    Raises:
        IllegalStateError: it is not what a driver writes.
    """
    try:
        content = json.loads(data)
        state = _state(content)
        if state.id != wanted:
            raise ValueError(f"it is that of {state.id!r}")
        if state.status is JobStatus.FAILED and state.failure is None:
            raise ValueError("it does not say what the job failed with")
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
        NotImplementedError,
    ) as error:
        raise IllegalStateError(
            f"the record of the job {wanted} is damaged: {type(error).__name__}: {error!s:.200}"
        ) from error
    return state


def _state(content: Any) -> JobState:
    return JobState(
        id=_of(content["id"], str),
        name=_of(content["name"], str, type(None)),
        config=JobConfig.from_json(_of(content["config"], dict)).named(content["name"]),
        shape=_shape(content["shape"]),
        submitted_at=_moment(content["submitted_at"]),
        driver=_driver(content["driver"]),
        beat_at=_moment(content["beat_at"]),
        status=JobStatus[_of(content["status"], str)],
        started_at=_or_none(content["started_at"], _moment),
        ended_at=_or_none(content["ended_at"], _moment),
        epoch=_count(content["epoch"]),
        runs=_count(content["runs"]),
        answered=_count(content["answered"]),
        obeyed=tuple(_of(each, str) for each in _of(content["obeyed"], list)),
        failure=_or_none(content["failure"], _failure),
        times={JobStatus[name].name: _moment(value) for name, value in _of(content["times"], dict).items()},
        metrics=_or_none(content["metrics"], _metrics),
        is_unbounded=content.get("is_unbounded", False) is True,
        log=_count(content.get("log", 0)),
    )


def _of(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"{value!r:.80} is no {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _or_none(value: Any, read: Callable[[Any], T]) -> T | None:
    return None if value is None else read(value)


def _moment(value: Any) -> float:
    moment = float(_of(value, int, float))
    if not 0 <= moment < _LAST_MOMENT:
        raise ValueError(f"{moment!r} is no time")
    return moment


_LAST_MOMENT = 253_402_300_800.0
"""The year 10000, which no date reaches."""


def _count(value: Any) -> int:
    number: int = _of(value, int)
    if number < 0:
        raise ValueError(f"{number} counts nothing")
    return number


def _driver(content: Any) -> Driver:
    texts = [_of(content[name], str) for name in ("token", "host", "machine")]
    process = _count(content["process"])
    if not 0 < process < 2**31:
        raise ValueError(f"{process} is no process")
    if not texts[1].isprintable():
        raise ValueError(f"{texts[1]!r} is no host")
    return Driver(
        texts[0], texts[1], texts[2], process, _of(content["started"], str), _of(content["log"], str, type(None))
    )


def _failure(content: Any) -> FailureText:
    notes = tuple(_of(note, str) for note in _of(content["notes"], list))
    type_name, message, traceback = (_of(content[name], str) for name in ("type_name", "message", "traceback"))
    return FailureText(type_name, message, notes, traceback)


def _shape(content: Any) -> Shape:
    return [
        [_of(name, str), _of(kind, str), [_of(each, str) for each in _of(upstreams, list)]]
        for name, kind, upstreams in _of(content, list)
    ]


def _metrics(content: Any) -> dict[str, Any]:
    stages = _of(_of(content, dict)["stages"], dict)
    for counts in stages.values():
        for value in _of(counts, dict).values():  # Of an edge of a graph there is one for each.
            for each in value if isinstance(value, list) else [value]:
                _count(each)
    return {"stages": stages, **_metrics_of_epochs(content)}


def _metrics_of_epochs(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what only unbounded jobs have."""
    if "watermarks" not in content:
        return {}
    watermarks = {name: _of(value, int) for name, value in _of(content["watermarks"], dict).items()}
    seconds = {
        name: {each: float(_of(value, int, float)) for each, value in _of(content[name], dict).items()}
        for name in ("epoch_seconds", "engine_seconds")
    }
    sources = {name: _source(each) for name, each in _of(content.get("sources", {}), dict).items()}
    clock = _of(content["clock"], int, type(None))
    return {"sources": sources, "watermarks": watermarks, "clock": clock, **seconds}


def _source(content: Any) -> dict[str, Any]:
    return {
        "partitions": _count(_of(content, dict)["partitions"]),
        "offsets": _of(content["offsets"], dict),
        "shown": {name: _of(text, str) for name, text in _of(content.get("shown", {}), dict).items()},
        "left": _or_none(content["left"], _count),
        "has_ended": _of(content["has_ended"], bool),
    }
