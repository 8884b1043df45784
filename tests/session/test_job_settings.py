"""What is said of all jobs: a job stands over the argument of `connect()`, and this over the file, value by value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dstream as ds
from dstream.errors import ConfigurationError, UnsupportedError
from dstream.session.configuration import configured
from reducers import to_ilist
from sources import items, stream_of


def written(text):
    """Write the file of the current folder."""
    Path("dstream.toml").write_text(text)


def job_of(config=None, source=None, **said):
    """Return a job that ran on a context which says something of all jobs."""
    pipeline = ds.Pipeline()
    pipeline.read_from(source or items(1, 2)).write_to(to_ilist("out"))
    with ds.connect(engine="local", storage="memory:", **said) as ctx:
        job = ctx.new_job(pipeline, name="one", config=config)
        job.join(20)
        return job.config, job.metrics().stages["write_to"].items_in


def test_a_job_stands_over_the_argument_and_this_over_the_file(folder):
    """Each value by itself; what nobody says is left to dstream."""
    written('[job]\nguarantee = "none"\nauto_restart = 7\nepoch_length = 0.5\nmetrics = false')
    of_all = ds.JobConfig(auto_restart=8, epoch_length=0.25)
    config, _ = job_of(ds.JobConfig(epoch_length=0.125), stream_of([1, 2]), job=of_all)

    assert config == ds.JobConfig(name="one", guarantee="none", auto_restart=8, epoch_length=0.125, metrics=False)
    assert job_of()[0] == ds.JobConfig(name="one", guarantee="none", auto_restart=7, epoch_length=0.5, metrics=False)


def test_what_is_said_of_all_jobs_is_done(folder):
    """Items are counted unless the file says otherwise, and a job says otherwise again."""
    assert job_of()[1] == 2
    written("[job]\nmetrics = false")
    assert job_of()[1] is None
    assert job_of(ds.JobConfig(metrics=True))[1] == 2


def test_jobs_that_end_leave_out_what_is_for_others(folder):
    """The same file is for both; what a job says itself is refused as before."""
    written("[job]\nmax_items = 5\nkeep = 60\nsuspend_on_failure = true\nauto_restart = [3, 0.5]")

    assert job_of()[0] == ds.JobConfig(name="one", auto_restart=(3, 0.5))
    assert job_of(source=stream_of([1, 2]))[0] == ds.JobConfig(
        name="one", auto_restart=(3, 0.5), max_items=5, keep=60, suspend_on_failure=True
    )
    with pytest.raises(UnsupportedError, match="max_items is for jobs without an end"):
        job_of(ds.JobConfig(max_items=5))


def test_a_folder_of_state_is_relative_to_the_file(folder):
    """As that of the storage; a URL stays what it is."""
    written('[job]\nfiles_at = "state"')
    (folder / "below").mkdir()
    os.chdir(folder / "below")
    assert configured({})["job"].files_at == str(folder / "state")
    written('[job]\nfiles_at = "s3://bucket/state"')

    assert configured({})["job"].files_at == "s3://bucket/state"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[job]\nkeep = 1\nkep = 2", "kep in {path}, line 3, is no setting of jobs; did you mean keep?"),
        ("[job]\nxyzzy = 1", "xyzzy in {path}, line 2, is no setting of jobs; JobConfig has those that are"),
        ('[job]\nepoch_length = "1"', "epoch_length in {path}, line 2, must be seconds, not '1'"),
        ("[job]\nauto_restart = [1, -2]", "auto_restart in {path}, line 2: the pause of auto_restart must be above 0"),
        ('[job]\nname = "sales"', "name in {path}, line 2, is for one job: give it to new_job(..., config="),
        ("[job]\nforce = true", "force in {path}, line 2, is for one job"),
        ("job = 3", "job in {path}, line 1, must be a table, [job]"),
    ],
)
def test_a_value_of_the_table_that_cannot_be_is_refused(folder, text, message):
    """Before anything starts; the message has the line."""
    written(text)
    with pytest.raises(ConfigurationError) as caught:
        ds.connect(engine="local")

    assert str(caught.value).startswith(message.format(path=folder / "dstream.toml"))


@pytest.mark.parametrize(
    ("job", "error", "message"),
    [
        ({"keep": 1}, TypeError, r"job must be a JobConfig, not \{'keep': 1\}"),
        (ds.JobConfig(name="sales"), ValueError, "name is for one job"),
        (ds.JobConfig(clock=int), ValueError, "clock is for one job"),
        (ds.JobConfig(initial_snapshot="before"), ValueError, "initial_snapshot is for one job"),
        (ds.JobConfig(start_at=1, force=True), ValueError, "start_at is for one job"),
    ],
)
def test_an_argument_that_cannot_be_is_refused(folder, job, error, message):
    """At the call."""
    with pytest.raises(error, match=message):
        ds.connect(engine="local", job=job)


def test_what_is_said_of_all_jobs_is_shown_without_a_password(folder):
    """As `dstream doctor` prints it, with the place."""
    written('[job]\nguarantee = "none"\nfiles_at = "redis://user:secret@host/0"')
    shown = repr(configured({"job": ds.JobConfig(keep=60)}).settings["job"])

    assert shown.startswith("Setting(guarantee=none, keep=60, files_at=redis://")
    assert "secret" not in shown
    assert shown.endswith(f"from argument and {folder / 'dstream.toml'})")
