"""Stages as text: for terminals, Graphviz and Mermaid, with the words and abridgements of all drawings."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dstream.base.showing import near
from dstream.plan.stages import NOTHING, ONE, SEVERAL_PARTITIONS, Call, Exchange, Job, Stage, Stages, total
from dstream.plan.steps import SourceLocation

__all__ = [
    "StageSummary",
    "as_dot",
    "as_mermaid",
    "as_text",
    "cost",
    "exchange_words",
    "folded",
    "heading",
    "job_lines",
    "last_ones",
    "place",
    "quoted",
    "short_place",
    "shortened",
    "stage_words",
    "summary",
    "titled",
]


@dataclass(frozen=True, slots=True)
class StageSummary:
    """A stage in a picture.

    Attributes:
        name: its name in the drawing, such as "stage 3".
        stage: the stage; the `source` of each of its exchanges is an index in the drawing.
    """

    name: str
    stage: Stage


def folded(stages: Sequence[Stage], most: int) -> list[StageSummary]:
    """Return at most `most` stages of a plan; those in the middle become one."""
    hidden = len(stages) - most + 1 if len(stages) > most else 0
    first = (most - 1) // 2 if hidden else len(stages)

    def place(number: int) -> int:
        return number if number < first else max(number - hidden + 1, first)

    def one(number: int) -> StageSummary:
        return StageSummary(stages[number].name or f"stage {number + 1}", _moved(stages[number], place))

    shown = [one(number) for number in range(first)]
    if hidden:
        shown.append(_rest(stages[first : first + hidden], first, place))
        shown += [one(number) for number in range(first + hidden, len(stages))]
    return shown


def last_ones(shown: Sequence[StageSummary]) -> list[int]:
    """Return the indexes of the stages that no other stage reads: their items are sent to the caller."""
    read = {each.source for stage_summary in shown for each in stage_summary.stage.inputs}
    return [number for number in range(len(shown)) if number not in read]


def _moved(stage: Stage, place: Callable[[int], int]) -> Stage:
    """Return the stage with its exchanges renumbered for the drawing, each kind from each stage once."""
    exchanges: dict[tuple[int, str, str], Exchange] = {}
    for exchange in stage.inputs:
        moved = replace(exchange, source=place(exchange.source))
        exchanges.setdefault((moved.source, moved.how, moved.why), moved)
    return replace(stage, inputs=tuple(exchanges.values()))


def _rest(hidden: Sequence[Stage], position: int, place: Callable[[int], int]) -> StageSummary:
    """Return a stage that replaces the hidden ones: it reads all that any of them read from outside."""
    outside = (replace(x, source=place(x.source)) for stage in hidden for x in stage.inputs)
    sources = {x.source: Exchange(x.source, "pipe") for x in outside if x.source < position}
    jobs = tuple(sorted({job for stage in hidden for job in stage.jobs}))
    calls = (Call(f"... {len(hidden):,} more stages ..."),)
    amounts = [stage.tasks for stage in hidden if stage.tasks is not None]
    tasks = total(amounts) if amounts else None
    stage = Stage(calls, tuple(sources.values()), tasks, hidden[-1].is_ordered, jobs, (), len(hidden))
    return StageSummary(f"{len(hidden):,} more stages", stage)


def shortened(calls: Sequence[Call], most: int) -> list[Call]:
    """Return at most `most` calls; those in the middle become one."""
    if len(calls) <= most:
        return list(calls)
    last = (most - 1) // 2
    first = most - 1 - last
    return [*calls[:first], Call(f"... {len(calls) - most + 1:,} more calls ..."), *calls[len(calls) - last :]]


_MOST_JOBS = 12
_HOW = {
    "pipe": "in the same tasks",
    "kept": "read where it was left",
    "sent": "sent to every task",
    "shuffle": "shuffle",
    "written": "",
}


def summary(stages: Stages) -> str:
    """Return one line about the whole plan: its end, its engine, its cost."""
    return ": ".join(line for line in (heading(stages), cost(stages)) if line)


def heading(stages: Stages) -> str:
    """Return the end of the plan and its engine."""
    if not stages.engine:
        return stages.end.label
    return f"{stages.end.label} {'in' if stages.engine == 'this process' else 'on'} {stages.engine}"


def cost(stages: Stages) -> str:
    """Return how many jobs and shuffles it takes; nothing for a plan without both."""
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


def titled(shown: StageSummary, stages: Stages) -> str:
    """Return the name of a stage and the known facts of its tasks."""
    return ": ".join(filter(None, (shown.name, stage_words(shown, stages))))


def stage_words(shown: StageSummary, stages: Stages) -> str:
    """Return the number of tasks of a stage, whether they preserve an order, and the jobs in which it runs."""
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
    """Return how items reach a stage."""
    sure = "" if exchange.is_sure else f" ({exchange.condition})"
    return f"{_HOW[exchange.how]}{sure}"


def place(where: SourceLocation | None) -> str:
    """Return the file and line of a call, from the working directory, or the cell of a notebook."""
    if where is None:
        return ""
    return str(where) if where.cell is not None else near(where.file, where.line)


def short_place(where: SourceLocation | None) -> str:
    """Return `place` without the folder."""
    return os.path.basename(place(where))


_WIDTH = 98
_TEXT_STAGES = 40
_TEXT_CALLS = 24
_MOST_INPUTS = 6
_WIDEST_LABEL = 60


def as_text(stages: Stages) -> str:
    """Write a line for the whole, then each stage: the origin of its items, its calls, its other work."""
    shown = folded(stages.stages, _TEXT_STAGES)
    lines = [summary(stages), *(f"  {line}" for line in (*stages.notes, *job_lines(stages)))]
    for stage_summary in shown:
        lines += ["", titled(stage_summary, stages), *(f"  {line}" for line in _stage_lines(stage_summary, shown))]
    if stages.outcome:
        lines += ["", f"{stages.end.label}: {stages.outcome}"]
    return "\n".join(line.rstrip() for line in lines)


def _stage_lines(stage_summary: StageSummary, shown: Sequence[StageSummary]) -> Iterator[str]:
    inputs = stage_summary.stage.inputs
    for exchange in inputs[:_MOST_INPUTS]:
        words = ": ".join(filter(None, (exchange_words(exchange), exchange.why)))
        yield from _wrapped(", ".join(filter(None, (f"<- {shown[exchange.source].name}", words))), "   ")
    if len(inputs) > _MOST_INPUTS:
        yield f"<- ... {len(inputs) - _MOST_INPUTS:,} more ..."
    yield from _call_lines(shortened(stage_summary.stage.calls, _TEXT_CALLS))
    for note in stage_summary.stage.notes:
        yield from _wrapped(f"({note})", " ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False)


def _call_lines(calls: Sequence[Call]) -> Iterator[str]:
    """Yield the calls in columns: the call, its source location, its note."""
    rows = [(call.label, place(call.where), call.note) for call in calls]
    widths = [min(max(map(len, column)), _WIDEST_LABEL) for column in list(zip(*rows, strict=True))[:2]]
    for label, where, note in rows:
        yield f"{label:<{widths[0]}}  {where:<{widths[1]}}{f'  # {note}' if note else ''}"


_DOT_STAGES = 24
_DOT_CALLS = 12
_STYLES = {"pipe": "solid", "kept": "dashed", "sent": "dashed", "shuffle": "bold", "written": "solid"}


def as_dot(stages: Stages) -> str:
    """Write a digraph: a box for each stage, an edge for each exchange."""
    shown = folded(stages.stages, _DOT_STAGES)
    lines = [
        f"label={quoted(summary(stages), *stages.notes)};",
        "rankdir=TB;",
        'node [shape=box, fontname="monospace"];',
    ]
    for number, stage_summary in enumerate(shown):
        calls = shortened(stage_summary.stage.calls, _DOT_CALLS)
        label = [titled(stage_summary, stages), *map(_call, calls), *stage_summary.stage.notes]
        tooltip = [f"{call.label} {place(call.where)}" for call in calls]
        lines.append(f"s{number} [label={quoted(*label)}, tooltip={quoted(*tooltip)}];")
        for exchange in stage_summary.stage.inputs:
            words = [word for word in (exchange_words(exchange), exchange.why) if word]
            lines.append(f"s{exchange.source} -> s{number} [label={quoted(*words)}, style={_STYLES[exchange.how]}];")
    if stages.outcome:
        lines.append(f"end [label={quoted(stages.end.label, stages.outcome)}, shape=oval];")
        lines += [f"s{number} -> end;" for number in last_ones(shown)]
    return "\n".join(["digraph dstream {", *(f"  {line}" for line in lines), "}"])


def _call(call: Call) -> str:
    return "  ".join(word for word in (call.label, short_place(call.where), call.note and f"# {call.note}") if word)


def quoted(*lines: str) -> str:
    r"""Return a DOT string of lines aligned left: `\l` ends each if there are several."""
    if not lines:
        return '""'
    # Backslashes first, or those that the other two put in would be doubled.
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines]
    return f'"{escaped[0]}"' if len(escaped) == 1 else '"' + "".join(f"{line}\\l" for line in escaped) + '"'


_MERMAID_STAGES = 24
_MERMAID_CALLS = 12
_ARROWS = {"pipe": "-->", "kept": "-.->", "sent": "-.->", "shuffle": "==>", "written": "-->"}


def as_mermaid(stages: Stages) -> str:
    """Write a flowchart: a box for each stage, an arrow for each exchange."""
    shown = folded(stages.stages, _MERMAID_STAGES)
    # A comment of Mermaid ends with its line, and has no escapes.
    about = (re.sub(r"[^ -~]", "?", line) for line in (summary(stages), *stages.notes))
    lines = [*(f"%% {line}" for line in about), "flowchart TD"]
    for number, stage_summary in enumerate(shown):
        calls = (
            f"{call.label}  {short_place(call.where)}" for call in shortened(stage_summary.stage.calls, _MERMAID_CALLS)
        )
        lines.append(f"  s{number}[{_quoted(titled(stage_summary, stages), *calls)}]")
        for exchange in stage_summary.stage.inputs:
            words = [word for word in (exchange_words(exchange), exchange.why) if word]
            label = f"|{_quoted(*words)}|" if words else ""
            lines.append(f"  s{exchange.source} {_ARROWS[exchange.how]}{label} s{number}")
    if stages.outcome:
        lines.append(f"  done([{_quoted(stages.end.label, stages.outcome)}])")
        lines += [f"  s{number} --> done" for number in last_ones(shown)]
    return "\n".join(lines)


def _quoted(*lines: str) -> str:
    """Return a quoted string: characters with a meaning in Mermaid are written as their codes."""
    escaped = (re.sub(r"[^A-Za-z0-9 .,_:=+/-]", lambda found: f"#{ord(found[0])};", line.strip()) for line in lines)
    return '"' + "<br/>".join(escaped) + '"'
