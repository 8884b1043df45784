"""A graph takes what fits together, says what does not, and gives its vertices in topological order."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import pytest

from dstream.core import DAG, Edge, EdgeConfig, Routing, Vertex, processors, whole_item
from reducers import to_ilist
from sources import items


def dag_of(names):
    """Return a graph with a vertex for each letter, and the vertices."""
    dag = DAG()
    return dag, *(dag.new_vertex(name, processors.noop()) for name in names)


# Jet's DAGTest


def test_dag_has_a_new_vertex():
    """By its name."""
    dag, a = dag_of("a")

    assert dag.get_vertex("a") is a
    assert dag.get_vertex("b") is None


def test_dag_takes_an_edge_between_its_vertices():
    """Which is returned for both of them."""
    dag, a, b = dag_of("ab")
    edge = Edge.between(a, b)

    assert dag.edge(edge) is dag
    assert dag.outbound_edges("a") == dag.inbound_edges("b") == [edge]


def test_dag_refuses_an_edge_to_where_it_begins():
    """A vertex cannot feed itself."""
    dag, a = dag_of("a")

    with pytest.raises(
        ValueError, match=r"edge a\(0\) -> a\(0\) at .*test_dag.py:\d+ leads to the vertex that it leaves"
    ):
        dag.edge(Edge.between(a, a))


@pytest.mark.parametrize("end", ["source", "destination"])
def test_dag_refuses_an_edge_with_an_unknown_end(end):
    """The message names the edge, and the vertex that is missing."""
    dag, known = dag_of("k")
    unknown = Vertex("u", processors.noop())
    edge = Edge.between(unknown, known) if end == "source" else Edge.between(known, unknown)

    with pytest.raises(ValueError, match=r"edge .*: vertex 'u' at .*test_dag.py:\d+ is not in this graph: new_vertex"):
        dag.edge(edge)


def test_dag_refuses_an_edge_without_a_destination():
    """One that was begun and not completed."""
    dag, a = dag_of("a")

    with pytest.raises(ValueError, match=r"edge a\(0\) -> nowhere .* has no destination: to\(vertex\)"):
        dag.edge(Edge.from_(a))


@pytest.mark.parametrize("end", ["source", "destination"])
def test_dag_refuses_another_vertex_of_a_known_name(end):
    """The message says where the one of the graph was made."""
    dag, _, c = dag_of("ac")
    other = Vertex("a", processors.noop())
    edge = Edge.between(other, c) if end == "source" else Edge.between(c, other)

    with pytest.raises(ValueError, match=r"which has another one of that name at .*test_dag.py:\d+"):
        dag.edge(edge)


def test_dag_gives_inbound_edges_by_their_ordinals():
    """Whatever order they were added in."""
    dag, a, b, c, d = dag_of("abcd")
    first, second, third = Edge.from_(a).to(d, 0), Edge.from_(b).to(d, 1), Edge.from_(c).to(d, 2)
    dag.edge(third).edge(first).edge(second).edge(Edge.from_(a, 1).to(b))

    assert dag.inbound_edges("d") == [first, second, third]


def test_dag_gives_outbound_edges_by_their_ordinals():
    """Whatever order they were added in."""
    dag, a, b, c, d = dag_of("abcd")
    first, second, third = Edge.from_(a, 0).to(b), Edge.from_(a, 1).to(c), Edge.from_(a, 2).to(d)
    dag.edge(third).edge(first).edge(second).edge(Edge.from_(b).to(c, 1))

    assert dag.outbound_edges("a") == [first, second, third]


def test_dag_iterates_in_topological_order():
    """Each vertex after all that lead to it."""
    dag, f, e, d, c, b, a = dag_of("fedcba")
    dag.edge(Edge.between(a, b)).edge(Edge.between(b, e)).edge(Edge.between(c, d))
    dag.edge(Edge.from_(d).to(e, 1)).edge(Edge.between(e, f))

    assert "".join(each.name for each in dag) == "cdabef"


def test_dag_iterates_in_the_order_of_adding_where_edges_say_nothing():
    """So two graphs that are made alike number their vertices alike."""
    dag, b, _a, _c = dag_of("bac")
    dag.edge(Edge.between(b, dag.new_vertex("d", processors.noop())))

    assert "".join(each.name for each in dag) == "bacd"


def test_dag_refuses_a_cycle():
    """The message has its path."""
    dag, x, y, a, b, c = dag_of("xyabc")
    dag.edge(Edge.between(a, b)).edge(Edge.between(b, c)).edge(Edge.between(c, a))
    dag.edge(Edge.between(x, y)).edge(Edge.from_(y).to(a, 1))

    with pytest.raises(ValueError, match=r"make a cycle: (a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)$"):
        dag.validate()


def test_dag_refuses_a_second_edge_from_one_ordinal():
    """The message names both edges."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.from_(a, 0).to(b))

    with pytest.raises(
        ValueError, match=r"a\(0\) -> c\(0\) .* ordinal 0 of what leaves 'a' is taken by edge a\(0\) -> b"
    ):
        dag.edge(Edge.from_(a, 0).to(c))


