import math
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from collectors import (
    averaging,
    averaging_double,
    averaging_int,
    averaging_long,
    counting,
    grouping_by,
    summarizing,
    summarizing_double,
    summarizing_int,
    summarizing_long,
    summing,
    summing_double,
    summing_int,
    summing_long,
)

INT_FACTORIES = [summing_int, summing_long, averaging_int, averaging_long, summarizing_int, summarizing_long]
DOUBLE_FACTORIES = [summing_double, averaging_double, summarizing_double]


def itself(item):
    """Return the item."""
    return item


def test_counting_counts_none():
    """Every item counts; nothing is 0."""
    assert counting().collect([None, 0, ""]) == 3
    assert counting().collect(iter(())) == 0


@pytest.mark.parametrize(
    ("collector", "nothing"),
    [
        (summing(), 0),
        (summing_int(itself), 0),
        (summing_long(itself), 0),
        (summing_double(itself), 0.0),
        (averaging(), 0.0),
        (averaging_int(itself), 0.0),
        (averaging_long(itself), 0.0),
        (averaging_double(itself), 0.0),
    ],
)
def test_sums_and_averages_of_nothing(collector, nothing):
    """Nothing sums to 0, as an int or a float, and averages to 0.0."""
    result = collector.collect([])

    assert (result, type(result)) == (nothing, type(nothing))


def test_summing_keeps_ints_exact():
    """Ints do not overflow and stay ints; bools count as 0 and 1."""
    result = summing().collect([10**30, 1, True])

    assert (result, type(result)) == (10**30 + 2, int)


def test_summing_makes_a_float_of_ints_and_floats():
    """One float makes the sum a float, rounded once."""
    assert summing().collect([10**20, 1.0, -(10**20)]) == 1.0
    assert summing().collect([10**20, 0.5, -1e20]) == 0.5
    assert type(summing().collect([1, 0.0])) is float


def test_summing_loses_no_bit_of_a_float():
    """Small numbers survive beside large ones, and ten tenths are one."""
    assert summing().collect([1e100, 1.0, -1e100]) == 1.0
    assert summing_double(itself).collect([0.1] * 10) == 1.0


def test_summing_is_the_same_in_any_order_and_split():
    """10,000 floats of all sizes, shuffled and cut, add up to the last bit."""
    chance = Random(3)
    numbers = [chance.uniform(-1, 1) * 10 ** chance.randrange(-20, 20) for _ in range(10_000)]
    collector = summing()
    parts = [collector.accumulated(collector.supplier(), numbers[start::7]) for start in range(7)]
    for part in parts[1:]:
        collector.combiner(parts[0], part)

    assert collector.finisher(parts[0]) == math.fsum(numbers)


def test_averaging_divides_the_exact_sum():
    """Ints and floats average to a float."""
    assert averaging().collect([1, 2]) == 1.5
    assert averaging(len).collect(["a", "bcd"]) == 2.0
    assert averaging().collect([1e100, 1.0, 2, -1e100]) == 0.75


def test_the_average_of_ints_and_fractions_beyond_the_floats_is_exact():
    """It is a Fraction."""
    assert averaging().collect([-(10**400), Fraction(0)]) == -(10**400) // 2


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_with_ints_beyond_the_floats_is_infinite_or_exact(sign):
    """Other numbers may bring it back among the floats."""
    huge = sign * 10**400

    assert averaging().collect([huge, 1.0]) == summing().collect([huge, 1.0, 0.5]) == sign * math.inf
    assert summing().collect([sign * 2**1024, sign * -1e308]) == float(sign * (2**1024 - int(1e308)))
    assert averaging().collect([huge, 1.5, -huge]) == 0.5


def test_typed_ones_give_their_types():
    """The int forms sum to ints, the double form makes floats of ints."""
    assert summing_int(len).collect(["a", "bc"]) == 3
    assert repr(summing_double(len).collect(["a", "bc"])) == "3.0"
    assert averaging_double(Fraction).collect(["1/2", "1"]) == 0.75


@pytest.mark.parametrize("factory", INT_FACTORIES)
@pytest.mark.parametrize("value", [1.0, "1", None, Decimal(1)])
def test_int_forms_refuse_what_is_not_an_int(factory, value):
    """The message names the factory, the item and its value, taken in bulk or alone."""
    collector = factory({"key": value}.get)
    message = rf"{factory.__name__}\(\) needs ints, but 'key' gave .*{value}"

    with pytest.raises(TypeError, match=message):
        collector.collect(["key"])
    with pytest.raises(TypeError, match=message):
        collector.accumulator(collector.supplier(), "key")


@pytest.mark.parametrize("factory", DOUBLE_FACTORIES)
@pytest.mark.parametrize("value", ["1", b"1", None])
def test_double_forms_refuse_text_and_none(factory, value):
    """A string of digits is not a number."""
    with pytest.raises(TypeError, match=rf"{factory.__name__}\(\) needs numbers, but {value!r} is not"):
        factory(itself).collect([1, value])


@pytest.mark.parametrize("value", ["1", None])
def test_python_names_refuse_what_is_no_number(value):
    """The message says what is taken."""
    with pytest.raises(
        TypeError, match=r"summing\(\) needs ints, floats, Decimals, Fractions or complex numbers, but .* is not"
    ):
        summing().collect([1, value])


def test_complex_numbers_are_added_with_all_but_decimals():
    """Each part is rounded once; the kind goes with the last complex number."""
    assert summing().collect([0.1 + 1j] * 10 + [Fraction(1, 2), 1]) == 2.5 + 10j
    assert averaging().collect([1 + 2j, 3]) == 2 + 1j
    assert repr(summing().collect([1j, 2])) == "(2+1j)"
    with pytest.raises(TypeError, match="a Decimal and a complex cannot be added"):
        summing().collect([1j, Decimal(1)])
    with pytest.raises(TypeError, match=r"summing_double\(\) needs numbers, but 1j is not"):
        summing_double(itself).collect([1j])


