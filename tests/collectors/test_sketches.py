import importlib.util
import math
import pickle
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from random import Random

import pytest

from collectors import approx_count_distinct, grouping_by, quantiles
from dstream.collectors import sketches
from dstream.errors import SetupError, UnstableKeyError


@dataclass(frozen=True)
class Point:
    x: float
    y: int


@dataclass(frozen=True)
class Place:
    x: float
    y: int


class Color(StrEnum):
    RED = "red"


def test_quantiles_of_few_numbers_are_exact():
    """Each is one of the numbers: the least that covers the fraction."""
    assert quantiles([0, 0.25, 0.5, 0.51, 1]).collect([4, 1, 3, 2]) == [1.0, 1.0, 2.0, 3.0, 4.0]
    assert quantiles([0.5], len).collect(["a", "bbb", "cc"]) == [2.0]


def test_quantiles_of_nothing_are_nan():
    """NaN themselves are left out."""
    assert all(map(math.isnan, quantiles([0.1, 0.9]).collect([])))
    assert all(map(math.isnan, quantiles([0.5]).collect([math.nan])))
    assert quantiles([0.5]).collect([math.nan, 1.0, math.nan]) == [1.0]


def test_quantiles_of_many_numbers_are_near():
    """100,000 shuffled numbers in ten parts: ranks within twice the stated error."""
    numbers = list(range(100_000))
    Random(1).shuffle(numbers)
    collector = quantiles([0.01, 0.5, 0.99])
    parts = [collector.accumulated(collector.supplier(), numbers[start::10]) for start in range(10)]
    for part in parts[1:]:
        collector.combiner(parts[0], pickle.loads(pickle.dumps(part)))

    assert collector.finisher(parts[0]) == pytest.approx([1_000, 50_000, 99_000], abs=1_400)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_fractions_lie_between_0_and_1(fraction):
    """Another one is refused at the call."""
    with pytest.raises(ValueError, match="fractions must lie between 0 and 1, but one is"):
        quantiles([0.5, fraction])


def test_quantiles_refuse_what_is_not_a_number():
    """The message names the item."""
    with pytest.raises(TypeError, match=r"quantiles\(\) needs numbers, but '5' is not"):
        quantiles([0.5]).collect([1, "5"])


def test_few_distinct_items_are_counted_exactly():
    """Repeated ones count once; nothing is 0."""
    assert approx_count_distinct().collect(["a", "b", "a", ""] * 100) == 3
    assert approx_count_distinct().collect([]) == 0


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ([1, 1.0, True, Decimal(1), Fraction(1)], 1),
        ([0.5, Decimal("0.5"), Fraction(1, 2)], 1),
        ([2**70, 2.0**70, Decimal(2**70)], 1),
        ([0.0, -0.0, 0], 1),
        ([math.nan, -math.nan, Decimal("NaN")], 1),
        ([-1, -2, -1.0, -2.0], 2),
        ([2**n for n in range(200)], 200),
        ([10**400, 10**401], 2),
        (["1", 1, b"1", None, (), ("1",), frozenset()], 7),
        ([(n, m) for n in range(-2, 3) for m in range(-2, 3)], 25),
        ([Point(n, m) for n in range(-2, 3) for m in range(-2, 3)], 25),
        ([Point(1, 1), Point(1.0, True), Place(1, 1)], 2),
        ([frozenset({1, 2}), frozenset({2, 1.0}), frozenset({"1", 2})], 2),
        (["red", Color.RED, "rot"], 2),
        (["\ud800", "\udfff", "é", "é"], 3),
        ([int, str, int], 2),
    ],
)
def test_items_are_distinct_as_keys_of_a_dict(items, count):
    """Equal items count once whatever their type, unequal ones apart, also those whose hashes are equal."""
    assert approx_count_distinct().collect(items * 2) == pytest.approx(count, abs=count // 100)


def test_many_distinct_items_are_counted_nearly():
    """200,000 strings, each twice, within three standard errors, the same for any split and order."""
    items = [f"item {n}" for n in range(200_000)]
    collector = approx_count_distinct()
    left, right = (collector.accumulated(collector.supplier(), part) for part in (items[:150_000], items[50_000:]))
    split = collector.finisher(collector.combined(left, pickle.loads(pickle.dumps(right))))

    assert split == pytest.approx(200_000, rel=0.017)
    assert split == collector.collect(reversed(items + items))


def test_strings_and_numbers_are_sketched_alike_in_every_process():
    """Whatever PYTHONHASHSEED is: two workers that saw the same items see no more together."""
    program = (
        "import pickle, sys; from collectors import approx_count_distinct; c = approx_count_distinct();"
        "container = c.accumulated(c.supplier(), ['x', 'é', 1.5, 2**80, None, ('t', 1), b'b']);"
        "sys.stdout.buffer.write(pickle.dumps(container))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    left, right = (
        pickle.loads(
            subprocess.run(
                [sys.executable, "-c", program],
                env={**environment, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout
        )
        for seed in "12"
    )

    assert approx_count_distinct().finisher(approx_count_distinct().combined(left, right)) == 7


def test_unstable_items_are_refused():
    """Items are keys here."""
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        approx_count_distinct().collect([object()])


def test_sketches_serve_downstream():
    """Small groups need no sketch yet, and give the same."""
    assert grouping_by(len, approx_count_distinct()).collect(["a", "b", "a", "cc"]) == {1: 2, 2: 1}
    assert grouping_by(bool, quantiles([1])).collect([1, 5, 0]) == {True: [5.0], False: [0.0]}


@pytest.mark.parametrize("factory", [approx_count_distinct, lambda: quantiles([0.5])])
def test_a_missing_library_is_said_at_the_call(factory, monkeypatch):
    """Not in a worker, and with the command that installs it."""
    monkeypatch.setattr(sketches, "find_spec", {}.get)

    with pytest.raises(SetupError, match="which is not installed: pip install 'dstream-spark"):
        factory()
    assert importlib.util.find_spec("datasketches")
