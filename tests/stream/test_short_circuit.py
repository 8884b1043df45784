"""Short circuits: nothing is read or run behind the item that decides."""

from __future__ import annotations

import pytest

from dstream import Stream
from dstream.testing import Parts


def counted(parts, items=3):
    """Return a source of pairs (part, item) that counts what is read of it."""
    return Parts(*([(part, item) for item in range(items)] for part in range(parts)))


def failing(n):
    """Fail on 0."""
    return 1 // n


@pytest.mark.on_spark("find")
@pytest.mark.parametrize(
    "find",
    [
        lambda s: s.find_first().get(),
        lambda s: s.limit(2).to_list()[0],
        lambda s: next(iter(s.limit(2).map(lambda item: item))),
        lambda s: s.any_match(lambda item: item == (0, 1)) and (0, 0),
        lambda s: s.take_while(lambda item: item == (0, 0)).to_list()[0],
    ],
    ids=["find_first", "limit", "limit in the middle", "any_match", "take_while"],
)
def test_a_short_circuit_opens_a_handful_of_a_thousand_partitions(engine, find):
    """The first partition holds the answer; no more than a handful of the others are opened."""
    source = counted(1000)

    assert find(engine.context.read(source)) == (0, 0)
    assert source.parts_read == [0]


def test_a_short_circuit_takes_more_partitions_as_it_needs_them(engine):
    """If the first partitions hold nothing, more are opened, but not all."""
    source = counted(1000, items=1)

    assert engine.context.read(source).filter(lambda item: item[0] == 3).find_first().get() == (3, 0)
    assert 4 <= len(set(source.parts_read)) <= 24


def test_a_short_circuit_stops_reading_inside_a_partition(engine):
    """Of one long partition only the beginning is read."""
    source = counted(1, items=10_000)

    assert engine.context.read(source).map(lambda item: item[1]).filter(lambda n: n > 1).find_first().get() == 2
    assert source.items_read == 3


def test_a_page_reads_no_further_than_its_end(engine):
    """`skip(n).limit(m)` of a long partition reads n + m items, and some for a batch, not all of them."""
    source = counted(2, items=2000)

    assert engine.context.read(source).skip(1).limit(2).map(max).to_list() == [1, 2]
    assert source.items_read < 500


def test_limit_runs_no_function_behind_its_end(engine):
    """The sixth item would fail in a step before and in one behind `limit`; neither sees it."""
    numbers = engine.stream([1, 1, 1, 1, 1, 0, 0], 2)

    assert numbers.limit(5).map(failing).to_list() == [1] * 5
    assert engine.stream([1, 1, 0, 0], 1).map(failing).limit(2).map(failing).to_list() == [1, 1]


def test_take_while_runs_no_function_behind_its_end(engine):
    """Steps before and after the prefix see no more than the item that ends it."""
    numbers = engine.stream([3, 2, 1, 0], 1)

    assert numbers.map(lambda n: (n, 6 // n)).take_while(lambda pair: pair[0] > 1).map(max).to_list() == [3, 3]


def test_matches_ask_about_no_item_behind_the_one_that_decides(engine):
    """The predicate is not asked about what comes later in the partition."""
    numbers = engine.stream([2, 1, 0], 1)

    assert numbers.any_match(lambda n: failing(n) == 1) is True
    assert numbers.all_match(lambda n: failing(n) == 1) is False


def test_infinite_streams_end_with_their_short_circuit(default_engine):
    """Searches in, and limits of, endless streams end, also behind steps that leave items out."""
    numbers = Stream.iterate(0, lambda n: n + 1)

    assert numbers.filter(lambda n: n > 2000).find_first().get() == 2001
    assert numbers.any_match(lambda n: n == 77)
    assert numbers.filter(lambda n: n % 2).skip(2).limit(2).map(str).to_list() == ["5", "7"]
    assert Stream.generate(lambda: 1).flat_map(lambda n: [n, 2]).limit(5).count() == 5
