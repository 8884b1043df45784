"""Jobs without an end and without state: what comes in goes out, once."""

from __future__ import annotations

import time

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


def test_the_first_epoch_says_nothing_of_what_items_cost(ctx, tmp_path):
    """Workers start in it: the next one may take as many items as it, however long it took."""
    feed, asked = Feed({"0": list(range(20_000))}), []
    reach = feed.reach

    def noted(offsets, most=None):
        asked.append(most)
        return reach(offsets, most)

    feed.reach = noted
    feed.end()

    def slow_at_first(n):
        if n == 0:
            time.sleep(0.5)
        return n

    plan = pipeline_of(feed, to_ilist(tmp_path.name), through=lambda stage: stage.map(slow_at_first))
    ctx.new_job(plan, config=ds.JobConfig(epoch_length=0.2)).join(30)

    assert asked[:2] == [10_000, 10_000]
    assert len(ctx.get_list(tmp_path.name)) == 20_000
