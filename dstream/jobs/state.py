"""`JobState`: the state of a job in its storage, with status and driver, as plain data; `Goal`: the desired state."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import platform
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar

from dstream.errors import IllegalStateError
from dstream.jobs.config import JobConfig
from dstream.pipeline.plan import PipelinePlan

__all__ = [
    "AT_ONCE",
    "Driver",
    "FailureText",
    "Goal",
    "JobState",
    "JobStatus",
    "Shape",
    "Want",
    "checked_change",
    "driver_here",
    "forget_driver",
    "goal_after",
    "is_gone",
    "read_state",
    "shape_of",
    "written_state",
]


class JobStatus(Enum):
    """The progress of a job. `NOT_RUNNING` has not begun yet, or has lost its driver (`job.is_lost`)."""

    NOT_RUNNING = "NOT_RUNNING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    SUSPENDED_EXPORTING_SNAPSHOT = "SUSPENDED_EXPORTING_SNAPSHOT"
    RESTARTING = "RESTARTING"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def has_ended(self) -> bool:
        """Return whether the job is over: completed, failed or cancelled."""
        return self in _ENDED

    def __repr__(self) -> str:
        return f"JobStatus.{self.name}"


_ENDED = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})
_STOPPED = frozenset({JobStatus.RESTARTING, JobStatus.FAILED, JobStatus.CANCELLED})
_SUSPENDING = frozenset({JobStatus.SUSPENDED, JobStatus.SUSPENDED_EXPORTING_SNAPSHOT})
_LEFT = frozenset({JobStatus.SUSPENDED, JobStatus.NOT_RUNNING})
"""The states that an unbounded job may take at any time: it resumes later."""

_AFTER: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.NOT_RUNNING: frozenset({JobStatus.STARTING, JobStatus.CANCELLED}),
    JobStatus.STARTING: _STOPPED | _LEFT | {JobStatus.RUNNING, JobStatus.COMPLETING},
    JobStatus.RUNNING: _STOPPED | _SUSPENDING | _LEFT | {JobStatus.COMPLETING},
    JobStatus.SUSPENDED: _STOPPED | _LEFT | {JobStatus.STARTING, JobStatus.SUSPENDED_EXPORTING_SNAPSHOT},
    JobStatus.SUSPENDED_EXPORTING_SNAPSHOT: frozenset({JobStatus.SUSPENDED, JobStatus.FAILED, JobStatus.CANCELLED}),
    JobStatus.RESTARTING: _STOPPED | _LEFT | {JobStatus.STARTING},
    # From now on the job is decided: it publishes, and cannot be cancelled.
    JobStatus.COMPLETING: frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.RESTARTING}),
    JobStatus.COMPLETED: frozenset(),
    # A job that failed between the commits of two sinks may be run again, to publish the rest.
    JobStatus.FAILED: frozenset({JobStatus.STARTING}),
    JobStatus.CANCELLED: frozenset(),
}


def checked_change(before: JobStatus, after: JobStatus) -> JobStatus:
    """Return the status that follows.

    Raises:
        IllegalStateError: it cannot follow.
    """
    if after not in _AFTER[before]:
        raise IllegalStateError(f"a job that is {before.name} cannot become {after.name}")
    return after


Want = Literal["cancel", "restart", "suspend", "resume", "update", "leave"]
"""A request to a run. `leave`: to end its epoch, so that the job resumes when it is submitted again."""


class Goal(Enum):
    """The desired state of a job, which its driver has one of at a time.

    A request replaces it or is refused, by the table, under one lock, for all threads and processes; so no accepted
    request is lost. The driver acts on its goal at the next boundary: between two epochs, before a run begins, in the
    pause before a restart; or immediately, if the run is stopped for it.
    """

    RUN = "it runs, or waits for its next start"
    RESTART = "its run ends, and another one begins, with the pipeline of the last update"
    SUSPEND = "it is suspended, or will be when its epoch has ended"
    DETACH = "its driver ends; it goes on when it is submitted again"
    CANCEL = "it is cancelled"
    COMPLETE = "it publishes its end, which nothing stops"


AT_ONCE: frozenset[Want] = frozenset({"cancel", "restart"})
"""Requests for which a run is stopped where it is; for the others it ends its epoch first."""

_GOALS_AFTER: dict[Goal, dict[Want, Goal]] = {
    Goal.RUN: {
        "cancel": Goal.CANCEL,
        "leave": Goal.DETACH,
        "suspend": Goal.SUSPEND,
        "restart": Goal.RESTART,
        "update": Goal.RESTART,
    },
    Goal.RESTART: {
        "cancel": Goal.CANCEL,
        "leave": Goal.DETACH,
        "suspend": Goal.SUSPEND,
        "update": Goal.RESTART,
    },
    Goal.SUSPEND: {
        "cancel": Goal.CANCEL,
        "leave": Goal.DETACH,
        "resume": Goal.RESTART,
        "restart": Goal.RESTART,
        "update": Goal.RESTART,
    },
    Goal.DETACH: {"cancel": Goal.CANCEL},
    Goal.CANCEL: {},
    Goal.COMPLETE: {},
}


def goal_after(goal: Goal, want: Want) -> Goal | None:
    """Return the goal after a request; None: the request has no effect, and is refused."""
    return _GOALS_AFTER[goal].get(want)


@dataclass(frozen=True, slots=True)
class Driver:
    """The process that runs a job.

    Attributes:
        token: unique to this driver of this job.
        host: the name of the machine.
        machine: distinguishes equal process numbers: the identity of the running system and container.
        process: the number of the process.
        started: when the process began, in the format of the system; empty if unknown.
        log: the file of its log; None if it has none.
    """

    token: str
    host: str
    machine: str
    process: int
    started: str
    log: str | None = None


_living: set[str] = set()
"""The tokens of drivers in this process."""


def driver_here() -> Driver:
    """Return a new driver in this process; it is registered until it is forgotten."""
    process = os.getpid()
    log = os.environ.get("DSTREAM_JOB_LOG") or None
    driver = Driver(uuid.uuid4().hex, socket.gethostname(), _machine(), process, _started(process), log)
    _living.add(driver.token)
    return driver


def forget_driver(driver: Driver) -> None:
    """Note that a driver of this process has ended."""
    _living.discard(driver.token)


def is_gone(driver: Driver) -> bool | None:
    """Return whether a driver has ended; None if this process cannot see that."""
    if driver.machine != _machine() or driver.host != socket.gethostname():
        return None
    # In this process the tokens decide: a driver may end while its process continues.
    if driver.process == os.getpid() and driver.started == _started(os.getpid()):
        return driver.token not in _living
    # The system uses numbers of processes again, so the start is compared, too.
    return not _is_running(driver.process) or _started(driver.process) != driver.started


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # The process of another user.
        return True
    return True


def _started(process: int) -> str:
    """Return when a process began; a zombie has ended."""
    with suppress(OSError, IndexError):
        # The name of the program is in parentheses before them, and may contain spaces and parentheses itself.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[_START]
    return ""


_START = 19
"""The index of the start among the fields that follow the name of the program, in proc(5)."""


@functools.cache
def _machine() -> str:
    """Return a name that is common to the processes that see each other's process numbers."""
    known = [platform.node()]
    with suppress(OSError):
        # Numbers of processes restart with the system, and in each container.
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


