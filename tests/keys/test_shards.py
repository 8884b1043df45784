"""Shards of keys."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

from dstream.errors import UnstableKeyError
from dstream.keys.hashing import shard_numbers

_PLUS_ONE = datetime.timezone(datetime.timedelta(hours=1))
_TWICE = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))


@dataclass(frozen=True)
class _Sale:
    at: datetime.datetime


_KEYS = """[
    "whale", b"sea", 7, -1, 2**70, 1.5, None, True, ("a", 1, None), frozenset({"a", "b"}),
    __import__("datetime").date(2026, 1, 2), __import__("datetime").datetime(2026, 1, 2, 3), "\\ud800",
    __import__("datetime").time(3, 4), __import__("datetime").timedelta(1), __import__("decimal").Decimal("1.5"),
    __import__("uuid").UUID(int=5), ("x", ("y", "z")),
]"""


def _shards_with_seed(seed: str) -> str:
    code = f"from dstream.keys.hashing import shard_numbers; print(shard_numbers({_KEYS}, 1009))"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_processes_with_any_hash_seed_find_a_key_in_the_same_shard() -> None:
    """Texts, bytes, dates and times have seeded hashes, which do not decide."""
    assert _shards_with_seed("1") == _shards_with_seed("2") == f"{shard_numbers(eval(_KEYS), 1009)}\n"


@pytest.mark.parametrize(
    "equal",
    [
        (1, 1.0, True, Decimal(1), Fraction(1), 1 + 0j),
        (0.0, -0.0, 0),
        (datetime.datetime(2026, 1, 1, 1, tzinfo=_PLUS_ONE), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
        (datetime.time(1, tzinfo=_PLUS_ONE), datetime.time(0, tzinfo=datetime.UTC)),
        (_TWICE, _TWICE.replace(fold=1)),
        (("a", _TWICE), ("a", _TWICE.replace(fold=1))),
        (frozenset({_TWICE}), frozenset({_TWICE.replace(fold=1)})),
        (_Sale(_TWICE), _Sale(_TWICE.replace(fold=1))),
        (uuid.UUID(int=3), uuid.UUID(int=3)),
        (("a", 1), ("a", 1.0)),
    ],
)
def test_equal_keys_have_one_shard(equal: tuple[object, ...]) -> None:
    """What Python calls equal is one key, so it is in one shard."""
    assert len(set(equal)) == 1
    assert len({number for key in equal for number in shard_numbers([key], 1009)}) == 1


def test_a_dataclass_is_found_by_its_fields() -> None:
    """Keys of equal fields are in one shard, and so in every process."""

    @dataclass(frozen=True)
    class Place:
        name: str
        floor: int

    assert (
        shard_numbers([Place("a", 1)], 1009) == shard_numbers([Place("a", 1)], 1009) == shard_numbers([("a", 1)], 1009)
    )


def test_texts_spread_over_the_shards() -> None:
    """No shard has many more keys than another one."""
    found = shard_numbers([f"key-{number}" for number in range(6400)], 64)

    assert min(map(found.count, range(64))) > 50


class _Whole:
    """A key with a hash of its own."""

    def __hash__(self) -> int:
        return hash("whole")


def test_a_hash_of_ones_own_needs_a_fixed_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may differ from process to process, so that its state would be looked for elsewhere."""
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    with pytest.raises(UnstableKeyError, match="set PYTHONHASHSEED"):
        shard_numbers([_Whole()], 8)

    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert len(shard_numbers([_Whole()], 8)) == 1
