"""Jobs without an end and without state: what comes in goes out, once."""

from __future__ import annotations

import dstream as ds
from reducers import to_ilist, to_imap
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


def test_items_come_out_as_they_come_in(ctx):
    """A job goes on reading; what was given later is written in a later epoch."""
    feed = Feed({"0": [1, 2]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(lambda n: n * 10)))
    out = ctx.get_list("out")
    eventually(lambda: len(out) == 2)
    feed.give(3)
    eventually(lambda: job.epoch == 2)

    assert (out.copy(), job.status) == ([10, 20, 30], ds.JobStatus.RUNNING)
    assert job.cancel()


def test_a_job_completes_when_its_source_ends(ctx):
    """What was given up to then is written."""
    feed = Feed({"0": [1, 2], "1": [3]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")))
    feed.end()
    job.join(10)

    assert (sorted(ctx.get_list("out")), job.status) == ([1, 2, 3], ds.JobStatus.COMPLETED)


def test_items_reach_every_sink(ctx):
    """Each sink publishes the epoch."""
    feed = Feed({"0": ["a", "b"]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out"), to_imap("map", lambda w: w, len)))
    feed.end()
    job.join(10)

    assert (ctx.get_list("out").copy(), dict(ctx.get_map("map"))) == (["a", "b"], {"a": 1, "b": 1})
