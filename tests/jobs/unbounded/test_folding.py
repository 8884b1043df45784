"""Records and state that nobody needs any more are removed."""

from __future__ import annotations

import os

import pytest

import dstream as ds
from collectors import counting
from dstream.errors import IllegalStateError
from dstream.jobs.unbounded import epoch_log, log_folding
from dstream.storage.lake import checkpoints, lake_collection, log_cut
from reducers import to_icache, to_ilist, to_imap
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


@pytest.mark.usefixtures("often")
def test_files_stay_few(tmp_path, monkeypatch):
    """Of records, of state, and of the map that each epoch commits to: as many after 200 epochs as after 100."""
    monkeypatch.setattr(checkpoints, "_SOONEST", 10)
    monkeypatch.setattr(log_cut, "_SHORTEST", 0.0)
    monkeypatch.setattr(log_cut, "_PAUSE", 0.0)
    counts = []
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        feed, pipeline = Feed(), ds.Pipeline()
        read = pipeline.read_from(feed)
        read.grouping_key(lambda n: n % 5).rolling_aggregate(counting()).write_to(to_imap("counts"))
        job = ctx.new_job(pipeline, config=ds.JobConfig(keep=0.05, epoch_length=0.001))
        for number in range(1, 201):
            feed.give(*range(5))
            eventually(lambda number=number: job.epoch == number)
            counts.append(sum(len(names) for _, _, names in os.walk(tmp_path)))  # A folder may go meanwhile.
        feed.end()
        job.join(10)
        found = ctx.get_map("counts").copy()

    assert found == dict.fromkeys(range(5), 200)
    assert max(counts[100:]) < 1.5 * max(counts[50:100])
    assert max(counts) < 1000


def test_an_epoch_that_gives_nothing_looks_for_no_files(tmp_path, monkeypatch):
    """Most epochs of windows are so, and the target may have any number of files."""
    looked = []
    monkeypatch.setattr(lake_collection.Collection, "discard_staged", lambda store, prefix: looked.append(prefix))
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        cache, feed, pipeline = ctx.get_cache("cache", ttl=60.0), Feed(), ds.Pipeline()
        large = pipeline.read_from(feed).filter(lambda n: n > 10)
        large.write_to(to_imap("map", str, abs))
        large.write_to(to_icache("cache", str, abs))
        large.write_to(to_ilist("list"))
        job = ctx.new_job(pipeline)
        for number in (1, 2):
            feed.give(number)
            eventually(lambda number=number: job.epoch == number)
        feed.give(11)
        feed.end()
        job.join(10)
        found = (ctx.get_map("map").copy(), list(cache.keys()), ctx.get_list("list").copy())

    assert found == ({"11": 11}, ["11"], [11])
    assert looked == []


def test_old_files_that_cannot_be_removed_are_logged(tmp_path, monkeypatch, caplog):
    """The epoch is published, so the job goes on."""

    def refused(store, older_than):
        raise IllegalStateError("map 'counts' is damaged")

    monkeypatch.setattr(lake_collection.Collection, "cut_log", refused)
    with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
        feed, pipeline = Feed(), ds.Pipeline()
        pipeline.read_from(feed).write_to(to_imap("counts", lambda n: n, lambda n: n))
        job = ctx.new_job(pipeline)
        feed.give(1, 2)
        feed.end()
        job.join(10)
        assert ctx.get_map("counts").copy() == {1: 1, 2: 2}
    assert "what is old was not removed: map 'counts' is damaged" in caplog.text
