"""What a driver publishes that another one had left counts from then on, before it has an epoch of its own."""

from __future__ import annotations

import dstream as ds
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


def test_an_epoch_that_was_left_counts_once_it_is_published(ctx, monkeypatch):
    """The connection is lost before it is; nothing comes behind it."""
    publish, losses = EpochRunner.publish, [ConnectionError("lost")]

    def losing(self, record):
        if losses:
            raise losses.pop()
        publish(self, record)

    monkeypatch.setattr(EpochRunner, "publish", losing)
    feed = Feed()
    feed.give(1, 2)
    job = ctx.new_job(pipeline_of(feed, to_ilist("left")), config=ds.JobConfig(auto_restart=(3, 0.0)))
    eventually(lambda: job.epoch == 1)

    assert (ctx.get_list("left").copy(), job.metrics().stages["write_to"].items_out) == ([1, 2], 2)
