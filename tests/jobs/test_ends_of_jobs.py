"""When the end of a job is seen."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.jobs.job_records import JobRecords
from reducers import to_ilist
from tests.jobs.planned import plan_of


@pytest.mark.parametrize(("items", "end"), [([1], "COMPLETED"), ([0], "FAILED")])
def test_an_end_is_seen_here_once_it_is_written(ctx, connect, gate, monkeypatch, items, end):
    """Whoever sees it here and acts on it through another context meets no job that still runs."""
    write, seen = JobRecords.write, []

    def writing(self, state, version):
        if state.status.has_ended:
            seen.append((job.status.has_ended, other.status.has_ended))
        done = write(self, state, version)
        if state.status.has_ended:
            seen.append(other.status.name)
        return done

    job = ctx.new_job(plan_of(ctx.stream(items).map(gate).map(lambda n: 1 // n), to_ilist("out")), name="ends")
    other = connect().job("ends")
    monkeypatch.setattr(JobRecords, "write", writing)
    gate.is_open.set()
    if end == "FAILED":
        with pytest.raises(ZeroDivisionError):
            job.join(20)
    else:
        job.join(20)

    assert (seen, job.status) == ([(False, False), end], ds.JobStatus[end])
