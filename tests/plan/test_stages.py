"""Amounts that may be known only later, and the sketch that stages are drawn on."""

from __future__ import annotations

import pytest

from dstream.plan.sketch import Sketch
from dstream.plan.stages import Amount, Call, Exchange, Job, exactly, total


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (exactly(1), "1 task"),
        (exactly(2_000), "2,000 tasks"),
        (Amount(0, 1), "0 to 1 task"),
        (Amount(1, 6, "one for each core"), "1 to 6 tasks (one for each core)"),
        (Amount(1, None), "1 or more tasks"),
        (Amount(0, 2**60), "0 to 1,152,921,504,606,846,976 tasks"),
        (exactly(2**20_000), "10^6020 tasks"),
    ],
)
def test_an_amount_says_what_it_counts(amount, text):
    """One number or a range, with what decides it."""
    assert amount.of("task") == text


def test_amounts_add_and_bound_each_other():
    """What has no upper bound has none in a sum, and takes that of the other otherwise."""
    assert total([exactly(2), Amount(0, 3)]) == Amount(2, 5)
    assert (exactly(2) + Amount(1, None)).most is None
    assert Amount(1, None).up_to(exactly(6)) == Amount(1, 6)
    assert (Amount(2, 9).up_to(Amount(3, None)), Amount(2, 5).or_none()) == (Amount(2, 9), Amount(0, 5))


def test_calls_join_a_stage_until_it_is_closed():
    """What follows a stage that others read too is a stage of its own, in the same tasks."""
    sketch = Sketch()
    first = sketch.stage(exactly(3))

    assert sketch.call(first, [Call("a")]) == first
    sketch.close(first)
    second = sketch.call(first, [Call("b")])
    sketch.job(Job("j", exactly(1), second, exactly(1)))
    stages = sketch.finished("e", Call("end"), "", []).stages
    assert [(stage.calls[0].label, str(stage.tasks), stage.inputs) for stage in stages] == [
        ("a", "3", ()),
        ("b", "3", (Exchange(first, "pipe"),)),
    ]


def test_a_job_begins_where_an_earlier_one_left_its_items():
    """What an earlier job computed and kept is not run again; a shuffle is counted once for each job."""
    sketch = Sketch()
    first = sketch.stage(exactly(2))
    sketch.job(Job("sample", exactly(1), first, exactly(1)))
    second = sketch.stage(exactly(2), Exchange(first, "kept"))
    third = sketch.stage(exactly(2), Exchange(second, "shuffle", "", True, exactly(1)))
    sketch.job(Job("last", exactly(1), third, exactly(1)))
    done = sketch.finished("e", Call("end"), "", [])

    assert [stage.jobs for stage in done.stages] == [(0,), (1,), (1,)]
    assert (done.job_count, done.shuffles, done.python_stages) == (exactly(2), exactly(1), exactly(3))


def test_what_may_not_happen_counts_from_none():
    """An exchange that one partition does without, and a job that ends early, are ranges."""
    sketch = Sketch()
    first = sketch.stage(exactly(2))
    second = sketch.stage(exactly(2), Exchange(first, "shuffle", "", False, exactly(1)))
    sketch.job(Job("last", exactly(1), second, exactly(1)))

    done = sketch.finished("e", Call("end"), "", [])
    assert (done.shuffles, done.python_stages) == (Amount(0, 1), Amount(1, 2))
