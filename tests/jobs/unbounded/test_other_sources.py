"""A job goes on with the source that it has read, and with no other one that stands in its place."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, SourceError, SourceUnavailableError
from dstream.jobs import JobStatus
from dstream.jobs.unbounded import resumption
from reducers import to_ilist
from sources import imap_journal, watch_files
from tests.jobs.unbounded.streams import Feed, eventually, pipeline_of


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
    from dstream.connectors.collections.sources import Journal

    monkeypatch.setattr(Journal, "identity", "")
    job = ctx.new_job(letters(), name="two")
    eventually(lambda: job.epoch == 1)
    monkeypatch.undo()
    job.restart()
    filled(ctx, "c")

    eventually(lambda: ctx.get_list("out").copy().count("c") == 2)


@dataclass(eq=False)
class Topics(Feed):
    """Partitions that each say what they belong to, as far as that is known."""

    ids: dict[str, str] = field(default_factory=lambda: {"0": "first"})
    asked_for_ids: int = 0
    silent: int = 0
    error: Exception = field(default_factory=lambda: SourceUnavailableError("topics(): nobody answers"))

    @property
    def identity(self):
        """Count how often it is asked for."""
        self.asked_for_ids += 1
        if self.silent:
            self.silent -= 1
            raise self.error
        return dict(self.ids)


@pytest.fixture
def topics(ctx):
    """A source whose first part was read by the job "topics", which waits; and a later one."""
    made = Topics({"0": ["a"]})
    job = ctx.new_job(pipeline_of(made, to_ilist("out")), name="topics")
    read(ctx, job, "a")
    made.ids["1"] = "second"
    made.give("b", to="1")
    read(ctx, job, "ab")
    ctx.close()
    return made


def test_a_part_that_came_up_meanwhile_is_no_other_source(connect, topics):
    """It is asked for when a run begins, twice, and when partitions come up; in no other epoch of the next seconds."""
    asked, ctx = topics.asked_for_ids, connect()
    job = ctx.new_job(pipeline_of(topics, to_ilist("out")), name="topics")
    eventually(lambda: job.status is JobStatus.RUNNING)
    begun = topics.asked_for_ids
    for number, item in enumerate("cd", 3):
        topics.give(item)
        eventually(lambda number=number: job.epoch == number)

    assert (asked, topics.asked_for_ids, ctx.get_list("out").copy()) == (3, begun, ["a", "b", "c", "d"])


def test_a_running_job_notices_that_a_part_was_made_anew(connect, topics, monkeypatch):
    """Every few seconds; what was read of it is thrown away. One that fails to say it is asked the next time."""
    monkeypatch.setattr(resumption, "_PAUSE", 0.0)
    ctx = connect()
    job = ctx.new_job(pipeline_of(topics, to_ilist("out")), name="topics")
    eventually(lambda: job.status is JobStatus.RUNNING)
    topics.silent, topics.error = 1, RuntimeError("nobody knows")
    read(ctx, job, "ab")
    topics.give("c")
    read(ctx, job, "abc")
    topics.ids["1"] = "another"
    topics.give("d")

    with pytest.raises(IllegalStateError, match="another one, or one that was made anew"):
        job.join(20)
    assert ctx.get_list("out").copy() == ["a", "b", "c"]


@pytest.mark.parametrize("part", ["0", "1"])
def test_a_job_does_not_go_on_where_a_part_was_made_anew(connect, topics, part):
    """Also one that came up while the job ran."""
    topics.ids[part] = "another"

    with pytest.raises(IllegalStateError, match="or one that was made anew"):
        connect().new_job(pipeline_of(topics, to_ilist("out")), name="topics")


def test_what_a_source_says_later_is_learned(ctx, connect):
    """As one that could not say anything yet when the job began."""
    made = Topics({"0": ["a"]}, ids={})
    job = ctx.new_job(pipeline_of(made, to_ilist("out")), name="topics")
    read(ctx, job, "a")
    made.ids["0"] = "first"
    made.give("b")
    read(ctx, job, "ab")
    ctx.close()
    made.ids["0"] = "another"

    with pytest.raises(IllegalStateError, match="or one that was made anew"):
        connect().new_job(pipeline_of(made, to_ilist("out")), name="topics")


@pytest.mark.parametrize("known", [{}, {"1": "second"}])
def test_a_part_that_does_not_say_what_it_is_goes_on(connect, topics, known):
    """As one of a server that cannot say it, or one that is gone."""
    topics.ids = known
    ctx = connect()
    job = ctx.new_job(pipeline_of(topics, to_ilist("out")), name="topics")
    topics.give("c")

    read(ctx, job, "abc")


def test_a_source_that_does_not_answer_is_asked_again_by_the_run(connect, topics):
    """The job is taken up all the same, and starts again as one whose source falls silent later."""
    topics.silent = 3
    ctx = connect()
    config = ds.JobConfig(auto_restart=(3, 0.01))
    job = ctx.new_job(pipeline_of(topics, to_ilist("out")), name="topics", config=config)
    topics.give("c")
    read(ctx, job, "abc")

    assert topics.silent == 0
