"""Deduct undoes combine exactly: the container is equal to what it was, and so is the result."""

from __future__ import annotations

import operator
import pickle
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import collectors as c
from dstream.collectors.compound import Bag
from dstream.values import ExactSum

PAGE = Path(__file__).parents[2] / "docs/concepts/collectors.md"

ALWAYS = {
    "averaging",
    "averaging_double",
    "averaging_int",
    "averaging_long",
    "correlation",
    "counting",
    "covariance",
    "frequencies",
    "linear_trend",
    "stddev",
    "summing",
    "summing_double",
    "summing_int",
    "summing_long",
    "to_bags",
    "variance",
}
IF_THEIR_PARTS_DO = {"all_of", "co_operation", "collecting_and_then", "filtering", "flat_mapping", "mapping", "teeing"}
IF_GIVEN = {"AggregateOperation"}


def keep(*results: Any) -> Any:
    """Return all arguments."""
    return results


def twice(number: Any) -> list[Any]:
    """Return something to flatten."""
    return [number, -number]


def positive(number: Any) -> bool:
    """Compare, as no NaN does."""
    return bool(number == number and number > 0)


WITH_PARTS = {
    "all_of": lambda part: c.all_of(c.counting(), part),
    "co_operation": lambda part: c.co_operation(part),
    "collecting_and_then": lambda part: c.collecting_and_then(part, keep),
    "filtering": lambda part: c.filtering(positive, part),
    "flat_mapping": lambda part: c.flat_mapping(twice, part),
    "mapping": lambda part: c.mapping(operator.neg, part),
    "teeing": lambda part: c.teeing(part, c.counting(), keep),
}

HUGE = st.sampled_from([1e308, -1e308, 5e-324, -0.0, 1e16, 1.0, float("inf"), float("-inf"), float("nan")])
INTS = st.integers(-3, 3) | st.integers(-(10**30), 10**30)
FLOATS = st.floats() | HUGE
DECIMALS = st.decimals(min_value=-(10**9), max_value=10**9, places=4) | st.sampled_from(
    [Decimal("1E+30"), Decimal("1E-30"), Decimal("-0"), *map(Decimal, ("Infinity", "-Infinity", "NaN"))]
)
FRACTIONS = st.fractions(max_denominator=50)
ANYTHING = st.none() | st.integers(-3, 3) | FLOATS | st.text(max_size=2) | st.tuples(st.floats(), st.none())


@dataclass(frozen=True)
class Case:
    operation: Any
    items: st.SearchStrategy[Any]


PAIRS = st.tuples(FLOATS | FRACTIONS, INTS | FLOATS)
CASES = {
    "averaging-ints": Case(c.averaging(), INTS),
    "averaging-floats": Case(c.averaging(), INTS | FLOATS | FRACTIONS),
    "averaging-decimals": Case(c.averaging(), INTS | DECIMALS),
    "averaging_double": Case(c.averaging_double(float), INTS | FLOATS),
    "averaging_int": Case(c.averaging_int(abs), INTS),
    "averaging_long": Case(c.averaging_long(abs), INTS),
    "counting": Case(c.counting(), ANYTHING),
    "frequencies": Case(c.frequencies(), ANYTHING),
    "correlation": Case(c.correlation(operator.itemgetter(0), operator.itemgetter(1)), PAIRS),
    "covariance": Case(c.covariance(operator.itemgetter(0), operator.itemgetter(1)), PAIRS),
    "linear_trend": Case(c.linear_trend(operator.itemgetter(0), operator.itemgetter(1)), PAIRS),
    "stddev": Case(c.stddev(sample=True), INTS | FLOATS | FRACTIONS),
    "summing-ints": Case(c.summing(), INTS),
    "summing-floats": Case(c.summing(), FLOATS),
    "summing-fractions": Case(c.summing(), INTS | FRACTIONS),
    "summing-decimals": Case(c.summing(), INTS | DECIMALS),
    "summing-complex": Case(c.summing(), INTS | FLOATS | FRACTIONS | st.builds(complex, FLOATS, FLOATS)),
    "summing_double": Case(c.summing_double(float), INTS | FLOATS),
    "summing_int": Case(c.summing_int(abs), INTS),
    "summing_long": Case(c.summing_long(abs), INTS),
    "to_bags": Case(c.to_bags(1), ANYTHING | st.lists(st.none() | FLOATS, max_size=2)),
    "variance": Case(c.variance(), INTS | FLOATS | DECIMALS),
} | {name: Case(around(c.summing()), INTS | FLOATS) for name, around in WITH_PARTS.items()}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
quick = settings(max_examples=40, deadline=None)


def filled(operation: Any, items: list[Any]) -> Any:
    """Return a container of the items."""
    collector = operation.on_input(0)
    return collector.accumulated(collector.supplier(), items)


def changed(function: Any, left: Any, right: Any) -> Any:
    """Return what `combine` or `deduct` gives, which may be None for `left`."""
    following = function(left, right)
    return left if following is None else following


