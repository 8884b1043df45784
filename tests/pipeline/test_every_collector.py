"""Every collector wherever a stage of a pipeline takes one: the table that each factory must pass."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

import collectors as c
import dstream as ds
from dstream import Entry, Optional, Pipeline
from dstream.pipeline import BatchStage
from dstream.testing.comparison import difference
from dstream.windows import KeyedWindowResult, WindowResult, session, sliding, tumbling
from reducers import to_ilist
from sources import Items
from tests.collectors.cases_of_laws import EVERY, KEYED, Case


def same_key(item: Any) -> str:
    """Return the one key that all items share."""
    return "all"


def same_time(item: Any) -> int:
    """Return the one instant at which all items happen."""
    return 5


Result = Callable[[int], Any]
"""What the first `n` items become."""


def windowed(stage: BatchStage[Any], window: Any) -> Any:
    """Return the windows of a stage, all of whose items are at one instant."""
    return stage.add_timestamps(same_time).window(window)


def rolled(result: Result, count: int) -> list[Any]:
    """Return the result after each item."""
    return [result(seen) for seen in range(1, count + 1)]


# How a stage takes an operation, and what it makes of `n` items.
USES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Result, int], list[Any]]]] = {
    "aggregate": (lambda s, op: s.aggregate(op), lambda result, n: [result(n)]),
    "aggregate of nothing": (lambda s, op: s.limit(0).aggregate(op), lambda result, n: [result(0)]),
    "all_of": (
        lambda s, op: s.aggregate(c.all_of(op, c.counting())),
        lambda result, n: [(result(n), n)],
    ),
    "teeing": (
        lambda s, op: s.aggregate(c.teeing(c.counting(), op, lambda size, found: (size, found))),
        lambda result, n: [(n, result(n))],
    ),
    "collecting_and_then": (
        lambda s, op: s.aggregate(c.collecting_and_then(op, lambda found: (found, "then"))),
        lambda result, n: [(result(n), "then")],
    ),
    "grouping_by": (
        lambda s, op: s.aggregate(c.grouping_by(same_key, op)),
        lambda result, n: [{"all": result(n)}],
    ),
    "co_aggregate": (
        lambda s, op: s.co_aggregate(s, op=c.co_operation(op, c.counting())),
        lambda result, n: [(result(n), n)],
    ),
    "co_aggregate of one": (lambda s, op: s.co_aggregate(op=op), lambda result, n: [result(n)]),
    "rolling_aggregate": (lambda s, op: s.rolling_aggregate(op), rolled),
    "keyed aggregate": (
        lambda s, op: s.grouping_key(same_key).aggregate(op),
        lambda result, n: [Entry("all", result(n))],
    ),
    "keyed co_aggregate": (
        lambda s, op: s.grouping_key(same_key).co_aggregate(
            s.grouping_key(same_key), op=c.co_operation(c.counting(), op)
        ),
        lambda result, n: [Entry("all", (n, result(n)))],
    ),
    "keyed rolling_aggregate": (
        lambda s, op: s.grouping_key(same_key).rolling_aggregate(op),
        lambda result, n: [Entry("all", each) for each in rolled(result, n)],
    ),
    "tumbling": (
        lambda s, op: windowed(s, tumbling(10)).aggregate(op),
        lambda result, n: [WindowResult(0, 10, result(n))],
    ),
    "sliding": (
        lambda s, op: windowed(s, sliding(20, 10)).aggregate(op),
        lambda result, n: [WindowResult(start, start + 20, result(n)) for start in (-10, 0)],
    ),
    "session": (
        lambda s, op: windowed(s, session(10)).aggregate(op),
        lambda result, n: [WindowResult(5, 15, result(n))],
    ),
    "windowed co_aggregate": (
        lambda s, op: windowed(s, tumbling(10)).co_aggregate(
            s.add_timestamps(same_time), op=c.co_operation(op, c.counting())
        ),
        lambda result, n: [WindowResult(0, 10, (result(n), n))],
    ),
    "keyed windows": (
        lambda s, op: windowed(s, sliding(20, 10)).grouping_key(same_key).aggregate(op),
        lambda result, n: [KeyedWindowResult(start, start + 20, "all", result(n)) for start in (-10, 0)],
    ),
    "rolling stream": (
        lambda s, op: s.add_timestamps(same_time).rolling_aggregate(op),
        rolled,
    ),
}
ON_SPARK = ["aggregate", "keyed rolling_aggregate", "keyed windows"]


def items_of(case: Case) -> list[Any]:
    """Return some items of a case, of each kind that it has."""
    return [*case.many[:4], *case.many[-3:]]


def written(context: ds.Context, use: str, cases: dict[str, Case]) -> dict[str, list[Any]]:
    """Return what one pipeline, pickled before it runs, makes of each case; what it wrote went through a pickle."""
    pipeline, sink = Pipeline(), to_ilist("results of every collector")
    stages = []
    for name, case in cases.items():
        stage = pipeline.read_from(Items(items_of(case), 2))
        stages.append(USES[use][0](stage, case.collector).map(lambda found, name=name: (name, found)))
    pipeline.write_to(sink, *stages)
    context.get_list("results of every collector").clear()
    context.new_job(cloudpickle.loads(cloudpickle.dumps(pipeline))).join()
    results: dict[str, list[Any]] = {}
    for name, found in context.get_list("results of every collector"):
        results.setdefault(name, []).append(pickle.loads(cloudpickle.dumps(found)))
    return results


def expected(use: str, case: Case) -> list[Any]:
    """Return what a use makes of the items of a case, with the collector alone."""
    items = items_of(case)
    return USES[use][1](lambda count: case.collector.collect(items[:count]), len(items))


CASES = {str(param.id): param.values[0] for param in EVERY if param in KEYED or str(param.id).endswith("-0")}


@pytest.fixture(scope="module")
def memory():
    """A local context without files."""
    with ds.connect(engine="local", storage="memory:") as context:
        yield context


@pytest.mark.parametrize("use", USES)
def test_every_collector_gives_its_result_wherever_a_stage_takes_it(memory, use):
    """Without keys the result alone, with keys one for each; all of it goes through a pickle on its way."""
    found = written(memory, use, CASES)
    wrong = {name: difference(expected(use, case), found.get(name, [])) for name, case in CASES.items()}

    assert {name: each for name, each in wrong.items() if each is not None} == {}


def test_what_groups_gives_one_result_where_there_is_no_key(numbers, given_on):
    """A dictionary, or what becomes of it, not its entries; the step behind it gets the same."""
    by_two = c.grouping_by(lambda n: n % 2, c.counting())
    pairs = c.to_map(lambda n: n % 3, abs, max)
    operations = (by_two, c.collecting_and_then(by_two, sorted), pairs, c.mode(lambda n: n // 3), c.frequencies())
    found = given_on(*map(numbers.aggregate, operations), numbers.aggregate(by_two).map(len))
    groups, keys, greatest, often, counted, size = (each for (each,) in found)

    assert (groups, keys, greatest, size) == ({0: 3, 1: 3}, [0, 1], {0: 3, 1: 4, 2: 5}, 2)
    assert (often, counted) == (Optional.of(0), dict.fromkeys(range(6), 1))


@pytest.mark.parametrize("use", ON_SPARK)
def test_every_collector_travels_between_the_workers_of_spark(spark_context, use):
    """All of them in one operation, on the same rows; each takes its own column."""
    rows = list(zip(*map(items_of, CASES.values()), strict=True))
    parts = [c.mapping(operator.itemgetter(n), case.collector) for n, case in enumerate(CASES.values())]
    together = Case(c.all_of(*parts), None, rows)  # type: ignore[arg-type]
    found = written(spark_context, use, {"all": together})

    assert difference(expected(use, together), found["all"]) is None
