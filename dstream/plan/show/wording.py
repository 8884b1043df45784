"""The words of all pictures: what a stage, an exchange and a plan are called in each of them."""

from __future__ import annotations

import os

from dstream.failures.showing import near
from dstream.plan.show.shortening import Shown
from dstream.plan.stages import NOTHING, ONE, SEVERAL_PARTITIONS, Exchange, Job, Stages
from dstream.plan.where import Where

__all__ = ["cost", "exchange_words", "heading", "job_lines", "place", "short_place", "stage_words", "summary", "titled"]

_MOST_JOBS = 12
_HOW = {
    "pipe": "in the same tasks",
    "kept": "read where it was left",
    "sent": "sent to every task",
    "shuffle": "shuffle",
    "written": "",
}


def summary(stages: Stages) -> str:
    """Return one line about the whole plan: what it ends in, who runs it, what it costs."""
    return ": ".join(line for line in (heading(stages), cost(stages)) if line)


def heading(stages: Stages) -> str:
    """Return what the plan ends in and who runs it."""
    return f"{stages.end.label} on {stages.engine}" if stages.engine else stages.end.label


def cost(stages: Stages) -> str:
    """Return how many jobs and shuffles it takes; nothing for a plan that knows neither."""
    if stages.python_stages == stages.shuffles == NOTHING and stages.job_count == ONE:
        return ""
    return f"{stages.job_count.of('job')}, {stages.shuffles.of('shuffle')}"


def job_lines(stages: Stages) -> list[str]:
    """Return a line for each job if there are several; the middle of very many is left out."""
    if len(stages.jobs) < 2:
        return []
    lines = [_job_line(number, job) for number, job in enumerate(stages.jobs, start=1)]
    if len(lines) > _MOST_JOBS:
        half = _MOST_JOBS // 2
        lines = [*lines[:half], f"... {len(lines) - 2 * half:,} more ...", *lines[-half:]]
    return lines


def _job_line(number: int, job: Job) -> str:
    if (job.amount.least, job.amount.most) == (0, 1):
        return f"job {number}: {job.title} ({job.amount.words or SEVERAL_PARTITIONS})"
    times = "" if job.amount == ONE else f" ({job.amount.of('job')})"
    return f"job {number}: {job.title}{times}"


def titled(shown: Shown, stages: Stages) -> str:
    """Return the name of a stage and what is known of its tasks."""
    return ": ".join(filter(None, (shown.name, stage_words(shown, stages))))


def stage_words(shown: Shown, stages: Stages) -> str:
    """Return how many tasks a stage has, whether they keep an order, and in which jobs it runs."""
    stage = shown.stage
    if stage.tasks is None:
        return ""
    words = [stage.tasks.of("task"), "in order" if stage.is_ordered else "in no order"]
    if len(stages.jobs) > 1 and stage.jobs:
        numbers = [str(job + 1) for job in stage.jobs]
        listed = ", ".join(numbers if len(numbers) < 5 else [*numbers[:2], "...", numbers[-1]])
        words.append(f"job{'s' if len(numbers) > 1 else ''} {listed}")
    return ", ".join(words)


def exchange_words(exchange: Exchange) -> str:
    """Return how items come into a stage."""
    sure = "" if exchange.is_sure else f" ({exchange.condition})"
    return f"{_HOW[exchange.how]}{sure}"


def place(where: Where | None) -> str:
    """Return the file and line of a call, from the working directory, or the cell of a notebook."""
    if where is None:
        return ""
    return str(where) if where.cell is not None else near(where.file, where.line)


def short_place(where: Where | None) -> str:
    """Return the same without the folder."""
    return os.path.basename(place(where))
