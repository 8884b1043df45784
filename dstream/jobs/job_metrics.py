"""`JobMetrics`: a job in numbers, as attributes, as a dictionary, as a table, as OpenMetrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dstream.jobs.job_state import JobState
from dstream.jobs.job_status import JobStatus

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

__all__ = ["JobMetrics", "StageMetrics"]


@dataclass(frozen=True, slots=True)
class StageMetrics:
    """A stage of a job in numbers. None: that is not counted.

    Attributes:
        items_in: how many items it was given.
        items_out: how many it gave on, or wrote.
    """

    items_in: int | None = None
    items_out: int | None = None


@dataclass(frozen=True)
class JobMetrics(Mapping[str, Any]):
    """A job in numbers. `dict(job.metrics())` has all of them.

    Attributes:
        id: that of the job.
        name: that of the job, or None.
        status: its name.
        seconds: since it was started, up to its end.
        times: when it reached each status for the last time, in seconds since 1970.
        epochs: how many were committed.
        runs: how often it was started.
        stages: each of its stages, by name.
    """

    id: str
    name: str | None
    status: str
    seconds: float
    times: Mapping[str, float]
    epochs: int
    runs: int
    stages: Mapping[str, StageMetrics] = field(default_factory=dict)

    @staticmethod
    def of(state: JobState, status: JobStatus, now: float) -> JobMetrics:
        """Return the numbers of a job."""
        began = state.times.get(JobStatus.STARTING.name)
        ended = state.ended_at if state.ended_at is not None else now
        counted: Mapping[str, Any] = {} if state.metrics is None else state.metrics["stages"]
        stages = {name: _counts(counted.get(name, {})) for name, _, _ in state.shape}
        seconds = 0.0 if began is None else max(ended - began, 0.0)
        return JobMetrics(
            state.id, state.name, status.name, seconds, dict(state.times), state.epoch, state.runs, stages
        )

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        if name == "stages":
            return {stage: dataclasses.asdict(counts) for stage, counts in self.stages.items()}
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __rich__(self) -> Group:
        """Return what `rich` prints: a line on the job, and the table of its stages."""
        from rich.console import Group  # here: few programs print it
        from rich.text import Text

        numbers = f"{self.seconds:.1f} s, runs {self.runs}, epochs {self.epochs}"
        return Group(Text(f"{self.name or self.id}: {self.status}, {numbers}"), self.table())

    def table(self) -> Table:
        """Return the stages as a table of `rich`."""
        from rich.table import Table
        from rich.text import Text

        table = Table("stage", "items in", "items out", box=None, pad_edge=False)
        for name, counts in self.stages.items():
            table.add_row(Text(name), _number(counts.items_in), _number(counts.items_out))
        return table

    def to_openmetrics(self) -> str:
        """Return the numbers in the text form of OpenMetrics, which Prometheus reads."""
        job = f'job_id="{self.id}",job_name="{_escaped(self.name or "")}"'
        lines = [
            "# TYPE dstream_job_status stateset",
            *(
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
        for name in ("items_in", "items_out"):
            lines.append(f"# TYPE dstream_stage_{name} counter")
            for stage, counts in self.stages.items():
                if (value := getattr(counts, name)) is not None:
                    lines.append(f'dstream_stage_{name}_total{{{job},stage="{_escaped(stage)}"}} {value}')
        return "\n".join([*lines, "# EOF", ""])


_NAMES = tuple(each.name for each in dataclasses.fields(JobMetrics))


def _counts(counted: Mapping[str, Any]) -> StageMetrics:
    return StageMetrics(counted.get("items_in"), counted.get("items_out"))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
