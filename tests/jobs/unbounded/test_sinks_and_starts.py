"""Where epochs go, and where a job begins."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

import pytest

import dstream as ds
from reducers import to_files, to_ilist, to_imap, to_sql
from sources import Items
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan


def run_in_epochs(ctx, feed, plan, *epochs, **config):
    """Run a plan with these items in an epoch each, to the end of the source."""
    job = ctx.new_job(plan, config=ds.JobConfig(**config))
    for number, items in enumerate(epochs, 1):
        feed.give(*items)
        eventually(lambda number=number: job.epoch == number)
    feed.end()
    job.join(10)


def test_epochs_go_into_files(ctx, tmp_path):
    """Each adds files of its own."""
    feed = Feed()
    run_in_epochs(ctx, feed, pipeline_of(feed, to_files(tmp_path / "out")), ["a", "b"], ["c"])

    lines = [line for path in (tmp_path / "out").glob("part*") for line in path.read_text().splitlines()]
    assert sorted(lines) == ["a", "b", "c"]


def test_epochs_go_into_a_table(ctx, tmp_path):
    """Each is a transaction."""
    url, feed = f"sqlite:///{tmp_path}/out.db", Feed()
    with sqlite3.connect(tmp_path / "out.db") as database:
        database.execute("create table numbers (n integer)")
    run_in_epochs(ctx, feed, pipeline_of(feed, to_sql(url, "numbers")), [{"n": 1}, {"n": 2}], [{"n": 3}])

    with sqlite3.connect(tmp_path / "out.db") as database:
        assert database.execute("select n from numbers order by n").fetchall() == [(1,), (2,), (3,)]


def test_values_of_a_map_are_merged_across_epochs(ctx):
    """As if all items had come at once."""
    feed = Feed()
    counts = to_imap("counts", lambda word: word, lambda word: 1, lambda a, b: a + b, on_existing="merge")
    plan = pipeline_of(feed, counts)
    run_in_epochs(ctx, feed, plan, ["a", "b", "a"], ["a"])

    assert ctx.get_map("counts").copy() == {"a": 3, "b": 1}


def test_a_bounded_source_is_a_stream_that_ends(ctx):
    """With timestamps it has windows, which all close."""
    ctx.new_job(summing_plan(Items([2, 4, 12], partitions=2), Lagging, FrameSums())).join(10)

    assert sorted(ctx.get_list("out")) == [(10, 6), (20, 12)]


def test_a_job_starts_again_at_an_earlier_record(connect):
    """With the state of then; what came after it is published again."""
    feed, first = Feed(), connect()
    job = first.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums")
    for number, item in enumerate([2, 4, 11], 1):
        feed.give(item)
        eventually(lambda number=number: job.epoch == number)
    first.close()
    ctx = connect()
    config = ds.JobConfig(start_at=1, force=True)
    again = ctx.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums", config=config)
    eventually(lambda: again.epoch == 4)

    assert (ctx.get_list("out").copy(), again.config.start_at) == ([(10, 6), (10, 6)], None)


def test_start_at_must_be_meant():
    """Since output comes twice."""
    with pytest.raises(ValueError, match="start_at publishes again what came after it, which needs force=True"):
        ds.JobConfig(start_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_without_a_guarantee_a_restart_begins_at_the_start(ctx):
    """No records are kept."""
    feed = Feed({"0": [1, 2]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), config=ds.JobConfig(guarantee="none"))
    eventually(lambda: job.epoch == 1)
    assert ctx.running_storage().records.names("job-logs/") == []
    job.restart()
    feed.end()
    job.join(10)

    assert ctx.get_list("out").copy() == [1, 2, 1, 2]


def test_state_may_stand_in_another_storage(ctx, tmp_path):
    """As where that of the job has no files."""
    feed, other = Feed(), str(tmp_path / "other")
    run_in_epochs(ctx, feed, summing_plan(feed, Lagging, FrameSums()), [2, 4], files_at=other)
    with ds.connect(engine="local", storage=other) as elsewhere:
        (job,) = ctx.jobs()
        files = list(elsewhere.running_storage().state_files(job.id).found())

    assert (len(files) > 0, ctx.get_list("out").copy()) == (True, [(10, 6)])
