"""`Stream.generate`: what a supplier makes, without end."""

from __future__ import annotations

import pytest

from dstream import IntStream, Stream


def test_generate_gives_as_many_items_as_are_asked_for(default_engine):
    """The stream is infinite; `limit` ends it."""
    assert Stream.generate(lambda: "tick").limit(5).to_list() == ["tick"] * 5


def test_generate_gives_none_items(default_engine):
    """A supplier may make None."""
    assert Stream.generate(lambda: None).limit(2).to_list() == [None, None]


def test_generate_is_limited_in_the_middle_of_a_chain_too(default_engine):
    """`limit` gives its number of items also when other steps follow."""
    assert Stream.generate(lambda: 2).limit(7).map(lambda n: n + 1).reduce(0, lambda a, b: a + b) == 21


def test_generate_of_ints_checks_what_the_supplier_makes(default_engine):
    """`IntStream.generate` refuses an item that is no int and names it."""
    with pytest.raises(TypeError, match="'tick'"):
        IntStream.generate(lambda: "tick").limit(3).to_list()


@pytest.mark.parametrize("supplier", [None, 3])
def test_generate_refuses_what_is_no_function(supplier):
    """The supplier is checked at the call."""
    with pytest.raises(TypeError, match="supplier must be a function"):
        Stream.generate(supplier)
