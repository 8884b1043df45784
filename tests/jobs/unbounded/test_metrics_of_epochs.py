"""What the metrics of a job without an end say of its sources and of its state."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

import dstream as ds
from collectors import counting
from dstream.jobs import JobMetrics, JobStatus, SourceMetrics
from dstream.jobs.state import read_state, written_state
from dstream.jobs.unbounded.epoch_metrics import EpochMetrics
from dstream.jobs.unbounded.log import LogRecord, SourceMark
from dstream.jobs.unbounded.state import StatesOfSteps
from dstream.spi import Reached
from dstream.testing.unbounded import epochs
from dstream.values.time import END_OF_TIME, NO_WATERMARK, shown_time
from reducers import to_ilist
from sources import imap_journal, long_stream, watch_files
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of

KEYS = {"rolling_aggregate": 2}
NO_STATES = StatesOfSteps("job", "1", None, {})


class Behind(Feed):
    """A feed that always has seven items more."""

    def reach(self, offsets, most=None):
        """Say so."""
        return Reached(super().reach(offsets, most), 7)


def counts_by_parity(source, name):
    """Return a pipeline that keeps a count for each of two keys."""
    return pipeline_of(
        source, to_ilist(name), through=lambda stage: stage.grouping_key(lambda n: n % 2).rolling_aggregate(counting())
    )


def submitted(ctx, name, *items):
    """Return that job when it has read these items in one epoch."""
    feed = Behind({"0": list(items), "1": [5]})
    job = ctx.new_job(counts_by_parity(feed, name), name=name, config=ds.JobConfig(epoch_length=0.05))
    eventually(lambda: job.epoch == 1)
    return job, feed


def test_metrics_say_how_far_sources_were_read_and_how_large_states_are(ctx):
    """Offsets, what is left, keys and bytes; after each epoch, and of a stage without state nothing."""
    job, feed = submitted(ctx, f"n{uuid4().hex}", 1, 2, 3)
    metrics = job.metrics()
    assert metrics.sources == {"read_from": SourceMetrics(2, {"0": 3, "1": 1}, 7, False)}
    assert {stage: each.keys for stage, each in metrics.stages.items() if each.keys is not None} == KEYS
    feed.give(*range(100, 200))
    eventually(lambda: job.epoch == 2)

    assert job.metrics().sources["read_from"].offsets == {"0": 103, "1": 1}
    assert job.metrics().stages["rolling_aggregate"].state_bytes > metrics.stages["rolling_aggregate"].state_bytes > 0


def test_metrics_on_spark_say_the_same(spark_context):
    """Tasks there tell the driver of their shards as they do here."""
    job, _ = submitted(spark_context, f"n{uuid4().hex}", 1, 2, 3)
    metrics = job.metrics()
    job.cancel()

    assert metrics.sources == {"read_from": SourceMetrics(2, {"0": 3, "1": 1}, 7, False)}
    assert {stage: each.keys for stage, each in metrics.stages.items() if each.keys is not None} == KEYS
    assert metrics.stages["rolling_aggregate"].state_bytes > 0


def test_metrics_of_sources_are_shown_in_every_form(connect):
    """As another process sees them: a dictionary, tables, OpenMetrics."""
    name = f"n{uuid4().hex}"
    job, _ = submitted(connect(), name, 1, 2, 3)
    other = connect().job(name)
    eventually(lambda: other.epoch == 1)
    metrics = other.metrics()
    lines, shown = metrics.to_openmetrics().splitlines(), [line.split() for line in repr(metrics).splitlines()]
    labels, size = f'job_id="{job.id}",job_name="{name}"', metrics.stages["rolling_aggregate"].state_bytes

    assert dict(metrics)["sources"]["read_from"] == {
        "partitions": 2,
        "offsets": {"0": 3, "1": 1},
        "left": 7,
        "has_ended": False,
        "shown": {},
    }
    assert dict(metrics)["stages"]["rolling_aggregate"]["keys"] == 2
    assert shown[-1] == ["read_from", "2", "7", "0:", "3,", "1:", "1"]
    assert f'dstream_source_left{{{labels},stage="read_from"}} 7' in lines
    assert f'dstream_stage_keys{{{labels},stage="rolling_aggregate"}} 2' in lines
    assert f'dstream_stage_state_bytes{{{labels},stage="rolling_aggregate"}} {size}' in lines


@pytest.mark.parametrize(
    ("source", "offset", "shown"),
    [
        (long_stream(1000, start=0), [0, 1250], "item 1,250"),
        (watch_files("there"), [0, 4096, 64, "a1"], "byte 4,096"),
    ],
    ids=["paced", "files"],
)
def test_offsets_of_sources_are_shown_in_words(source, offset, shown):
    """Beside what the source itself needs."""
    record = LogRecord(1, "", 0.0, sources={"read": SourceMark({"0": offset}, False, 0.0)})
    [found] = EpochMetrics().of(record, NO_STATES, {"read": source})["sources"].values()

    assert (found["offsets"], found["shown"]) == ({"0": offset}, {"0": shown})


def test_the_offsets_of_a_journal_are_shown_as_commits_and_events(ctx):
    """The offset of a lake is a number of twelve digits."""
    name = f"n{uuid4().hex}"
    words = ctx.get_map(name, journal=True)
    words["a"] = 1
    job = ctx.new_job(pipeline_of(imap_journal(name, start="oldest"), to_ilist(f"{name}-out")))
    eventually(lambda: job.epoch == 1)

    assert re.search(r" events: commit \d+, event 1$", repr(job.metrics()))


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "1970-01-01 00:00:00.000Z"),
        (1795913309439, "2026-11-29 00:48:29.439Z"),
        (NO_WATERMARK, ""),
        (END_OF_TIME, "the end"),
        (10**17, str(10**17)),
    ],
)
def test_times_of_events_are_shown_as_times(milliseconds, shown):
    """One that no calendar has is its number."""
    assert shown_time(milliseconds) == shown


def test_the_seconds_of_a_job_never_go_back(ctx):
    """A restart and a pause are part of them."""
    state = ctx.new_job(pipeline_of(Feed({"0": [1]}), to_ilist(f"n{uuid4().hex}")))._state()
    times = {"STARTING": 30.0, "SUSPENDED": 25.0}
    seen = [
        JobMetrics.of(
            replace(state, submitted_at=10.0, started_at=started, times=times), JobStatus.STARTING, now
        ).seconds
        for started, now in ((None, 12.0), (12.0, 25.0), (12.0, 31.0))
    ]

    assert seen == [2.0, 15.0, 21.0]


def test_a_source_that_does_not_count_leaves_open_what_is_left(ctx):
    """None, and no number; what a state holds is known to epochs by hand as well."""
    by_hand = epochs()
    numbers = by_hand.source("numbers")
    by_hand.of(counts_by_parity(numbers, "counts")).cut({numbers: [1, 2]})
    job = ctx.new_job(pipeline_of(Feed({"0": [1]}), to_ilist(f"n{uuid4().hex}")))
    eventually(lambda: job.epoch == 1)

    [index] = by_hand._states.indexes.values()
    assert (index.keys, index.size_in_bytes > 0) == (2, True)
    assert job.metrics().sources["read_from"] == SourceMetrics(1, {"0": 1}, None, False)


def test_offsets_that_json_has_not_are_shown_as_texts(ctx):
    """And of very many partitions some, so that the record of a job stays small; it can be read again."""
    marks = {"odd": SourceMark({"b": b"1", "t": (1, 2)}, False, 0.0)}
    marks["wide"] = SourceMark({str(n): n for n in range(1000)}, False, 0.0, {"0": 5.0})
    found = EpochMetrics().of(LogRecord(1, "", 0.0, sources=marks), NO_STATES)
    job = ctx.new_job(pipeline_of(Feed({"0": [1]}), to_ilist(f"n{uuid4().hex}")))
    state = read_state(written_state(replace(job._state(), metrics=found)), job.id)

    assert json.loads(json.dumps(found)) == found
    assert found["sources"]["odd"]["offsets"] == {"b": "b'1'", "t": [1, 2]}
    assert (found["sources"]["wide"]["partitions"], len(state.metrics["sources"]["wide"]["offsets"])) == (999, 100)


def test_long_offsets_that_json_has_not_are_shown_whole():
    """Cut, two of them might read the same."""
    mark = SourceMark({"b": b"1" * 500}, False, 0.0)
    found = EpochMetrics().of(LogRecord(1, "", 0.0, sources={"a": mark}), NO_STATES)

    assert found["sources"]["a"]["offsets"] == {"b": repr(b"1" * 500)}


def test_offsets_deeper_than_json_are_shown_as_texts():
    """Neither JSON nor `repr` reaches the end of one: a table of numbers is no reason for which a job fails."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    found = EpochMetrics().of(LogRecord(1, "", 0.0, sources={"a": SourceMark({"b": deep}, False, 0.0)}), NO_STATES)

    assert found["sources"]["a"]["offsets"] == {"b": "<list, whose repr fails with RecursionError>"}


def test_a_source_that_is_paced_knows_what_is_left():
    """What is due and not taken."""
    source = long_stream(1000, start=0)
    reached = source.reach(source.begin(), most=10)

    assert (reached["0"][1], reached.left > 10_000) == (10, True)
