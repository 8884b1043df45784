"""`dstream jobs`: what is shown of the jobs of a storage, and what is asked of their drivers."""

from __future__ import annotations

import pytest

from dstream.command import jobs
from dstream.jobs import Job, JobStatus
from dstream.jobs.records import FormattedRecords
from dstream.jobs.state import forget_driver
from reducers import to_ilist
from tests.jobs.planned import Gate, plan_of


@pytest.fixture
def done(storage):
    """A job that has completed."""
    job = storage.new_job(plan_of(storage.stream([1, 2]), to_ilist("out")), name="done")
    job.join()
    return job


@pytest.fixture
def failed(storage):
    """A job that has failed."""
    job = storage.new_job(plan_of(storage.stream([0]).map(lambda n: 1 // n), to_ilist("out")), name="failed")
    job.future().exception()
    return job


@pytest.fixture
def running(storage):
    """A job that waits."""
    gate = Gate()
    job = storage.new_job(plan_of(storage.stream([0]).map(gate), to_ilist("out")), name="running")
    assert gate.was_reached.wait(10)
    yield job
    gate.is_open.set()


def test_the_list_has_a_line_for_each_job(command, done, failed):
    """Newest first; nothing is cut where there is no terminal."""
    lines = [line.split() for line in command("jobs").stdout.splitlines()]

    assert lines[0] == ["id", "name", "status", "submitted", "seconds", "driver"]
    assert [line[:3] for line in lines[1:]] == [[failed.id, "failed", "FAILED"], [done.id, "done", "COMPLETED"]]


def test_a_damaged_job_stands_in_the_list_with_the_others(command, storage, done, failed):
    """What is wrong with it is said below, and the command fails."""
    records, place = FormattedRecords(storage.running_storage().records), f"jobs/{done.id}/state"
    assert records.write(place, b"{", records.read(place).version + 1)
    ended = command("jobs")

    assert ended.exit_code == 1
    assert [line.split()[:3] for line in ended.stdout.splitlines()[1:]] == [
        [failed.id, "failed", "FAILED"],
        [done.id, "damaged"],
    ]
    assert f"the record of the job {done.id} is damaged" in ended.stderr


def test_a_storage_without_jobs_says_so(command, folder):
    """And nothing is made by looking."""
    ended = command("jobs")

    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "no jobs in dstream-data\n")
    assert list(folder.iterdir()) == []


def test_show_says_what_is_known(command, done):
    """By its name or its id, with the numbers of its stages."""
    said = command("jobs", "show", "done").stdout

    assert [line.split() for line in said.splitlines()[:3]] == [
        ["id", done.id],
        ["name", "done"],
        ["status", "COMPLETED"],
    ]
    assert said.splitlines()[-1].split() == ["sink-1", "2", "2"]
    assert command("jobs", "show", done.id).stdout == said


def test_show_says_what_a_job_failed_with(command, failed):
    """Its exception with the notes."""
    said = command("jobs", "show", "failed").stdout

    assert "failure     ZeroDivisionError: integer division or modulo by zero\n" in said
    assert "What to do: " in said


def test_show_gives_openmetrics(command, done):
    """The text that Prometheus reads, and nothing else."""
    assert command("jobs", "show", "done", "--openmetrics").stdout == done.metrics().to_openmetrics()


def test_show_watches_a_job_to_its_end(command, done):
    """One that has ended is shown once."""
    assert "done: COMPLETED" in command("jobs", "show", "done", "--watch").stdout


class Lost:
    """A job without a driver, until it was looked at so many times."""

    def __init__(self, job, looks):
        self.job, self.looks = job, looks

    @property
    def is_lost(self):
        self.looks -= 1
        return self.looks > 0

    @property
    def status(self):
        return JobStatus.NOT_RUNNING if self.looks > 0 else self.job.status

    def metrics(self):
        return self.job.metrics()


@pytest.mark.parametrize(("looks", "left"), [(5, False), (1000, True)])
def test_show_watches_a_job_that_another_driver_may_take_up(done, monkeypatch, looks, left):
    """As `dstream submit --restart` does it; if nobody comes, it is left after some time."""
    monkeypatch.setattr(jobs, "_BETWEEN_LOOKS", 0.001)
    monkeypatch.setattr(jobs, "_PATIENCE", 0.3)
    lost = Lost(done, looks)
    jobs._watch(lost)

    assert (lost.looks < looks, lost.looks > 0) == (True, left)


def test_a_job_is_cancelled(command, running):
    """One that has ended is not, which is said."""
    ended = command("jobs", "cancel", "running")
    assert (ended.exit_code, ended.stdout) == (0, "running is cancelled\n")
    assert running.status is JobStatus.CANCELLED
    again = command("jobs", "cancel", "running")

    assert (again.exit_code, again.stderr) == (1, "running was not cancelled: it is CANCELLED\n")


@pytest.mark.parametrize(("asked", "said"), [("cancel", "is asked to end"), ("suspend", "is asked to wait behind")])
def test_what_takes_long_is_said_to_be_asked_for(command, running, monkeypatch, asked, said):
    """Not to be done: the job runs still."""
    monkeypatch.setattr(Job, asked, lambda _: True)
    monkeypatch.setattr(jobs, "_PATIENCE", 0.05)

    assert said in command("jobs", asked, "running").stdout


def test_a_job_is_started_again(command, running, done):
    """One that has ended, or whose driver is gone, is not."""
    assert command("jobs", "restart", "running").stdout == "running starts again\n"
    assert "'done' has ended: it is COMPLETED" in command("jobs", "restart", "done").stderr
    forget_driver(running.driver)
    assert "the driver of the job 'running' is gone" in command("jobs", "restart", "running").stderr


@pytest.mark.parametrize("name", ["suspend", "resume", "snapshot"])
def test_what_bounded_jobs_do_not_do_is_refused(command, running, name):
    """In one sentence; the job goes on."""
    ended = command("jobs", name, "running")

    assert ended.exit_code == 1
    assert "does not exist for bounded jobs" in ended.stderr


def test_a_job_without_a_log_says_so(command, done):
    """A log is written for what `dstream submit` starts."""
    assert command("jobs", "logs", "done").stderr == "done has no log: its driver was not started by dstream submit\n"


def test_a_wrong_name_gets_near_ones(command, done):
    """One sentence, and the names that look like it."""
    ended = command("jobs", "show", "don")

    assert (ended.exit_code, ended.stderr) == (1, "there is no job 'don' in dstream-data; did you mean 'done'?\n")
