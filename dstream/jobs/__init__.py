"""Jobs: submitted pipelines, which run beside the caller, have names, and survive a crash.

`registry` submits and finds them; `handle` has the `Job` that users hold. A job is an `Execution` in one process, its
driver (`driver`), with one `BoundedRun` or `UnboundedRun` after another (`runs`, `unbounded`). Every process reads its
`records` in the storage: its `state`, which the driver alone replaces (`lease`), and the receipts of its sinks, stored
before any sink publishes. The `heartbeats` show that the driver is alive; through them other
processes wait for a job and send requests to it. `upgrades` compares a job with another pipeline,
`snapshots` exports its state for other jobs.
"""

from __future__ import annotations

from dstream.jobs.config import JobConfig
from dstream.jobs.handle import Job
from dstream.jobs.metrics import JobMetrics, SourceMetrics, StageMetrics
from dstream.jobs.state import JobStatus

__all__ = ["Job", "JobConfig", "JobMetrics", "JobStatus", "SourceMetrics", "StageMetrics"]
