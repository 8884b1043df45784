"""A bounded job of which one sink refuses to publish: what its error says, and both ways to go on."""

from __future__ import annotations

import sqlite3

import pytest

from dstream import Pipeline
from dstream.errors import JobExistsError, SinkError
from dstream.jobs import JobConfig, JobStatus
from dstream.jobs.state import forget_driver
from reducers import to_ilist, to_sql
from sources import items
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


@pytest.fixture
def database(tmp_path):
    """A table in which one of Monday's keys has a row already."""
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("create table t (id integer primary key)")
        connection.execute("insert into t values (2)")
    yield connection
    connection.close()


@pytest.fixture
def monday(ctx, tmp_path, database):
    """The error of a job that has published its list, and not its table."""
    with pytest.raises(SinkError) as raised:
        ctx.new_job(both(tmp_path, 1, 2), name="daily").join(20)
    database.execute("delete from t")
    database.commit()
    return raised.value


def both(folder, *numbers: int) -> Pipeline:
    """Write rows into a list and into a table."""
    pipeline = Pipeline()
    rows = pipeline.read_from(items(*({"id": number} for number in numbers)))
    rows.write_to(to_ilist("rows"))
    rows.write_to(to_sql(f"sqlite:///{folder}/db", "t"))
    return pipeline


def written(ctx, database) -> tuple[list[int], list[int]]:
    """Return what both sinks have."""
    return [row["id"] for row in ctx.get_list("rows")], [row for (row,) in database.execute("select id from t")]


def test_the_error_says_what_is_published_and_how_to_go_on(monday, tmp_path):
    """It names the sinks, the name under which the job goes on, and the way to begin afresh."""
    notes = "\n".join(monday.__notes__)

    assert "Published: to_ilist('rows'). Not published: to_sql(" in notes
    assert "submitted again under its name the job publishes what it has computed, and does not read" in notes
    assert "new_job(..., name='daily', afresh=True) forgets that" in notes


def test_another_process_reads_the_same(connect, monday):
    """What is said of the failure is stored with it."""
    with pytest.raises(SinkError) as raised:
        connect().job("daily").join(20)

    assert any("Not published: to_sql(" in note for note in raised.value.__notes__)


def test_submitted_again_it_publishes_the_rest_and_says_so(ctx, tmp_path, database, monday, caplog):
    """Nothing is read: Tuesday's rows are for the submission behind it."""
    ctx.new_job(both(tmp_path, 3, 4), name="daily").join(20)
    assert written(ctx, database) == ([1, 2], [1, 2])
    assert "publishes what it computed before, and does not read its sources" in caplog.text

    ctx.new_job(both(tmp_path, 3, 4), name="daily").join(20)
    assert written(ctx, database) == ([1, 2, 3, 4], [1, 2, 3, 4])


def test_begun_afresh_it_reads_its_sources(ctx, tmp_path, database, monday, caplog):
    """What was computed before is forgotten, also by the job that has failed, which stays as it is."""
    failed = ctx.job("daily")
    job = ctx.new_job(both(tmp_path, 3, 4), name="daily", afresh=True)
    job.join(20)

    assert written(ctx, database) == ([1, 2, 3, 4], [3, 4])
    assert (failed.status, ctx.job("daily").id == job.id, job.id != failed.id) == (JobStatus.FAILED, True, True)
    assert "does not read its sources" not in caplog.text


def test_a_job_without_an_end_begins_afresh_where_its_sources_begin(ctx, connect):
    """Its driver is gone; one that was only cut off finds that it has been cancelled."""
    feed = Feed({"0": [1, 2]})
    first = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="endless")
    eventually(lambda: first.epoch == 1)
    forget_driver(first.driver)
    feed.end()
    connect().new_job(pipeline_of(feed, to_ilist("again")), name="endless", afresh=True).join(20)

    assert (ctx.get_list("again").copy(), ctx.get_list("out").copy()) == ([1, 2], [1, 2])


def test_a_job_that_runs_is_not_begun_afresh(ctx):
    """It has to be cancelled before."""
    feed = Feed({"0": [1]})
    job = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="endless")
    with pytest.raises(JobExistsError, match="is running already"):
        ctx.new_job(pipeline_of(feed, to_ilist("out")), name="endless", afresh=True)
    with pytest.raises(TypeError, match="afresh must be a bool"):
        ctx.new_job(pipeline_of(feed, to_ilist("out")), afresh="yes")
    job.cancel()


@pytest.mark.parametrize("config", [JobConfig(start_at=1, force=True), JobConfig(initial_snapshot="no such")])
def test_what_cannot_begin_afresh_forgets_nothing(ctx, connect, config):
    """It is refused before the job that is there is cancelled, which goes on later."""
    feed = Feed({"0": [1, 2]})
    first = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="endless")
    eventually(lambda: first.epoch == 1)
    forget_driver(first.driver)
    other = connect()
    with pytest.raises(ValueError, match=r"keeps no such record|there is no snapshot"):
        other.new_job(pipeline_of(feed, to_ilist("out")), name="endless", afresh=True, config=config)
    again = other.new_job(pipeline_of(feed, to_ilist("out")), name="endless")
    feed.end()
    again.join(20)

    assert (again.id, ctx.get_list("out").copy()) == (first.id, [1, 2])
