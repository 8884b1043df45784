"""Exact sums of floats by groups, in columns: the floats that `ExactSum` gives, from any order and any parts."""

import math
from operator import itemgetter
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dstream as ds
import dstream.operators.columns.float_sums as float_sums
from collectors import all_of, averaging, counting, filtering, grouping_by, summing, summing_double
from dstream.operators.columns.float_sums import FloatSums, are_added_exactly, float_sums_of_groups, merged_float_sums
from dstream.operators.columns.groups import grouped, merged_groups
from dstream.operators.columns.values import Floats, Ints, NotColumnar
from dstream.values import ExactSum
from sources import parquet_rows

_KINDS = {
    "prices": lambda random: round(random.uniform(0, 1000), 2),
    "any size": lambda random: random.choice((-1, 1)) * random.random() * 2.0 ** random.randrange(-100, 100),
    "denormal": lambda random: random.choice([5e-324, -5e-324, 2.2250738585072014e-308, -1e-310, 0.0, -0.0, 1e-300]),
    "huge": lambda random: random.choice([1e308, -1e308, 1.7976931348623157e308, 9.98e291, 1e300]),
    "ints": lambda random: float(random.randrange(-(2**60), 2**60)),
    "halves": lambda random: random.choice([1.0, 2.0**-53, -(2.0**-53), 2.0**-54, 2.0**-105, -(2.0**-105), 2.0**53]),
}


def _sums(groups: list[int], numbers: list[float], width: int) -> FloatSums:
    column = Floats(np.array(numbers))
    assert are_added_exactly(column)
    return float_sums_of_groups(np.array(groups), width, column)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("seed", range(30))
def test_sums_equal_those_of_single_floats(kind, seed, monkeypatch):
    """Every sum has the digits of `math.fsum`, also merged from several parts, beyond the floats and denormal."""
    random, width = Random(seed), 4
    monkeypatch.setattr(float_sums, "_FEW_ROWS", 1 + seed % 7)
    monkeypatch.setattr(float_sums, "_MOST_ROWS", 1 + seed % 7)
    parts = []
    for _ in range(1 + seed % 3):
        numbers = [_KINDS[kind](random) for _ in range(1 + random.randrange(30))]
        parts.append(([random.randrange(width) for _ in numbers], numbers))
    merged = merged_float_sums([_sums(*part, width) for part in parts], np.tile(np.arange(width), len(parts)), width)

    wanted = [ExactSum() for _ in range(width)]
    for groups, numbers in parts:
        for group, number in zip(groups, numbers, strict=True):
            wanted[group].add(number)
    assert list(map(repr, merged.rounded().tolist())) == [repr(each.value()) for each in wanted]
    assert list(merged.each()) == wanted


def test_sums_are_rounded_to_the_nearest_float_once():
    """A bit far below the half between two floats decides, and without it the even one is nearest."""
    assert _sums([0] * 3, [1.0, 2.0**-53, 2.0**-105], 1).rounded().tolist() == [1.0 + 2.0**-52]
    assert _sums([0] * 3, [1.0, 2.0**-53, -(2.0**-105)], 1).rounded().tolist() == [1.0]
    assert _sums([0] * 2, [1.0, 2.0**-53], 1).rounded().tolist() == [1.0]
    assert _sums([0] * 2, [-1.0, -(2.0**-53) * 3], 1).rounded().tolist() == [-(1.0 + 2.0**-51)]
    assert _sums([0] * 3, [1.0, 2.0**-53, 2.0**-300], 1).rounded().tolist() == [1.0 + 2.0**-52]
    assert _sums([0] * 3, [1.0, 2.0**-53, 2.0**-64], 1).rounded().tolist() == [1.0 + 2.0**-52]
    assert _sums([0] * 3, [2.0**31, 2.0**-22, 2.0**-40], 1).rounded().tolist() == [2.0**31 + 2.0**-21]


def test_sums_of_many_large_floats_get_a_further_digit():
    """The last digit is carried as well, before it leaves the range of exact floats."""
    large = float(2**53 - 1) * 2**31
    merged = merged_float_sums([_sums([0] * 5000, [large] * 5000, 1)] * 3, np.zeros(3, np.int64), 1)

    assert len(merged.digits) > len(_sums([0], [large], 1).digits)
    assert merged.rounded().tolist() == [float((2**53 - 1) * 2**31 * 15_000)]