T = TypeVar("T")
Shape = list[list[Any]]
"""Names, kinds and inputs of the stages of a pipeline."""


@dataclass(frozen=True, slots=True)
class FailureText:
    """The failure of a job, as strings."""

    type_name: str
    message: str
    notes: tuple[str, ...] = ()
    traceback: str = ""


@dataclass(frozen=True)
class JobState:
    """A job as its driver left it.

    Attributes:
        shape: the shape of its pipeline.
        driver: the process that runs it, or ran it last.
        beat_at: the last heartbeat of that driver, by its own clock.
        times: when the job reached each status for the last time, by the names of the statuses.
        epoch: the last committed epoch; 1 for a bounded job whose sinks publish or have published.
        runs: the number of starts.
        answered: the number of the last request that its driver has handled.
        obeyed: the marks of the last obeyed requests of other processes.
        metrics: the counts of its last run; of an unbounded job, of all runs.
        is_unbounded: it runs epoch after epoch.
        log: the number of a record of its log that existed; later ones may exist.
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
        """The job's title in messages."""
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
    """Return the state in a record.

    Args:
        data: the content of the record.
        wanted: the job whose record it is.

    Raises:
        IllegalStateError: it is not written by a driver.
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
    # Not by `isinstance`, for which True is an int.
    if type(value) not in kinds:
        raise TypeError(f"{value!r:.80} is no {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _or_none(value: Any, read: Callable[[Any], T]) -> T | None:
    return None if value is None else read(value)


def _moment(value: Any) -> float:
    moment = float(_of(value, int, float))
    # In this form it refuses NaN as well, which `json` reads.
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
        for value in _of(counts, dict).values():  # Edges of a graph have one number each.
            for each in value if isinstance(value, list) else [value]:
                _count(each)
    return {"stages": stages, **_metrics_of_epochs(content)}


def _metrics_of_epochs(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that only unbounded jobs have."""
    if "watermarks" not in content:
        return {}
    watermarks = {name: _of(value, int) for name, value in _of(content["watermarks"], dict).items()}
    seconds = {
        name: {each: float(_of(value, int, float)) for each, value in _of(content[name], dict).items()}
        for name in ("epoch_seconds", "engine_seconds")
    }
    sources = {name: _source(each) for name, each in _of(content.get("sources", {}), dict).items()}
    clock = _of(content["clock"], int, type(None))
    engines = {name: _count(epochs) for name, epochs in _of(content.get("epochs_by_engine", {}), dict).items()}
    return {"sources": sources, "watermarks": watermarks, "clock": clock, **seconds, "epochs_by_engine": engines}


def _source(content: Any) -> dict[str, Any]:
    return {
        "partitions": _count(_of(content, dict)["partitions"]),
        "offsets": _of(content["offsets"], dict),
        "shown": {name: _of(text, str) for name, text in _of(content.get("shown", {}), dict).items()},
        "left": _or_none(content["left"], _count),
        "has_ended": _of(content["has_ended"], bool),
    }
