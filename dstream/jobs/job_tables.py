"""Jobs in words for people: a line for each in a list, the facts of one, and both as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dstream.errors import DStreamError
from dstream.tables import Rows, Written, html_of_tables, html_table

if TYPE_CHECKING:
    from dstream.jobs.job import Job

__all__ = ["COLUMNS", "JobList", "facts_of", "html_of_job", "line_of", "printable"]

COLUMNS = ("id", "name", "status", "submitted", "seconds", "driver")


class JobList(list["Job"]):
    """The list that `ctx.jobs()` returns, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        shown = [_line_or_damage(job) for job in self[:_MOST]]
        rows = Rows(COLUMNS, [[*map(Written, line)] for line in shown])
        return html_table(f"{len(self)} jobs", rows, "..." if len(self) > _MOST else "")


_MOST = 50


def _line_or_damage(job: Job) -> Sequence[str]:
    try:
        return line_of(job)
    except (DStreamError, OSError):
        return job.id, "", "damaged", "", "", ""


def line_of(job: Job) -> tuple[str, ...]:
    """Return a job as a row of a table with the columns `COLUMNS`.

    Raises:
        IllegalStateError: its record is damaged.
    """
    metrics = job.metrics()
    driver = f"{job.driver.host}:{job.driver.process}"
    return job.id, job.name or "", metrics.status, _date(job.submitted_at), f"{metrics.seconds:.1f}", driver


def facts_of(job: Job) -> Iterator[tuple[str, str]]:
    """Give what is known of a job beside its numbers: a label and a text, which may be empty."""
    yield "id", job.id
    yield "name", job.name or ""
    yield "status", f"{job.status.name}{', its driver is gone' if job.is_lost else ''}"
    for label, moment in (("submitted", job.submitted_at), ("started", job.started_at), ("ended", job.ended_at)):
        yield label, "" if moment is None else _date(moment)
    yield "driver", f"process {job.driver.process} on {job.driver.host}"
    yield "log", printable(job.driver.log or "")
    if job.failure_text is not None:
        yield "failure", f"{job.failure_text.type_name}: {job.failure_text.message}"
        yield from (("", note) for note in job.failure_text.notes)


def html_of_job(job: Job) -> str:
    """Write a job as HTML: what is known of it, and its numbers."""
    try:
        facts = [[Written(label), Written(text)] for label, text in facts_of(job) if text]
        return html_table(repr(job), Rows(["", ""], facts)) + html_of_tables("", job.metrics().tables())
    except (DStreamError, OSError) as error:
        return html_table(job.id, Rows([], []), f"{type(error).__name__}: {error}")


def printable(path: str) -> str:
    """Write what a terminal might obey, and a path may have, as Python does."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in path)


def _date(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
