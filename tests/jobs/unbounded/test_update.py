"""A job goes on with another pipeline: what its stages remember stays with those of the same name."""

from __future__ import annotations

import threading

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, SerializationError, SourceError, UnsupportedError
from dstream.jobs import JobStatus
from reducers import to_ilist
from tests.jobs.planned import plan_of
from tests.jobs.unbounded.changing import counts, windowed, written
from tests.jobs.unbounded.streams import Feed, Opening, eventually, pipeline_of


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


def test_stages_that_stay_keep_what_they_remember(ctx, feed, job):
    """Nothing is read twice, and the counts go on; the other sink gets what comes from then on."""
    job.update(counts(feed, sink="else"))
    feed.give("a")
    feed.end()
    job.join(10)

    assert (written(ctx), written(ctx, "else")) == ([("b", 1), ("a", 1)], [("a", 2)])


def test_a_step_of_another_name_starts_empty(ctx, feed, job):
    """What the one before it remembers is dropped; the source goes on."""
    job.update(counts(feed, name="again"))
    feed.give("a")
    eventually(lambda: job.epoch == 2)

    assert written(ctx)[2:] == [("a", 1)]
    assert [(each.key, each.value) for each in job.state("again")] == [("a", 1)]


def test_a_source_is_attached_and_detached(ctx, feed, job):
    """It begins where it begins; the others keep their offsets and their state."""
    job.update(counts(feed, more=Feed({"0": ["x", "y"]})))
    eventually(lambda: job.epoch == 2)
    job.update(counts(feed))
    feed.give("b")
    feed.end()
    job.join(10)

    assert (ctx.get_list("more").copy(), written(ctx)) == (["x", "y"], [("b", 1), ("a", 1), ("b", 2)])


def test_a_sink_in_front_of_others_changes_nothing_for_them(ctx, feed, job):
    """What the last epoch wrote is not published once more, by a sink that stands where another one stood."""
    job.update(counts(feed, more=Feed()))
    eventually(lambda: job.metrics().runs == 2 and job.status is JobStatus.RUNNING)
    feed.give("a")
    eventually(lambda: job.epoch == 2)

    assert (ctx.get_list("more").copy(), written(ctx)) == ([], [("b", 1), ("a", 1), ("a", 2)])


def test_the_verdicts_say_what_becomes_of_each_stage(feed, job):
    """In the order of the new pipeline, then what is gone; nothing is changed."""
    verdicts = job.upgrade_plan(counts(feed, name="again", more=Feed()))

    assert [each[:2] for each in verdicts] == [
        ("more", "starts empty"),
        ("to more", "starts empty"),
        ("words", "keeps"),
        ("again", "starts empty"),
        ("to list", "keeps"),
        ("counts", "dropped"),
    ]
    assert verdicts[-1].why == "the state of 2 keys goes with it"


def test_another_window_is_refused_before_anything_stops(ctx):
    """The windows that are open go on."""
    feed = Feed({"0": [1, 2]})
    job = ctx.new_job(windowed(feed, 10))
    eventually(lambda: job.epoch == 1)
    assert [each.verdict for each in job.upgrade_plan(windowed(feed, 20))].count("refused") == 1
    with pytest.raises(IllegalStateError, match="cannot go on with this pipeline: the state of step 'counts' is that"):
        job.update(windowed(feed, 20))
    feed.end()
    job.join(10)

    assert ctx.get_list("out").copy() == [(0, 2)]


def test_windows_stay_open_across_an_update(ctx):
    """With their items, and the watermark of before."""
    feed = Feed({"0": [1, 12]})
    job = ctx.new_job(windowed(feed, 10))
    eventually(lambda: job.epoch == 1)
    job.update(windowed(feed, 10, more=Feed(ends=True, is_over=True)))
    feed.give(2, 13)
    feed.end()
    job.join(10)

    assert (ctx.get_list("out").copy(), job.metrics().stages["counts"].late) == ([(0, 1), (10, 2)], 1)


def test_a_suspended_job_goes_on_with_the_other_pipeline(ctx, feed, job):
    """No resume() is needed."""
    job.suspend()
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    job.update(counts(feed, sink="else"))
    feed.give("a")
    eventually(lambda: job.epoch == 2)

    assert written(ctx, "else") == [("a", 2)]


