"""An input that is behind is waited for so long, and no longer."""

from __future__ import annotations

from datetime import timedelta

import pytest

import dstream as ds
from collectors import counting
from dstream.jobs.unbounded.watermarks import RetainedWatermarks
from dstream.values.time import NO_WATERMARK
from dstream.windows import tumbling
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed, eventually, read_stream


def test_inputs_that_are_behind_are_waited_for_so_long():
    """Then the step is where the first of its own inputs was so long ago."""
    retained = RetainedWatermarks(10)
    retained.note(100.0, {"a": 5, "b": 1, "other": 99})
    retained.note(104.0, {"a": 20})

    floors = [retained.floor({"a", "b"}, now) for now in (109.9, 110.0, 113.9, 114.0)]
    assert floors == [NO_WATERMARK, 5, 5, 20]


def test_what_was_long_ago_is_forgotten():
    """But for the last of it, which still counts."""
    retained = RetainedWatermarks(10)
    for now in range(100):
        retained.note(now, {"a": now})

    assert (len(retained._reached["a"]), retained.floor({"a"}, 99)) == (11, 89)


def test_nothing_is_kept_where_the_slowest_holds_all_back():
    """As it is unless told otherwise."""
    retained = RetainedWatermarks(None)
    retained.note(1.0, {"a": 5})

    assert (retained.floor({"a"}, 1e9), retained._reached) == (NO_WATERMARK, {})


@pytest.mark.parametrize("retain", [5, timedelta(seconds=5)])
def test_a_source_that_is_behind_holds_windows_for_so_long(ctx, retain):
    """The window closes when the clock says so, without another item; what comes for it then is late."""
    now, fast, slow, pipeline = [1000.0], Feed(), Feed(), ds.Pipeline()
    stages = [read_stream(pipeline, feed).add_timestamps(int) for feed in (fast, slow)]
    counts = stages[0].merge(stages[1]).window(tumbling(10)).aggregate(counting(), lambda start, end, n: (end, n))
    counts.write_to(to_ilist("out"))
    config = ds.JobConfig(clock=lambda: now[0], max_watermark_retain=retain)
    job = ctx.new_job(pipeline, config=config)
    slow.give(1)
    fast.give(2, 25)
    eventually(lambda: job.epoch >= 1 and job.clock == 1)
    assert ctx.get_list("out").copy() == []
    now[0] += 5
    eventually(lambda: len(ctx.get_list("out")) == 1)

    slow.give(3)
    eventually(lambda: any(stage.late for stage in job.metrics().stages.values()))
    assert ctx.get_list("out").copy() == [(10, 2)]
