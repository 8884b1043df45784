"""`distinct`: the first item of each key."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest

from dstream import DoubleStream, Stream
from dstream.errors import UnstableKeyError


@dataclass(frozen=True)
class Place:
    town: str
    street: str | None = None


def test_distinct_keeps_the_first_of_equal_items(engine):
    """Equality is that of a dict: `1`, `1.0` and `True` are one, and the first one stays; None is an item."""
    items = engine.stream([2, 1.0, None, 1, "1", True, Decimal(2), None], 3)

    assert repr(items.distinct().to_list()) == "[2, 1.0, None, '1']"


def test_distinct_by_key_keeps_the_first_item_of_each_key(engine):
    """The items stay whole; only their keys are compared."""
    words = engine.stream(["Whale", "sea", "whale", "SEA", "ship"], 3)

    assert words.distinct(key=str.lower).to_list() == ["Whale", "sea", "ship"]


def test_distinct_takes_all_nan_as_one_and_both_zeros_as_one(engine):
    """NaN from several partitions is one item; `-0.0` equals `0.0`."""
    numbers = engine.stream([float("nan"), 0.0, -0.0, float("nan"), 1.0], 5).map_to_double(float)

    assert repr(numbers.distinct().to_list()) == "[nan, 0.0, 1.0]"


def test_distinct_compares_tuples_and_dataclasses_by_value(engine):
    """Equal values from different partitions are one, also with a None or a NaN inside."""
    nan = float("nan")
    items = [Place("a"), (1, None), (nan,), Place("a"), (1.0, None), (float("nan"),), Place("a", "b")]

    assert repr(engine.stream(items, 4).distinct().to_list()) == repr([Place("a"), (1, None), (nan,), Place("a", "b")])


def test_distinct_of_nothing_and_of_one_item(engine):
    """Nothing stays nothing, one item stays one."""
    assert (engine.stream([], 2).distinct().to_list(), engine.stream([7], 3).distinct().to_list()) == ([], [7])


def test_distinct_of_an_unordered_stream_has_each_item_once(engine):
    """Without an order any of the equal items may stay."""
    assert sorted(engine.stream([3, 1, 3, 1], 3).unordered().distinct().to_list()) == [1, 3]


def test_distinct_of_an_infinite_stream_goes_as_far_as_it_is_asked(default_engine):
    """The first items are there without the end having been seen."""
    assert Stream.iterate(0, lambda n: n + 1).distinct(key=lambda n: n // 3).limit(3).to_list() == [0, 3, 6]


def test_distinct_refuses_a_key_that_cannot_be_compared_across_processes(engine):
    """A list has no hash, and an `object` only that of its identity: no silently wrong result."""
    for item in ([1], object()):
        with pytest.raises(UnstableKeyError, match="cannot be a key"):
            engine.stream([1, item], 2).distinct().to_list()


def test_distinct_of_doubles_of_one_kind(local_context):
    """`DoubleStream.distinct` follows the same rules."""
    assert DoubleStream.of(1.0, 1, 2.0).distinct().count() == 2


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.skip(3),
        lambda s: s.drop_while(lambda n: n < 4),
        lambda s: s.distinct() + s.sorted() + s,
        lambda s: s + s.sorted() + s.distinct(),
    ],
)
def test_distinct_finds_the_place_of_items_that_earlier_jobs_left(engine, build):
    """Behind several results of earlier jobs and shuffles, items come back in their order."""
    stream = build(engine.stream([5, 1, 4, 1, 3, 9, 2, 6], partitions=4))

    assert stream.distinct().to_list() == list(dict.fromkeys(stream.to_list()))
