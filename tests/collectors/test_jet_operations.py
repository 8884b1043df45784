"""The cases of Jet's AggregateOperationsTest and AggregateOperationTest, under the names that they have there.

Jet looks into its accumulators; here a case says what comes of the first item, and of both.
"""

from __future__ import annotations

import copy
import math
import operator
from operator import itemgetter
from typing import Any, NamedTuple

import pytest

import collectors as c
from collectors import AggregateOperation
from dstream import Optional

KEY, VALUE = itemgetter(0), itemgetter(1)
A, B = ("a", 1), ("b", 1)


class Case(NamedTuple):
    """An operation, two items, what comes of the first one and of both, and whether it deducts."""

    operation: Any
    first: Any
    second: Any
    of_first: Any
    of_both: Any
    deducts: bool = False


class Sorted(dict):
    """A map of another class than usual."""


CASES = {
    "when_counting": Case(c.counting(), None, None, 1, 2, True),
    "when_summingToLong": Case(c.summing_long(int), 1, 2, 1, 3, True),
    "when_summingToDouble": Case(c.summing_double(float), 0.5, 1.5, 0.5, 2.0, True),
    "when_averagingLong": Case(c.averaging_long(int), 1, 2, 1.0, 1.5, True),
    "when_averagingDouble": Case(c.averaging_double(float), 1.5, 2.5, 1.5, 2.0, True),
    "when_maxBy": Case(c.max_by(), 10, 11, Optional.of(10), Optional.of(11)),
    "when_minBy": Case(c.min_by(), 10, 11, Optional.of(10), Optional.of(10)),
    "when_allOf2": Case(c.all_of(c.counting(), c.summing_long(int)), 10, 11, (1, 10), (2, 21), True),
    "when_allOfWithoutDeduct_then_noDeduct": Case(
        c.all_of(c.counting(), c.max_by()), 10, 11, (1, Optional.of(10)), (2, Optional.of(11))
    ),
    "when_allOf3": Case(
        c.all_of(c.counting(), c.summing_long(int), c.averaging_long(int)), 10, 11, (1, 10, 10.0), (2, 21, 10.5), True
    ),
    "when_allOfN": Case(
        c.all_of(c.summing_long(int), c.counting(), c.summing_double(float), c.counting()),
        *(10, 11, (10, 1, 10.0, 1), (21, 2, 21.0, 2), True),
    ),
    "when_reducing": Case(
        AggregateOperation(int, operator.add, operator.add, operator.sub).on_input(0), 1, 2, 1, 3, True
    ),
    "when_toList": Case(c.to_list(), 1, 2, [1], [1, 2]),
    "when_toSet": Case(c.to_set(), 1, 2, {1}, {1, 2}),
    "when_toMap": Case(c.to_map(KEY, VALUE), (1, 1), (2, 2), {1: 1}, {1: 1, 2: 2}),
    "when_toMapWithMerge_then_merged": Case(c.to_map(KEY, VALUE, operator.add), (1, 1), (1, 2), {1: 1}, {1: 3}),
    "when_mappingWithoutDeduct": Case(c.mapping(VALUE, c.max_by()), A, ("b", 2), Optional.of(1), Optional.of(2)),
    "when_mappingWithDeduct": Case(c.mapping(VALUE, c.summing_long(int)), A, ("b", 2), 1, 3, True),
    "when_concatenating_withoutDelimiter": Case(c.concatenating(), "A", "B", "A", "AB"),
    "when_concatenating_withDelimiter": Case(c.concatenating(","), "A", "B", "A", "A,B"),
    "when_concatenating_withDelimiterPrefixSuffix": Case(c.concatenating(",", "(", ")"), "A", "B", "(A)", "(A,B)"),
    "when_concatenatingEmptyItems_withDelimiterPrefixSuffix": Case(
        c.concatenating(",", "(", ")"), "A", "", "(A)", "(A)"
    ),
    "when_groupingBy_withDifferentKey": Case(c.grouping_by(KEY), A, B, {"a": [A]}, {"a": [A], "b": [B]}),
    "when_groupingBy_withSameKey": Case(c.grouping_by(KEY), A, A, {"a": [A]}, {"a": [A, A]}),
    "when_groupingBy_withDownstreamOperation": Case(c.grouping_by(KEY, c.counting()), A, A, {"a": 1}, {"a": 2}),
    "when_groupingBy_withDownstreamOperationAndMapSupplier": Case(
        c.grouping_by(KEY, c.counting(), map_factory=Sorted), B, A, Sorted(b=1), Sorted(a=1, b=1)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_jets_operations_holds(name):
    """Accumulated together or apart and combined; what is deducted leaves what was there."""
    operation, first, second, of_first, of_both, deducts = CASES[name]
    one, other = (operation.accumulated(operation.create(), [item]) for item in (first, second))
    alone = copy.deepcopy(one)

    assert operation.finish(copy.deepcopy(one)) == of_first
    combined = operation.combined(one, other)
    results = [operation.finish(combined), operation.finish(operation.accumulated(operation.create(), [first, second]))]
    assert results == [of_both, of_both]
    assert [type(each) for each in results] == [type(of_both)] * 2
    assert (operation.deduct is not None) is deducts
    if deducts:
        assert operation.deducted(combined, operation.accumulated(operation.create(), [second])) == alone


def test_empty_texts_leave_no_delimiter_wherever_they_are():
    """Jet: when_concatenatingEmptyItems: before another one, and alone."""
    assert c.concatenating(",", "(", ")").collect(["", "B"]) == "(B)"
    assert c.concatenating(",", "(", ")").collect(["", ""]) == "()"


def test_all_of_combines_also_what_has_no_combine():
    """Jet: when_allOfWithoutCombine_then_noCombine; here the items of such a part are kept, and taken in order."""
    both = c.all_of(AggregateOperation(str, operator.add), c.counting())
    one, other = (both.accumulated(both.create(), items) for items in ("ab", "c"))

    assert both.finish(both.combined(one, other)) == both.collect("abc") == ("abc", 3)


def test_a_trend_is_combined_and_deducted():
    """Jet: when_linearTrend: NaN of nothing, of a point, and of points with one x."""
    trend = c.linear_trend(KEY, VALUE)
    one, other = (trend.accumulated(trend.create(), points) for points in ([(1, 3), (2, 5)], [(5, 11), (6, 13)]))
    held = trend.accumulated(trend.create(), [(5, 11), (6, 13)])
    combined = trend.combined(one, other)

    assert trend.finish(combined) == trend.finish(trend.deducted(combined, held)) == 2.0
    assert all(math.isnan(trend.collect(points)) for points in ([], [(2, 1)], [(2, 1)] * 2, [(2, 1), (2, 2)]))


@pytest.mark.parametrize("apart", [[["a", "b"]], [["a"], ["a"]]])
def test_a_duplicate_of_to_map_is_found_wherever_it_is(apart):
    """Jet: when_toMapDuplicateAccumulate_then_fail, when_toMapDuplicateCombine_then_fail."""
    operation = c.to_map(lambda item: 1, str)
    parts = [lambda items=items: operation.accumulated(operation.create(), items) for items in apart]
    with pytest.raises(Exception, match=r"[Dd]uplicate"):
        operation.combined(parts[0](), parts[-1]())


def add(held, item):
    """Accumulate an item."""
    return held + item


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
def test_an_operation_has_the_parts_that_it_was_made_of(arity):
    """Jet: when_build_then_allPartsThere, for one, two, three and any number of inputs."""
    takes = tuple(lambda held, item, weight=weight: held + weight for weight in range(arity))
    made = AggregateOperation(int, takes if arity > 1 else takes[0], add, operator.sub, finish=str)

    assert (made.create, made.accumulates, made.combine) == (int, takes, add)
    assert (made.deduct, made.finish, made.arity) == (operator.sub, str, arity)


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
def test_an_input_that_is_not_there_is_an_error(arity):
    """Jet: when_askForNonexistentTag_then_exception."""
    with pytest.raises(IndexError):
        AggregateOperation(int, (add,) * arity).on_input(arity)


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
def test_another_finish_leaves_the_other_parts(arity):
    """Jet: when_withFinishFn and when_withIdentityFinish; the one that it was made of stays."""
    made = AggregateOperation(list, (list.append,) * arity, list.extend, finish=len)
    changed = made.with_finish(lambda held: held)
    held = changed.create()

    assert changed.finish(held) is held
    assert (changed.accumulates, changed.combine, made.finish) == (made.accumulates, made.combine, len)
