"""Where a driver can die, row by row of decision 44: what was committed is published once, all else runs again."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, JobTakenOverError
from dstream.jobs.driver import Execution
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from dstream.jobs.unbounded.log import EpochLog
from reducers import to_ilist
from tests.jobs.planned import Interrupted
from tests.jobs.unbounded.streams import Feed, pipeline_of


class Died(BaseException):
    """Stands for the end of a process: nothing is tidied up behind it."""


@pytest.fixture
def dies(monkeypatch):
    """End drivers where a method is called, `before` or after its work; once."""
    monkeypatch.setattr(EpochRunner, "abort", lambda *given: None)
    monkeypatch.setattr(Execution, "_fail", Execution._finish)

    def at(kind, name, *, before, when=lambda *given: True):
        method, left = getattr(kind, name), [1]

        def dying(self, *given):
            is_now = bool(left) and when(*given)
            if is_now and before:
                left.clear()
                raise Died
            result = method(self, *given)
            if is_now and left:
                left.clear()
                raise Died
            return result

        monkeypatch.setattr(kind, name, dying)

    return at


def is_epoch(record):
    """Say whether an epoch has run, so that this is no claim."""
    return not record.is_claim


POINTS = {
    "before any task has written": (EpochRunner, "run", True, lambda *given: True),
    "after tasks have written, before the record": (EpochLog, "put", True, lambda *given: True),
    "after the record, before the driver knows": (EpochLog, "put", False, lambda *given: True),
    "before the publication": (EpochRunner, "publish", True, is_epoch),
    "after the last publication": (EpochRunner, "publish", False, is_epoch),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_may_die_anywhere(connect, dies, point):
    """The next driver writes every item, and none twice."""
    kind, name, before, when = POINTS[point]
    dies(kind, name, before=before, when=when)
    feed, first = Feed({"0": [1, 2]}), connect()
    lost = first.new_job(pipeline_of(feed, to_ilist("out"), to_ilist("too")), name="one")
    with pytest.raises(Died):
        lost.join(10)
    feed.give(3)
    feed.end()
    second = submitted_again(connect, feed, to_ilist("out"), to_ilist("too"))

    assert (second.get_list("out").copy(), second.get_list("too").copy()) == ([1, 2, 3], [1, 2, 3])


def submitted_again(connect, feed, *sinks):
    """Run the job to its end with another context; return that."""
    ctx = connect()
    ctx.new_job(pipeline_of(feed, *sinks), name="one").join(10)
    return ctx


@pytest.mark.usefixtures("dies")
def test_an_epoch_whose_files_are_gone_says_how_to_go_on(tmp_path, dies):
    """It was decided, and waited for longer than a vacuum keeps what nobody names; it can be read again."""
    dies(EpochRunner, "publish", before=True, when=is_epoch)
    feed, failures = Feed({"0": [1, 2]}), []
    for config in ({}, {}, {"start_at": 1, "force": True}, {"start_at": 0, "force": True}):
        with ds.connect(engine="local", storage=str(tmp_path)) as ctx:
            job = ctx.new_job(pipeline_of(feed, to_ilist("out")), name="one", config=ds.JobConfig(**config))
            try:
                job.join(10)
            except (Died, IllegalStateError) as error:
                failures.append("".join(getattr(error, "__notes__", ())))
            feed.end()
            assert ctx.get_list("out").copy() == ([1, 2] if config.get("start_at") == 0 else [])
        [path.unlink() for path in tmp_path.glob("data/*/*.parquet")]

    assert ["go on with JobConfig(start_at=0, force=True)" in each for each in failures] == [False, True, True]


def test_a_driver_may_die_between_two_sinks(connect):
    """The sink that has the epoch does nothing; the other one gets it."""
    feed, left = Feed({"0": [1, 2]}), [1]

    def die(count):
        if left:
            left.clear()
            raise Died

    with pytest.raises(Died):
        connect().new_job(pipeline_of(feed, to_ilist("first"), Interrupted(die)), name="one").join(10)
    feed.end()
    ctx = submitted_again(connect, feed, to_ilist("first"), Interrupted(die))

    assert (ctx.get_list("first").copy(), ctx.get_list("interrupted").copy()) == ([1, 2], [1, 2])


def test_a_driver_that_pauses_behind_its_claim_is_fenced(connect, monkeypatch):
    """The records that another one puts meanwhile are not taken for its own."""
    claim, left = EpochLog.claim, [1]

    def paused(log, hint, now, first, *more):
        claimed = claim(log, hint, now, first, *more)
        if left and not left.clear():
            other = EpochLog(log._records, log._job, "other")
            _, theirs = claim(other, hint, now, first)
            other.put(replace(theirs, number=theirs.number + 1, is_claim=False))
        return claimed

    monkeypatch.setattr(EpochLog, "claim", paused)
    ctx = connect()
    with pytest.raises(JobTakenOverError, match="another driver has taken over"):
        ctx.new_job(pipeline_of(Feed({"0": [1]}), to_ilist("out")), name="one").join(10)

    assert ctx.get_list("out").copy() == []


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("has_another", [True, False])
def test_a_driver_that_finds_nothing_left_to_publish_looks_whether_another_one_has_the_job(
    connect, monkeypatch, dies, has_another, is_left
):
    """That one has published the record while this one paused; it is of this driver, or `is_left` by one before it."""
    feed = Feed({"0": [1]})
    if is_left:
        dies(EpochRunner, "publish", before=True, when=is_epoch)
        with pytest.raises(Died):
            connect().new_job(pipeline_of(feed, to_ilist("out")), name="one").join(10)
    logs, put_if_absent = [], EpochLog._put_if_absent

    def putting(log, record):
        logs.append(log)
        return put_if_absent(log, record)

    def publishing(runner, record):
        if has_another:
            log = EpochLog(logs[-1]._records, logs[-1]._job, "another", lease=9)
            log.claim(0, lambda: record.now, lambda: record)
        raise IllegalStateError("what the tasks have written is no more")

    monkeypatch.setattr(EpochLog, "_put_if_absent", putting)
    monkeypatch.setattr(EpochRunner, "publish", publishing)
    with pytest.raises(JobTakenOverError if has_another else IllegalStateError) as caught:
        connect().new_job(pipeline_of(feed, to_ilist("out")), name="one").join(10)

    assert ("another driver has taken over" in str(caught.value)) == has_another
