"""Keys on workers: equal keys from different partitions meet."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pytest

from collectors import counting, grouping_by


class Color(enum.Enum):
    RED = 1


@dataclass(frozen=True)
class Place:
    town: str | None
    size: float = 0.0


KEYS = [None, "a", 1, float("nan"), (None, 2), (float("nan"), "x"), Place(None), Place("b", float("nan")), Color.RED]
KEYS += [frozenset([None, 1]), Decimal("1.5"), date(2026, 1, 1), int, Place]


def test_every_kind_of_key_meets_its_equals_from_other_partitions(engine):
    """Four copies of each key, one in each partition: each is counted four times, in first-seen order."""
    wrapped = engine.stream([(key,) for key in KEYS * 4], 4)
    groups = wrapped.collect(grouping_by(lambda item: item, counting()))

    assert (list(groups.values()), repr([key for (key,) in groups])) == ([4] * len(KEYS), repr(KEYS))


@pytest.mark.on_spark("key")
@pytest.mark.parametrize(
    "key", [str, lambda text: (None, text), lambda text: Place(text)], ids=["str", "tuple", "dataclass"]
)
def test_many_keys_meet_their_equals(engine, key):
    """A thousand keys over four partitions are a thousand groups and a thousand distinct items."""
    items = engine.stream([n % 1000 for n in range(4000)], 4)
    keyed = items.map(lambda n: key(str(n)))

    assert set(keyed.collect(grouping_by(lambda k: k, counting())).values()) == {4}
    assert keyed.distinct().count() == 1000
