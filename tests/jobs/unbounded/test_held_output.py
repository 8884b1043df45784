"""Jobs without an end whose sink makes one file of several epochs."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.connectors.files.sinks import FileJob
from reducers import to_files
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


@pytest.fixture
def folder(tmp_path):
    """Where files go; it is not there yet."""
    return tmp_path / "out"


def contents(folder):
    """Return the texts of the files that readers see, in order."""
    return [path.read_text() for path in sorted(folder.glob("part*"))]


def running(ctx, folder, seconds, **config):
    """Return a feed and a job that has had three epochs of it."""
    feed = Feed()
    sink = to_files(folder, roll_at=(None, seconds))
    job = ctx.new_job(pipeline_of(feed, sink), config=ds.JobConfig(**config))
    for epoch in (1, 2, 3):
        feed.give(epoch)
        eventually(lambda epoch=epoch: job.epoch == epoch)
    return feed, job


@pytest.mark.parametrize("how", ["end", "cancel", "suspend", "fail"])
def test_nothing_stays_hidden_when_a_run_is_over(ctx, folder, how):
    """However it ends; until then nothing is seen."""
    feed, job = running(ctx, folder, 3600.0)
    assert contents(folder) == []
    if how == "fail":
        feed.lost_before = 10
    else:
        getattr(feed if how == "end" else job, how)()

    eventually(lambda: contents(folder) == ["1\n2\n3\n"])
    eventually(lambda: job.status not in (ds.JobStatus.RUNNING, ds.JobStatus.COMPLETING))


def test_a_sink_that_fails_at_the_end_hides_no_other_output(ctx, tmp_path, monkeypatch):
    """The epochs are published, and no later run of the job would show them."""
    show = FileJob.show_held

    def failing(job, *, is_over):
        if is_over and job.folder.path.endswith("first"):
            raise ValueError("not today")
        return show(job, is_over=is_over)

    monkeypatch.setattr(FileJob, "show_held", failing)
    feed, sinks = Feed({"0": [1]}), [to_files(tmp_path / name, roll_at=(None, 3600.0)) for name in ("first", "second")]
    job = ctx.new_job(pipeline_of(feed, *sinks))
    eventually(lambda: job.epoch == 1)
    feed.end()
    with pytest.raises(ValueError, match="not today"):
        job.join(10)

    assert contents(tmp_path / "second") == ["1\n"]


def test_files_appear_while_the_source_is_silent(ctx, folder):
    """When it is time, without another item."""
    _, job = running(ctx, folder, 0.3)
    eventually(lambda: "".join(contents(folder)) == "1\n2\n3\n")

    assert job.status is ds.JobStatus.RUNNING
    job.cancel()


def test_a_suspended_job_goes_on_with_another_file(ctx, folder):
    """What was seen stays as it is."""
    feed, job = running(ctx, folder, 3600.0)
    job.suspend()
    eventually(lambda: job.status is ds.JobStatus.SUSPENDED)
    job.resume()
    feed.give(4)
    feed.end()
    job.join(20)

    assert contents(folder) == ["1\n2\n3\n", "4\n"]


def test_files_of_tasks_on_spark_are_joined(spark_context, folder):
    """What tasks of several epochs have staged in other processes is seen as one file at the end, in order."""
    feed = Feed({"0": [1], "1": [-1]})
    sink = to_files(folder, roll_at=(None, 3600.0))
    job = spark_context.new_job(pipeline_of(feed, sink), config=ds.JobConfig(epoch_length=0.05))
    for number in (2, 3):
        eventually(lambda number=number: job.epoch >= number - 1, 120)
        feed.give(number)
        feed.give(-number, to="1")
    eventually(lambda: job.epoch >= 3, 120)
    assert (contents(folder), len(list((folder / ".dstream").glob("[!j]*"))) >= 4) == ([], True)
    feed.end()
    job.join(120)

    [text] = contents(folder)
    numbers = list(map(int, text.split()))
    assert [[n for n in numbers if n > 0], [n for n in numbers if n < 0]] == [[1, 2, 3], [-1, -2, -3]]
    assert list((folder / ".dstream").glob("[!j]*")) == []
