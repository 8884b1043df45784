"""`to_icache` and `grouping_by_to_icache`: into a configured cache."""

from __future__ import annotations

import operator

import pytest

from collectors import counting
from dstream import errors
from reducers import grouping_by_to_icache, to_icache


def test_to_icache_writes_entries_into_a_configured_cache(ctx):
    """The entries are there as in a map."""
    cache = ctx.get_cache("c", ttl=600)
    cache["z"] = 26

    assert dict(ctx.stream("aab", 2).collect(to_icache("c", str, lambda c: 1, operator.add))) == {
        "a": 2,
        "b": 1,
        "z": 26,
    }


def test_to_icache_merges_with_what_is_there(ctx):
    """The value that is there comes first."""
    ctx.get_cache("c", ttl=600)["a"] = "A"
    reducer = to_icache("c", str, str, operator.add, on_existing="merge")

    assert dict(ctx.stream("ab", 2).collect(reducer)) == {"a": "Aa", "b": "b"}


@pytest.mark.parametrize("reducer", [to_icache("c", str, len), grouping_by_to_icache("c", len)])
def test_to_icache_refuses_a_cache_that_was_never_configured(ctx, reducer):
    """The error says how to configure it, and nothing is made."""
    with pytest.raises(errors.CacheNotExistsError, match="ttl="):
        ctx.stream("ab").collect(reducer)

    assert ctx.collections() == []


def test_grouping_by_to_icache_writes_one_entry_for_each_group(ctx):
    """Groups arrive with the result of the downstream collector."""
    ctx.get_cache("c", max_idle=600)
    groups = ctx.stream(["a", "bb", "c"], 2).collect(grouping_by_to_icache("c", len, counting()))

    assert dict(groups) == {1: 2, 2: 1}
