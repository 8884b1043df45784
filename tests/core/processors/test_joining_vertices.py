"""Hash joins of edges."""

from __future__ import annotations

import math
import operator

import pytest

from dstream import JoinClause
from dstream.core import processors
from dstream.errors import IllegalStateError
from dstream.failures import failure
from dstream.plan.processor_graph import Routing
from dstream.processors.blocks import GraphArrival
from dstream.testing.protocol import RUNS, ProcessorRun
from tests.processors.graphs_by_hand import edge, run_of, vertex

NAMES = JoinClause.join_map_entries(operator.itemgetter(0))
BY_LENGTH = JoinClause.on_keys(lambda item: len(item[0]), abs)


def joined(supplier, items, *sides):
    """Return what comes of items behind those of other edges, the same in all runs."""
    found = []
    for run in RUNS:
        one = ProcessorRun(supplier, run)
        for ordinal, side in enumerate(sides, 1):
            for item in side:
                one.process(ordinal, item)
            one.complete_edge(ordinal)
        for item in items:
            one.process(0, item)
        one.complete_edge(0)
        one.complete()
        found.append(one.emitted)
    assert found == found[:1] * len(RUNS)
    return found[0]


def test_items_come_with_their_matches():
    """One that matches nothing with None; matches are in order."""
    assert joined(processors.hash_join(joins=[NAMES]), ["a1", "b2", "c3"], [("a", "x"), ("b", "y"), ("a", "z")]) == [
        ("a1", "x"),
        ("a1", "z"),
        ("b2", "y"),
        ("c3", None),
    ]


def test_an_inner_join_leaves_out_what_matches_nothing():
    """On any of the edges."""
    inner = processors.hash_join(joins=[NAMES, BY_LENGTH], inner=True)

    assert joined(inner, ["a1", "b2"], [("a", "x"), ("b", "y")], [1, -1]) == [
        ("a1", "x", 1),
        ("a1", "x", -1),
        ("b2", "y", 1),
        ("b2", "y", -1),
    ]
    assert joined(inner, ["a1", "b2"], [("a", "x")], [2]) == []


def test_a_join_makes_what_it_is_told_to():
    """Of an item and a match from each edge, projected."""
    made = processors.hash_join(joins=[NAMES, BY_LENGTH.projecting(str)], to="{} {} {}".format)

    assert joined(made, ["a1"], [("a", "x")], [1]) == ["a1 x 1"]


def test_equal_keys_match():
    """1 and 1.0, and NaN, also after it was restored."""
    numbers = processors.hash_join(
        joins=[JoinClause.on_keys(float, lambda pair: pair[0])], to=lambda left, pair: pair[1]
    )

    assert joined(numbers, [1, 2, "nan"], [(True, "x"), (2, "y"), (math.nan, "z")]) == ["x", "y", "z"]


def in_graph(items, priority=-1, **options):
    """Return what three processors give, each of which gets all matches."""
    edges = [
        edge("left", "join"),
        edge("right", "join", 0, 1, routing=Routing.BROADCAST, priority=priority),
        edge("join", "out"),
    ]
    arrivals = [GraphArrival(0, 0, None, items), GraphArrival(1, 0, None, [("a", "x"), ("b", "y")])]
    return run_of([vertex("join", processors.hash_join(joins=[NAMES], **options), 3)], edges, arrivals)


def test_each_processor_holds_all_matches():
    """Edges that have them come first, whatever arrives first."""
    assert sorted(in_graph(["a1", "b1", "a2", "b2"])) == [("a1", "x"), ("a2", "x"), ("b1", "y"), ("b2", "y")]


def test_an_item_before_all_matches_is_refused():
    """It would miss some of them."""
    with pytest.raises(IllegalStateError, match=r"before all of edge 1: .*priority\(-1\)"):
        in_graph(["a1"], priority=0)


def test_a_failure_names_the_item():
    """Of the key, and of what makes the result."""
    with pytest.raises(IndexError) as caught:
        in_graph(["a1", ""])
    assert failure(caught.value).item == ""
    with pytest.raises(TypeError) as told:
        in_graph(["a1", "c2"], to=lambda item, match: item + match)
    assert failure(told.value).item == "c2"


@pytest.mark.parametrize(
    ("joins", "kind"), [([], ValueError), ([len], TypeError), (NAMES, TypeError), ([(len, len)], TypeError)]
)
def test_what_are_no_clauses_is_refused(joins, kind):
    """When the vertex is made."""
    with pytest.raises(kind, match="joins must"):
        processors.hash_join(joins=joins)


def test_a_join_shows_its_call():
    """With what differs from the usual."""
    assert repr(processors.hash_join(joins=[JoinClause.on_keys(abs, len)], to=max, inner=True)) == (
        "hash_join(joins=[JoinClause.on_keys(abs, len)], inner=True, to=max)"
    )
