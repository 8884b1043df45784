import importlib
import math
import pickle
import random
import statistics

import numpy
import pytest

from collectors import grouping_by, mapping, median, percentiles, quantiles
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Accumulate
from dstream.operators.rows.batches import loads
from dstream.plan import Step

CHANCE = random.Random(3)
NUMBERS = [CHANCE.lognormvariate(0, 3) for _ in range(10_001)]


@pytest.mark.parametrize("numbers", [NUMBERS, NUMBERS[1:], NUMBERS[:2], [5.0], [1, 1, 2], [-math.inf, 1.0, math.inf]])
def test_percentiles_are_those_of_numpy(engine, numbers):
    """Exact, with linear interpolation, in several partitions."""
    ps = [0, 0.1, 25, 50, 99.9, 100]
    found = engine.stream(numbers, 3).collect(percentiles(ps))

    assert (found[0], found[-1]) == (min(numbers), max(numbers))
    if math.isfinite(max(numbers)):
        assert found == pytest.approx(list(numpy.percentile(numbers, ps)), rel=1e-12)
    assert engine.stream(numbers, 3).collect(median()) == statistics.median(numbers)


def test_percentiles_of_groups(engine):
    """Downstream of a grouping, of what a function gives."""
    halves = grouping_by(lambda n: n % 2, median(lambda n: n * 10))

    assert engine.stream(range(10), 3).collect(halves) == {0: 40.0, 1: 50.0}


def test_nothing_and_nan_have_no_percentile():
    """NaN are left out; without numbers all is NaN."""
    assert math.isnan(median().collect([]))
    assert all(map(math.isnan, percentiles([0, 50]).collect([math.nan])))
    assert median().collect([math.nan, 3, 1]) == 2.0


@pytest.mark.parametrize("ps", [[-1], [101], [math.nan]])
def test_percentiles_lie_between_0_and_100(ps):
    """Checked at the call."""
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentiles(ps)
    with pytest.raises(TypeError, match="must be an iterable of numbers, not int"):
        percentiles(50)


@pytest.mark.parametrize(("ps", "first"), [("50", "'5'"), ([None], "None"), ([True], "True"), ([1j], "1j")])
def test_percentiles_and_quantiles_are_numbers(ps, first):
    """Anything else is refused at the call, by its argument and what it is."""
    with pytest.raises(TypeError, match=f"^ps must hold numbers, not {first}$"):
        percentiles(ps)
    with pytest.raises(TypeError, match=f"^fractions must hold numbers, not {first}$"):
        quantiles(ps)


def test_a_number_takes_8_bytes():
    """While it waits, and on its way."""
    container = median().accumulated(median().supplier(), range(1000))

    assert len(container.tobytes()) == 8_000
    assert len(pickle.dumps(container)) < 8_200


def test_the_ends_of_quantiles_are_exact(engine):
    """The least and the greatest number, however many there are."""
    numbers = list(range(1000))

    assert engine.stream(numbers, 3).collect(quantiles([0, 1, 0.0, 1.0])) == [0.0, 999.0, 0.0, 999.0]
    assert engine.stream(NUMBERS, 3).collect(quantiles([0, 1], accuracy=0.3)) == [min(NUMBERS), max(NUMBERS)]


@pytest.mark.parametrize("accuracy", [0.05, 0.007, 0.0005])
def test_quantiles_are_as_accurate_as_asked(accuracy):
    """In ranks; three times that has no case in a thousand."""
    for share, found in zip(
        [0.01, 0.5, 0.99], quantiles([0.01, 0.5, 0.99], accuracy=accuracy).collect(NUMBERS), strict=True
    ):
        rank = sum(number <= found for number in NUMBERS) / len(NUMBERS)
        assert abs(rank - share) <= 3 * accuracy + 1e-4


@pytest.mark.parametrize("accuracy", [0, 1, -0.1, 0.00001, math.nan])
def test_an_accuracy_that_no_sketch_has_is_refused(accuracy):
    """With the way to exact ones."""
    with pytest.raises(ValueError, match=r"accuracy must lie between 0.00005 and 1, .* are exact"):
        quantiles([0.5], accuracy=accuracy)
    with pytest.raises(TypeError, match="accuracy must be a number, not str"):
        quantiles([0.5], accuracy="high")


@pytest.fixture
def few_in_memory(monkeypatch):
    """No more than 100 numbers are held."""
    module = importlib.import_module("dstream.collectors.percentiles")  # The package has the function under this name.
    monkeypatch.setattr(module, "_MOST_IN_MEMORY", 100)


MANY = [*NUMBERS[:2000], *(-n for n in NUMBERS[:999]), 0.0, -0.0, math.inf, -math.inf, math.nan, 5, 5, 5]


def test_numbers_on_disk_have_the_percentiles_of_numbers_in_memory(few_in_memory):
    """Every rank of them, also with signs, ends and repetitions; NaN are left out."""
    ordered = sorted(n for n in MANY if not math.isnan(n))
    kept = median().accumulated(median().supplier(), MANY)
    by_rank = kept.in_order()

    assert len(kept) < 100
    assert [by_rank[rank] for rank in range(len(by_rank))] == ordered
    assert median().collect([math.nan] * 300) != median().collect([math.nan] * 300)


def test_containers_with_numbers_on_disk_combine_and_travel(few_in_memory, local_context):
    """In parts, each small; pickled whole; and from partition to partition."""
    left, right = (median().accumulated(median().supplier(), NUMBERS[start::2]) for start in (0, 1))
    sizes = [len(part) for part in left.parts()]
    copy = pickle.loads(pickle.dumps(left))

    assert (max(sizes) <= 612, sum(sizes), len(copy)) == (True, 5001, 5001)
    assert median().finisher(median().combined(left, right)) == statistics.median(NUMBERS)
    assert median().finisher(median().combined(copy, right)) == statistics.median(NUMBERS)
    assert local_context.stream(NUMBERS).collect(median(abs)) == statistics.median(NUMBERS)


def test_parts_of_a_container_are_rows_of_their_own(few_in_memory):
    """The driver combines them as it combines those of partitions; steps before the collector change nothing."""
    step, task = Step("collect", None, 1, 1), StageTask(0, 2**60)
    rows = list(Accumulate(mapping(float, median()), step)(iter(NUMBERS), task))

    assert {row.sequence for row in rows} == {0}
    assert len(rows) > 10
    assert sum(len(loads(row.payload)[0]) for row in rows) == len(NUMBERS)