@pytest.mark.parametrize("value", ["1", None, Decimal(1), Fraction(1)])
def test_statistics_refuse_what_is_neither_int_nor_float(value):
    """A Decimal would lose digits in them."""
    with pytest.raises(TypeError, match=r"summarizing\(\) needs ints or floats, but .* is not"):
        summarizing().collect([1, value])


def test_numbers_of_other_libraries_are_taken():
    """What has __index__ is an int, what has __float__ a float."""
    numpy = pytest.importorskip("numpy")

    assert repr(summing().collect([numpy.int64(3), 4])) == "7"
    assert repr(summing().collect([numpy.float32(0.5), 1])) == "1.5"
    assert repr(summing_int(itself).collect([numpy.int8(3)])) == "3"
    assert summing().collect([numpy.complex64(1 + 2j), 1]) == 2 + 2j


def test_the_function_runs_once_for_each_item():
    """Nothing is computed twice, in bulk or alone."""
    calls = []
    collector = summing(lambda item: calls.append(item) or 1)

    assert collector.collect([1, 2]) == 2
    collector.accumulator(collector.supplier(), 3)
    assert calls == [1, 2, 3]


@pytest.mark.parametrize("factory", [summarizing, summarizing_int, summarizing_long, summarizing_double])
def test_summarizing_nothing(factory):
    """Of nothing: 0, 0, None, None, 0.0."""
    result = factory(abs).collect([])

    assert (result.count, result.sum, result.min, result.max, result.average) == (0, 0, None, None, 0.0)


def test_summarizing_ints():
    """Ints give int statistics."""
    shown = "IntSummaryStatistics(count=3, sum=6, min=1, max=3, average=2.0)"

    assert repr(summarizing().collect([3, 1, 2])) == shown
    assert repr(summarizing_int(abs).collect([-3, 1, 2])) == shown
    assert repr(summarizing_long(abs).collect([3, 1, 2])) == shown


def test_summarizing_floats_and_ints_together():
    """One float makes them double statistics; the sum is exact."""
    result = summarizing().collect([10**20, 0.5, -(10**20)])

    assert (
        repr(result) == "DoubleSummaryStatistics(count=3, sum=0.5, min=-1e+20, max=1e+20, average=0.16666666666666666)"
    )


def test_summarizing_double_makes_floats_of_ints():
    """The statistics of ints as floats are floats."""
    result = summarizing_double(itself).collect([1, 2])

    assert repr(result) == "DoubleSummaryStatistics(count=2, sum=3.0, min=1.0, max=2.0, average=1.5)"


def test_a_nan_makes_sum_least_and_greatest_nan():
    """Wherever it stands."""
    result = summarizing_double(itself).collect([1.0, math.nan, 2.0])

    assert all(map(math.isnan, [result.sum, result.min, result.max, result.average]))
    assert math.isnan(summing().collect([math.inf, 1.0, -math.inf]))


def test_a_sum_beyond_floats_is_infinite():
    """As `+` gives it, not an error."""
    assert summing().collect([1e308, 1e308]) == math.inf


EXACT = [
    ([Decimal("0.10")] * 3, Decimal("0.30"), Decimal("0.10")),
    ([Decimal("1.5"), 2], Decimal("3.5"), Decimal("1.75")),
    ([Fraction(1, 3), Fraction(1, 6)], Fraction(1, 2), Fraction(1, 4)),
    ([Fraction(1, 3), 1], Fraction(4, 3), Fraction(2, 3)),
    ([Fraction(1, 3), 0.5], 5 / 6, 5 / 12),
    ([Decimal("1e30"), Decimal("1e-30"), Decimal("-1e30")] * 11, Decimal("1.1e-29"), Decimal("1.1e-29") / 33),
]


@pytest.mark.parametrize(("items", "total", "mean"), EXACT)
def test_exact_numbers_are_added_exactly(engine, items, total, mean):
    """Decimals and fractions, also in groups, in any split; a sum of decimals is rounded once."""
    stream = engine.stream(items, 3)

    assert (stream.collect(summing()), stream.collect(averaging())) == (total, mean)
    assert str(stream.collect(summing())) == str(total)
    assert stream.collect(grouping_by(lambda n: 1, summing())) == {1: total}
    assert stream.collect(grouping_by(lambda n: 1, averaging())) == {1: mean}


@pytest.mark.parametrize("other", [0.5, Fraction(1, 2)])
def test_decimals_stand_with_ints_only(engine, other):
    """As in Python; the message names both kinds."""
    with pytest.raises(TypeError, match=f"a Decimal and a {type(other).__name__} cannot be added"):
        engine.stream([Decimal(1), other], 2).collect(summing())


@pytest.mark.parametrize("factory", [averaging, averaging_int, averaging_long])
@pytest.mark.parametrize("numbers", [[2**2000] * 2, [-(2**2000)], [2**1024 * 3, 0]])
def test_averaging_of_ints_beyond_the_floats_is_an_error(factory, numbers):
    """A mean that no float can represent is an OverflowError, as `int / int` is; no infinity."""
    for collector in (factory(itself), grouping_by(lambda n: 0, factory(itself))):
        with pytest.raises(OverflowError):
            collector.collect(numbers)


def test_averaging_where_only_the_sum_is_beyond_the_floats():
    """Ints average exactly then; floats are infinite, as their sum is and as in Java."""
    assert averaging().collect([2**1023] * 4) == 2.0**1023
    assert averaging().collect([1e308] * 2) == averaging_double(itself).collect([1e308] * 2) == math.inf
