"""Configuration of the jobs of a context: the argument `job` of `connect()`, the table `[job]` of the file."""

from __future__ import annotations

import dataclasses
from typing import Any

from dstream.base.showing import did_you_mean
from dstream.errors import ConfigurationError, UnsupportedError
from dstream.failures import shown
from dstream.jobs.config import JobConfig
from dstream.session.configuration import ConfigurationFile

__all__ = ["checked_job", "job_table"]


def checked_job(place: str, value: Any) -> JobConfig:
    """Return the configuration of all jobs that a program sets.

    Raises:
        TypeError: it is no `JobConfig`.
        ValueError: it has a setting that belongs to one job.
    """
    if not isinstance(value, JobConfig):
        raise TypeError(f"{place} must be a JobConfig, not {shown(value)}")
    value.check_of_all_jobs()
    return value


def job_table(file: ConfigurationFile, table: Any) -> JobConfig:
    """Return the configuration of all jobs in a file.

    Raises:
        ConfigurationError: it is no table, or a value in it is invalid; the message names its line.
    """
    if not isinstance(table, dict):
        raise ConfigurationError(f"{file.place('job')} must be a table, [job]")
    names = [each.name for each in dataclasses.fields(JobConfig)]
    known: dict[str, Any] = {}
    for name, value in table.items():
        if name not in names:
            meant = did_you_mean(name, names, show=str) or "JobConfig has those that are"
            raise ConfigurationError(f"{file.place(name)} is no setting of jobs; {meant}")
        known[name] = tuple(value) if isinstance(value, list) else value
        try:
            JobConfig(**{name: known[name]}).check_of_all_jobs()
        except (TypeError, ValueError, UnsupportedError) as error:
            raise ConfigurationError(_at(file.place(name), name, str(error))) from None
    return JobConfig(**known)


def _at(origin: str, name: str, message: str) -> str:
    """Add the location of a value to the message about it."""
    problem = message.removeprefix("JobConfig: ")
    rest = problem.removeprefix(f"{name} ")
    return f"{origin.removesuffix(',')}: {problem}" if rest == problem else f"{origin} {rest}"
