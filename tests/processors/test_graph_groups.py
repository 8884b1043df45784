"""A graph is cut where items have to move."""

from __future__ import annotations

from dstream.plan.processor_graph import Routing
from dstream.processors.edges import graph_groups
from tests.processors.graphs_by_hand import Log, edge, graph_of, vertex


def groups(vertices, edges):
    """Return the names of each group, and its inlets and outlets."""
    return [
        (
            [each.name for each in part.vertices],
            [(each.source, each.carries_blocks) for each in part.inlets],
            [(each.destination, each.carries_blocks) for each in part.outlets],
        )
        for part in graph_groups(graph_of(vertices, edges))
    ]


def test_vertices_stay_together_along_unicast_edges_of_equal_parallelism():
    """And are cut at an edge by key."""
    vertices = [vertex("a", Log, 2), vertex("b", Log, 2), vertex("c", Log, 2)]
    edges = [edge("in", "a"), edge("a", "b"), edge("b", "c", routing=Routing.PARTITIONED, key=str), edge("c", "out")]

    assert groups(vertices, edges) == [
        (["a", "b"], [("in", False)], [("c", True)]),
        (["c"], [("b", True)], [("out", False)]),
    ]


def test_another_parallelism_cuts():
    """Items of two processors would have to go to one."""
    assert len(groups([vertex("a", Log, 2), vertex("b", Log, 1)], [edge("a", "b")])) == 2


def test_a_diamond_stays_together():
    """All that leads to its end comes from one part."""
    vertices = [vertex(name, Log, 3) for name in "abcd"]
    edges = [edge("a", "b"), edge("a", "c", 1), edge("b", "d"), edge("c", "d", 0, 1)]

    assert groups(vertices, edges) == [(["a", "b", "c", "d"], [], [])]


def test_a_vertex_that_two_parts_lead_to_begins_a_part():
    """Otherwise each of the parts would wait for the other one."""
    vertices = [vertex(name, Log, 2) for name in "abc"]
    edges = [edge("a", "c"), edge("b", "c", 0, 1)]

    assert groups(vertices, edges) == [
        (["a"], [], [("c", True)]),
        (["b"], [], [("c", True)]),
        (["c"], [("a", True), ("b", True)], []),
    ]
