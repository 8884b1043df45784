"""How many items each stage of a job took and gave on, on both engines."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from collectors import counting, to_list
from dstream import Pipeline
from dstream.testing import items
from reducers import to_ilist, to_imap, to_nothing
from sources import Iterate


def counts(engine: Any, pipeline: Pipeline) -> dict[str, tuple[int | None, int | None]]:
    """Run a pipeline; return the numbers of its stages."""
    job = engine.context.new_job(pipeline)
    job.join()
    return {name: (stage.items_in, stage.items_out) for name, stage in job.metrics().stages.items()}


def fresh() -> str:
    """Return a name that no collection has."""
    return f"counted-{uuid.uuid4().hex}"


def test_steps_on_each_item_are_counted(engine):
    """Those that give as many as they take, and those that do not."""
    pipeline = Pipeline()
    words = pipeline.read_from(items("to be", "or", "not to be")).flat_map(str.split).map(str.upper)
    words.filter(lambda word: "O" in word).sorted().peek().write_to(to_ilist(fresh()))

    assert counts(engine, pipeline) == {
        "read_from": (None, 3),
        "flat_map": (3, 6),
        "map": (6, 6),
        "filter": (6, 4),
        "sorted": (4, 4),
        "peek": (4, 4),
        "write_to": (4, 4),
    }


def test_a_fork_is_counted_once(engine):
    """However many stages read it, in the tasks of both or kept for them."""
    pipeline = Pipeline()
    even = pipeline.read_from(items(*range(10))).filter(lambda n: n % 2 == 0)
    even.write_to(to_nothing())
    even.filter(lambda n: n > 4).write_to(to_nothing())
    even.sorted().limit(2).write_to(to_nothing())

    found = counts(engine, pipeline)
    assert (found["filter"], found["filter-2"]) == ((10, 5), (5, 2))
    assert (found["limit"], found["write_to-3"]) == ((5, 2), (2, 2))


def test_groups_and_joins_are_counted(engine):
    """Each input of a join gives what it gives; results by key that a sink takes are not counted twice."""
    pipeline = Pipeline()
    left = pipeline.read_from(items("a", "bb", "cc"))
    right = pipeline.read_from(items(1, 2, 2))
    joined = left.hash_join(right, on=(len, lambda n: n))
    lengths = joined.grouping_key(lambda pair: pair[1]).aggregate(to_list())
    lengths.write_to(to_imap(fresh()))
    lengths.aggregate(counting()).write_to(to_ilist(fresh()))

    found = counts(engine, pipeline)
    assert (found["read_from"], found["read_from-2"], found["hash_join"]) == ((None, 3), (None, 3), (6, 5))
    assert (found["aggregate"], found["aggregate-2"]) == ((5, None), (None, None))
    assert (found["write_to"], found["write_to-2"]) == ((None, 2), (None, 1))


@pytest.mark.parametrize("given", [[], [0, 0]])
def test_what_nothing_passes_is_counted_as_nothing(engine, given):
    """Zero is a number; a step whose failures are dealt with is one with what deals with them."""
    pipeline = Pipeline()
    pipeline.read_from(items(*given)).map(lambda n: 1 // n).ignore(ZeroDivisionError).write_to(to_nothing())

    found = counts(engine, pipeline)
    assert (found["map"], found["ignore"]) == ((len(given), None), (None, 0))
    assert found["write_to"] == (0, 0)


def test_a_plan_that_counts_explains_and_fails_as_before(engine):
    """What counts is no step of the user's."""
    pipeline = Pipeline()
    pipeline.read_from(items(1, 0)).filter(lambda n: True).map(lambda n: 1 // n).write_to(to_nothing())

    with pytest.raises(ZeroDivisionError) as caught:
        counts(engine, pipeline)
    assert "step 3 of 4, .map(lambda)" in "\n".join(caught.value.__notes__)


def test_a_fork_that_only_limits_read_ends_there(engine):
    """The source has no end; it is asked for as many items as the largest limit wants."""
    pipeline, names = Pipeline(), [fresh(), fresh()]
    numbers = pipeline.read_from(Iterate(1, lambda n: n + 1))
    numbers.limit(2).write_to(to_ilist(names[0]))
    numbers.limit(4).map(str).write_to(to_ilist(names[1]))

    found = counts(engine, pipeline)
    assert [list(engine.context.get_list(name)) for name in names] == [[1, 2], ["1", "2", "3", "4"]]
    assert (found["limit"][1], found["limit-2"][1]) == (2, 4)