def test_dag_refuses_a_gap_between_ordinals_of_what_leaves():
    """Processors would have a bucket that leads nowhere."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.from_(a, 0).to(b)).edge(Edge.from_(a, 2).to(c))

    with pytest.raises(ValueError, match=r"a\(2\) -> c\(0\).*no edge has ordinal 1 of those that leave 'a'"):
        dag.validate()


def test_dag_refuses_a_second_edge_to_one_ordinal():
    """The message names both edges."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.from_(a).to(c, 0))

    with pytest.raises(ValueError, match=r"b\(0\) -> c\(0\) .* ordinal 0 of what leads to 'c' is taken by edge a\(0\)"):
        dag.edge(Edge.from_(b).to(c, 0))


def test_dag_refuses_a_gap_between_ordinals_of_what_arrives():
    """Also one that begins at 1."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.from_(a).to(c, 0)).edge(Edge.from_(b).to(c, 2))

    with pytest.raises(ValueError, match="no edge has ordinal 1 of those that lead to 'c'"):
        dag.validate()


def test_dag_refuses_a_second_edge_between_two_vertices():
    """Also with other ordinals, as Jet 0.6 does."""
    dag, a, b = dag_of("ab")
    dag.edge(Edge.between(a, b))

    with pytest.raises(ValueError, match="there is an edge between these two vertices"):
        dag.edge(Edge.from_(a, 1).to(b, 1))


def test_dag_advises_ordinals_where_both_are_zero():
    """Who takes `between` twice may not know that there are ordinals."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.between(a, c))

    with pytest.raises(ValueError, match=r"Edge.from_\(vertex, ordinal\).to\(vertex, ordinal\) says other ones"):
        dag.edge(Edge.between(b, c))