def same(left: Any, right: Any) -> bool:
    """Compare two results: their types too, lists in any order, and NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return Bag(left) == right
    if isinstance(left, dict):
        return dict(left) == dict(right)  # To a Counter, none is the same as not there.
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) or bool(left != left and right != right)


@every_case
@quick
@given(data=st.data())
def test_deduct_undoes_combine(case, data):
    """The container equals what it was, also where all or each of them travelled."""
    operation, items = case.operation, st.lists(case.items, max_size=40)
    kept, gone = data.draw(items), data.draw(items)
    combined = changed(operation.combine, filled(operation, kept), filled(operation, gone))
    sent = pickle.loads(pickle.dumps(combined))

    left = changed(operation.deduct, combined, filled(operation, gone))
    left_of_sent = changed(operation.deduct, sent, pickle.loads(pickle.dumps(filled(operation, gone))))

    assert left == filled(operation, kept)
    assert left_of_sent == filled(operation, kept)
    assert pickle.loads(pickle.dumps(changed(operation.deduct, left, filled(operation, kept)))) == operation.create()


@every_case
@quick
@given(data=st.data())
def test_the_result_is_that_of_what_is_left(case, data):
    """Whichever part goes, as when a window slides, and in whatever order parts come and go; finishing changes none."""
    operation, parts = case.operation, st.lists(case.items, max_size=40)
    first, second, third = data.draw(parts), data.draw(parts), data.draw(parts)
    container = changed(operation.combine, filled(operation, first), filled(operation, second))
    operation.finish(container)
    container = changed(operation.deduct, container, filled(operation, first))
    assert same(operation.finish(container), operation.finish(filled(operation, second)))
    container = changed(operation.combine, container, filled(operation, third))
    container = changed(operation.deduct, container, filled(operation, second))

    assert same(operation.finish(container), operation.finish(filled(operation, third)))
    assert container == filled(operation, third)


@every_case
@quick
@given(data=st.data())
def test_what_is_taken_out_stays_as_it_was(case, data):
    """A frame of a window goes out of several windows, and is asked for its own result."""
    operation, items = case.operation, st.lists(case.items, max_size=40)
    kept, gone = data.draw(items), data.draw(items)
    frame = filled(operation, gone)
    for _ in range(2):
        changed(operation.deduct, changed(operation.combine, filled(operation, kept), filled(operation, gone)), frame)

    assert same(operation.finish(frame), operation.finish(filled(operation, gone)))


@quick
@given(*[st.lists(INTS | FLOATS | DECIMALS | FRACTIONS, max_size=40)] * 2)
def test_numbers_that_cannot_be_added_leave_no_trace(kept, gone):
    """Containers hold all kinds apart, whose sum may be refused as long as they are there."""
    total = c.summing()
    left = total.deducted(total.combined(filled(total, kept), filled(total, gone)), filled(total, gone))
    assert left == filled(total, kept)
    assert total.deducted(left, filled(total, kept)) == 0


@quick
@given(*[st.lists(FLOATS, max_size=20)] * 3)
@example([1e308, 1e308], [1e308, -1e308], [])
def test_exact_sums_are_equal_if_their_numbers_add_up_to_the_same(first, second, third):
    """To the last bit, not only to what a float can show; infinities and NaN of each kind count."""
    whole, other, gone = ExactSum(), ExactSum(), ExactSum()
    whole.add_all([*first, *second, *third])
    other.add_all([*third, *first])
    gone.add_all(second)
    whole.deduct(gone)
    assert whole == other
    assert repr(whole.value()) == repr(other.value())
    other.add(5e-324)
    assert whole != other


def test_the_same_is_in_a_bag_whatever_its_order():
    """Bags lose the first equal item, by the rules of keys; what was never in one cannot leave it."""
    bags = c.to_bags(1)
    container = filled(bags, [1, "a", 1.0, float("nan"), [2]])
    bags.deduct(container, [[[2], True, float("nan")]])
    assert bags.finish(container) == (["a", 1.0],)
    assert container == [[1, "a"]]
    assert container != [["a", "a"]]
    with pytest.raises(ValueError, match="'b' cannot be taken out of a bag"):
        bags.deduct(container, [["b"]])


def test_what_is_made_of_parts_has_it_if_they_do():
    """One without is enough that there is none; without `combine` there is nothing that it could undo."""
    assert all(around(c.to_list()).deduct is None for around in WITH_PARTS.values())
    assert c.all_of(c.counting(), c.to_list()).deduct is None
    assert c.AggregateOperation(int, operator.add, operator.add).deduct is None
    given = c.AggregateOperation(int, operator.add, operator.add, operator.sub)
    assert (given.deduct, given.as_collector().deduct) == (operator.sub, operator.sub)
    assert c.AggregateOperation(int, operator.add, deduct=operator.sub).as_collector().deduct is None


def test_the_page_says_which_factories_have_it():
    """One table, of all factories, which is what their cases have."""
    rows = dict(
        re.findall(r"^\| (always|if their parts have it|if given|never) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    )
    said = {when: set(re.findall(r"`(\w+)`", names)) for when, names in rows.items()}
    never = set(c.__all__) - ALWAYS - IF_THEIR_PARTS_DO - IF_GIVEN
    assert said == {"always": ALWAYS, "if their parts have it": IF_THEIR_PARTS_DO, "if given": IF_GIVEN, "never": never}
    assert {name.split("-")[0] for name, case in CASES.items() if case.operation.deduct} == ALWAYS | IF_THEIR_PARTS_DO
