"""Records and state that nobody needs any more are removed."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.jobs.unbounded import epoch_log, log_folding
from tests.jobs.unbounded.streams import Feed, eventually
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


@pytest.fixture
def often(monkeypatch):
    """Every fourth record is a checkpoint."""
    for module in (epoch_log, log_folding, __import__("dstream.jobs.unbounded.one_epoch", fromlist=["one_epoch"])):
        monkeypatch.setattr(module, "CHECKPOINT_EVERY", 4)


@pytest.mark.usefixtures("often")
def test_old_records_and_files_go(ctx):
    """Those behind the last checkpoint that is old enough; the job goes on, also after a restart."""
    seconds, feed = [0.0], Feed()
    config = ds.JobConfig(keep=10, clock=lambda: seconds[0])
    job = ctx.new_job(summing_plan(feed, lambda: Lagging(10**6), FrameSums()), config=config)
    feed.give(*range(1000, 9000, 10))
    for number in range(1, 22):
        seconds[0] = float(number * 5)
        feed.give(number)
        eventually(lambda number=number: job.epoch == number)
    storage = ctx.running_storage()
    log = epoch_log.EpochLog(storage.records, job.id, "")
    eventually(lambda: log.numbers() == list(range(16, 22)))
    files = {file.name for file in storage.state_files(job.id).found()}
    named = set().union(*map(log_folding.files_named_by, log.since(16)))
    job.restart()
    feed.end()
    job.join(10)

    assert named <= files
    assert len(files) < 20
    assert sorted(ctx.get_list("out"))[:6] == [(10, 20), (10, 25), (20, 70), (20, 75), (30, 20), (30, 21)]
    assert len(ctx.get_list("out")) == 806
