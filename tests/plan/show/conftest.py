"""What the tests of pictures share: stages made by hand, with all that a text can do to a picture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dstream.plan.sketch import Sketch
from dstream.plan.stages import Call, Exchange, Job, Stages, exactly
from dstream.plan.where import Where

WICKED = "\"quoted\" <b>&amp; [x] {y} (z) `t` #35; ;|-->\\l\\ 'é' \x00\ud800 %% end\nline"


@pytest.fixture
def wicked() -> Stages:
    """Two stages whose every text is full of signs that mean something to somebody."""
    sketch = Sketch()
    first = sketch.stage(exactly(2))
    sketch.call(first, [Call(WICKED, Where(f"/a/{WICKED}.py", 3), WICKED)])
    sketch.note(first, WICKED)
    second = sketch.stage(exactly(3), Exchange(first, "shuffle", WICKED, False))
    sketch.call(second, [Call(".map(f)")])
    sketch.job(Job(WICKED, exactly(1), first, exactly(1)))
    sketch.job(Job("last", exactly(1), second, exactly(1)))
    return sketch.finished(WICKED, Call(WICKED), WICKED, [WICKED])


@pytest.fixture
def chain() -> Callable[[int], Stages]:
    """Make a chain of so many stages, each of so many calls."""

    def make(count: int, calls: int = 1) -> Stages:
        sketch = Sketch()
        stage = sketch.stage(exactly(1))
        sketch.call(stage, [Call(".first()")])
        for number in range(1, count):
            stage = sketch.stage(exactly(number), Exchange(stage, "shuffle", f"why {number}"))
            sketch.call(stage, [Call(f".call({number})", Where("/x/words.py", number))] * calls)
        sketch.job(Job("to_list()", exactly(1), stage, exactly(1)))
        return sketch.finished("Spark", Call("to_list()"), "all items come", [])

    return make


@pytest.fixture
def fan() -> Callable[[int], Stages]:
    """Make so many parts that one concat reads, and a stage that the concat feeds."""

    def make(parts: int) -> Stages:
        sketch = Sketch()
        numbers = [sketch.stage(exactly(1)) for _ in range(parts)]
        for number in numbers:
            sketch.call(number, [Call(f"part {number}")])
        last = sketch.stage(exactly(parts), *(Exchange(number, "pipe") for number in numbers))
        sketch.call(last, [Call("concat")])
        sketch.job(Job("to_list()", exactly(1), last, exactly(1)))
        return sketch.finished("Spark", Call("to_list()"), "all items come", [])

    return make


@pytest.fixture
def fork() -> Stages:
    """Three stages that read one, and a concat of them."""
    sketch = Sketch()
    first = sketch.stage(exactly(1))
    sketch.call(first, [Call("first")])
    sketch.close(first)
    parts = [sketch.call(first, [Call(f"part {number}")]) for number in range(3)]
    last = sketch.stage(exactly(3), *(Exchange(number, "pipe") for number in parts))
    sketch.job(Job("to_list()", exactly(1), last, exactly(1)))
    return sketch.finished("Spark", Call("to_list()"), "all items come", [])
