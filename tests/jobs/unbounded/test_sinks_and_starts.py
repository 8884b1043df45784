"""Where epochs go, and where a job begins."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, SinkUnavailableError, UnsupportedError
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from reducers import grouping_by_to_imap, replacing, to_files, to_ilist, to_imap, to_sql
from sources import Items
from tests.jobs.planned import plan_of
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


def test_a_job_goes_on_when_the_lock_of_a_folder_is_free_again(ctx, tmp_path, monkeypatch):
    """A process that is stopped may have it: that is no fault of the pipeline, and nobody else takes it."""
    monkeypatch.setattr("dstream.filesystem.output_folders.LONGEST_WAIT", 0.0)
    out, feed = tmp_path / "out", Feed()
    job = ctx.new_job(pipeline_of(feed, to_files(out)), config=ds.JobConfig(auto_restart=(20, 0.01)))
    feed.give("a")
    eventually(lambda: job.epoch == 1)
    descriptor = os.open(out / ".dstream", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    feed.give("b")
    eventually(lambda: job.metrics().runs > 2)
    os.close(descriptor)
    feed.end()
    job.join(20)

    lines = [line for path in out.glob("part*") for line in path.read_text().splitlines()]
    assert sorted(lines) == ["a", "b"]


def test_epochs_go_into_a_table(ctx, tmp_path):
    """Each is a transaction."""
    url, feed = f"sqlite:///{tmp_path}/out.db", Feed()
    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
        database.execute("create table numbers (n integer)")
    run_in_epochs(ctx, feed, pipeline_of(feed, to_sql(url, "numbers")), [{"n": 1}, {"n": 2}], [{"n": 3}])

    with closing(sqlite3.connect(tmp_path / "out.db")) as database:
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


def test_a_job_starts_again_at_an_earlier_record_once(connect, monkeypatch):
    """Also where its first epoch is recorded, and the driver fails before it is published."""
    feed, first = Feed(), connect()
    job = first.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    for number, item in enumerate([1, 2, 3], 1):
        feed.give(item)
        eventually(lambda number=number: job.epoch == number)
    first.close()
    publish, failures = EpochRunner.publish, []

    def failing_once(runner, record):
        if record.published == 4 and not failures:
            failures.append(record)
            raise SinkUnavailableError("not now")
        publish(runner, record)

    monkeypatch.setattr(EpochRunner, "publish", failing_once)
    ctx, config = connect(), ds.JobConfig(start_at=1, force=True, auto_restart=(5, 0.01))
    again = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one", config=config)
    eventually(lambda: again.epoch is not None and again.epoch >= 4)
    feed.end()
    again.join(10)

    assert (ctx.get_list("out").copy(), len(failures)) == ([1, 2, 3, 2, 3], 1)


def test_a_job_starts_again_at_an_earlier_time(connect):
    """Behind the last epoch that is not later; also after drivers of before that put records of their own."""
    now, feed, config = [1000.0], Feed(), {"clock": lambda: now[0]}
    for number, item in enumerate([2, 4, 11], 1):
        with connect() as ctx:
            job = ctx.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums", config=ds.JobConfig(**config))
            feed.give(item)
            eventually(lambda job=job, number=number: job.epoch == number)
            now[0] += 100
    ctx = connect()
    start = datetime.fromtimestamp(1150, UTC)
    again = ds.JobConfig(start_at=start, force=True, **config)
    job = ctx.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums", config=again)
    eventually(lambda: job.epoch == 4)

    assert ctx.get_list("out").copy() == [(10, 6), (10, 6)]


@pytest.mark.parametrize("start", [7, datetime(2001, 1, 1, tzinfo=UTC)])
def test_an_epoch_that_is_not_kept_is_refused(connect, start):
    """Whether it never was, or is too long ago; the job is as it was, and can go on."""
    feed, first = Feed({"0": [2]}), connect()
    job = first.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: job.epoch == 1)
    first.close()
    config = ds.JobConfig(start_at=start, force=True)
    with pytest.raises(ValueError, match=r"start_at=.*keeps no such record"):
        connect().new_job(pipeline_of(feed, to_ilist("out")), name="one", config=config)

    assert connect().job("one").is_lost


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


@pytest.mark.parametrize("elsewhere", [None, "third"])
def test_a_job_that_goes_on_has_its_state_where_it_was(connect, tmp_path, elsewhere):
    """To look for it elsewhere is refused before anything begins: it would fail, and begin afresh the next time."""
    feed, config = Feed(), ds.JobConfig(files_at=str(tmp_path / "other"))
    first = connect()
    job = first.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums", config=config)
    feed.give(2)
    eventually(lambda: job.epoch == 1)
    first.close()
    ctx, wrong = connect(), ds.JobConfig(files_at=elsewhere and str(tmp_path / elsewhere))
    with pytest.raises(IllegalStateError, match=r"'sums' has the state of its steps in .*other, and is submitted with"):
        ctx.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums", config=wrong)
    assert ctx.job("sums").is_lost
    ctx.new_job(summing_plan(feed, Lagging, FrameSums()), name="sums", config=config)
    feed.give(4, 12)

    eventually(lambda: ctx.get_list("out").copy() == [(10, 6)])


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (replacing(to_ilist("out")), r"replacing\(to_ilist\('out'\)\), which means all items .*: leave out replacing"),
        (replacing(to_imap("out", str, int)), "leave out replacing"),
        (to_imap("out", str, int, max), 'give on_existing="merge"'),
        (grouping_by_to_imap("out", str), "aggregate by key in the pipeline"),
    ],
)
def test_what_means_all_items_of_a_job_is_refused(ctx, sink, said):
    """Since it would show those of one epoch; the message says what to use."""
    with pytest.raises(UnsupportedError, match=rf"new_job\(\): the stage .*{said}"):
        ctx.new_job(pipeline_of(Feed(), sink))


def test_a_job_that_is_started_afresh_writes_again(ctx):
    """Also into a sink that names the job: its epochs are not those of the job before."""
    for items in ([1, 2], [3, 4]):
        feed = Feed({"0": items})
        feed.end()
        ctx.new_job(pipeline_of(feed, to_ilist("out", job="mine")), name="one").join(10)

    assert ctx.get_list("out").copy() == [1, 2, 3, 4]


def test_what_is_to_be_published_needs_its_sink(connect, monkeypatch):
    """Another pipeline does not take it, also not by force; the one of before does."""
    feed, first = Feed({"0": [1]}), connect()
    with monkeypatch.context() as broken:
        broken.setattr(EpochRunner, "publish", lambda self, record: 1 // len(record.receipts) // 0)
        with pytest.raises(ZeroDivisionError):
            first.new_job(pipeline_of(feed, to_ilist("out")), name="one").join(10)
    other = pipeline_of(feed, to_ilist("other"))
    other = replace(other, writes=(replace(other.writes[0], stage="another"),))
    force = ds.JobConfig(force=True)
    with pytest.raises(IllegalStateError, match="may have still to publish what its last epoch wrote"):
        first.new_job(other, name="one", config=force).join(10)
    feed.end()
    first.new_job(pipeline_of(feed, to_ilist("out")), name="one", config=force).join(10)

    assert (first.get_list("out").copy(), first.get_list("other").copy()) == ([1], [])


def test_what_was_published_is_not_asked_of_the_sinks(connect, monkeypatch):
    """They may have forgotten it, as Kafka does after a week."""
    feed, first, asked = Feed({"0": [1]}), connect(), []
    job = first.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: job.epoch == 1)
    first.close()
    monkeypatch.setattr(EpochRunner, "publish", lambda self, record: asked.append(record.number))
    feed.end()
    connect().new_job(pipeline_of(feed, to_ilist("out")), name="one").join(10)

    assert asked == []


@pytest.mark.parametrize("ends", ["cancel", "complete"])
def test_a_job_that_has_ended_goes_back(ctx, ends):
    """What came behind the epoch is published again, by the same job."""
    feed = Feed({"0": [1]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: job.epoch == 1)
    feed.give(2)
    eventually(lambda: job.epoch == 2)
    feed.end()
    _ = job.cancel() if ends == "cancel" else job.join(10)
    eventually(lambda: job.status.has_ended)
    again = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one", config=ds.JobConfig(start_at=1, force=True))
    again.join(10)

    assert (again.id == job.id, ctx.get_list("out").copy()) == (True, [1, 2, 2])


def test_a_new_job_has_nowhere_to_start(ctx):
    """It is refused before it takes its name, which another job can have."""
    feed, config = Feed({"0": [1]}, ends=True, is_over=True), ds.JobConfig(start_at=1, force=True)
    for name, more in (("one", {}), (None, {}), ("one", {"afresh": True})):
        with pytest.raises(ValueError, match="start_at=1: this is a new job, which keeps no such record"):
            ctx.new_job(pipeline_of(feed, to_ilist("out")), name=name, config=config, **more)

    assert ctx.jobs() == []
    ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one").join(10)


class Beginning:
    """A sink that notes which of its epochs are removed, or cannot begin one."""

    job = collector = writer = None
    label, is_done = "beginning()", False

    def __init__(self, *, fails=False):
        self.fails, self.removed = fails, []

    def open(self, context):
        """Be the target too."""
        return self

    def begin(self, job, epoch=1):
        """Be the job too."""
        if self.fails:
            raise ValueError("not today")
        return self

    def abort(self):
        """Note it."""
        self.removed.append("an epoch")


def test_what_other_sinks_have_begun_is_removed_if_one_cannot_begin(ctx):
    """Nothing else would remove it: the job fails before anything is written."""
    feed, first = Feed({"0": ["a"]}), Beginning()
    with pytest.raises(ValueError, match="not today"):
        ctx.new_job(pipeline_of(feed, first, Beginning(fails=True))).join(10)

    assert first.removed == ["an epoch"]


def test_a_clock_that_counts_in_whole_seconds_is_one(connect):
    """Records have its readings as seconds, and are read again."""
    feed, config = Feed({"0": ["a"]}), ds.JobConfig(clock=lambda: 1000)
    with connect() as first:
        job = first.new_job(pipeline_of(feed, to_ilist("out")), name="one", config=config)
        eventually(lambda: job.epoch == 1)
    feed.give("b")
    feed.end()
    ctx = connect()
    ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one", config=config).join(10)

    assert ctx.get_list("out").copy() == ["a", "b"]


class Unwritable:
    """A sink with receipts that no record can hold."""

    job = collector = None
    label, is_done = "unwritable()", False

    def __init__(self):
        self.removed = []
        self.writer = self

    def open(self, context):
        """Be the target too."""
        return self

    def begin(self, job, epoch=1):
        """Be the job too."""
        return self

    def write(self, items):
        """Give a class for each item."""
        return (str for _ in items)

    def abort(self):
        """Note it."""
        self.removed.append("an epoch")


@pytest.mark.parametrize("is_unbounded", [False, True])
def test_output_whose_receipts_no_record_can_hold_is_removed(ctx, is_unbounded):
    """The job fails before it is decided, so nothing will ever publish it."""
    sink = Unwritable()
    plan = pipeline_of(Feed({"0": ["a"]}), sink) if is_unbounded else plan_of(ctx.stream([1]), sink)
    with pytest.raises(TypeError, match="a receipt holds type, which is no plain data"):
        ctx.new_job(plan).join(10)

    assert sink.removed == ["an epoch"]
