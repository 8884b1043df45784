"""`epochs()` gives in each epoch what a job gives, whatever its clock shows and how long its periods are."""

from __future__ import annotations

import pytest

import dstream as ds
from collectors import counting
from dstream.testing import epochs
from dstream.windows import session, tumbling
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed, eventually

STEPS = [(0.0, "0", [5, 25]), (0.1, "1", [6, 7]), (0.2, "0", [26]), (0.3, "1", [27]), (59.9, "0", [38, 39])]
"""Seconds since the start, and what comes in which partition; the other one is quiet."""
LATER = [(60.0, "0", [48]), (61.5, "0", [60]), (61.5, "1", [8, 61]), (200.0, "1", [90])]
"""The second partition is idle before it gives two items, of which one is late."""
WINDOWS = {
    "tumbling": tumbling(10),
    "early, each tenth": tumbling(10).early_results(0.1),
    "early, by thirds": tumbling(10).early_results(0.3),
    "early, often": tumbling(10).early_results(1e-9),
    "early sessions": session(10).early_results(0.7),
}


def pipeline_from(source, window):
    """Return the pipeline that counts in windows."""
    pipeline = ds.Pipeline()
    pipeline.read_from(source).add_timestamps(int).window(window).aggregate(counting()).write_to(to_ilist("out"))
    return pipeline


def of_job(ctx, start, window):
    """Return what comes of each epoch of a job, whose clock and source move on together."""
    feed, now, steps = Feed({"0": [], "1": []}), [start], []

    def clock():
        while steps:
            seconds, partition, items = steps.pop()
            now[0] = start + seconds
            feed.give(*items, to=partition)
        return now[0]

    job, found, before = ctx.new_job(pipeline_from(feed, window), config=ds.JobConfig(clock=clock)), [], 0
    for number, step in enumerate([*STEPS, *LATER], 1):
        steps.append(step)
        eventually(lambda number=number: job.epoch == number)
        results = ctx.get_list("out").copy()
        found.append(results[before:])
        before = len(results)
    job.cancel()
    return found


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("start", [0.0, 0.7, 1_700_000_000.0])
def test_epochs_by_hand_give_what_a_job_gives(ctx, start, window):
    """The first reading is when both start: no partition was idle before, and no result comes twice at one reading."""
    by_hand = epochs()
    source = by_hand.source("numbers", partitions=2)
    by_hand.of(pipeline_from(source, window))
    cut = [
        by_hand.cut({source: {int(partition): items}}, now=start + seconds)["write_to"]
        for seconds, partition, items in [*STEPS, *LATER]
    ]

    assert cut == of_job(ctx, start, window)
    assert by_hand.late == {"aggregate": 1}
    assert sum(each.result for results in cut for each in results if not each.is_early) == 11
