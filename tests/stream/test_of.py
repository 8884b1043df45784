"""`Stream.of`, `Stream.empty`, `Stream.of_nullable`: streams of a few items."""

from __future__ import annotations

from dstream import Stream


def test_of_gives_its_arguments_in_order(default_engine):
    """The items are the arguments, None among them."""
    assert Stream.of(3, None, "a", 3).to_list() == [3, None, "a", 3]


def test_of_one_list_is_a_stream_of_one_list(default_engine):
    """A list that is passed to `of` is one item, not a source of items."""
    assert Stream.of([1, 2]).to_list() == [[1, 2]]


def test_empty_has_no_items(default_engine):
    """`empty()` and `of()` give nothing."""
    assert (Stream.empty() + Stream.of()).to_list() == []


def test_of_nullable_drops_none_only(default_engine):
    """None gives nothing; another false value is an item."""
    assert (Stream.of_nullable(None) + Stream.of_nullable(0)).to_list() == [0]
