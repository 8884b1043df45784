"""Records of epochs: what they hold, which is the last, and who may put the next one."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.errors import IllegalStateError, JobTakenOverError
from dstream.jobs.unbounded.log import (
    EpochLog,
    LogRecord,
    PlaceTime,
    SourceMark,
    StepMark,
    TimedPartition,
    read_record,
    written_record,
)

JOB = "018f00000000-00000000"


@pytest.fixture
def records():
    """Those of a storage in memory."""
    with ds.connect(engine="local", storage="memory:") as ctx:
        yield ctx.running_storage().records


def record(number, token="a", **more):
    """A record of an epoch."""
    return LogRecord(number, token, 1.0, number, **more)


def first():
    """The record from which a job begins."""
    return record(0, index={})


OFFSETS = [7, 2**70, [1, "a"], {"file": [3, "x"]}, None, "text", 1.5]


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_record_comes_back_as_it_was(offset):
    """With offsets of any plain data, receipts, times and steps."""
    made = record(
        3,
        sources={"read": SourceMark({"p": offset}, False, 1.0)},
        times={TimedPartition("t", "read", "p"): PlaceTime(5, b"policy", 2.0)},
        steps={"s": StepMark(-(2**63), 7, None)},
        receipts={0: [("file", 3), {"a": b"b"}]},
        counts={"read": {"items_out": 3}},
    )

    assert read_record(written_record(made), 3, JOB) == made


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x81\xa1a\x01", written_record(record(2)), written_record(record(3))[:-9]]
)
def test_a_damaged_record_is_an_error(data):
    """It names the epoch and the job."""
    with pytest.raises(IllegalStateError, match=f"the record of epoch 3 of the job {JOB} is damaged"):
        read_record(data, 3, JOB)


def test_the_last_record_is_found_from_any_hint(records):
    """From one that was there, from the first, and from one that is gone."""
    log = EpochLog(records, JOB, "a")
    assert log.last() is None
    log.claim(0, lambda: 1.0, first)
    for number in range(1, 5):
        log.put(record(number))

    assert [log.last(hint).number for hint in (0, 3, 4, 9)] == [4, 4, 4, 4]


def test_a_claim_takes_the_number_of_the_driver_before(records):
    """So that one finds it taken; its offsets go on."""
    before, after = EpochLog(records, JOB, "a"), EpochLog(records, JOB, "b")
    before.claim(0, lambda: 1.0, first)
    before.put(record(1, sources={"read": SourceMark({"p": 7}, False, 1.0)}))
    assert after.claim(0, lambda: 2.0, first).before.number == 1
    with pytest.raises(JobTakenOverError, match="what this one wrote in epoch 2 is thrown away"):
        before.put(record(2))

    last = after.last()
    assert (last.number, last.token, last.is_claim, last.sources["read"].offsets) == (2, "b", True, {"p": 7})


def test_claims_hide_no_epoch_that_may_have_to_be_published(records):
    """However many drivers died behind it."""
    log = EpochLog(records, JOB, "a")
    log.claim(0, lambda: 1.0, first)
    log.put(record(1, receipts={0: ["r"]}))
    log.claim(0, lambda: 2.0, first)
    last = log.claim(0, lambda: 3.0, first).before

    assert (last.number, log.last_run(last).number) == (2, 1)


def test_an_answer_that_was_lost_is_no_other_driver(records, monkeypatch):
    """What stands there is what was written."""
    log, write = EpochLog(records, JOB, "a"), type(records).write
    monkeypatch.setattr(type(records), "write", lambda self, *given: write(self, *given) and False)
    log.claim(0, lambda: 1.0, first)
    log.put(record(1))

    assert log.last().number == 1


def test_a_claim_is_what_this_driver_put(records):
    """Not what stands there meanwhile: one that paused behind its claim cannot put a record."""
    paused, other = EpochLog(records, JOB, "b"), EpochLog(records, JOB, "c")
    claim = paused.claim(0, lambda: 1.0, first)
    other.claim(0, lambda: 2.0, first)
    other.put(record(2, "c"))

    assert (claim.before.number, claim.mine.number, claim.mine.token) == (0, 0, "b")
    with pytest.raises(JobTakenOverError, match="what this one wrote in epoch 1 is thrown away"):
        paused.put(record(claim.mine.number + 1, "b"))


def test_another_record_of_this_driver_is_no_lost_answer(records):
    """As one of a run before, whose answer timed out, and which came late."""
    log = EpochLog(records, JOB, "a")
    log.claim(0, lambda: 1.0, first)
    log.put(record(1, sources={"read": SourceMark({"p": 7}, False, 1.0)}))

    with pytest.raises(JobTakenOverError):
        log.put(record(1, sources={"read": SourceMark({"p": 8}, False, 1.0)}))


def test_a_driver_whose_lease_is_gone_does_not_claim(records):
    """It paused behind its lease; otherwise it would fence the one that came later, and end by its own heart."""
    early, late = EpochLog(records, JOB, "b", 7), EpochLog(records, JOB, "c", 9)
    late.claim(0, lambda: 1.0, first)
    with pytest.raises(JobTakenOverError, match="another driver has taken over"):
        early.claim(0, lambda: 2.0, first)
    late.put(record(1, "c", lease=9))

    assert (late.last().token, late.claim(0, lambda: 3.0, first).mine.lease) == ("c", 9)


def test_the_number_of_a_record_that_was_folded_is_not_free(records):
    """Whoever puts it has been replaced long ago; nobody reads what it leaves."""
    log, zombie = EpochLog(records, JOB, "a"), EpochLog(records, JOB, "z")
    log.claim(0, lambda: 1.0, first)
    for number in range(1, 5):
        log.put(record(number))
    log.raise_floor(3)
    log.raise_floor(2)
    for number in range(3):
        log.remove(number)
    with pytest.raises(JobTakenOverError):
        zombie.put(record(1, "z"))
    records.write(f"job-logs/{JOB}/2", written_record(record(2, "z")), 1)

    assert (log.floor(), log.numbers(), log.last(2).number) == (3, [3, 4], 4)
    with pytest.raises(ValueError, match="keeps no such record"):
        log.at(2)


def test_a_driver_is_told_of_another_one_also_when_its_next_record_was_folded(records):
    """It paused for longer than records are kept; a driver that nobody replaced is told of its own failure."""
    log, other = EpochLog(records, JOB, "a"), EpochLog(records, JOB, "b")
    log.claim(0, lambda: 1.0, first)
    log.put(record(1))
    log.check_is_last(record(1), OSError())
    other.claim(0, lambda: 2.0, first)
    other.put(record(3, "b"))
    other.raise_floor(3)
    for number in range(3):
        other.remove(number)

    with pytest.raises(JobTakenOverError, match="another driver has taken over"):
        log.check_is_last(record(1), OSError())


@pytest.mark.parametrize("start", [3, 1003.5, 1003])
def test_no_job_starts_at_a_record_before_the_floor(records, start):
    """By its number or by a time, although it is there still: its state may be gone. At the floor one does."""
    log = EpochLog(records, JOB, "a")
    log.claim(0, lambda: 1000.0, first)
    for number in range(1, 6):
        log.put(LogRecord(number, "a", 1e9 + 1000 + number, number))
    log.raise_floor(4)
    before = start if start < 10 else 1e9 + start
    with pytest.raises(ValueError, match="keeps no such record"):
        log.at(before)

    assert [log.at(each).number for each in (4, 5, 1e9 + 1004, 1e9 + 1004.5, 1e9 + 9999)] == [4, 5, 4, 4, 5]


def test_records_since_the_last_checkpoint(records):
    """Those that say together where the state is; one that is missing is an error."""
    log = EpochLog(records, JOB, "a")
    log.claim(0, lambda: 1.0, first)
    for each in (record(1), record(2, index={}), record(3), record(4)):
        log.put(each)
    assert [each.number for each in log.since_checkpoint(log.last())] == [2, 3, 4]
    records.remove(f"job-logs/{JOB}/3")

    with pytest.raises(IllegalStateError, match=r"the record of epoch 3 of the job .* is missing"):
        log.since_checkpoint(record(4))
