"""A driver whose Spark dies: it starts another one, and the job goes on."""

from __future__ import annotations

TEXT = """
import os, signal, sys, pathlib, time
import dstream as ds
from reducers import to_ilist
from tests.jobs.planned import plan_of

started = pathlib.Path(sys.argv[1], "started")

def wait_once(n):
    if not started.exists():
        started.touch()
        time.sleep(4)
    return n

with ds.connect("local[1]", storage=sys.argv[1], progress=False) as ctx:
    plan = plan_of(ctx.stream([1, 2], 1).map(wait_once), to_ilist("out"))
    job = ctx.new_job(plan, config=ds.JobConfig(auto_restart=(1, 0.1)))
    while not started.exists():
        assert job.status is not ds.JobStatus.FAILED
        time.sleep(0.05)
    from pyspark import SparkContext
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    job.join(240)
    print(ctx.get_list("out").copy(), job.metrics().runs, ctx.stream([3], 1).map(abs).to_list(), flush=True)
"""


def test_a_job_starts_another_spark(start, tmp_path):
    """Java's process was killed while a task ran: the context has a new one, for streams as well."""
    code, said = start(TEXT, str(tmp_path)).ended()

    assert (code, said.splitlines()[-1]) == (0, "[1, 2] 2 [3]"), said
