"""A plan as text, which is the `repr` of a stream."""

from __future__ import annotations

from dstream import Stream
from dstream.plan import Concat, Limit, Map, describe


def test_a_short_chain_stands_on_one_line():
    """The text is the chain of calls."""
    stream = Stream.of("a", "b").map(len).filter(bool).sorted(reverse=True).limit(3)

    assert repr(stream) == "Stream.of('a', 'b').map(len).filter(bool).sorted(reverse=True).limit(3)"


def test_a_long_chain_is_folded(source):
    """What is longer than a line gets a line for each call."""
    plan = source
    for _ in range(12):
        plan = Map(plan, str.capitalize)

    assert describe(plan).splitlines()[:2] == ["source", "    .map(str.capitalize)"]
    assert len(describe(plan).splitlines()) == 13


def test_a_very_long_chain_is_cut_in_the_middle(source):
    """Beginning and end stay; the middle says how much is missing."""
    plan = source
    for number in range(1000):
        plan = Limit(plan, number)

    lines = [line.strip() for line in describe(plan).splitlines()]
    assert (lines[0], lines[1], lines[20], lines[-1]) == (
        "source",
        ".limit(0)",
        "... 961 more calls ...",
        ".limit(999)",
    )


def test_concats_show_their_parts_to_a_limited_depth(source):
    """A concat shows what it joins; deep inside it only says that there is one."""
    plan = Concat((source, Limit(source, 1)))
    deep = Concat((Concat((Concat((Concat((plan, source)), source)), source)), source))

    assert describe(Limit(plan, 2)) == "concat(source, source.limit(1)).limit(2)"
    assert describe(deep) == "concat(concat(concat(concat(...), source), source), source)"


def test_items_of_a_source_are_shortened():
    """A stream of many or long items has a short text."""
    assert repr(Stream.of(1, 2, 3, 4, 5)) == "Stream.of(1, 2, 3, ... 5 items)"
    assert len(repr(Stream.of("x" * 10_000))) < 300
