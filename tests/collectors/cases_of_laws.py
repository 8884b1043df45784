"""A case of every factory of collectors, for which the laws of collectors hold."""

from __future__ import annotations

import functools
import math
import operator
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

import collectors as c
from dstream.spi import Collector


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
    """Return bags so that the order of their items does not matter, nor which of two equal numbers one has."""
    return [sorted(map(_told, bag)) for bag in bags]


def _told(item: Any) -> str:
    if isinstance(item, tuple):
        return str(list(map(_told, item)))
    is_finite = isinstance(item, int | float) and math.isfinite(item)
    return repr(Fraction(item) if is_finite else item)


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
    "partitioning_by": [
        on_ints(c.partitioning_by(tens)),
        # Each item looks at all that a tuple has: 9,000 of them take 14 seconds.
        replace(on_ints(c.partitioning_by(tens, FUNCTIONAL)), many=INTS[:1000]),
    ],
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
