"""Spread of keys over targets, shards, and files on disk."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from math import sqrt
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from dstream.keys import canonical_all, stable_hash, stable_hashes
from dstream.keys.hashing import SHARDING_VERSION, shard_numbers
from dstream.operators.columns.groups import stable_hashes_of_ints
from dstream.operators.rows.spill import DEEPEST, FAN_OUT, mixed
from dstream.spi.epochs import target_of
from dstream.spi.processor import SHARDS
from tests.keys.real_keys import REAL_KEYS

_TARGETS = (2, 3, 4, 7, 8, 16, 48, 64)


def _assert_even(numbers: Sequence[int], targets: int) -> None:
    """Fail if one target has more than chance would give it in one of millions of cases."""
    mean = len(numbers) / targets

    assert max(Counter(numbers).values()) <= mean + 6 * sqrt(mean) + 3, f"{targets} targets: {Counter(numbers)}"


def test_there_are_a_hundred_kinds_of_real_keys() -> None:
    """Each kind holds hundreds of different keys."""
    assert len(REAL_KEYS) > 100
    assert all(len(set(keys)) > 500 for keys in REAL_KEYS.values())


@pytest.mark.parametrize("kind", REAL_KEYS)
def test_real_keys_are_spread(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """No task of a shuffle, no shard of a state and no processor has much more than its share."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # Else addresses of networks have no shard.
    keys = canonical_all(REAL_KEYS[kind])
    hashes = stable_hashes(keys)
    for targets in _TARGETS:
        _assert_even([number % targets for number in hashes], targets)
        _assert_even(shard_numbers(keys, targets), targets)
        _assert_even([target_of(number, SHARDS, targets) for number in shard_numbers(keys, SHARDS)], targets)


@pytest.mark.parametrize("kind", REAL_KEYS)
def test_keys_of_one_target_are_spread_on_disk(kind: str) -> None:
    """Keys that met in a task, and again in a file, go to different files at the next level."""
    keys = canonical_all(REAL_KEYS[kind])
    keys = [key for key, number in zip(keys, stable_hashes(keys), strict=True) if number % 4 == 1]
    for level in range(DEEPEST):
        files = [mixed(hash(key), level) % FAN_OUT for key in keys]
        _assert_even(files, FAN_OUT)
        largest = Counter(files).most_common(1)[0][0] if files else 0
        keys = [key for key, file in zip(keys, files, strict=True) if file == largest]


def test_each_level_of_files_takes_other_bits() -> None:
    """Of 100,000 ints those of one task, in one file of the first level, fill all files of the second."""
    keys = [n for n in range(100_000) if stable_hash(n) % 4 == 1 and mixed(hash(n), 0) % FAN_OUT == 3]

    assert len(Counter(mixed(hash(key), 1) % FAN_OUT for key in keys)) == FAN_OUT


@pytest.mark.parametrize(
    "keys", [range(7), range(1, 13), range(16), range(24), range(1, 32), [64 * n for n in range(16)]]
)
@pytest.mark.parametrize("targets", [2, 3, 4])
def test_few_ints_are_at_several_targets(keys: Sequence[int], targets: int) -> None:
    """Weekdays, months, hours and days of a month are worked on by all processors that there are."""
    for numbers in (
        [stable_hash(key) % targets for key in keys],
        [target_of(number, SHARDS, targets) for number in shard_numbers(list(keys), SHARDS)],
    ):
        counts = Counter(numbers)
        assert len(counts) == targets
        assert max(counts.values()) <= 2.3 * len(keys) / targets


@pytest.mark.parametrize(
    "equal", [(1, 1.0, True), (0.0, -0.0, 0, False), (2**61, float(2**61)), (float("nan"), -float("nan"))]
)
def test_keys_that_are_one_key_have_one_target(equal: tuple[Any, ...]) -> None:
    """What is one key in a dict, and every NaN, has one hash and one shard, alone and in a tuple."""
    for keys in (equal, [(key, "x") for key in equal]):
        canonical = canonical_all(list(keys))
        assert len({*stable_hashes(canonical), *map(stable_hash, canonical)}) == 1
        assert len(set(shard_numbers(canonical, 1009))) == 1


def test_ints_in_columns_have_the_hashes_of_ints() -> None:
    """A column is routed as the items are of which it is made."""
    edges = [*range(-5, 6), 2**61 - 2, 2**61 - 1, 2**61, 2**62, 2**63 - 1, -(2**61), -(2**62), -(2**63)]
    real = [key for keys in REAL_KEYS.values() for key in keys if type(key) is int and -(2**63) <= key < 2**63]
    column = np.array(edges + real, np.int64)

    assert stable_hashes_of_ints(column).tolist() == stable_hashes(edges + real) == list(map(stable_hash, edges + real))


def test_the_shards_of_keys_are_those_of_their_version() -> None:
    """State is found again by them: where one of these changes, `SHARDING_VERSION` does, on every Python alike."""
    moment, numbers = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), [0, 7, -1, 2**70, 1.5, Decimal("1.5"), uuid.UUID(int=5)]
    keys = [*numbers, "sea", b"sea", None, (1, "sea"), moment.date(), moment]
    twice = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)

    assert SHARDING_VERSION == 3
    assert shard_numbers(keys, 1009) == [766, 20, 725, 252, 731, 731, 307, 718, 718, 766, 823, 68, 168]
    assert shard_numbers(["sea", "whale"], 1009) == [718, 74]
    assert shard_numbers([twice, twice.replace(fold=0)], 64) == [33, 33]