def test_dag_advises_no_ordinals_to_who_gave_one():
    """The advice would say what is known."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.from_(a).to(c, 1))

    with pytest.raises(ValueError, match="is taken by") as caught:
        dag.edge(Edge.from_(b).to(c, 1))

    assert "Edge.from_" not in str(caught.value)


# What Jet does not test


def test_dag_refuses_a_second_vertex_of_one_name():
    """The message says where the first one was made."""
    dag, _ = dag_of("a")

    with pytest.raises(ValueError, match=r"vertex 'a' at .*test_dag.py:\d+ is in this graph already"):
        dag.new_vertex("a", processors.noop())


def test_dag_refuses_to_be_empty():
    """Nothing would run."""
    with pytest.raises(ValueError, match="no vertices"):
        DAG().validate()


def test_dag_refuses_to_give_edges_of_an_unknown_vertex():
    """The message has the names that there are."""
    dag, *_ = dag_of("ab")

    with pytest.raises(ValueError, match="no vertex 'c' in this graph; there are: 'a', 'b'"):
        dag.inbound_edges("c")


def test_dag_of_many_vertices_is_ordered_copied_and_pickled():
    """Without recursion."""
    dag, *chain = dag_of([str(n) for n in range(3000)])
    for above, below in pairwise(chain):
        dag.edge(Edge.between(above, below))

    assert [each.name for each in pickle.loads(pickle.dumps(copy.copy(dag)))] == [str(n) for n in range(3000)]


def test_dag_travels_with_lambdas():
    """By value, as the functions of streams do."""
    dag, a = dag_of("a")
    b = dag.new_vertex("b", processors.map(lambda n: n + 1)).local_parallelism(3)
    dag.edge(Edge.between(a, b).partitioned(lambda n: n % 2).priority(4))

    made = pickle.loads(pickle.dumps(dag))

    (edge,) = made.inbound_edges("b")
    assert edge.key(3) == 1
    assert (edge.priority_number, edge.destination.parallelism) == (4, 3)
    assert edge.destination is made.get_vertex("b")
    assert str(made) == str(dag)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_dag_copies_are_independent(copied):
    """Vertices, edges, and what is said of them."""
    dag, a, b = dag_of("ab")
    dag.edge(Edge.between(a, b))

    made = copied(dag)
    made.get_vertex("b").local_parallelism(7)
    made.inbound_edges("b")[0].broadcast()
    made.new_vertex("c", processors.noop())

    assert b.parallelism == -1
    assert dag.inbound_edges("b")[0].routing is Routing.UNICAST
    assert dag.get_vertex("c") is None


def test_dag_graph_has_all_that_was_said():
    """As values, which later changes leave as they are."""
    dag, a, b = dag_of("ab")
    edge = Edge.between(a, b).partitioned(whole_item).distributed().set_config(EdgeConfig(queue_size=8))
    dag.edge(edge)

    graph = dag.graph()
    edge.broadcast()
    a.local_parallelism(9)

    assert [each.name for each in graph.vertices] == ["a", "b"]
    assert [each.parallelism for each in graph.vertices] == [-1, -1]
    assert str(graph.vertices[1].step).startswith("step 2 of 2: vertex 'b' at ")
    (only,) = graph.edges
    assert (only.routing, only.key, only.is_distributed, only.queue_size) == (Routing.PARTITIONED, whole_item, True, 8)


def test_dag_text_says_what_edges_do():
    """With both ordinals."""
    dag, a, b, c = dag_of("abc")
    dag.edge(Edge.between(a, c).all_to_one()).edge(Edge.from_(b).to(c, 1).broadcast().priority(-1))

    assert str(dag).splitlines() == [
        "DAG with 3 vertices",
        "  a",
        "  b",
        "  c",
        "    from a(0) to c(0), all to one",
        "    from b(0) to c(1), broadcast, priority -1",
    ]


def test_dag_is_drawn_by_graphviz():
    """A box for each vertex; names and functions are quoted."""
    dag, a = dag_of("a")
    b = dag.new_vertex('"b"', processors.noop()).local_parallelism(2)
    dag.edge(Edge.from_(a).to(b).partitioned(whole_item).priority(1))

    lines = [line.strip().partition(", tooltip=")[0] for line in dag.to_dot().splitlines()]
    assert lines == [
        "digraph dstream {",
        "rankdir=TB;",
        'node [shape=box, fontname="monospace"];',
        'v0 [label="a"',
        r'v1 [label="\"b\"\llocal_parallelism=2\l"',
        r'v0 -> v1 [label="0 to 0\lpartitioned by whole_item\lpriority 1\l"];',
        "}",
    ]


def test_dag_shows_itself_in_notebooks():
    """Its vertices and edges, and the picture of what runs."""
    dag = DAG()
    read = dag.new_vertex("<read>", processors.read(items(1)))
    dag.edge(Edge.between(read, dag.new_vertex("write", processors.write(to_ilist("l")))))
    shown = dag._repr_html_()

    assert shown.startswith(
        "<pre>DAG with 2 vertices\n  &lt;read&gt;\n  write\n    from &lt;read&gt;(0) to write(0)</pre>\n"
    )
    assert "<svg" in shown


def test_dag_that_cannot_run_shows_why():
    """In a notebook nothing is raised for looking at it."""
    assert "<pre>ValueError: this graph has no vertices: " in DAG()._repr_html_()


def test_several_edges_into_a_sink_are_drawn_as_edges():
    """The user wrote no union."""
    dag = DAG()
    a, b = (dag.new_vertex(name, processors.read(items(name))) for name in "ab")
    sink = dag.new_vertex("sink", processors.write(to_ilist("any")))
    dag.edge(Edge.between(a, sink)).edge(Edge.from_(b).to(sink, 1))

    (write,) = dag.plan().writes

    assert write.node.label() == "edges into 'sink'"