def test_a_function_that_fails_is_mended(ctx, feed):
    """The job waits where it failed, and the epoch runs again with the function that was mended."""
    config = ds.JobConfig(suspend_on_failure=True)
    plan = pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(int))
    job = ctx.new_job(plan, config=config)
    eventually(lambda: job.status is JobStatus.SUSPENDED)
    job.update(pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(str.upper)))
    eventually(lambda: job.epoch == 1)

    assert ctx.get_list("out").copy() == ["A", "B"]


def test_another_process_updates(connect, job):
    """The pipeline travels through the storage, by its rule for pickles."""
    elsewhere = connect().job("one")
    again = Feed({"0": ["a", "b", "b"]}, is_over=True)
    elsewhere.update(counts(again, sink="else"))
    eventually(lambda: job.epoch == 2)

    assert written(connect(), "else") == [("b", 2)]


def test_a_source_that_is_not_there_stops_nothing(feed, job):
    """The job goes on as it was."""

    class Missing(Feed):
        def opened(self, context):
            raise SourceError("it is not there")

    with pytest.raises(SourceError, match="it is not there"):
        job.update(counts(feed, more=Missing()))
    feed.give("c")
    eventually(lambda: job.epoch == 2)


def test_what_is_no_unbounded_pipeline_is_refused(ctx, feed, job):
    """The job goes on."""
    with pytest.raises(TypeError, match=r"update\(\) takes a pipeline, not None"):
        job.update(None)
    with pytest.raises(UnsupportedError, match=r"update\(\): the job 'one' has no end, and this pipeline has one"):
        job.update(plan_of(ctx.stream([1]), to_ilist("out")))
    feed.give("c")
    eventually(lambda: job.epoch == 2)


def test_a_job_that_was_updated_goes_on_under_its_name(connect, feed):
    """With the pipeline that it had last."""
    first = connect()
    left = first.new_job(counts(feed), name="one")
    eventually(lambda: left.epoch == 1)
    left.update(counts(feed, more=Feed({"0": ["x"]})))
    eventually(lambda: left.epoch == 2)
    first.close()
    feed.give("a")
    feed.end()
    ctx = connect()
    ctx.new_job(counts(feed, more=Feed({"0": ["x"]}, ends=True, is_over=True)), name="one").join(10)

    assert (written(ctx)[2:], ctx.get_list("more").copy()) == ([("a", 2)], ["x"])


@pytest.fixture
def opening():
    """A source that opens when the test lets it, at the end at the latest."""
    Opening.was_reached.clear()
    Opening.is_open.clear()
    yield Opening({"0": ["x"]})
    Opening.is_open.set()


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_an_update_whose_source_is_slow_to_open_holds_nothing_up(ctx, connect, job, feed, opening, is_cancelled):
    """Its driver gives signs of life and hears a cancel meanwhile, and other jobs are heard."""
    other = ctx.new_job(counts(Feed({"0": ["c"]}), sink="c"), name="two")
    elsewhere, answers = connect(), []
    plan = counts(opening, sink="else")
    asking = threading.Thread(target=lambda: answers.append(refused(elsewhere.job("one"), plan)))
    asking.start()
    assert opening.was_reached.wait(10)
    beat_at = elsewhere.job("one")._state().beat_at
    eventually(lambda: elsewhere.job("one")._state().beat_at > beat_at + 0.3)
    assert elsewhere.job("two").cancel()
    assert not is_cancelled or elsewhere.job("one").cancel()
    opening.is_open.set()
    asking.join(20)

    assert (answers, other.wait_for(JobStatus.CANCELLED, timeout=10).name) == ([is_cancelled], "CANCELLED")


def refused(job, plan) -> bool:
    """Update a job; say whether that was refused."""
    try:
        job.update(plan)
    except IllegalStateError:
        return True
    return False


def test_a_pipeline_that_cannot_travel_is_refused_by_name(connect, feed, job):
    """To the process that drives the job; there it need not, and the job goes on."""
    lock = threading.Lock()
    plan = pipeline_of(feed, to_ilist("out"), through=lambda stage: stage.map(lambda word: lock and word))
    with pytest.raises(SerializationError, match=r"'one' is driven by another .* cannot travel: TypeError: .*lock"):
        connect().job("one").update(plan)

    assert (job.status, job.update(plan)[-1][1]) == (JobStatus.RUNNING, "dropped")