@pytest.mark.parametrize("numbers", [[math.inf], [-math.inf, 1.0], [math.nan], [1.0, math.nan], [1e308, 1e-308]])
def test_other_floats_have_no_digits(numbers):
    """Infinities, NaN, and floats of very different size are left to the containers."""
    assert not are_added_exactly(Floats(np.array(numbers)))


def test_sums_of_very_different_size_are_not_merged():
    """They would need many digits; zeros have none."""
    large, small, zero = _sums([0], [1e300], 1), _sums([0], [1e-300], 1), _sums([0], [0.0], 1)

    with pytest.raises(NotColumnar):
        merged_float_sums([large, small], np.zeros(2, np.int64), 1)
    assert merged_float_sums([large, zero], np.zeros(2, np.int64), 1).rounded().tolist() == [1e300]


@pytest.fixture
def auto_ctx():
    """Run all work in this process, in columns."""
    with ds.connect(local_limit=10_000, storage="memory:", progress=False) as ctx:
        yield ctx


@pytest.mark.parametrize("name", ["shop", "town"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_groups_of_floats_have_exact_sums(auto_ctx, name, partitions, tmp_path):
    """Sums and averages by an int or a text are those of `math.fsum`, and 0 of no items, whatever the partition."""
    random = Random(7)
    rows = [
        {"shop": random.randrange(9), "town": f"town {random.randrange(9)}", "price": random.choice(_PRICES)}
        for _ in range(20_000)
    ]
    for number in range(partitions):
        pq.write_table(pa.Table.from_pylist(rows[number::partitions]), tmp_path / f"{number}.parquet")
    found = auto_ctx.read(parquet_rows(tmp_path / "*.parquet")).collect(
        grouping_by(
            lambda row: row[name],
            all_of(
                counting(),
                summing(lambda row: row["price"]),
                averaging(lambda row: row["price"]),
                filtering(lambda row: row["shop"] == 3, summing(lambda row: row["price"])),
                filtering(lambda row: row["shop"] == 3, summing_double(lambda row: row["price"])),
            ),
        )
    )

    assert found == {
        key: (
            len(prices := [row["price"] for row in rows if row[name] == key]),
            math.fsum(prices),
            math.fsum(prices) / len(prices),
            math.fsum(threes) if (threes := [r["price"] for r in rows if r[name] == key and r["shop"] == 3]) else 0,
            math.fsum(threes),
        )
        for key in {row[name] for row in rows}
    }
    assert all(type(each[3]) is (float if name == "town" or key == 3 else int) for key, each in found.items())


_PRICES = [0.1, 0.2, 0.3, 1e16, -1e16, 1e-9, 3.33, -0.0, 1e22, -1e22]


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan, 1e308])
def test_groups_of_odd_floats_are_those_of_the_containers(auto_ctx, odd, tmp_path):
    """Infinities, NaN, and floats of very different size in some blocks, and ints in others, give what they give."""
    rows = [{"shop": number % 7, "price": number / 7} for number in range(20_000)]
    rows[9000]["price"], rows[12_000]["price"], rows[15_001]["price"] = odd, 1e-308, 1e308
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "odd.parquet")
    by_shop = grouping_by(lambda row: row["shop"], all_of(summing(itemgetter("price")), averaging(itemgetter("price"))))
    found = auto_ctx.read(parquet_rows(tmp_path / "odd.parquet")).collect(by_shop)

    assert repr(found) == repr(by_shop.collect(rows))


def test_sums_of_ints_and_of_floats_are_not_merged():
    """The container of such a group knows which of its numbers were ints."""
    keys = Ints(np.array([1, 2]), 1, 2)
    tables = [grouped(keys, keys), grouped(keys, Floats(np.array([1.0, 2.0])))]

    with pytest.raises(NotColumnar):
        merged_groups(tables)


def test_a_sum_of_floats_none_of_which_pass_is_a_float(auto_ctx, tmp_path):
    """Where no row of any block passes, there are no floats to tell that the sum is one."""
    rows = [{"shop": number % 7, "price": number / 7} for number in range(20_000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "none.parquet")
    none = filtering(lambda row: row["price"] < 0, summing_double(lambda row: row["price"]))
    found = auto_ctx.read(parquet_rows(tmp_path / "none.parquet")).collect(grouping_by(lambda row: row["shop"], none))

    assert repr(found) == repr(dict.fromkeys(range(7), 0.0))
