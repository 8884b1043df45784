"""What the tests of pictures share: stages made by hand, with all that a text can do to a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dstream.plan.stages import ONE, Amount, Call, Exchange, Job, Stage, Stages, exactly
from dstream.plan.steps import SourceLocation

WICKED = "\"quoted\" <b>&amp; [x] {y} (z) `t` #35; ;|-->\\l\\ 'é' \x00\ud800 %% end\nline"


def made(*drawn: Stage, jobs: tuple[Job, ...] = (Job("to_list()", ONE),)) -> Stages:
    """Return stages of a plan, with a job for the last of them."""
    return Stages("Spark", Call("to_list()"), "all items come", drawn, jobs, ONE, ONE, ONE)


def stage(*calls: Call, inputs: tuple[Exchange, ...] = (), tasks: int = 1) -> Stage:
    """Return a stage that runs in the only job."""
    return Stage(calls, inputs, exactly(tasks), True, jobs=(0,))


@pytest.fixture
def wicked() -> Stages:
    """Two stages whose every text is full of signs that mean something to somebody."""
    first = stage(Call(WICKED, SourceLocation(f"/a/{WICKED}.py", 3), WICKED), tasks=2)
    second = stage(Call(".map(f)"), inputs=(Exchange(0, "shuffle", WICKED, False),), tasks=3)
    parts = (replace(first, notes=(WICKED,)), replace(second, jobs=(1,)))
    jobs = (Job(WICKED, ONE), Job("last", ONE))
    return Stages(WICKED, Call(WICKED), WICKED, parts, jobs, exactly(2), Amount(0, 1), exactly(2), (WICKED,))


@pytest.fixture
def chain() -> Callable[[int], Stages]:
    """Make a chain of so many stages, each of so many calls."""

    def make(count: int, calls: int = 1) -> Stages:
        others = (
            stage(
                *[Call(f".call({number})", SourceLocation("/x/words.py", number))] * calls,
                inputs=(Exchange(number - 1, "shuffle", f"why {number}"),),
                tasks=number,
            )
            for number in range(1, count)
        )
        return made(stage(Call(".first()")), *others)

    return make


@pytest.fixture
def fan() -> Callable[[int], Stages]:
    """Make so many parts that one concat reads, and a stage that the concat feeds."""

    def make(parts: int) -> Stages:
        each = (stage(Call(f"part {number}")) for number in range(parts))
        all_parts = tuple(Exchange(number, "pipe") for number in range(parts))
        return made(*each, stage(Call("concat"), inputs=all_parts, tasks=parts))

    return make


@pytest.fixture
def fork() -> Stages:
    """Three stages that read one, and a concat of them."""
    parts = (stage(Call(f"part {number}"), inputs=(Exchange(0, "pipe"),)) for number in range(3))
    all_parts = tuple(Exchange(number, "pipe") for number in (1, 2, 3))
    return made(stage(Call("first")), *parts, stage(inputs=all_parts, tasks=3))
