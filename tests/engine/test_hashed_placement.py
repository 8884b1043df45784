"""Rows in partitions of our choice, on a Spark that only places rows by hash."""

from __future__ import annotations

import pytest

from dstream.engine.spark.port import classic
from dstream.engine.spark.port.classic import int_with_hash
from dstream.engine.versions import Feature


@pytest.mark.parametrize(("number", "hashed"), [(0, 933211791), (1, -559580957)])
def test_the_hash_is_that_of_spark(number, hashed):
    """As `SELECT hash(0)` gives it."""
    assert murmur3(number) == hashed % 2**32


def test_each_partition_has_an_int_that_spark_places_there():
    """The hash of it is the number of the partition, for any number of partitions."""
    numbers = [*range(2000), 2**31 - 1]

    assert [murmur3(int_with_hash(number)) for number in numbers] == numbers
    assert all(-(2**31) <= int_with_hash(number) < 2**31 for number in numbers)


def test_rows_are_placed_without_repartition_by_id(spark_context, monkeypatch):
    """On Spark itself: each key in one of the partitions, whose items keep their order."""
    monkeypatch.setattr(classic, "_has", lambda part: part is not Feature.REPARTITION_BY_ID)
    numbers = spark_context.stream(range(60), 4).partition_by(7, key=lambda n: n % 20)
    parts = [list(part) for part in numbers.partitions()]

    assert len(parts) == 7
    assert sorted(n for part in parts for n in part) == list(range(60))
    assert all(part == sorted(part) for part in parts)
    assert sum(len({n % 20 for n in part}) for part in parts) == 20


def murmur3(number: int) -> int:
    """Return the hash of an int with the seed 42, in 32 bits, as the algorithm is published."""

    def rotated(value: int, bits: int) -> int:
        return (value << bits | value >> 32 - bits) % 2**32

    mixed = rotated(number % 2**32 * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
    hashed = (rotated(42 ^ mixed, 13) * 5 + 0xE6546B64) % 2**32 ^ 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B % 2**32
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 % 2**32
    return hashed ^ hashed >> 16
