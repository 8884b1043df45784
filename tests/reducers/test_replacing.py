"""`replacing`: the new content takes the place of the old one in one commit."""

from __future__ import annotations

import pytest

from collectors import counting
from reducers import grouping_by_to_imap, replacing, to_icache, to_ilist, to_imap


def test_replacing_leaves_nothing_of_the_old_map(ctx):
    """Entries with other keys are gone."""
    ctx.get_map("m").update({"a": 1, "z": 26})

    assert dict(ctx.stream("ab", 2).collect(replacing(to_imap("m", str, ord)))) == {"a": 97, "b": 98}


def test_replacing_works_for_lists_caches_and_groups(ctx):
    """Every reducer can replace."""
    ctx.get_list("l").extend([1, 2, 3])
    ctx.get_cache("c", ttl=600)["old"] = 1
    ctx.get_map("g")["old"] = 1

    assert list(ctx.stream("ab", 2).collect(replacing(to_ilist("l")))) == ["a", "b"]
    assert dict(ctx.stream("ab", 2).collect(replacing(to_icache("c", str, ord)))) == {"a": 97, "b": 98}
    assert dict(ctx.stream("ab", 2).collect(replacing(grouping_by_to_imap("g", str, counting())))) == {"a": 1, "b": 1}


def test_replacing_by_nothing_empties_the_collection(ctx):
    """An empty stream leaves an empty map."""
    ctx.get_map("m")["a"] = 1

    assert dict(ctx.stream([], 2).collect(replacing(to_imap("m")))) == {}


def test_replacing_keeps_the_old_content_when_the_job_fails(ctx):
    """A failure loses nothing."""
    ctx.get_map("m")["a"] = 1
    with pytest.raises(ZeroDivisionError):
        ctx.stream([1, 0], 2).collect(replacing(to_imap("m", lambda n: 1 / n, str)))

    assert dict(ctx.get_map("m")) == {"a": 1}


def test_replacing_reads_the_collection_that_it_replaces(ctx):
    """A stream over a map may write into the same map."""
    ctx.get_map("m").update({"a": 1, "b": 2})
    doubled = ctx.get_map("m").stream().filter(lambda e: e.value > 1).map(lambda e: (e.key, e.value * 2))

    assert dict(doubled.collect(replacing(to_imap("m")))) == {"b": 4}


def test_replacing_takes_reducers_only():
    """Anything else is a TypeError that names what it is."""
    with pytest.raises(TypeError, match="Collector"):
        replacing(counting())
