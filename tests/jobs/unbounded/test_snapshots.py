"""What a job remembers is exported under a name, and another job begins with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.jobs import JobStatus
from dstream.jobs.records import FormattedRecords
from dstream.jobs.snapshots import Snapshots, _record_of
from dstream.storage.base.named_folders import FolderStateFiles
from reducers import to_ilist
from tests.jobs.planned import plan_of
from tests.jobs.unbounded.changing import counts, windowed, written
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of

BEGINS = ds.JobConfig(initial_snapshot="then")


@pytest.fixture
def feed():
    """A source with two words."""
    return Feed({"0": ["a", "b"]})


@pytest.fixture
def job(ctx, feed):
    """A job that has counted them."""
    made = ctx.new_job(counts(feed), name="one")
    eventually(lambda: made.epoch == 1)
    return made


def test_another_job_begins_with_a_snapshot(ctx, feed, job):
    """Where the first one was when it was exported, whatever became of that since."""
    job.export_snapshot("then")
    feed.give("a")
    eventually(lambda: job.epoch == 2)
    job.cancel()
    feed.end()
    other = ctx.new_job(counts(feed, sink="else"), name="other", config=BEGINS)
    other.join(10)

    assert (other.epoch, written(ctx, "else")) == (1, [("a", 2)])


def test_snapshots_are_listed_replaced_and_removed(ctx, job):
    """Newest first, by every process on the storage; files go with them."""
    job.export_snapshot("first")
    job.export_snapshot("then")
    job.export_snapshot("first")
    found = ctx.snapshots()
    assert [(each.name, each.job_name, each.epoch, each.keys) for each in found] == [
        ("first", "one", 1, {"counts": 2}),
        ("then", "one", 1, {"counts": 2}),
    ]

    assert (ctx.remove_snapshot("first"), ctx.remove_snapshot("first")) == (True, False)
    assert [each.name for each in ctx.snapshots()] == ["then"]


def test_files_of_a_snapshot_go_with_it(ctx, job, tmp_path):
    """Also those of one that was replaced."""
    for _ in range(2):
        job.export_snapshot("then")
    ctx.remove_snapshot("then")

    assert [path for path in tmp_path.rglob("*") if path.is_file() and "/snapshot-" in str(path)] == []


@pytest.fixture
def lose_second_file(feed, job, monkeypatch):
    """Lose the second file of state that an export copies."""
    feed.give("a")
    eventually(lambda: job.epoch == 2)
    read, names = FolderStateFiles.read, []

    def read_one(files, name, *given):
        names.append(name)
        if len(names) == 2:
            raise FileNotFoundError(name)
        return read(files, name, *given)

    monkeypatch.setattr(FolderStateFiles, "read", read_one)


@pytest.mark.usefixtures("lose_second_file")
def test_an_export_that_fails_leaves_no_files(job, tmp_path):
    """No record names its copies, so nothing would ever remove them."""
    with pytest.raises(IllegalStateError, match=r"has no file .* any more"):
        job.export_snapshot("then")

    assert [path for path in tmp_path.rglob("*") if path.is_file() and "/snapshot-" in str(path)] == []


@pytest.mark.usefixtures("lose_second_file")
def test_an_export_that_fails_tells_why_also_where_its_files_cannot_be_removed(job, monkeypatch):
    """The user needs the reason of the export."""
    remove, names = FolderStateFiles.remove, []

    def remove_but_one(files, name):
        names.append(name)
        if len(names) == 2:  # The first removal makes room for the copy.
            raise PermissionError(name)
        remove(files, name)

    monkeypatch.setattr(FolderStateFiles, "remove", remove_but_one)
    with pytest.raises(IllegalStateError, match=r"has no file .* any more"):
        job.export_snapshot("then")
    assert len(names) == 2


def test_a_job_is_cancelled_behind_the_epoch_that_is_exported(ctx, feed, job):
    """So another version goes on without a gap and without an item twice."""
    assert job.cancel_and_export_snapshot("then").epoch == 1
    eventually(lambda: job.status is JobStatus.CANCELLED)
    feed.give("b")
    feed.end()
    ctx.new_job(counts(feed, more=feed), name="one", config=BEGINS).join(10)

    assert (written(ctx), ctx.get_list("more").copy()) == ([("b", 1), ("a", 1), ("b", 2)], ["a", "b", "b"])


def test_a_job_that_is_about_to_restart_is_exported_and_cancelled_behind_that(job, monkeypatch):
    """The restart is what it was asked for first; it takes no other wish meanwhile, so it is asked again."""
    suspend, wait_for, refused = type(job).suspend, type(job).wait_for, [False, False]
    monkeypatch.setattr(type(job), "suspend", lambda self: refused.pop() if refused else suspend(self))
    monkeypatch.setattr(type(job), "wait_for", lambda self, *statuses: wait_for(self, *statuses, timeout=5))
    job.restart()

    assert job.cancel_and_export_snapshot("then").epoch == 1
    eventually(lambda: job.status is JobStatus.CANCELLED)


def test_a_job_that_cannot_be_exported_is_not_cancelled(job):
    """It goes on."""
    with pytest.raises(ValueError, match="the name of a snapshot must not be empty"):
        job.cancel_and_export_snapshot(" ")

    eventually(lambda: job.status is JobStatus.RUNNING)


def test_another_process_exports(connect, job):
    """The driver need not do anything."""
    connect().job("one").export_snapshot("then")

    assert [each.name for each in connect().snapshots()] == ["then"]


def test_a_pipeline_that_a_snapshot_does_not_fit_is_refused(ctx, feed, job):
    """Before it is registered; with force what does not fit is left out."""
    job.export_snapshot("then")
    with pytest.raises(IllegalStateError, match="begins with the snapshot 'then', and this is another pipeline"):
        ctx.new_job(counts(feed, name="again"), config=BEGINS)
    assert len(ctx.jobs()) == 1
    feed.give("a")
    feed.end()
    config = ds.JobConfig(initial_snapshot="then", force=True)
    ctx.new_job(counts(feed, name="again", sink="else"), config=config).join(10)

    assert written(ctx, "else") == [("a", 1)]


def test_another_window_does_not_take_the_state_of_a_snapshot(ctx):
    """With force, its windows begin empty where the source was."""
    feed = Feed({"0": [1, 2]})
    job = ctx.new_job(windowed(feed, 10))
    eventually(lambda: job.epoch == 1)
    job.cancel_and_export_snapshot("then")
    feed.give(3)
    feed.end()
    with pytest.raises(IllegalStateError, match="cannot go on with this pipeline: the state of step 'counts'"):
        ctx.new_job(windowed(feed, 20), config=BEGINS)
    ctx.new_job(windowed(feed, 20), config=ds.JobConfig(initial_snapshot="then", force=True)).join(10)

    assert ctx.get_list("out").copy() == [(0, 1)]


def test_a_snapshot_that_is_not_there_is_refused(ctx, feed, job):
    """The message names those that are."""
    job.export_snapshot("then")
    with pytest.raises(ValueError, match="there is no snapshot 'now'; snapshots: 'then'"):
        ctx.new_job(counts(feed), config=ds.JobConfig(initial_snapshot="now"))


def test_a_damaged_snapshot_hides_no_other_one(ctx, feed, job, place, caplog):
    """Neither where they are listed nor where one is looked for; the log says which record is damaged."""
    for name in ("first", "then"):
        job.export_snapshot(name)
    records = Path(place) / "records" / _record_of("first")
    for path in records.iterdir():
        path.write_bytes(path.read_bytes()[:-1])

    assert [each.name for each in ctx.snapshots()] == ["then"]
    with pytest.raises(ValueError, match="there is no snapshot 'now'; snapshots: 'then'"):
        ctx.new_job(counts(feed), config=ds.JobConfig(initial_snapshot="now"))
    with pytest.raises(IllegalStateError, match="is damaged"):
        ctx.new_job(counts(feed), config=ds.JobConfig(initial_snapshot="first"))
    assert str(records) in caplog.text


def test_a_bounded_job_begins_with_no_snapshot(ctx):
    """It keeps nothing."""
    with pytest.raises(UnsupportedError, match="initial_snapshot is for jobs without an end"):
        ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), config=BEGINS)


def test_the_name_is_free_when_a_job_is_exported_and_cancelled(ctx):
    """A new job can have it in the next line."""
    feed = Feed({"0": [1]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")
    eventually(lambda: job.epoch == 1)
    snapshot = job.cancel_and_export_snapshot("then")
    again = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one")

    assert (job.status.name, snapshot.epoch, again.id == job.id) == ("CANCELLED", 1, False)


def damage(ctx, name: str) -> None:
    """Write something else over the record of a snapshot."""
    records, record = FormattedRecords(ctx.running_storage().records), _record_of(name)
    assert records.write(record, b"torn", records.read(record).version + 1)


def test_a_damaged_snapshot_is_replaced_and_removed_like_any_other(ctx, job, caplog):
    """Its files cannot be known any more, which the log says."""
    job.export_snapshot("then")
    damage(ctx, "then")
    assert job.export_snapshot("then").epoch == 1
    damage(ctx, "then")
    assert (ctx.remove_snapshot("then"), ctx.remove_snapshot("then")) == (True, False)

    assert caplog.text.count("files of a snapshot that is no more may be left: the record of the snapshot 'then'") == 2


def test_a_job_that_cannot_be_exported_is_left_as_it_is(ctx, job, monkeypatch):
    """One that was suspended stays so; one that runs goes on."""
    with pytest.raises(ValueError, match="must not be empty"):
        job.cancel_and_export_snapshot(" ")
    assert job.status is JobStatus.RUNNING
    monkeypatch.setattr(Snapshots, "export", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        job.cancel_and_export_snapshot("then")
    job.wait_for(JobStatus.RUNNING, timeout=20)
    job.suspend()
    job.wait_for(JobStatus.SUSPENDED, timeout=20)
    with pytest.raises(ZeroDivisionError):
        job.cancel_and_export_snapshot("then")

    assert (job.status, job.resume()) == (JobStatus.SUSPENDED, True)


def test_a_job_without_records_is_not_exported(ctx):
    """It is told so before it is suspended: it would begin again at the start of its sources."""
    feed = Feed({"0": [1, 2]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="unkept", config=ds.JobConfig(guarantee="none"))
    eventually(lambda: job.epoch == 1)
    for export in (job.export_snapshot, job.cancel_and_export_snapshot):
        with pytest.raises(IllegalStateError, match="'unkept' keeps no records, so nothing can be exported"):
            export("then")
    feed.end()
    job.join(20)

    assert ctx.get_list("out").copy() == [1, 2]
