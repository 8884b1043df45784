"""Rows in partitions of our choice on a Spark that only places rows by hash.

`repartition(n, column)` puts a row into the partition `hash(column) mod n`, where the hash of an int is Murmur3 with
the seed 42 (`org.apache.spark.sql.catalyst.expressions.Murmur3Hash`, the same from 3.5 to 4.3). Each of its operations
can be inverted, so for each partition there is one int whose hash is the number of the partition.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["int_with_hash", "placed_by_hash"]

_SEED = 42
_BITS = 2**32
_FIRST, _SECOND = 0xCC9E2D51, 0x1B873593
_FIFTH, _ADDED = 5, 0xE6546B64
_LENGTH = 4
"""In bytes, of an int."""
_LAST, _LAST_BUT_ONE = 0xC2B2AE35, 0x85EBCA6B


def placed_by_hash(frame: DataFrame, partitions: int, place: Column) -> DataFrame:
    """Return the rows, each in the partition whose number is in `place`.

    Args:
        frame: the rows.
        partitions: how many partitions there are.
        place: an int of each row, from 0 to `partitions` - 1.
    """
    from pyspark.sql import functions

    return frame.repartition(partitions, functions.expr(_table(partitions))[place])


@functools.lru_cache(64)
def _table(partitions: int) -> str:
    """Return SQL for an array of the int of each partition, of which Spark makes a constant."""
    numbers = ",".join(map(str, map(int_with_hash, range(partitions))))
    return f"cast(split('{numbers}', ',') as array<int>)"


def int_with_hash(number: int) -> int:
    """Return the int whose hash in Spark is `number`.

    Args:
        number: from 0 to 2**31 - 1.
    """
    hashed = _unshifted(number, 16)
    hashed = _unshifted(_divided(hashed, _LAST), 13)
    hashed = _unshifted(_divided(hashed, _LAST_BUT_ONE), 16) ^ _LENGTH
    mixed = _rotated(_divided(hashed - _ADDED, _FIFTH), 32 - 13) ^ _SEED
    found = _divided(_rotated(_divided(mixed, _SECOND), 32 - 15), _FIRST)
    return found - _BITS if found >= _BITS // 2 else found


def _unshifted(number: int, bits: int) -> int:
    """Return x of `number` = x ^ (x >> bits)."""
    found = number
    for _ in range(32 // bits + 1):
        found = number ^ (found >> bits)
    return found


def _divided(number: int, factor: int) -> int:
    """Return x of `number` = x * `factor` in 32 bits."""
    return number * pow(factor, -1, _BITS) % _BITS


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) % _BITS
