"""`JobConfig`: the configuration of a job."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from dstream.errors import UnsupportedError
from dstream.failures import shown
from dstream.jobs.attachments import checked_modules, named_files

__all__ = ["Guarantee", "JobConfig"]


Guarantee = Literal["none", "at-least-once", "exactly-once"]
_RESTARTS = 3
_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_MOST_DOUBLINGS = 100
"""Maximal number of doublings, after which any realistic pause has reached its limit."""
_MOST_RESTARTS = 1_000_000
_OF_UNBOUNDED = (
    *("max_items", "suspend_on_failure", "force", "shards", "clock", "keep", "files_at", "start_at"),
    *("initial_snapshot", "max_watermark_retain", "small_epochs"),
)
"""Settings without a meaning for a bounded job."""
_OF_ONE_JOB = ("name", "initial_snapshot", "start_at", "force", "clock")
"""Settings of one job, which cannot be set for all jobs."""
_DAY = 24 * 60 * 60.0


@dataclass(frozen=True, kw_only=True)
class JobConfig:
    """Configuration of a job. `connect(job=)`, the file of settings and defaults fill the fields that are left out.

    Attributes:
        name: the name of the job. One job of a name runs at a time, and a job that lost its driver resumes when it is
            submitted again.
        guarantee: the guarantee of the output when a process dies: `"none"`, `"at-least-once"` or `"exactly-once"`. A
            bounded job always has the strongest.
        epoch_length: seconds between two commits, the target. A bounded job is one epoch. Unset, it is 0.2, and up to a
            second while a long backlog is read.
        auto_restart: the number of restarts when the job has lost workers, a driver's connection or Spark itself, or
            when a server of a source or a sink does not respond to a job that has run; or (number, seconds of the first
            pause), which then doubles. True: 3 times, with pauses of 1, 2 and 4 seconds; False: never. An exception of
            a user function fails the job immediately. Unset, it is True.
        metrics: whether items are counted, stage by stage; unset, they are.
        max_items: of an unbounded job: the maximal number of items of each partition of a source in an epoch. Unset, it
            is adapted to `epoch_length`.
        suspend_on_failure: an unbounded job that fails is suspended, and continues after its last epoch when it is
            resumed.
        force: an unbounded job resumes although its pipeline has other stages than before, and drops the state of
            stages that were removed, that have a state of another kind, or that read another journal or SQL table than
            before, or a recreated topic of Kafka.
        shards: the number of parts into which an unbounded job divides the state of its steps; 64 by default. It is
            fixed when the job is created.
        small_epochs: `"here"`: the epochs of an unbounded job run in the driver's process as long as that keeps up,
            also where Spark is a cluster. Unset, they do so where Spark is on the driver's machine.
            `connect(engine="auto")` has both engines.
        clock: returns the time, in seconds since 1970; for tests of unbounded jobs.
        keep: seconds, or a timedelta, for which the records of epochs are retained; a day by default.
        files_at: the folder or URL of a storage for the state of steps, if the storage of the job does not support it.
            A job that resumes needs the same value.
        start_at: an unbounded job resumes after this epoch, an int as `job.epoch` counts them, or after the last
            retained epoch that is not later than this datetime with a time zone. Later items are published again, so it
            needs `force=True`. It applies to one start: a script that sets it and is run again starts at that epoch
            again.
        initial_snapshot: a new unbounded job begins with the snapshot of this name in `ctx.snapshots()`: the offsets of
            sources, and the state of steps. A job that resumes under its name ignores it.
        max_watermark_retain: seconds, or a timedelta, for which a step of several inputs waits for lagging inputs: then
            its watermark is the watermark that the fastest input had this time ago, and older items are late. A driver
            that resumes the job restarts the wait. Unset, the slowest input determines the watermark.
        files: paths of files and folders that functions read with `dstream.attached(name)`, on any machine: a
            dictionary of paths by their names, or a list of paths, whose last parts are the names. They are copied when
            the job is submitted. A driver that resumes a job uses its own configuration.
        modules: modules that functions import in addition to the modules that this process has loaded, which are sent
            automatically: names such as `"rules"`, whose complete package is sent; or paths, with a separator or an
            ending, of `.py` files, folders of packages, and `.zip` or `.whl` files. Modules by path take precedence
            over others of their names while the job runs.

    Raises:
        TypeError: a value is of another type, or its name is none of these.
        ValueError: a value is none of its choices.

    Example:
        >>> JobConfig(name="sales", auto_restart=(5, 0.5)).pauses()
        [0.5, 1.0, 2.0, 4.0, 8.0]
    """

    name: str | None = None
    guarantee: Guarantee | None = None
    epoch_length: float | None = None
    auto_restart: bool | int | tuple[int, float] | None = None
    metrics: bool | None = None
    max_items: int | None = None
    suspend_on_failure: bool | None = None
    max_watermark_retain: Any = None
    initial_snapshot: str | None = None
    start_at: Any = None
    force: bool | None = None
    shards: int | None = None
    small_epochs: Literal["here"] | None = None
    clock: Any = None
    keep: Any = None
    files_at: Any = None
    # A dictionary in the end, which has no hash.
    files: Any = field(default=None, hash=False)
    modules: Any = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.guarantee not in (None, *get_args(Guarantee)):
            choices = ", ".join(map(repr, get_args(Guarantee)))
            raise ValueError(f"JobConfig: guarantee must be one of {choices}, not {shown(self.guarantee)}")
        if self.epoch_length is not None:
            _check_seconds(self.epoch_length, "epoch_length")
        _times_and_pause(self.auto_restart)
        if self.small_epochs not in (None, "here"):
            raise ValueError(f"JobConfig: small_epochs must be 'here', not {shown(self.small_epochs)}")
        for name in ("max_items", "shards"):
            _check_number(getattr(self, name), name)
        for name in ("metrics", "suspend_on_failure", "force"):
            _check_flag(getattr(self, name), name)
        if self.clock is not None and not callable(self.clock):
            raise TypeError(f"JobConfig: clock must be a function without arguments, not {shown(self.clock)}")
        if self.keep is not None:
            _check_seconds(_in_seconds(self.keep), "keep")
        if self.max_watermark_retain is not None:
            _check_seconds(_in_seconds(self.max_watermark_retain), "max_watermark_retain")
        if self.initial_snapshot is not None and not isinstance(self.initial_snapshot, str):
            raise TypeError(f"JobConfig: initial_snapshot must be a name, not {shown(self.initial_snapshot)}")
        if self.files_at is not None and not isinstance(self.files_at, str):
            raise TypeError(f"JobConfig: files_at must be a folder or a URL, not {shown(self.files_at)}")
        _check_start(self.start_at, self.force)
        if self.files is not None:
            # With absolute paths, since a driver that resumes the job may run in another folder.
            object.__setattr__(self, "files", named_files(self.files))
        if self.modules is not None:
            object.__setattr__(self, "modules", checked_modules(self.modules))

    def check_bounded(self) -> None:
        """Refuse settings that mean nothing to a bounded job.

        Raises:
            UnsupportedError: a setting of unbounded jobs was set.
        """
        for name in _OF_UNBOUNDED:
            if getattr(self, name) is not None:
                raise UnsupportedError(f"JobConfig: {name} is for jobs without an end, and this pipeline has one")

    def check_of_all_jobs(self) -> None:
        """Refuse settings that belong to one job.

        Raises:
            ValueError: a setting of one job was set.
        """
        for name in _OF_ONE_JOB:
            if getattr(self, name) is not None:
                raise ValueError(
                    f"JobConfig: {name} is for one job: give it to new_job(..., config=JobConfig({name}=))"
                )

    def over(self, others: JobConfig, is_unbounded: bool) -> JobConfig:
        """Return this configuration with the values of others where it has none.

        Args:
            others: the settings of all jobs.
            is_unbounded: the job has no end; one that has ignores settings of unbounded jobs.
        """
        defaults = {each.name: getattr(others, each.name) for each in fields(self) if getattr(self, each.name) is None}
        return replace(self, **{name: defaults[name] for name in defaults if is_unbounded or name not in _OF_UNBOUNDED})

    @property
    def counts_items(self) -> bool:
        """Return whether items are counted."""
        return self.metrics is not False

    @property
    def keep_seconds(self) -> float:
        """Seconds for which records of epochs are retained."""
        return _DAY if self.keep is None else float(_in_seconds(self.keep))

    @property
    def retain_seconds(self) -> float | None:
        """Seconds for which steps wait for lagging inputs; None: without limit."""
        return None if self.max_watermark_retain is None else float(_in_seconds(self.max_watermark_retain))

    def named(self, name: str | None) -> JobConfig:
        """Return this configuration under a name.

        Raises:
            ValueError: it has another name already.
        """
        _check_name(name)
        if name is not None and self.name not in (None, name):
            raise ValueError(f"the job has two names: name={name!r}, and {self.name!r} in its config")
        return self if name is None else replace(self, name=name)

    def without_start(self) -> JobConfig:
        """Return this configuration for a job that has started where it should."""
        return self if self.start_at is None else replace(self, start_at=None)

    @property
    def restarts(self) -> int:
        """The number of restarts that are allowed."""
        return _times_and_pause(self.auto_restart)[0]

    def pauses(self) -> list[float]:
        """Return the seconds before each of the restarts that are allowed."""
        return [self.pause_before(number) for number in range(self.restarts)]

    def pause_before(self, restart: int) -> float:
        """Return the seconds before a restart; the first one is number 0."""
        _, pause = _times_and_pause(self.auto_restart)
        return min(pause * 2.0 ** min(restart, _MOST_DOUBLINGS), _LONGEST_PAUSE)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are set, as plain data."""
        set_fields = (
            (each.name, getattr(self, each.name)) for each in fields(self) if getattr(self, each.name) is not None
        )
        # A function is no plain data; a driver that takes over the job uses the clock of its own configuration.
        return {name: _plain(value) for name, value in set_fields if name != "clock"}

    @staticmethod
    def from_json(data: Any) -> JobConfig:
        """Return the configuration of plain data from `to_json`.

        Raises:
            TypeError: `data` is no configuration; a ValueError or an UnsupportedError too.
        """
        given: dict[str, Any] = {
            # JSON has no tuples.
            name: tuple(value) if isinstance(value, list) else value
            for name, value in data.items()
        }
        return JobConfig(**given)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else _in_seconds(value)


