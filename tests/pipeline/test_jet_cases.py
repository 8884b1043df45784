"""The cases of Hazelcast Jet's own tests of pipelines on bounded data, under the names that they have there.

On the local engine each case is a job. On Spark all of them are one job: one source that forks into all of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import dstream as ds
from collectors import all_of, averaging, co_operation, counting, linear_trend, summing, to_bags, to_set
from dstream import Entry, JoinClause, Pipeline, Service
from dstream.gatherers import Gatherer
from dstream.testing import assert_any_order, assert_ordered
from sources import items

NUMBERS = list(range(20))
EVEN, ODD = NUMBERS[::2], NUMBERS[1::2]


class Case(NamedTuple):
    """What a case makes of a stage of numbers, and what comes of it: in this order, unless it has none."""

    build: Callable[[Any], Any]
    expected: list[Any]
    ordered: bool = True


def texts(numbers: Any, mark: str) -> Any:
    """Return a second stage in the pipeline of the first: entries of each number and a text."""
    return numbers.pipeline.read_from(items(*NUMBERS)).map(lambda n: Entry(n, f"{n}{mark}"))


def two_each(numbers: Any) -> Any:
    """Return a second stage with two entries for each number."""
    return numbers.pipeline.read_from(items(*NUMBERS)).flat_map(lambda n: [Entry(n, f"{n}A"), Entry(n, f"{n}B")])


def times(numbers: Any, factor: int) -> Any:
    """Return a second stage in the pipeline of the first: its numbers multiplied."""
    return numbers.pipeline.read_from(items(*NUMBERS)).map(lambda n: n * factor)


def add(state: list[int], n: int) -> int:
    """Add to the sum that a state holds, and return it."""
    state[0] += n
    return state[0]


def is_half(state: list[int], n: int) -> int | None:
    """Return the count of calls at the last one of ten, else None."""
    state[0] += 1
    return state[0] if state[0] == len(EVEN) else None


def by_fives(stage: Any) -> Any:
    """Group numbers by their fifths."""
    return stage.grouping_key(lambda n: n // 5)


def sums_by_fives(numbers: list[int]) -> dict[int, int]:
    """Do the same with a list, and sum up."""
    keys = {n // 5 for n in numbers}
    return {key: sum(n for n in numbers if n // 5 == key) for key in keys}


def of_each(*factors: int) -> list[Any]:
    """Return entries of each key and the tuple of the sums of each multiple of the numbers."""
    sums = [sums_by_fives([n * factor for n in NUMBERS]) for factor in factors]
    return [Entry(key, tuple(each.get(key, 0) for each in sums)) for key in {key for each in sums for key in each}]


SUM = summing(int)
BY_ITSELF = JoinClause.join_map_entries(int)
SUFFIX = Service(lambda: "-service")
KEYED_SUMS = {(0, n): sum(EVEN[: n // 2 + 1]) for n in EVEN} | {(1, n): sum(ODD[: n // 2 + 1]) for n in ODD}

CASES = {
    "BatchStageTest.map": Case(lambda s: s.map(str), [*map(str, NUMBERS)]),
    "BatchStageTest.apply": Case(
        lambda s: s.apply(lambda of: of.map(hex).map(str.upper)), [hex(n).upper() for n in NUMBERS]
    ),
    "BatchStageTest.filter": Case(lambda s: s.filter(lambda n: n % 2), ODD),
    "BatchStageTest.flatMap": Case(lambda s: s.flat_map(lambda n: (n, -n)), [x for n in NUMBERS for x in (n, -n)]),
    "BatchStageTest.mapUsingService": Case(
        lambda s: s.map_using(SUFFIX, lambda suffix, n: f"{n}{suffix}"), [f"{n}-service" for n in NUMBERS]
    ),
    "BatchStageTest.filterUsingService": Case(lambda s: s.filter_using(Service(lambda: 2), lambda of, n: n % of), ODD),
    "BatchStageTest.flatMapUsingService": Case(
        lambda s: s.flat_map_using(Service(lambda: "AB"), lambda letters, n: [f"{n}{each}" for each in letters]),
        [f"{n}{each}" for n in NUMBERS for each in "AB"],
    ),
    "BatchStageTest.mapUsingServiceAsync": Case(lambda s: s.map_concurrent(8, str), [*map(str, NUMBERS)]),
    "BatchStageTest.mapUsingIMap": Case(
        lambda s: s.map_using_imap("jet-cases", lambda n: n, Entry), [Entry(n, f"value-{n}") for n in NUMBERS]
    ),
    "BatchStageTest.mapStateful_global": Case(
        lambda s: s.map_stateful(lambda: [0], add), [n * (n + 1) // 2 for n in NUMBERS]
    ),
    "BatchStageTest.mapStateful_global_returningNull": Case(
        lambda s: s.map_stateful(lambda: [0], is_half), [10 if n == 9 else None for n in NUMBERS]
    ),
    "BatchStageTest.mapStateful_keyed": Case(
        lambda s: s.grouping_key(lambda n: n % 2).map_stateful(lambda: [0], lambda sum, key, n: (key, add(sum, n))),
        [(n % 2, KEYED_SUMS[n % 2, n]) for n in NUMBERS],
    ),
    "BatchStageTest.mapStateful_keyed_returningNull": Case(
        lambda s: s.grouping_key(lambda n: n % 2).map_stateful(lambda: [0], lambda count, key, n: is_half(count, n)),
        [10 if n >= 18 else None for n in NUMBERS],
    ),
    "BatchStageTest.filterStateful_global": Case(
        lambda s: s.filter_stateful(lambda: [0], lambda sum, n: add(sum, n) % 2 == 0),
        [n for n in NUMBERS if n * (n + 1) // 2 % 2 == 0],
    ),
    "BatchStageTest.filterStateful_keyed": Case(
        lambda s: s.grouping_key(lambda n: n % 2).filter_stateful(
            lambda: [0], lambda sum, key, n: add(sum, n) % 2 == 0
        ),
        [n for n in NUMBERS if KEYED_SUMS[n % 2, n] % 2 == 0],
    ),
    "BatchStageTest.flatMapStateful_global": Case(
        lambda s: s.flat_map_stateful(lambda: [0], lambda sum, n: [add(sum, n), sum[0]]),
        [n * (n + 1) // 2 for n in NUMBERS for _ in "ab"],
    ),
    "BatchStageTest.flatMapStateful_keyed": Case(
        lambda s: s.grouping_key(lambda n: n % 2).flat_map_stateful(
            lambda: [0], lambda sum, key, n: [(key, add(sum, n)), (key, sum[0])]
        ),
        [(n % 2, KEYED_SUMS[n % 2, n]) for n in NUMBERS for _ in "ab"],
    ),
    "BatchStageTest.rollingAggregate_global": Case(lambda s: s.rolling_aggregate(counting()), [n + 1 for n in NUMBERS]),
    "BatchStageTest.rollingAggregate_keyed": Case(
        lambda s: s.grouping_key(lambda n: n % 2).rolling_aggregate(counting()),
        [Entry(n % 2, n // 2 + 1) for n in NUMBERS],
    ),
    "BatchStageTest.merge": Case(lambda s: s.merge(times(s, 1)), NUMBERS * 2, ordered=False),
    "BatchStageTest.distinct": Case(lambda s: s.map(lambda n: n % 7).distinct(), list(range(7))),
    "BatchStageTest.distinct_keyed": Case(lambda s: s.grouping_key(lambda n: n // 2).distinct(), EVEN, ordered=False),
    "BatchStageTest.sort": Case(lambda s: s.map(lambda n: n * 7 % 20).sorted(), NUMBERS),
    "BatchStageTest.hashJoin": Case(
        lambda s: s.hash_join(texts(s, "A"), on=BY_ITSELF, to=Entry), [Entry(n, f"{n}A") for n in NUMBERS]
    ),
    "BatchStageTest.hashJoin_when_outputFnReturnsNull": Case(
        lambda s: s.hash_join(texts(s, "A"), on=BY_ITSELF, to=lambda n, text: None), [None] * len(NUMBERS)
    ),
    "BatchStageTest.when_innerHashJoin_then_filterOutNulls": Case(
        lambda s: s.inner_hash_join(texts(s, "A").filter(lambda e: e.key % 2 == 0), on=BY_ITSELF, to=Entry),
        [Entry(n, f"{n}A") for n in EVEN],
    ),
    "BatchStageTest.hashJoin2": Case(
        lambda s: s.hash_join_all([(texts(s, "A"), BY_ITSELF), (texts(s, "B"), BY_ITSELF)], to=lambda *row: row),
        [(n, f"{n}A", f"{n}B") for n in NUMBERS],
    ),
    "BatchStageTest.hashJoinBuilder": Case(
        lambda s: s.hash_join_all([(two_each(s), BY_ITSELF), (two_each(s), BY_ITSELF)], to=lambda *row: row),
        [(n, f"{n}{one}", f"{n}{other}") for n in NUMBERS for one in "AB" for other in "AB"],
    ),
    "BatchStageTest.peekIsTransparent": Case(lambda s: s.peek(), NUMBERS),
    "BatchStageTest.peekWithToStringFunctionIsTransparent": Case(lambda s: s.peek(to_string=hex), NUMBERS),
    "BatchStageTest.customTransform": Case(
        lambda s: s.gather(Gatherer.of(integrator=lambda state, n, downstream: downstream.push(str(n)))),
        [*map(str, NUMBERS)],
    ),
    "BatchAggregateTest.aggregate": Case(lambda s: s.aggregate(to_set()), [set(NUMBERS)]),
    "BatchAggregateTest.aggregate2": Case(
        lambda s: s.co_aggregate(times(s, 10), op=to_bags(2)), [(NUMBERS, [n * 10 for n in NUMBERS])]
    ),
    "BatchAggregateTest.aggregate2_with_finishFn": Case(
        lambda s: s.co_aggregate(times(s, 10), op=co_operation(SUM, SUM, finish=operator.sub)), [-9 * sum(NUMBERS)]
    ),
    "BatchAggregateTest.aggregate3": Case(
        lambda s: s.co_aggregate(times(s, 10), times(s, 100), op=to_bags(3)),
        [(NUMBERS, [n * 10 for n in NUMBERS], [n * 100 for n in NUMBERS])],
    ),
    "BatchAggregateTest.aggregateBuilder": Case(
        lambda s: s.co_aggregate(times(s, 2), times(s, 3), times(s, 4), op=co_operation(SUM, SUM, counting(), SUM)),
        [(sum(NUMBERS), 2 * sum(NUMBERS), len(NUMBERS), 4 * sum(NUMBERS))],
    ),
    "BatchAggregateTest.groupAggregate": Case(
        lambda s: by_fives(s).aggregate(SUM), [Entry(*each) for each in sums_by_fives(NUMBERS).items()], ordered=False
    ),
    "BatchAggregateTest.groupAggregate_withOutputFn": Case(
        lambda s: by_fives(s).aggregate(SUM, to=lambda key, sum: key + 100 * sum),
        [key + 100 * sum for key, sum in sums_by_fives(NUMBERS).items()],
        ordered=False,
    ),
    "BatchAggregateTest.groupAggregate2": Case(
        lambda s: by_fives(s).co_aggregate(by_fives(times(s, 10)), op=co_operation(SUM, SUM)),
        of_each(1, 10),
        ordered=False,
    ),
    "BatchAggregateTest.groupAggregate2_withOutputFn": Case(
        lambda s: by_fives(s).co_aggregate(
            by_fives(times(s, 10)), op=co_operation(SUM, SUM), to=lambda key, sums: (key, *sums)
        ),
        [(key, *sums) for key, sums in of_each(1, 10)],
        ordered=False,
    ),
    "BatchAggregateTest.groupAggregate3": Case(
        lambda s: by_fives(s).co_aggregate(
            by_fives(times(s, 10)), by_fives(times(s, 100)), op=co_operation(SUM, SUM, SUM)
        ),
        of_each(1, 10, 100),
        ordered=False,
    ),
    "BatchAggregateTest.groupAggregateBuilder": Case(
        lambda s: by_fives(s).co_aggregate(
            *(by_fives(times(s, factor)) for factor in (10, 100, 7)), op=co_operation(SUM, SUM, SUM, SUM)
        ),
        of_each(1, 10, 100, 7),
        ordered=False,
    ),
}


def attach(numbers: Any, name: str) -> None:
    """Write the items of a case into a sink that knows the expected ones."""
    build, expected, ordered = CASES[name]
    sink = assert_ordered(expected) if ordered else assert_any_order(expected)
    build(numbers).write_to(sink)


def run(context: ds.Context, *names: str) -> None:
    """Run these cases as one job."""
    context.get_map("jet-cases").put_all({n: f"value-{n}" for n in NUMBERS})
    pipeline = Pipeline()
    numbers = pipeline.read_from(items(*NUMBERS)).set_local_parallelism(3)
    for name in names:
        attach(numbers, name)
    context.new_job(pipeline).join()


def test_several_stages_end_in_one_sink(local_context):
    """`drainTo(sink, stages...)`: the sink has the items of all of them."""
    pipeline = Pipeline()
    numbers = pipeline.read_from(items(1, 2))
    pipeline.write_to(assert_any_order([1, 2, 10, 20]), numbers, numbers.map(lambda n: n * 10))
    local_context.new_job(pipeline).join()


def test_a_source_is_read_by_two_stages(local_context):
    """Jet refuses to draw twice from one object; here it is read twice, and a stage may meet itself."""
    pipeline, source = Pipeline(), items(1, 2)
    one, other = pipeline.read_from(source), pipeline.read_from(source)
    one.co_aggregate(other, one, op=to_bags(3)).write_to(assert_ordered([([1, 2], [1, 2], [1, 2])]))
    local_context.new_job(pipeline).join()


DEDUCTIBLE = [counting(), SUM, averaging(int), linear_trend(int, int), all_of(counting(), SUM), to_bags(2)]


@pytest.mark.parametrize("operation", DEDUCTIBLE, ids=repr)
def test_fresh_containers_are_equal(operation):
    """`AggregateOperations_accEqualityTest`: so a window knows a key of which nothing is left."""
    assert operation.deduct is not None
    assert operation.create() == operation.create()


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_jet_holds(local_context, name):
    """The stage has the items that Jet's has; where Jet drops null, ours has None."""
    run(local_context, name)


def test_the_cases_of_jet_hold_on_spark(spark_context):
    """All of them, as branches of one stage."""
    run(spark_context, *CASES)


def test_a_case_that_is_wrong_fails(local_context, monkeypatch):
    """The sinks really look at what comes."""
    monkeypatch.setitem(CASES, "wrong", Case(lambda s: s.map(str), NUMBERS))
    with pytest.raises(AssertionError):
        run(local_context, "wrong")
