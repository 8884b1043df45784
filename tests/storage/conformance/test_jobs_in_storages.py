"""Jobs are registered in every storage: what one context submits, another one sees, joins, cancels and takes over."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import ExitStack

import pytest

import dstream as ds
from dstream.jobs.state import forget_driver
from reducers import to_ilist, to_imap
from tests.jobs.planned import Gate, plan_of


@pytest.fixture
def contexts(backend):
    """Three contexts on the storage."""
    with ExitStack() as stack:
        yield [stack.enter_context(ds.connect(engine="local", storage=backend.url, pickle="trusted")) for _ in range(3)]


def test_a_job_is_seen_from_another_context(contexts):
    """With its end, its numbers, and what it failed with."""
    first, second, _ = contexts
    first.new_job(plan_of(first.stream([1, 2]), to_ilist("out"), to_imap("out", str, int)), name="good").join()
    first.new_job(plan_of(first.stream([0]).map(lambda n: 1 // n), to_ilist("out")), name="bad").future().exception()
    bad, good = second.jobs()

    assert (good.status, good.metrics().stages["sink-2"].items_out) == (ds.JobStatus.COMPLETED, 2)
    assert (second.get_list("out").copy(), len(second.get_map("out"))) == ([1, 2], 2)
    with pytest.raises(ZeroDivisionError, match="integer division"):
        bad.join(10)


def test_a_job_is_taken_over_and_cancelled_from_another_context(contexts):
    """The driver that was cut off commits nothing."""
    first, second, third = contexts
    gate, other = Gate(), Gate()
    cut_off = first.new_job(plan_of(first.stream([1]).map(gate), to_ilist("out")), name="one")
    assert gate.was_reached.wait(10)
    forget_driver(cut_off.driver)
    taken = second.new_job(plan_of(second.stream([2]).map(other), to_ilist("out")), name="one")
    assert other.was_reached.wait(10)
    assert third.job("one").cancel()
    gate.is_open.set()
    other.is_open.set()
    with pytest.raises(CancelledError):
        taken.join(10)

    assert (cut_off.id, first.get_list("out").copy()) == (taken.id, [])
