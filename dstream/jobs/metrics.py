"""`JobMetrics`: a job in numbers, as attributes, tables and OpenMetrics, and lists of jobs."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dstream.errors import DStreamError
from dstream.jobs.state import JobState, JobStatus, Shape
from dstream.pipeline.stage_records import AS_MANY
from dstream.values.tables import Rows, Verbatim, html_of_tables, html_table
from dstream.values.time import shown_time

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from dstream.jobs.handle import Job

__all__ = [
    "COLUMNS",
    "JobList",
    "JobMetrics",
    "SourceMetrics",
    "StageMetrics",
    "facts_of",
    "html_of_job",
    "line_of",
    "printable",
    "sources_table",
]


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """A source of an unbounded job in numbers.

    Attributes:
        partitions: their number.
        offsets: how far each has been read, by its name, in the format of the source; of the first 100.
        left: the number of items after these offsets when the last epoch began; of Kafka, the number of offsets,
            including gaps; of a journal, the number of events, including filtered events. None: it cannot count them
            without reading them, as lines of files, rows of tables, and events of more than a hundred commits in a
            lake; or no epoch has run yet.
        has_ended: no items will arrive from it any more.
        shown: a description of these offsets, if the source has one, such as the commit of a journal.
    """

    partitions: int
    offsets: Mapping[str, Any] = field(default_factory=dict)
    left: int | None = None
    has_ended: bool = False
    shown: Mapping[str, str] = field(default_factory=dict)


def sources_table(sources: Mapping[str, SourceMetrics], watermarks: Mapping[str, int]) -> Table:
    """Return sources as a table of `rich`."""
    from rich.table import Table  # imported on use: few programs print it
    from rich.text import Text

    table = Table("source", "partitions", "left", "watermark", "offsets", box=None, pad_edge=False)
    for name, source in sources.items():
        left = "" if source.left is None else f"{source.left:,}"
        table.add_row(
            Text(name), f"{source.partitions:,}", left, shown_time(watermarks.get(name)), Text(_offsets(source))
        )
    return table


_WIDEST = 80


def _offsets(source: SourceMetrics) -> str:
    if source.has_ended:
        return "ended"
    text = ", ".join(
        f"{partition}: {source.shown.get(partition, offset)}" for partition, offset in source.offsets.items()
    )
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


@dataclass(frozen=True, slots=True)
class StageMetrics:
    """A stage of a job in numbers, known once its job publishes. None: that is not counted.

    A step whose failures another stage handles is fused with it, so the number of items between the two is unknown; so
    is the number of results by key before a sink. A stage that several stages read runs once, and is counted once.

    Attributes:
        items_in: the number of items that its upstream stages emitted.
        items_out: the number of items that it emitted, or wrote, in entries for a map, without items that were not
            consumed, as upstream of a limit.
        late: the number of late items; None if it does not check.
        dead_letters: the number of dead letters; None if it has none.
        items_in_by_edge: of a vertex of a graph of processors: the number of items of each inbound edge.
        items_out_by_edge: the number of items of each outbound edge.
        keys: of an unbounded job: the number of keys with a state; None if it has no state.
        state_bytes: the size of the state in its files, including replaced values.
    """

    items_in: int | None = None
    items_out: int | None = None
    late: int | None = None
    dead_letters: int | None = None
    items_in_by_edge: tuple[int, ...] | None = None
    items_out_by_edge: tuple[int, ...] | None = None
    keys: int | None = None
    state_bytes: int | None = None


_WIDEST_TABLE = 200
"""Columns of a table of plain text, so that names are not folded."""


@dataclass(frozen=True, repr=False)
class JobMetrics(Mapping[str, Any]):
    """A job in numbers. `dict(job.metrics())` has all of them.

    Attributes:
        id: the id of the job.
        name: the name of the job, or None.
        status: the name of its status.
        seconds: from submission to its end, with all pauses and restarts.
        times: when it reached each status for the last time, in seconds since 1970.
        epochs: the number of committed epochs.
        runs: the number of starts.
        stages: each of its stages, by name.
        sources: of an unbounded job: how far it has read each of its sources, by the name of the stage.
        watermarks: of an unbounded job: the watermark of each source and each step with state, in milliseconds since
            1970.
        clock: of an unbounded job: the greatest timestamp before which all events are in committed epochs.
        epoch_seconds: the duration of the last epochs: `p50` and `p99`.
        engine_seconds: the part of the engine.
        epochs_by_engine: of an unbounded job whose context has several engines: the number of epochs of this run on
            each of them, `"inprocess"` and `"spark"`.
    """

    id: str
    name: str | None
    status: str
    seconds: float
    times: Mapping[str, float]
    epochs: int
    runs: int
    stages: Mapping[str, StageMetrics] = field(default_factory=dict)
    sources: Mapping[str, SourceMetrics] = field(default_factory=dict)
    watermarks: Mapping[str, int] = field(default_factory=dict)
    clock: int | None = None
    epoch_seconds: Mapping[str, float] = field(default_factory=dict)
    engine_seconds: Mapping[str, float] = field(default_factory=dict)
    epochs_by_engine: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(state: JobState, status: JobStatus, now: float) -> JobMetrics:
        """Return the numbers of a job."""
        ended = state.ended_at if state.ended_at is not None else now
        counted: Mapping[str, Any] = {} if state.metrics is None else state.metrics["stages"]
        stages = _stages(state.shape, {name: _items_of_each_reader(counts) for name, counts in counted.items()})
        for name, counts in counted.items():
            if name in stages:
                stages[name] = _with_more(stages[name], counts)
        of_epochs = {name: (state.metrics or {})[name] for name in _OF_EPOCHS if name in (state.metrics or {})}
        of_epochs["sources"] = {name: SourceMetrics(**each) for name, each in of_epochs.get("sources", {}).items()}
        # The clocks of two machines may differ, or the clock was set back.
        seconds = max(ended - state.submitted_at, 0.0)
        return JobMetrics(
            state.id, state.name, status.name, seconds, dict(state.times), state.epoch, state.runs, stages, **of_epochs
        )

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        if name == "stages":
            return {stage: _as_dict(counts) for stage, counts in self.stages.items()}
        if name == "sources":
            return {stage: dataclasses.asdict(source) for stage, source in self.sources.items()}
        found = getattr(self, name)
        return dict(found) if isinstance(found, Mapping) else found

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __rich__(self) -> Group:
        """Return the renderable of `rich`: a line on the job, and the tables of its stages and sources."""
        from rich.console import Group  # imported on use: few programs print it
        from rich.text import Text

        return Group(Text(self._heading()), *self.tables())

    def _heading(self) -> str:
        numbers = f"{self.seconds:.1f} s, runs {self.runs}, epochs {self.epochs}"
        numbers += "" if self.clock is None else f", clock {shown_time(self.clock)}"
        return f"{self.name or self.id}: {self.status}, {numbers}"

    def __repr__(self) -> str:
        """Show the same as plain text."""
        from rich.console import Console

        page = io.StringIO()
        # With no environment: rich (15.0) would read COLUMNS, and the same metrics would differ between environments.
        Console(file=page, width=_WIDEST_TABLE, color_system=None, force_jupyter=False, _environ={}).print(self)
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines())

    def _repr_html_(self) -> str:
        return html_of_tables(self._heading(), self.tables())

    def tables(self) -> list[Table]:
        """Return the stages as a table of `rich`, and another one of the sources of an unbounded job."""
        return [self.table(), *([sources_table(self.sources, self.watermarks)] if self.sources else [])]

    def table(self) -> Table:
        """Return the stages as a table of `rich`."""
        from rich.table import Table
        from rich.text import Text

        known = {name for name in _NUMBERS for each in self.stages.values() if getattr(each, name) is not None}
        shown = [name for name in _NUMBERS if name in known or name not in _RARE]
        table = Table("stage", *(name.replace("_", " ") for name in shown), box=None, pad_edge=False)
        for stage, counts in self.stages.items():
            table.add_row(Text(stage), *(_number(getattr(counts, name)) for name in shown))
        return table

    def to_openmetrics(self) -> str:
        """Return the numbers in the text form of OpenMetrics, which Prometheus reads."""
        job = f'job_id="{self.id}",job_name="{_escaped(self.name or "")}"'
        lines = [
            "# TYPE dstream_job_status stateset",
            *(
                # OpenMetrics 1.0 requires the name of a state set as the label of its states.
                f'dstream_job_status{{{job},dstream_job_status="{each.name}"}} {int(each.name == self.status)}'
                for each in JobStatus
            ),
            "# TYPE dstream_job_seconds gauge",
            "# UNIT dstream_job_seconds seconds",
            f"dstream_job_seconds{{{job}}} {self.seconds!r}",
            "# TYPE dstream_job_runs counter",
            f"dstream_job_runs_total{{{job}}} {self.runs}",
            "# TYPE dstream_job_epochs counter",
            f"dstream_job_epochs_total{{{job}}} {self.epochs}",
        ]
        for name in _COUNTERS:
            lines.append(f"# TYPE dstream_stage_{name} counter")
            for stage, counts in self.stages.items():
                if (value := getattr(counts, name)) is not None:
                    lines.append(f'dstream_stage_{name}_total{{{job},stage="{_escaped(stage)}"}} {value}')
        lines += self._openmetrics_of_edges(job)
        lines += self._openmetrics_of_epochs(job)
        return "\n".join([*lines, "# EOF", ""])

    def _openmetrics_of_edges(self, job: str) -> Iterator[str]:
        for name in ("items_in", "items_out"):
            known = {stage: getattr(counts, f"{name}_by_edge") for stage, counts in self.stages.items()}
            if any(known.values()):
                yield f"# TYPE dstream_edge_{name} counter"
            for stage, edges in known.items():
                for ordinal, items in enumerate(edges or ()):
                    labels = f'{job},stage="{_escaped(stage)}",ordinal="{ordinal}"'
                    yield f"dstream_edge_{name}_total{{{labels}}} {items}"

    def _openmetrics_of_epochs(self, job: str) -> Iterator[str]:
        yield from self._gauge("stage_keys", {stage: counts.keys for stage, counts in self.stages.items()}, job)
        sizes = {stage: counts.state_bytes for stage, counts in self.stages.items()}
        yield from self._gauge("stage_state_bytes", sizes, job, "bytes")
        yield from self._gauge("source_left", {stage: source.left for stage, source in self.sources.items()}, job)
        yield from self._gauge("watermark_milliseconds", self.watermarks, job, "milliseconds")
        if self.epoch_seconds:
            yield "# TYPE dstream_epoch_seconds gauge"
            yield "# UNIT dstream_epoch_seconds seconds"
            for each, seconds in self.epoch_seconds.items():
                yield f'dstream_epoch_seconds{{{job},quantile="0.{each[1:]}"}} {seconds!r}'
        if self.epochs_by_engine:
            yield "# TYPE dstream_engine_epochs counter"
            for engine, epochs in self.epochs_by_engine.items():
                yield f'dstream_engine_epochs_total{{{job},engine="{_escaped(engine)}"}} {epochs}'

    def _gauge(self, name: str, values: Mapping[str, int | None], job: str, unit: str = "") -> Iterator[str]:
        known = {stage: value for stage, value in values.items() if value is not None}
        if known:
            yield f"# TYPE dstream_{name} gauge"
        if known and unit:
            yield f"# UNIT dstream_{name} {unit}"
        for stage, value in known.items():
            yield f'dstream_{name}{{{job},stage="{_escaped(stage)}"}} {value}'


_COUNTERS = ("items_in", "items_out", "late", "dead_letters")
_NUMBERS = (*_COUNTERS, "keys", "state_bytes")
_RARE = frozenset(_NUMBERS[2:])
"""The columns that a table shows only if a stage has them."""
_OF_EPOCHS = ("sources", "watermarks", "clock", "epoch_seconds", "engine_seconds", "epochs_by_engine")
_NAMES = tuple(each.name for each in dataclasses.fields(JobMetrics))


def _stages(shape: Shape, counted: Mapping[str, int | None]) -> dict[str, StageMetrics]:
    """Return the numbers of stages: those that were counted, and those that follow from these."""
    looked_after = {above for _, kind, upstreams in shape if kind.partition("(")[0] in _DEALING for above in upstreams}
    stages: dict[str, StageMetrics] = {}
    for name, kind, upstreams in shape:  # A stage follows its upstream stages.
        given = [stages[above].items_out if above in stages else None for above in upstreams]
        known = [items for items in given if items is not None]
        items_in = sum(known) if upstreams and len(known) == len(given) else None
        is_as_many = kind in AS_MANY and name not in looked_after and bool(counted)
        stages[name] = StageMetrics(items_in, counted.get(name, items_in if is_as_many else None))
    return stages


def _as_dict(counts: StageMetrics) -> dict[str, Any]:
    """Return the numbers of a stage; only a vertex has edges, and few stages have a state."""
    return {name: value for name, value in dataclasses.asdict(counts).items() if value is not None or name in _COUNTERS}


def _items_of_each_reader(counts: Mapping[str, Any]) -> int | None:
    """Return how many items each reader of a stage gets, if that is one number."""
    return None if len(counts.get("items_out_by_edge", ())) > 1 else counts.get("items_out")


def _with_more(stage: StageMetrics, counts: Mapping[str, Any]) -> StageMetrics:
    """Return the metrics of a stage with further counts."""
    more = {name: counts.get(name) for name in _RARE if name in counts}
    stage = dataclasses.replace(stage, **more)
    if "items_in_by_edge" not in counts:
        return stage
    received, sent = tuple(counts["items_in_by_edge"]), tuple(counts["items_out_by_edge"])
    return dataclasses.replace(
        stage,
        items_in=sum(received) if received else None,
        items_out=counts["items_out"],
        items_in_by_edge=received,
        items_out_by_edge=sent,
    )


_DEALING = frozenset(("ignore", "on_error", "resolve"))
"""The kinds of stages that handle the failures of their upstream stage."""


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


COLUMNS = ("id", "name", "status", "submitted", "seconds", "driver")


class JobList(list["Job"]):
    """The list that `ctx.jobs()` returns, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        # One record that is damaged hides no other job.
        shown = [_line_or_damage(job) for job in self[:_MOST]]
        rows = Rows(COLUMNS, [[*map(Verbatim, line)] for line in shown])
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
    """Yield the properties of a job besides its numbers: a label and a string, which may be empty."""
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
    """Render a job as HTML: its properties and its numbers."""
    try:
        facts = [[Verbatim(label), Verbatim(text)] for label, text in facts_of(job) if text]
        return html_table(repr(job), Rows(["", ""], facts)) + html_of_tables("", job.metrics().tables())
    except (DStreamError, OSError) as error:
        return html_table(job.id, Rows([], []), f"{type(error).__name__}: {error}")


def printable(path: str) -> str:
    """Escape, as Python does, characters of a path that a terminal might obey."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in path)


def _date(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
