"""Jobs: submitted pipelines, which run in the background, have names, and survive a crash.

A job is an `Execution` in one process, its driver, with one `BoundedRun` or `UnboundedRun` after another. Every process
reads its records in the storage; the driver alone replaces its state, and stores the receipts of sinks before any sink
publishes.

- `registry`: submits jobs and finds them.
- `handle`: `Job`, the handle of users.
- `config`: `JobConfig`.
- `driver`: `Execution`, the driver of a job.
- `runs`: `BoundedRun`, and the contract of a run.
- `unbounded`: `UnboundedRun`, epoch after epoch.
- `records`: the records of jobs in a storage, with the version of their format.
- `state`: the contents of the state of a job.
- `lease`: whether a driver still has its job, and the take-over of a lost one.
- `heartbeats`: signs of life of the driver, through which other processes wait for a job and send requests to it.
- `receipts`: counts of edges, and dead letters staged until the sinks publish.
- `outcomes`: results and failures of jobs.
- `metrics`: `JobMetrics`, a job in numbers.
- `attachments`: files and modules that are attached to a job.
- `upgrades`: the effect of another pipeline on the state of each stage.
- `snapshots`: exported states, with which other jobs begin, and their format.
"""

from __future__ import annotations

from dstream.jobs.config import JobConfig
from dstream.jobs.handle import Job
from dstream.jobs.metrics import JobMetrics, SourceMetrics, StageMetrics
from dstream.jobs.state import JobStatus

__all__ = ["Job", "JobConfig", "JobMetrics", "JobStatus", "SourceMetrics", "StageMetrics"]
