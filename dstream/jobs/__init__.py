"""Jobs: pipelines that were submitted. They run beside the caller, have names, and outlive a crash.

`jobs_of_context` submits and finds them; `job` is what users hold. A job is an `Execution` in one process, its driver,
and records in the storage that every process reads (`job_records`): its state, which the driver alone replaces
(`job_lease`), and the receipts of its sinks (`epoch_record`), put before any sink publishes (`bounded_run`). By
`job_heart` others see that the driver lives, and by `job_watch` they wait for it and ask it for things.
"""

from dstream.jobs.job import Job
from dstream.jobs.job_config import JobConfig
from dstream.jobs.job_metrics import JobMetrics, StageMetrics
from dstream.jobs.job_status import JobStatus
from dstream.jobs.source_metrics import SourceMetrics

__all__ = ["Job", "JobConfig", "JobMetrics", "JobStatus", "SourceMetrics", "StageMetrics"]
