"""The cases of Jet's tests of stages without an end and of their windows, under the names that they have there.

Numbers come in three epochs, each with its own value as its timestamp; then the source ends.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import dstream as ds
from collectors import co_operation, counting, mapping, summing, to_list
from dstream import Entry, JoinClause, Pipeline, Service
from dstream.testing import epochs
from dstream.windows import session, sliding, tumbling
from reducers import to_ilist
from sources import items

NUMBERS = list(range(20))
EVEN = NUMBERS[::2]
KEY, VALUE = operator.attrgetter("key"), operator.attrgetter("value")
SUM = summing(int)
BY_ITSELF = JoinClause.join_map_entries(int)


class Case(NamedTuple):
    """What a case makes of a stage of numbers without an end, and what comes of it, in any order.

    Where it is given, `moved` changes the numbers before they have timestamps.
    """

    build: Callable[[Any], Any]
    expected: list[Any]
    moved: Callable[[int], int] = abs


def texts(numbers: Any, mark: str) -> Any:
    """Return a stage in the same pipeline that ends: entries of each number and a text."""
    return numbers.pipeline.read_from(items(*NUMBERS)).map(lambda n: Entry(n, f"{n}{mark}"))


def two_each(numbers: Any) -> Any:
    """Return one with two entries for each number."""
    return numbers.pipeline.read_from(items(*NUMBERS)).flat_map(lambda n: [Entry(n, f"{n}A"), Entry(n, f"{n}B")])


def add(state: list[int], n: int) -> int:
    """Add to the sum that a state holds, and return it."""
    state[0] += n
    return state[0]


def windows(size: int, by: int) -> list[tuple[int, list[int]]]:
    """Return the end of each window and the numbers in it."""
    ends = range(by, NUMBERS[-1] + size + 1, by)
    found = [(end, [n for n in NUMBERS if end - size <= n < end]) for end in ends]
    return [(end, inside) for end, inside in found if inside]


def keyed(numbers: Any) -> Any:
    """Give each number to two keys."""
    return numbers.flat_map(lambda n: [Entry("a", n), Entry("b", n)]).grouping_key(KEY)


def three_of(end: int, of: int, *sums: int) -> tuple[int, ...]:
    """Return what the cases with several inputs emit."""
    return end, *([sum(sums)] * of)


def at_end(start: int, end: int, result: Any) -> Any:
    """Return the end of a window and its result."""
    return end, result


def of_key(start: int, end: int, key: Any, result: Any) -> Any:
    """Return the end of a window, its key and its result."""
    return end, key, result


def spread(n: int) -> int:
    """Move numbers apart: four, then a pause of two."""
    return n + n // 4 * 2


VALUES = mapping(VALUE, SUM)
SUMS = [(end, sum(inside)) for end, inside in windows(4, 4)]
SLIDING = [(end, sum(inside)) for end, inside in windows(4, 2)]
SESSIONS = [(6 * n, sum(map(spread, NUMBERS[4 * n : 4 * n + 4]))) for n in range(5)]
BOTH = "ab"

CASES = {
    "StreamStageTest.map": Case(lambda s: s.map(str), [*map(str, NUMBERS)]),
    "StreamStageTest.filter": Case(lambda s: s.filter(lambda n: n % 2 == 0), EVEN),
    "StreamStageTest.flatMap": Case(lambda s: s.flat_map(lambda n: (n, -n)), [x for n in NUMBERS for x in (n, -n)]),
    "StreamStageTest.mapUsingContext": Case(
        lambda s: s.map_using(Service(lambda: "-x"), lambda suffix, n: f"{n}{suffix}"), [f"{n}-x" for n in NUMBERS]
    ),
    "StreamStageTest.filterUsingContext": Case(
        lambda s: s.filter_using(Service(lambda: 2), lambda of, n: n % of == 0), EVEN
    ),
    "StreamStageTest.flatMapUsingContext": Case(
        lambda s: s.flat_map_using(Service(lambda: "AB"), lambda letters, n: [f"{n}{each}" for each in letters]),
        [f"{n}{each}" for n in NUMBERS for each in "AB"],
    ),
    "StreamStageTest.mapStateful_global": Case(
        lambda s: s.map_stateful(lambda: [0], add), [sum(NUMBERS[: n + 1]) for n in NUMBERS]
    ),
    "StreamStageTest.mapStateful_keyed": Case(
        lambda s: s.grouping_key(lambda n: n % 2).map_stateful(lambda: [0], lambda state, key, n: (key, add(state, n))),
        [(n % 2, sum(NUMBERS[n % 2 : n + 1 : 2])) for n in NUMBERS],
    ),
    "StreamStageTest.rollingAggregate_global": Case(
        lambda s: s.rolling_aggregate(counting()), [n + 1 for n in NUMBERS]
    ),
    "StreamStageTest.rollingAggregate_keyed": Case(
        lambda s: s.grouping_key(lambda n: n % 2).rolling_aggregate(counting()),
        [Entry(n % 2, n // 2 + 1) for n in NUMBERS],
    ),
    "StreamStageTest.merge": Case(lambda s: s.merge(s.map(lambda n: -n)), [x for n in NUMBERS for x in (n, -n)]),
    "StreamStageTest.hashJoin": Case(
        lambda s: s.hash_join(texts(s, "A"), on=BY_ITSELF, to=Entry), [Entry(n, f"{n}A") for n in NUMBERS]
    ),
    "StreamStageTest.hashJoin2": Case(
        lambda s: s.hash_join_all([(texts(s, "A"), BY_ITSELF), (texts(s, "B"), BY_ITSELF)], to=lambda *row: row),
        [(n, f"{n}A", f"{n}B") for n in NUMBERS],
    ),
    "StreamStageTest.hashJoinBuilder": Case(
        lambda s: s.hash_join_all([(two_each(s), BY_ITSELF), (two_each(s), BY_ITSELF)], to=lambda *row: row),
        [(n, f"{n}{one}", f"{n}{other}") for n in NUMBERS for one in "AB" for other in "AB"],
    ),
    "StreamStageTest.peekIsTransparent": Case(lambda s: s.peek(), NUMBERS),
    "StreamStageTest.peekWithToStringFunctionIsTransparent": Case(lambda s: s.peek(to_string=hex), NUMBERS),
    "WindowAggregateTest.tumblingWindow": Case(lambda s: s.window(tumbling(4)).aggregate(SUM, to=at_end), SUMS),
    "WindowGroupAggregateTest.slidingWindow without keys": Case(
        lambda s: s.window(sliding(4, by=2)).aggregate(SUM, to=at_end), SLIDING
    ),
    "WindowAggregateTest.sessionWindow": Case(
        lambda s: s.window(session(2)).aggregate(SUM, to=lambda start, end, result: (start, result)), SESSIONS, spread
    ),
    "WindowAggregateTest.aggregate2": Case(
        lambda s: s.window(tumbling(4)).co_aggregate(s, op=co_operation(SUM, SUM), to=lambda _, end, of: (end, *of)),
        [three_of(end, 2, *inside) for end, inside in windows(4, 4)],
    ),
    "WindowAggregateTest.aggregate3": Case(
        lambda s: s.window(tumbling(4)).co_aggregate(
            s, s, op=co_operation(SUM, SUM, SUM), to=lambda _, end, of: (end, *of)
        ),
        [three_of(end, 3, *inside) for end, inside in windows(4, 4)],
    ),
    "WindowAggregateTest.aggregateBuilder": Case(
        lambda s: s.window(tumbling(4)).co_aggregate(
            s, s, s, op=co_operation(SUM, SUM, SUM, SUM), to=lambda _, end, of: (end, *of)
        ),
        [three_of(end, 4, *inside) for end, inside in windows(4, 4)],
    ),
    "WindowGroupAggregateTest.tumblingWindow": Case(
        lambda s: keyed(s).window(tumbling(4)).aggregate(VALUES, to=of_key),
        [(end, key, total) for end, total in SUMS for key in BOTH],
    ),
    "WindowGroupAggregateTest.slidingWindow": Case(
        lambda s: keyed(s).window(sliding(4, by=2)).aggregate(VALUES, to=of_key),
        [(end, key, total) for end, total in SLIDING for key in BOTH],
    ),
    "WindowGroupAggregateTest.slidingWindow_cascadingAggregations": Case(
        lambda s: (
            keyed(s)
            .window(sliding(2, by=1))
            .aggregate(mapping(VALUE, to_list()))
            .window(tumbling(1))
            .aggregate(to_list(), to=lambda _, end, found: (end, sorted((each.key, each.result) for each in found)))
        ),
        [(end, [(key, inside) for key in BOTH]) for end, inside in windows(2, 1)],
    ),
    "WindowGroupAggregateTest.sessionWindow": Case(
        lambda s: (
            keyed(s).window(session(2)).aggregate(VALUES, to=lambda start, end, key, result: (start, key, result))
        ),
        [(start, key, total) for start, total in SESSIONS for key in BOTH],
        spread,
    ),
    "WindowGroupAggregateTest.aggregate2_withAggrOp2": Case(
        lambda s: keyed(s).window(tumbling(4)).co_aggregate(keyed(s), op=co_operation(VALUES, VALUES), to=of_key),
        [(end, key, (total, total)) for end, total in SUMS for key in BOTH],
    ),
    "WindowGroupAggregateTest.aggregate3_withAggrOp3": Case(
        lambda s: (
            keyed(s)
            .window(tumbling(4))
            .co_aggregate(keyed(s), keyed(s), op=co_operation(VALUES, VALUES, VALUES), to=of_key)
        ),
        [(end, key, (total, total, total)) for end, total in SUMS for key in BOTH],
    ),
}


def given(build: Callable[[Any], Any], moved: Callable[[int], int]) -> list[Any]:
    """Return all that the sink of a case gets, epoch by epoch."""
    by_hand = epochs()
    source = by_hand.source("numbers")
    pipeline = Pipeline()
    build(pipeline.read_from(source).map(moved).add_timestamps(int)).write_to(to_ilist("out"))
    by_hand.of(pipeline)
    parts = [NUMBERS[:7], NUMBERS[7:9], NUMBERS[9:]]
    got = [by_hand.cut({source: part}) for part in parts] + [by_hand.cut(is_end=True)]
    return [item for each in got for item in each["write_to"]]


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_jets_streams_holds(name):
    """What came of all epochs; where Jet drops null, ours has None."""
    build, expected, moved = CASES[name]

    assert sorted(given(build, moved), key=repr) == sorted(expected, key=repr)


def test_a_keyed_window_knows_its_definition():
    """Jet: windowDefinition, when_setWindowDefinition_then_windowDefinitionReturnsIt, of both kinds of stages."""
    stage = ds.Pipeline().read_from(epochs().source("numbers")).add_timestamps(int)

    assert stage.window(tumbling(2)).definition == tumbling(2)
    assert stage.grouping_key(int).window(tumbling(2)).definition == tumbling(2)


@pytest.mark.parametrize(("timeout", "closed"), [(0, []), (5, [10, 20])])
def test_a_partition_is_waited_for_until_it_is_idle(timeout, closed):
    """Jet: WatermarkSourceUtilTest.smokeTest, smokeTest_disabledIdleTimeout: with 0, for as long as it takes."""
    by_hand = epochs()
    source = by_hand.source("numbers", partitions=2)
    pipeline = Pipeline()
    stamped = pipeline.read_from(source).add_timestamps(int, allowed_lag=3, idle_timeout=timeout)
    stamped.window(tumbling(10)).aggregate(counting(), to=lambda start, end, count: end).write_to(to_ilist("out"))
    by_hand.of(pipeline)

    assert by_hand.cut({source: {0: [1, 11], 1: [2]}}, now=0.0) == {"write_to": []}
    assert by_hand.cut({source: {0: [30]}}, now=1e6) == {"write_to": closed}
    assert by_hand.cut({source: {1: [34]}}, now=1e6) == {"write_to": [10, 20][len(closed) :]}