def _in_seconds(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return value.total_seconds() if isinstance(value, timedelta) else value


def _check_number(value: Any, name: str) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"JobConfig: {name} must be a number, not {shown(value)}")
    if value is not None and not 0 < value <= _MOST:
        raise ValueError(f"JobConfig: {name} must be from 1 to {_MOST:,}, not {value!r}")


_MOST = 1_000_000_000


def _check_start(value: Any, force: Any) -> None:
    if value is None:
        return
    # Without a zone a date is another moment on each machine.
    is_date = isinstance(value, datetime) and value.tzinfo is not None
    if not is_date and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise TypeError(f"JobConfig: start_at must be a number or a datetime with a time zone, not {shown(value)}")
    if not isinstance(value, datetime) and not math.isfinite(value):
        raise ValueError(f"JobConfig: start_at must be the number of an epoch, which {value!r} is not")
    if not force:
        raise ValueError("JobConfig: start_at publishes again what came after it, which needs force=True")


def _check_flag(value: Any, name: str) -> None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"JobConfig: {name} must be True or False, not {shown(value)}")


def _check_name(name: Any) -> None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"the name of a job must be a text, not {shown(name)}")
    if name is not None and (not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME):
        raise ValueError(f"the name of a job has 1 to {_LONGEST_NAME} printable characters, not {shown(name)}")


_LONGEST_NAME = 200


def _check_seconds(value: Any, name: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"JobConfig: {name} must be seconds, not {shown(value)}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"JobConfig: {name} must be above 0, not {value!r}")


def _times_and_pause(given: Any) -> tuple[int, float]:
    # Before the numbers, since True and False are ints.
    if given is None or isinstance(given, bool):
        return (0 if given is False else _RESTARTS), _PAUSE
    times, pause = given if isinstance(given, tuple) and len(given) == 2 else (given, _PAUSE)
    if not isinstance(times, int) or isinstance(times, bool):
        raise TypeError(f"JobConfig: auto_restart must be a number, or (number, seconds), not {shown(given)}")
    if times < 0:
        raise ValueError(f"JobConfig: auto_restart must not be negative, but it is {times}")
    if times > _MOST_RESTARTS:
        raise ValueError(f"JobConfig: auto_restart must be at most {_MOST_RESTARTS:,}, not {shown(times)}")
    if pause != 0:
        _check_seconds(pause, "the pause of auto_restart")
    return times, float(pause)
