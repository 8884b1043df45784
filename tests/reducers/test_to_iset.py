"""`to_iset`: items added to a set, once each, all at once."""

from __future__ import annotations

import math

import pytest

from dstream.errors import NullElementError, UnstableKeyError
from reducers import replacing, to_iset


def test_to_iset_adds_the_distinct_items(ctx):
    """What the set had stays; items are equal as in Python, and every NaN is one."""
    ctx.get_set("s").update(["x", 1])
    written = ctx.stream([1, True, 1.0, "a", math.nan, float("nan"), (1, None)], 3).collect(to_iset("s"))

    assert len(written) == 5
    assert all(item in written for item in ("x", 1, "a", math.nan, (1, None)))


def test_to_iset_of_nothing_makes_the_set(ctx):
    """It is there then, and empty."""
    assert ctx.stream([], 2).collect(to_iset("s")) == set()
    assert ("set", "s") in ctx.collections()


def test_to_iset_replaces(ctx):
    """With `replacing`, the old items go in the same commit; a job of a name writes once."""
    ctx.get_set("s").add("old")
    assert ctx.stream("ab", 2).collect(replacing(to_iset("s"))) == {"a", "b"}

    for letters in ("c", "d"):
        ctx.stream(letters).collect(to_iset("s", job="nightly"))
    assert set(ctx.get_set("s").stream().to_list()) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("item", "error", "said"),
    [(None, NullElementError, "a set holds no None"), (object(), UnstableKeyError, "object")],
)
def test_to_iset_refuses_what_no_set_finds_again(local_context, item, error, said):
    """Nothing is added then."""
    with pytest.raises(error, match=said):
        local_context.stream(["a", item]).collect(to_iset("s"))

    assert local_context.get_set("s").is_empty()
