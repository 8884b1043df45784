"""The records of jobs: plain data that is checked when it is read. Whoever can write the storage has chosen it."""

from __future__ import annotations

import json

import pytest

from dstream.errors import EngineError, IllegalStateError
from dstream.jobs.records import EpochRecord, packed, unpacked
from dstream.jobs.state import read_state, written_state
from reducers import to_ilist
from tests.jobs.planned import plan_of


@pytest.fixture
def job(ctx):
    """A job that has ended."""
    made = ctx.new_job(plan_of(ctx.stream([1]), to_ilist("out")), name="one")
    made.join()
    return made


def test_a_state_is_json_and_comes_back_equal(ctx, job):
    """No class is loaded for it."""
    state = job._state()
    data = written_state(state)

    assert json.loads(data)["status"] == "COMPLETED"
    assert read_state(data, state.id) == state


DRIVER = {"token": "a", "host": "b", "machine": "c", "process": 7, "started": "1", "log": None}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "018f00000000-00000000"),
        ("name", 3),
        ("name", "another"),
        ("status", "ASLEEP"),
        ("status", "FAILED"),
        ("config", {"colour": "red"}),
        ("config", {"auto_restart": "often"}),
        ("config", {"shards": "many"}),
        ("submitted_at", 1e99),
        ("submitted_at", float("nan")),
        ("beat_at", "now"),
        ("epoch", -1),
        ("runs", True),
        ("driver", {"token": "a"}),
        ("driver", None),
        ("driver", {**DRIVER, "host": "a\x1b[31mb"}),
        ("driver", {**DRIVER, "process": 0}),
        ("failure", {"type_name": "E", "message": "m", "notes": [1], "traceback": ""}),
        ("shape", [["a", "b"]]),
        ("times", {"ASLEEP": 1.0}),
        ("metrics", {"stages": {"a": {"items_out": "many"}}}),
    ],
)
def test_a_damaged_state_is_an_error_that_names_the_job(job, field, value):
    """Whatever field it is; nothing is guessed."""
    content = json.loads(written_state(job._state()))
    content[field] = value

    with pytest.raises(IllegalStateError, match=f"the record of the job {job.id} is damaged"):
        read_state(json.dumps(content).encode(), job.id)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_what_is_no_state_is_an_error(job, data):
    """Also where the parser gives up."""
    with pytest.raises(IllegalStateError, match="is damaged"):
        read_state(data, job.id)


def test_a_damaged_state_hides_no_other_job(ctx, job):
    """All are listed; a search by name says that it may miss one."""
    records, second = ctx._jobs._records.all, ctx.new_job(plan_of(ctx.stream([2]), to_ilist("second")))
    second.join(10)
    place = f"jobs/{job.id}/state"
    assert records.write(place, b"{", records.read(place).version + 1)

    assert [each.id for each in ctx.jobs()] == [second.id, job.id]
    with pytest.raises(IllegalStateError, match=f"the record of the job {job.id} is damaged"):
        ctx.jobs("two")


def test_damaged_receipts_are_an_error(ctx, job):
    """They are never taken for receipts that are not there."""
    records = ctx._jobs._records.all
    place = f"jobs/{job.id}/epoch"
    for data in (b"", b"\xc1", packed(("token", [1])), packed(("token", {"a": []})), packed((3, None))):
        assert records.write(place, data, records.read(place).version + 1)
        with pytest.raises(IllegalStateError, match=f"the receipts of the job {job.id} are damaged"):
            EpochRecord(ctx._jobs._records, job.id, "token").looked_up()


def test_receipts_of_a_run_before_are_no_lost_answer(ctx, job):
    """The token of a driver does not say which of its runs wrote them; the next run looks and publishes them."""
    records = ctx._jobs._records
    late, now = (EpochRecord(records, job.id, "same") for _ in range(2))
    late.claim()
    now.claim()
    late._version += 1
    late.commit({0: ["of the run before"]})

    with pytest.raises(EngineError, match=r"a run before this one of the job .* has committed"):
        now.commit({0: ["of this run"]})


def test_a_damaged_name_is_an_error(ctx, job):
    """It is never taken for one that is free."""
    records = ctx._jobs._records.all
    [place] = records.names("job-names/")
    for data in (b"{", b"[]", b'{"name": "one", "id": "../x"}', json.dumps({"name": "two", "id": job.id}).encode()):
        assert records.write(place, data, records.read(place).version + 1)
        with pytest.raises(IllegalStateError, match="the record of the name 'one' is damaged"):
            ctx.job("one")


def test_receipts_come_back_as_they_were():
    """Tuples as tuples, integers of any size, bytes as bytes; what is no plain data is refused."""
    receipt = (1, 2**80, -(2**70), 1.5, True, None, "text", b"bytes", [(), ["a", (b"",)]], {"a": {"b": (1,)}})
    again = unpacked(packed({0: [receipt], 7: []}))

    assert again == {0: [receipt], 7: []}
    assert repr(again[0][0]) == repr(receipt)
    with pytest.raises(TypeError, match="a receipt holds object, which is no plain data"):
        packed([object()])


@pytest.mark.parametrize("sign", [1, -1])
def test_the_longest_int_comes_back_and_a_longer_one_is_refused(sign):
    """A value that could not be read again is refused before it is written."""
    largest = sign * (10**4300 - 1)

    assert unpacked(packed([largest, (largest,)])) == [largest, (largest,)]
    for larger in (largest + sign, sign * 10**5000):
        with pytest.raises(ValueError, match="has an int of more than 4,300 digits"):
            packed({0: [(larger,)]})


def test_receipts_with_an_int_that_is_too_long_are_not_committed(ctx, job):
    """The record stays as it was, and readable."""
    record = EpochRecord(ctx._jobs._records, job.id, "token")
    record.claim()
    record.commit({0: [1]})

    with pytest.raises(ValueError, match="digits"):
        record.commit({0: [10**4300]})

    assert record.looked_up() == {0: [1]}


@pytest.mark.parametrize("name", ["../../etc/passwd", "018f00000000-0000000g", "", "x" * 5000])
def test_what_is_no_id_is_no_job(ctx, name):
    """Nothing of it becomes part of a path."""
    assert ctx.job(name) is None


@pytest.mark.parametrize(("data", "has"), [(b"dstream records 2\n{}", "format 2"), (b"{}", "no format")])
def test_a_record_of_another_version_is_refused(ctx, job, data, has):
    """It is not damaged; the sentence says what to do."""
    records, place = ctx.running_storage().records, f"jobs/{job.id}/state"
    assert records.read(place).data.startswith(b"dstream records 1\n")
    assert records.write(place, data, records.read(place).version + 1)

    with pytest.raises(IllegalStateError) as refused:
        ctx._jobs._records.read(job.id)
    assert str(refused.value) == (
        f"the record {place} has {has}; this dstream reads 1: use the version that wrote it, or another storage"
    )
