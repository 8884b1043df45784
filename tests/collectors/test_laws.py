"""The laws of collectors, over every factory; a factory without a case fails the first test."""

from __future__ import annotations

import functools
import operator
import pickle
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectors as c
from dstream.spi import Collector
from dstream.testing import check_collector


def tens(number: Any) -> int:
    """Return which ten a number is in."""
    return int(number) // 10


def append_to_tuple(container: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    """Accumulate without changing the container."""
    return (*container, item)


def digits(number: int) -> str | None:
    """Return several characters, or None for every third number."""
    return str(number) if number % 3 else None


def pair(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both."""
    return left, right


def last_value(left: Any, right: Any) -> Any:
    """Return the later one: associative, not commutative, None too."""
    return right


def compared(left: int, right: int) -> int:
    """Compare the last digits only."""
    return left % 10 - right % 10


class OnlyLess:
    """A key that cannot be pickled and knows `<` alone."""

    def __init__(self, number: Any) -> None:
        self.number, self.lock = number % 10, threading.Lock()

    def __lt__(self, other: OnlyLess) -> bool:
        return self.number < other.number


def in_a_tuple(number: int) -> tuple[OnlyLess, int]:
    """Return a key with a part that cannot be pickled."""
    return OnlyLess(number), number % 3


UNSENT_KEYS: list[Any] = [functools.cmp_to_key(compared), OnlyLess, in_a_tuple]


@dataclass(frozen=True)
class Case:
    collector: Collector[Any, Any, Any]
    items: st.SearchStrategy[Any]
    many: list[Any]
    by: Callable[[Any], object] | None = None


MUTABLE: Collector[Any, Any, Any] = Collector(list, list.append, list.extend)
FUNCTIONAL: Collector[Any, Any, Any] = Collector(tuple, append_to_tuple, operator.add)
CHANCE = random.Random(7)
FLOATS = [CHANCE.uniform(-1e9, 1e9) for _ in range(9_000)]
INTS = [CHANCE.randrange(-20_000, 20_000) for _ in range(9_000)]
PAIRS = list(zip(FLOATS, INTS, strict=True))
WORDS = [f"w{n % 500}" for n in INTS]
NAN = float("nan")
# Finite sums stay finite here; `test_arithmetic` has those that do not.
SUMMABLE = st.floats()


def on_ints(collector: Any) -> Case:
    """Try small ints."""
    return Case(collector, st.integers(-30, 30), INTS)


def on_numbers(collector: Any) -> Case:
    """Try ints beyond 64 bits, floats with NaN and infinities, and bools."""
    return Case(collector, st.integers(-(10**20), 10**20) | SUMMABLE | st.booleans(), [*FLOATS, *INTS, NAN])


def on_exact(collector: Any) -> Case:
    """Try ints and Decimals of very different size."""
    decimals = st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(n % 9 - 6))
    return Case(collector, st.integers(-9, 9) | decimals, [Decimal(n).scaleb(n % 40 - 20) for n in INTS[:6000]])


def on_floats(collector: Any) -> Case:
    """Try floats with NaN and infinities."""
    return Case(collector, SUMMABLE, [*FLOATS, 1e300, 1e-300])


def on_words(collector: Any) -> Case:
    """Try short strings."""
    return Case(collector, st.text(max_size=3), WORDS)


def on_pairs(collector: Any) -> Case:
    """Try pairs of a float and an int."""
    return Case(collector, st.tuples(st.floats(), st.integers(-9, 9)), PAIRS)


def on_anything(collector: Any) -> Case:
    """Try items of many types, None and NaN among them."""
    item = st.none() | st.integers(-3, 3) | st.floats() | st.text(max_size=2) | st.tuples(st.floats(), st.none())
    return Case(collector, item, [None, NAN, (NAN, 1), *WORDS, *INTS])


def on_complex(collector: Any) -> Case:
    """Try complex numbers, with NaN and infinities, among ints and floats."""
    numbers = st.builds(complex, SUMMABLE, SUMMABLE) | st.integers(-9, 9) | SUMMABLE
    return Case(collector, numbers, [*map(complex, FLOATS, INTS), *FLOATS[:99]])


def unordered(bags: Any) -> object:
    """Return bags so that the order of their items does not matter."""
    return [sorted(map(repr, bag)) for bag in bags]


CASES: dict[str, list[Case]] = {
    "AggregateOperation": [
        on_ints(c.AggregateOperation(int, max, max, finish=str).as_collector()),
        on_ints(c.AggregateOperation(list, list.append, finish=tuple).as_collector()),  # without `combine`
    ],
    "co_operation": [on_ints(c.co_operation(c.all_of(c.counting(), c.to_list())).as_collector())],
    # What is deducted from a bag is the first equal item, so that the others may stand in another order.
    "to_bags": [replace(on_anything(c.to_bags(1).as_collector()), by=unordered)],
    "all_of": [
        on_ints(c.all_of(c.counting(), c.to_list(), FUNCTIONAL, c.grouping_by(tens))),
        on_ints(c.all_of()),
        on_ints(c.all_of(c.counting(), c.summing(), finish=pair)),
    ],
    "approx_count_distinct": [on_anything(c.approx_count_distinct())],
    "averaging": [
        on_exact(c.averaging()),
        on_numbers(c.averaging()),
        on_words(c.averaging(len)),
        on_complex(c.averaging()),
    ],
    "averaging_double": [on_numbers(c.averaging_double(abs))],
    "averaging_int": [on_ints(c.averaging_int(abs))],
    "averaging_long": [on_ints(c.averaging_long(abs))],
    "bottom_n": [on_numbers(c.bottom_n(3)), on_ints(c.bottom_n(5, tens)), on_ints(c.bottom_n(0))],
    "collecting_and_then": [
        on_ints(c.collecting_and_then(c.to_list(), len)),
        on_ints(c.collecting_and_then(c.grouping_by(tens, c.counting()), sorted)),
    ],
    "concatenating": [on_words(c.concatenating("-", "<", ">"))],
    "correlation": [on_pairs(c.correlation(operator.itemgetter(0), operator.itemgetter(1)))],
    "counting": [on_anything(c.counting())],
    "covariance": [on_pairs(c.covariance(operator.itemgetter(0), operator.itemgetter(1)))],
    "filtering": [on_ints(c.filtering(tens, c.to_list())), on_ints(c.filtering(tens, FUNCTIONAL))],
    "flat_mapping": [
        on_ints(c.flat_mapping(digits, c.to_list())),
        Case(c.flat_mapping(digits, FUNCTIONAL), st.integers(0, 99), INTS[:1000]),
    ],
    "frequencies": [on_anything(c.frequencies())],
    "grouping_by": [
        on_ints(c.grouping_by(tens)),
        on_ints(c.grouping_by(str, c.averaging())),
        on_ints(c.grouping_by(tens, c.mapping(abs, c.summing()))),
        on_ints(c.grouping_by(tens, c.collecting_and_then(c.counting(), str))),
        on_ints(c.grouping_by(tens, FUNCTIONAL)),
        on_ints(c.grouping_by(tens, MUTABLE)),
        on_pairs(c.grouping_by(operator.itemgetter(0), c.max_by(operator.itemgetter(1)))),
        on_ints(c.grouping_by(tens, c.grouping_by(abs, c.counting()), map_factory=dict)),
    ],
    "grouping_by_concurrent": [on_ints(c.grouping_by_concurrent(tens, c.to_set()))],
    "joining": [on_words(c.joining(", ", "[", "]"))],
    "linear_trend": [on_pairs(c.linear_trend(operator.itemgetter(0), operator.itemgetter(1)))],
    "mapping": [on_ints(c.mapping(abs, c.summing())), on_ints(c.mapping(abs, c.mapping(str, FUNCTIONAL)))],
    "max_by": [on_numbers(c.max_by()), on_ints(c.max_by(tens))],
    "median": [Case(c.median(), st.floats(allow_infinity=False), FLOATS), on_words(c.median(len))],
    "min_by": [on_numbers(c.min_by()), on_ints(c.min_by(tens))],
    "mode": [on_anything(c.mode()), on_ints(c.mode(tens))],
    "partitioning_by": [on_ints(c.partitioning_by(tens)), on_ints(c.partitioning_by(tens, FUNCTIONAL))],
    "percentiles": [Case(c.percentiles([0, 12.5, 50, 100]), st.floats(), FLOATS), on_ints(c.percentiles([], abs))],
    "pick_any": [on_anything(c.pick_any())],
    "quantiles": [
        Case(c.quantiles([0, 0.1, 0.5, 1]), st.floats(), FLOATS[:150]),
        Case(c.quantiles([0, 1]), st.floats(), FLOATS),
        Case(c.quantiles([0, 0.5, 1], accuracy=0.001), st.floats(), FLOATS[:1000]),
    ],
    "reducing": [
        on_words(c.reducing(operator.add)),
        on_words(c.reducing(">", operator.add)),
        on_ints(c.reducing("", str, operator.add)),
        on_anything(c.reducing(last_value)),
    ],
    "sorting": [on_numbers(c.sorting()), on_ints(c.sorting(tens))],
    "stddev": [on_floats(c.stddev()), on_numbers(c.stddev(sample=True))],
    "summarizing": [on_numbers(c.summarizing()), on_ints(c.summarizing())],
    "summarizing_double": [on_floats(c.summarizing_double(abs))],
    "summarizing_int": [on_ints(c.summarizing_int(abs))],
    "summarizing_long": [on_ints(c.summarizing_long(abs))],
    "summing": [
        on_exact(c.summing()),
        on_numbers(c.summing()),
        on_floats(c.summing()),
        on_words(c.summing(len)),
        on_complex(c.summing()),
    ],
    "summing_double": [on_floats(c.summing_double(float))],
    "summing_int": [on_ints(c.summing_int(abs))],
    "summing_long": [on_ints(c.summing_long(abs))],
    "teeing": [
        on_ints(c.teeing(c.summing(), c.counting(), operator.sub)),
        on_ints(c.teeing(FUNCTIONAL, MUTABLE, pair)),
    ],
    "to_collection": [on_ints(c.to_collection(deque)), on_ints(c.to_collection(set))],
    "to_concurrent_map": [on_ints(c.to_concurrent_map(tens, abs, max))],
    "to_list": [on_anything(c.to_list())],
    "to_map": [
        on_ints(c.to_map(tens, abs, max)),
        on_pairs(c.to_map(operator.itemgetter(0), operator.itemgetter(1), last_value)),
    ],
    "to_set": [on_anything(c.to_set())],
    "to_unmodifiable_list": [on_ints(c.to_unmodifiable_list())],
    "to_unmodifiable_map": [on_ints(c.to_unmodifiable_map(tens, abs, max))],
    "to_unmodifiable_set": [on_numbers(c.to_unmodifiable_set())],
    "top_n": [on_numbers(c.top_n(3)), on_ints(c.top_n(5, tens)), on_ints(c.top_n(0))],
    "variance": [on_floats(c.variance()), on_numbers(c.variance(sample=True))],
}
for key in UNSENT_KEYS:
    CASES["bottom_n"].append(on_ints(c.bottom_n(3, key)))
    CASES["max_by"].append(on_ints(c.max_by(key)))
    CASES["min_by"].append(on_ints(c.min_by(key)))
    CASES["sorting"].append(on_ints(c.sorting(key)))
    CASES["top_n"].append(on_ints(c.top_n(3, key)))
CASES["all_of"].append(on_ints(c.all_of(c.max_by(OnlyLess), c.top_n(2, in_a_tuple))))
CASES["grouping_by"].append(on_ints(c.grouping_by(tens, c.bottom_n(2, in_a_tuple))))
CASES["partitioning_by"].append(on_ints(c.partitioning_by(tens, c.min_by(OnlyLess))))
CASES["teeing"].append(on_ints(c.teeing(c.min_by(OnlyLess), c.max_by(in_a_tuple), pair)))
EVERY = [pytest.param(case, id=f"{name}-{index}") for name, cases in CASES.items() for index, case in enumerate(cases)]
KEYED = [param for param in EVERY if param.values[0].collector.keyed is not None]

every_case = pytest.mark.parametrize("case", EVERY)
quick = settings(max_examples=20, deadline=None)


def shape(result: Any) -> Any:
    """Return what two equal results share: the order of keys counts, that of a set does not, and NaN equals NaN."""
    if isinstance(result, set | frozenset):
        return sorted(map(repr, result))
    if isinstance(result, dict):
        return [(repr(key), shape(value)) for key, value in result.items()]
    return repr(result)


def looped(collector: Collector[Any, Any, Any], items: list[Any], container: Any = None) -> Any:
    """Return the container of `items`, filled one by one, or one that held more before."""
    container = collector.supplier() if container is None else container
    return replace(collector, accumulate_all=None).accumulated(container, items)


def by_parts(collector: Collector[Any, Any, Any], parts: list[list[Any]]) -> list[Any]:
    """Return the container of each part."""
    return [collector.accumulated(collector.supplier(), part) for part in parts]


def parts_of(case: Case) -> st.SearchStrategy[list[list[Any]]]:
    """Draw a few parts, some of them empty."""
    return st.lists(st.lists(case.items, max_size=12), max_size=5)


def test_every_factory_has_a_case():
    """A factory that is made public without a case here is an error."""
    assert set(CASES) == set(c.__all__)


@every_case
@quick
@given(data=st.data())
def test_any_split_gives_the_same(case, data):
    """Parts of any number and size, combined in order from the left or from the right, equal one part."""
    parts = data.draw(parts_of(case))
    collector = case.collector
    whole = shape(collector.collect(list(chain(*parts))))

    left = functools.reduce(collector.combined, by_parts(collector, parts), collector.supplier())
    right = collector.supplier()
    for container in reversed(by_parts(collector, parts)):
        right = collector.combined(container, right)

    assert shape(collector.finisher(left)) == whole
    assert shape(collector.finisher(right)) == whole


@every_case
def test_many_items_in_three_parts_give_the_same(case):
    """Batches do not show in the result: thousands of items, whole, looped over, and in three parts."""
    collector, many = case.collector, case.many
    whole = shape(collector.collect(iter(many)))
    parts = by_parts(collector, [many[:100], many[100:5000], many[5000:]])

    assert shape(collector.finisher(looped(collector, many))) == whole
    assert shape(collector.finisher(functools.reduce(collector.combined, parts))) == whole


@every_case
@quick
@given(data=st.data())
def test_accumulate_all_is_a_loop_of_the_accumulator(case, data):
    """Items taken in one by one, and then in bulk, give what they give in bulk."""
    first, second = data.draw(st.tuples(st.lists(case.items), st.lists(case.items)))
    collector = case.collector
    mixed = collector.accumulated(looped(collector, first), second)

    assert shape(collector.finisher(looped(collector, first + second))) == shape(collector.collect(first + second))
    assert shape(collector.finisher(mixed)) == shape(collector.collect(first + second))


@every_case
@quick
@given(data=st.data())
def test_a_container_is_nobody_elses(case, data):
    """The supplier gives a fresh container, and filling it changes no other and no item."""
    mine, theirs = data.draw(st.tuples(st.lists(case.items), st.lists(case.items)))
    collector = case.collector
    nothing, before = shape(collector.collect([])), repr((mine, theirs))
    container = collector.accumulated(collector.supplier(), mine)

    by_parts(collector, [theirs])
    looped(collector, theirs)

    assert shape(collector.finisher(container)) == shape(collector.collect(mine))
    assert shape(collector.finisher(collector.supplier())) == nothing
    assert repr((mine, theirs)) == before


@every_case
@pytest.mark.parametrize("library", [pickle, cloudpickle])
@quick
@given(data=st.data())
def test_pickling_changes_nothing(case, library, data):
    """A collector and its containers go through pickle, before and after they are combined, and take more items.

    Not more NaN: one that went through pickle is another object, which a dict does not find again. Engines combine
    containers that went through pickle, which makes all NaN one, and put no items into them.
    """
    parts = data.draw(parts_of(case))
    more = data.draw(st.lists(case.items.filter(lambda item: "nan" not in repr(item).lower()), max_size=12))
    whole = shape(case.collector.collect(list(chain(*parts, more))))
    collector = library.loads(library.dumps(case.collector))

    containers = [pickle.loads(library.dumps(container)) for container in by_parts(case.collector, parts)]
    combined = functools.reduce(collector.combined, containers, collector.supplier())
    one_by_one = looped(collector, more[:3], pickle.loads(library.dumps(combined)))
    sent = collector.accumulated(pickle.loads(library.dumps(one_by_one)), more[3:])

    assert shape(collector.finisher(pickle.loads(library.dumps(sent)))) == whole


@every_case
@quick
@given(data=st.data())
def test_the_kit_for_users_finds_nothing(case, data):
    """`check_collector` tries the laws in its own way and has no false alarm."""
    check_collector(case.collector, data.draw(st.lists(case.items, max_size=5)), by=case.by)


def groups_of_items(collector: Collector[Any, Any, Any], part: list[Any]) -> dict[Any, Any]:
    """Fill a container of each key with the keyed view alone."""
    members: dict[Any, list[Any]] = {}
    for item in part:
        members.setdefault(collector.keyed.classifier(item), []).append(item)
    downstream = collector.keyed.downstream
    return {key: downstream.accumulated(downstream.supplier(), items) for key, items in members.items()}


def groups_of_container(collector: Collector[Any, Any, Any], part: list[Any]) -> dict[Any, Any]:
    """Take the container of the whole for what `Keyed` promises: a container of each key."""
    return dict(collector.accumulated(collector.supplier(), part))


@pytest.mark.parametrize("case", KEYED)
@pytest.mark.parametrize("groups_of", [groups_of_items, groups_of_container])
@quick
@given(data=st.data())
def test_the_keyed_view_gives_the_same(case, groups_of, data):
    """Partial containers of each key, combined key by key and assembled, equal collecting at once."""
    parts = data.draw(parts_of(case))
    keyed = case.collector.keyed
    groups: dict[Any, Any] = {}
    for part in parts:
        for key, container in groups_of(case.collector, part).items():
            sent = pickle.loads(pickle.dumps(container))
            groups[key] = keyed.downstream.combined(groups[key], sent) if key in groups else sent

    pairs = [(key, keyed.downstream.finisher(container)) for key, container in groups.items()]
    assert shape(keyed.assemble(iter(pairs))) == shape(case.collector.collect(list(chain(*parts))))


def test_what_is_keyed():
    """The collectors with one entry per key are seen group by group, also behind a finishing function."""
    names = {param.id.rsplit("-", 1)[0] for param in KEYED}

    assert names == {
        "collecting_and_then",
        "frequencies",
        "grouping_by",
        "grouping_by_concurrent",
        "mode",
        "to_concurrent_map",
        "to_map",
        "to_unmodifiable_map",
    }


def test_what_can_be_deducted():
    """Of the cases above; `test_deducting` has the laws, and what is made of other parts."""
    names = {name for name, cases in CASES.items() if any(case.collector.deduct is not None for case in cases)}

    assert names == {
        "all_of",
        "averaging",
        "averaging_double",
        "averaging_int",
        "averaging_long",
        "correlation",
        "counting",
        "covariance",
        "frequencies",
        "linear_trend",
        "mapping",
        "stddev",
        "summing",
        "summing_double",
        "summing_int",
        "summing_long",
        "teeing",
        "to_bags",
        "variance",
    }
