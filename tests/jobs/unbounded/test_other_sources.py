"""A job goes on with the source that it has read, and with no other one that stands in its place."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, SourceError
from dstream.jobs import JobStatus
from reducers import to_ilist
from sources import imap_journal, watch_files
from tests.jobs.unbounded.streams import eventually


def letters(name="letters", *others):
    """Return a pipeline that writes the values of a journal, and what other sources give, into lists."""
    pipeline = ds.Pipeline()
    journal = imap_journal(name, projection=lambda event: event.new_value)
    pipeline.read_from(journal).set_name("read").write_to(to_ilist("out"))
    for other in others:
        pipeline.read_from(other).set_name("other").write_to(to_ilist("others"))
    return pipeline


def filled(ctx, values, name="letters"):
    """Return a map with a journal, into which some values were put."""
    made = ctx.get_map(name, journal=True)
    for number, value in enumerate(values):
        made[number] = value
    return made


def read(ctx, job, values):
    """Wait until a job has written some values."""
    eventually(lambda: ctx.get_list("out").copy() == list(values) or job.status.has_ended)
    assert ctx.get_list("out").copy() == list(values)


@pytest.fixture
def kept(ctx):
    """A job that has read two letters."""
    filled(ctx, "ab")
    job = ctx.new_job(letters(), name="one")
    read(ctx, job, "ab")
    return job


def test_a_job_does_not_go_on_in_a_map_that_was_made_anew(connect, ctx, kept):
    """Although it has more events than were read of the one before; the job stays as it was."""
    ctx.close()
    ctx = connect()
    ctx.get_map("letters", journal=True).destroy()
    filled(ctx, "vwxyz")

    with pytest.raises(IllegalStateError, match="is not what the stage 'read' has read so far") as raised:
        ctx.new_job(letters(), name="one")
    assert (ctx.job("one").status, ctx.get_list("out").copy()) == (JobStatus.NOT_RUNNING, ["a", "b"])
    assert "imap_journal('letters'" in str(raised.value)


def test_a_job_that_is_resumed_does_not_go_on_in_a_map_that_was_made_anew(ctx, kept):
    """It fails, and names the step that reads."""
    kept.suspend()
    kept.wait_for(JobStatus.SUSPENDED, timeout=10)
    ctx.get_map("letters", journal=True).destroy()
    filled(ctx, "vwxyz")
    kept.resume()

    with pytest.raises(IllegalStateError, match="or one that was made anew") as raised:
        kept.join(10)
    assert ds.failure(raised.value).step.label.startswith("read_from(imap_journal('letters'")
    assert ctx.get_list("out").copy() == ["a", "b"]


def test_a_job_that_is_forced_reads_the_new_map_from_its_start(connect, ctx, kept):
    """What was read of the one before is forgotten, and nothing of the new one is left out."""
    ctx.close()
    ctx = connect()
    ctx.get_map("letters", journal=True).destroy()
    filled(ctx, "vwxyz")
    job = ctx.new_job(letters(), name="one", config=ds.JobConfig(force=True))

    read(ctx, job, "abvwxyz")


def test_offsets_of_one_journal_are_not_used_in_another(ctx, kept):
    """An update that gives a stage another journal is refused, and the job goes on."""
    filled(ctx, "vwxyz", "others")

    with pytest.raises(IllegalStateError, match=r"imap_journal\('others'.* is not what the stage 'read' has read"):
        kept.update(letters("others"))
    filled(ctx, "c")
    read(ctx, kept, "abc")


def test_a_source_that_cannot_begin_is_refused_before_anything_stops(ctx, kept, tmp_path):
    """An update does not end a job because a folder is not there."""
    with pytest.raises(SourceError, match="is not there"):
        kept.update(letters("letters", watch_files(tmp_path / "none")))
    filled(ctx, "c")
    read(ctx, kept, "abc")


def test_a_source_that_is_lost_names_its_step(ctx, kept):
    """The error of a source says which call of the user's reads it."""
    ctx.get_map("letters", journal=True).destroy()

    with pytest.raises(SourceError, match="was destroyed") as raised:
        kept.join(10)
    assert ds.failure(raised.value).step.label.startswith("read_from(imap_journal('letters'")


def test_records_of_before_identities_go_on(ctx, kept, monkeypatch):
    """A record that does not say what was read is of whatever source its stage has now."""
    from sources.journal_reading import Journal

    monkeypatch.setattr(Journal, "identity", "")
    job = ctx.new_job(letters(), name="two")
    eventually(lambda: job.epoch == 1)
    monkeypatch.undo()
    job.restart()
    filled(ctx, "c")

    eventually(lambda: ctx.get_list("out").copy().count("c") == 2)
