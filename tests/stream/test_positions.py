"""`zip_with_index`, `enumerate`, `sample` and `shuffle`: what depends on the number of an item."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

from dstream import IntStream, Stream
from dstream.testing import Parts, same_everywhere


def test_numbers_go_on_across_partitions():
    """They are those of Python's `enumerate`, however the items are divided."""
    assert same_everywhere(lambda s: s.enumerate(-2), "abcdefg") == list(enumerate("abcdefg", -2))
    assert same_everywhere(lambda s: s.zip_with_index(), "ab", partitions=(3,)) == [("a", 0), ("b", 1)]


def test_numbers_behind_what_only_a_job_can_count(engine):
    """A filter leaves partitions of any size, also empty ones; later steps go on in parallel."""
    kept = engine.stream(range(20), 5).filter(lambda n: n % 7 == 0 or 8 <= n <= 12).zip_with_index()

    assert kept.map(lambda pair: pair[0] * pair[1]).to_list() == [0, 7, 16, 27, 40, 55, 72, 98]
    assert engine.context.read(Parts([], [])).enumerate().to_list() == []


def test_numbers_of_an_endless_stream(default_engine):
    """They are given as far as they are asked for."""
    assert Stream.iterate(5, lambda n: n * 2).enumerate().limit(2).to_list() == [(0, 5), (1, 10)]


def test_a_sample_is_the_same_for_a_seed_however_the_items_are_divided():
    """On both engines, over the borders of the chunks in which numbers are drawn."""
    sampled = same_everywhere(lambda s: s.sample(0.01, seed=42), range(9000), partitions=(1, 3, 8))

    assert 50 < len(sampled) < 140
    assert sampled != same_everywhere(lambda s: s.sample(0.01, seed=43), range(9000), partitions=(2,))


def test_a_sample_keeps_each_item_with_the_same_probability(local_context):
    """Near 3,000 of 10,000, and neighbours are kept together as often as chance would have it."""
    kept = local_context.stream(range(10_000)).sample(0.3, seed=1).to_list()
    together = sum(right - left == 1 for left, right in itertools.pairwise(kept))

    assert abs(len(kept) - 3000) < 5 * math.sqrt(10_000 * 0.3 * 0.7)
    assert abs(together - 900) < 200


def test_a_sample_of_none_and_of_all(engine):
    """0 keeps nothing, 1 keeps everything, as ints too."""
    items = engine.stream(range(100), 3)

    assert items.sample(0).to_list() == []
    assert items.sample(1).to_list() == list(range(100))


def test_a_sample_without_a_seed_stays_the_same_one(engine):
    """The seed is chosen at the call: running the stream again gives the same items, another call others."""
    items = engine.stream(range(1000), 2)
    sample, other = items.sample(0.5), items.sample(0.5)

    assert sample.to_list() == sample.to_list() != other.to_list()


def test_a_sample_of_numbers_is_a_stream_of_numbers(local_context):
    """`IntStream.sample` can be summed; the other positions give streams of tuples."""
    assert IntStream.range(0, 10).sample(1.0).sum() == 45
    assert IntStream.range(0, 2).zip_with_index().to_list() == [(0, 0), (1, 1)]


def test_a_sample_of_so_many_is_the_same_however_the_items_are_divided():
    """On both engines; as many as there are, if there are fewer."""
    sampled = same_everywhere(lambda s: s.sample(n=20, seed=42), range(9000), partitions=(1, 8))

    assert len(set(sampled)) == 20
    assert sorted(same_everywhere(lambda s: s.sample(n=5, seed=1), range(3), partitions=(2,))) == [0, 1, 2]


def test_every_item_is_as_probable_in_a_sample_of_so_many(local_context):
    """Over 600 seeds, each of 10 items is among 3 near 180 times, and each is the first near 60 times."""
    samples = [local_context.stream(range(10)).sample(n=3, seed=seed).to_list() for seed in range(600)]
    kept, first = Counter(itertools.chain(*samples)), Counter(sample[0] for sample in samples)

    assert all(abs(kept[item] - 180) < 50 and abs(first[item] - 60) < 35 for item in range(10))


def test_a_shuffle_is_the_same_for_a_seed_however_the_items_are_divided():
    """All items, None among them, in an order that another seed changes."""
    items = [*range(200), None]
    shuffled = same_everywhere(lambda s: s.shuffle(seed=5), items, partitions=(1, 3))

    assert sorted(shuffled, key=repr) == sorted(items, key=repr)
    assert shuffled not in (items, same_everywhere(lambda s: s.shuffle(seed=6), items, partitions=(2,)))


def test_a_shuffle_goes_on_in_its_order(local_context):
    """It is one step for who reads the chain; numbers stay a stream of numbers."""
    shuffled = IntStream.range(0, 6).shuffle(seed=7)

    assert shuffled.limit(2).to_list() == shuffled.to_list()[:2] == IntStream.range(0, 6).sample(n=2, seed=7).to_list()
    assert repr(shuffled.sample(n=3)) == "IntStream.range(0, 6).shuffle(7).sample(n=3)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.sample(), TypeError, "sample.. takes a fraction, or n= for so many items"),
        (lambda s: s.sample(0.5, n=3), TypeError, "sample.. takes a fraction or n=, not both"),
        (lambda s: s.sample(n=-1), ValueError, "n must not be negative: -1"),
        (lambda s: s.sample(n=1.5), TypeError, "n must be an int, not float"),
        (lambda s: s.shuffle(seed="x"), TypeError, "seed must be an int, not str"),
        (lambda s: s.sample(1.1), ValueError, "fraction must be from 0 to 1: 1.1"),
        (lambda s: s.sample(math.nan), ValueError, "fraction must be from 0 to 1: nan"),
        (lambda s: s.sample("0.5"), TypeError, "fraction must be a number, not str"),
        (lambda s: s.sample(True), TypeError, "fraction must be a number, not bool"),
        (lambda s: s.sample(0.5, seed="x"), TypeError, "seed must be an int, not str"),
        (lambda s: s.enumerate(0.5), TypeError, "start must be an int, not float"),
        (lambda s: s.enumerate(None), TypeError, "start must be an int, not None"),
    ],
)
def test_positions_refuse_arguments_at_the_call(call, error, message):
    """By the name of the argument, before anything runs."""
    with pytest.raises(error, match=message):
        call(Stream.of(1))
