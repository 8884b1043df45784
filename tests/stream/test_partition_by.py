"""`partition_by` and `key_by`."""

from __future__ import annotations

from itertools import chain

import pytest

from dstream import Entry, Stream
from dstream.errors import IllegalStateError, UnstableKeyError


def test_partition_by_brings_equal_keys_together(spark_context):
    """Each key stands in one of n partitions, whose items keep their order."""
    numbers = spark_context.stream(range(30), 4).partition_by(3, key=lambda n: n % 7)
    parts = [list(part) for part in numbers.partitions()]

    assert len(parts) == 3
    assert sorted(chain.from_iterable(parts)) == list(range(30))
    assert all(part == sorted(part) for part in parts)
    assert sum(len({n % 7 for n in part}) for part in parts) == 7


def test_partition_by_takes_the_key_of_an_entry_or_the_item_itself(spark_context):
    """Without a function the key of an entry counts, not its value; of anything else, the whole item."""
    entries = spark_context.stream(range(20), 3).key_by(lambda n: n % 2).partition_by(5)
    items = spark_context.stream([1, 1.0, None, True, "a", None, "a"], 4).partition_by(4)

    assert sum(len({key for key, _ in part}) for part in entries.partitions()) == 2
    assert sum(len(set(part)) for part in items.partitions()) == 3


def test_partition_by_changes_nothing_but_the_place(engine):
    """On both engines the items are the same; the local one has one partition, as a sequential stream has."""
    numbers = engine.stream([3, 1, 2], 3)

    assert sorted(numbers.partition_by(2).to_list()) == [1, 2, 3]
    assert numbers.partition_by(2).sequential().to_list() == [3, 1, 2]
    assert engine.stream([], 2).partition_by(3).to_list() == []


def test_partition_by_refuses_a_key_that_cannot_be_routed(engine):
    """Also on the local engine, and also in one partition."""
    for count in (1, 2):
        with pytest.raises(UnstableKeyError):
            engine.stream([[1]], 1).partition_by(count).to_list()


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError), (True, TypeError)])
def test_partition_by_refuses_wrong_numbers_at_the_call(n, error):
    """The message names the argument."""
    with pytest.raises(error, match="n must "):
        Stream.of(1).partition_by(n)


def test_partition_by_refuses_an_endless_stream(default_engine):
    """Every item would have to be placed first."""
    with pytest.raises(IllegalStateError, match="cannot be partitioned"):
        Stream.iterate(0, abs).partition_by(2).limit(1).to_list()


def test_key_by_makes_entries(engine):
    """The key is what the function gives, the value is the item; the call is shown as it was written."""
    words = engine.stream(["sea", None], 2).key_by(str)

    assert words.to_list() == [Entry("sea", "sea"), Entry("None", None)]
    assert type(words.to_list()[0]) is Entry
    assert repr(words).endswith(".key_by(str)")
