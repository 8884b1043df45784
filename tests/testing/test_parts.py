"""`Parts`: the partitions that a test asks for, and counts of what was read of them."""

from __future__ import annotations

import pytest

from dstream.spi import Source
from dstream.testing import Parts


@pytest.mark.parametrize("in_caller", [False, True])
def test_the_partitions_are_those_that_were_asked_for(spark_context, in_caller):
    """Spark has one partition for each part, the empty ones too."""
    stream = spark_context.read(Parts([1], [], [2, 3], [], in_caller=in_caller))

    assert [list(items) for items in stream.partitions()] == [[1], [], [2, 3], []]


def test_cut_cuts_before_positions():
    """The same position twice makes an empty part; so do the two ends."""
    assert Parts.cut("abc", 0, 1, 1).parts == [[], ["a"], [], ["b", "c"]]
    assert Parts.cut("abc").parts == [["a", "b", "c"]]


@pytest.mark.parametrize("cuts", [(2, 1), (-1,), (4,)])
def test_cut_refuses_positions_that_are_none(cuts):
    """A position outside the items, or before the last one, is a mistake."""
    with pytest.raises(ValueError, match="cuts must go up from 0 to 3"):
        Parts.cut("abc", *cuts)


def test_no_parts_are_one_empty_part(engine):
    """A source without items is a source."""
    assert isinstance(Parts(), Source)
    assert engine.context.read(Parts()).count() == 0


def test_order_is_what_was_said(engine):
    """Unordered parts make an unordered stream, of which `limit` takes any."""
    assert Parts([1], ordered=False).ordered is False
    assert len(engine.context.read(Parts([1, 2], [3], ordered=False)).limit(2).to_list()) == 2


def test_reads_are_counted_in_every_process(engine):
    """A short circuit shows: only what was needed is read."""
    source = Parts([1, 2, 3], [4, 5], [6])

    assert engine.context.read(source).filter(lambda n: n > 1).find_first().get() == 2
    assert (source.items_read, source.parts_read) == (2, [0])


def test_reading_again_counts_again(engine):
    """Counts go on from run to run."""
    source = Parts([1], [2])
    stream = engine.context.read(source)

    assert [stream.count(), stream.count()] == [2, 2]
    assert (source.items_read, source.parts_read) == (4, [0, 0, 1, 1])


def test_an_item_that_raises_fails_where_it_stands(engine):
    """The exception comes instead of the item with that number, counted over all parts."""
    source = Parts([1, 2], [3, 4], raising={2: OSError("the disk is gone")})
    stream = engine.context.read(source)

    assert stream.limit(2).to_list() == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        stream.to_list()


def test_an_item_that_pauses_comes_late(monkeypatch):
    """The seconds are waited before the item is given."""
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    source = Parts([1, 2], [3], pausing={1: 0.5, 2: 2.0})
    first, second = source.splits(8)

    assert (list(first.read()), list(second.read())) == ([1, 2], [3])
    assert waited == [0.5, 2.0]


def test_repr_writes_it_again():
    """The message of a test that fails shows the parts."""
    assert repr(Parts([1], [], ordered=False)) == "Parts([1], [], ordered=False)"
