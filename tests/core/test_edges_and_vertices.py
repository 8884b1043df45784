"""Edges and vertices keep what is said of them, and refuse what makes no sense at the call."""

from __future__ import annotations

import pytest

from collectors import co_operation, counting
from dstream import JoinClause
from dstream.core import (
    DAG,
    Edge,
    EdgeConfig,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    Routing,
    Vertex,
    constant_key,
    entry_key,
    entry_value,
    force_total_parallelism_one,
    processors,
    whole_item,
)
from dstream.errors import IllegalStateError
from dstream.spi import AggregateOperation
from dstream.spi.suppliers import MetaSupplierContext, supplier_at
from dstream.values.entries import Entry
from dstream.windows import session, tumbling
from reducers import to_ilist

A, B = Vertex("a", processors.noop()), Vertex("b", processors.noop())


# Jet's EdgeTest


def test_between_connects_the_first_ordinals():
    """Of both vertices."""
    edge = Edge.between(A, B)

    assert (edge.source, edge.source_ordinal, edge.destination, edge.destination_ordinal) == (A, 0, B, 0)


def test_from_and_to_have_ordinals():
    """Both are 0 unless it is said."""
    edge = Edge.from_(A, 1).to(B, 2)

    assert (edge.source_ordinal, edge.destination_ordinal) == (1, 2)
    assert (Edge.from_(A).source_ordinal, Edge.from_(A).destination) == (0, None)


def test_an_edge_leads_to_one_vertex():
    """A second `to` is refused."""
    with pytest.raises(IllegalStateError, match=r"edge a\(0\) -> b\(0\) at .* leads somewhere already"):
        Edge.between(A, B).to(B)


@pytest.mark.parametrize(
    ("said", "routing"),
    [
        (lambda edge: edge, Routing.UNICAST),
        (lambda edge: edge.broadcast().unicast(), Routing.UNICAST),
        (lambda edge: edge.isolated(), Routing.ISOLATED),
        (lambda edge: edge.broadcast(), Routing.BROADCAST),
        (lambda edge: edge.partitioned(whole_item), Routing.PARTITIONED),
        (lambda edge: edge.all_to_one(), Routing.PARTITIONED),
    ],
)
def test_the_last_routing_counts(said, routing):
    """Unicast unless it is said."""
    assert said(Edge.between(A, B)).routing is routing


def test_partitioned_has_a_key_and_a_partitioner():
    """The partitioner is that of all edges unless it is given."""
    edge = Edge.between(A, B).partitioned(len)

    assert (edge.key, edge.partitioner) == (len, None)
    assert edge.partitioned(whole_item, min).partitioner is min
    assert edge.unicast().key is None


def test_all_to_one_has_one_key():
    """Whatever the item."""
    key = Edge.between(A, B).all_to_one().key

    assert key(1) == key("x")


def test_priority_distributed_and_ordered_are_kept():
    """Lower priorities are read first; negative ones are allowed."""
    edge = Edge.between(A, B)
    assert (edge.priority_number, edge.is_distributed, edge.order) == (0, False, None)
    edge.priority(-3).distributed().ordered(len)

    assert (edge.priority_number, edge.is_distributed, edge.order) == (-3, True, len)


def test_an_edge_is_written_with_all_that_was_said():
    """For who looks at it."""
    edge = Edge.from_(A, 1).to(B, 2).partitioned(len, min).ordered(abs).distributed().priority(4)

    assert repr(edge) == ("edge a(1) -> b(2), partitioned by len with min, ordered by abs, distributed, priority 4")
    assert repr(Edge.from_(A).broadcast()) == "edge a(0) -> nowhere, broadcast"


def test_a_config_has_the_defaults_of_jet():
    """And is kept."""
    edge = Edge.between(A, B)
    assert edge.config == EdgeConfig(1024, 3, 16384)

    assert edge.set_config(EdgeConfig(queue_size=2)).config.queue_size == 2


@pytest.mark.parametrize("name", ["queue_size", "receive_window_multiplier", "packet_size_limit"])
def test_a_config_refuses_what_is_not_positive(name):
    """The message has the name and the value."""
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"{name} .*{wrong}"):
            EdgeConfig(**{name: wrong})
    with pytest.raises(TypeError, match=name):
        EdgeConfig(**{name: 1.5})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Edge.between(A, "b"), "an edge stands between vertices, which .* makes, not str"),
        (lambda: Edge.from_("a"), "an edge stands between vertices, which .* makes, not str"),
        (lambda: Edge.from_(A, "0"), "ordinal .*str"),
        (lambda: Edge.between(A, B).partitioned("key"), "key must be a function, not str"),
        (lambda: Edge.between(A, B).partitioned(len, 3), "partitioner must be a function, not int"),
        (lambda: Edge.between(A, B).ordered(3), "key must be a function, not int"),
        (lambda: Edge.between(A, B).priority(1.5), "priority .*float"),
        (lambda: Edge.between(A, B).set_config({"queue_size": 3}), r"set_config\(\) takes an EdgeConfig, not dict"),
    ],
)
def test_wrong_arguments_of_edges_are_named(wrong, message):
    """At the call, with what was given."""
    with pytest.raises(TypeError, match=message):
        wrong()


def test_negative_ordinals_are_refused():
    """On both sides; the edge stays as it was."""
    with pytest.raises(ValueError, match=r"ordinal .*-1"):
        Edge.from_(A, -1)
    edge = Edge.from_(A)
    with pytest.raises(ValueError, match=r"ordinal .*-1"):
        edge.to(B, -1)

    assert edge.destination is None


# Jet's VertexTest


def test_a_vertex_has_a_name_and_a_supplier():
    """Of any kind."""
    for supplier in (Processor, ProcessorSupplier.of(Processor), ProcessorMetaSupplier.of(Processor, 4)):
        vertex = Vertex("v", supplier)

        assert (vertex.name, isinstance(vertex.supplier, ProcessorMetaSupplier)) == ("v", True)
    assert vertex.supplier.preferred_local_parallelism == 4


def test_a_vertex_has_the_parallelism_that_was_said():
    """-1 leaves it to others."""
    vertex = Vertex("v", Processor)
    assert vertex.parallelism == -1
    assert vertex.local_parallelism(3).parallelism == 3

    assert vertex.local_parallelism(-1).parallelism == -1


@pytest.mark.parametrize("wrong", [0, -2])
def test_a_vertex_refuses_a_parallelism_below_one(wrong):
    """The message has the vertex."""
    with pytest.raises(ValueError, match=f"local_parallelism of vertex 'v' must be at least 1, or -1: {wrong}"):
        Vertex("v", Processor).local_parallelism(wrong)


def test_a_supplier_is_updated():
    """A function takes the meta-supplier and gives another one."""
    vertex = Vertex("v", Processor)
    vertex.update_supplier(force_total_parallelism_one)

    assert vertex.supplier.preferred_local_parallelism == 1


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: Vertex(3, Processor), TypeError, "the name of a vertex must be a str, not int"),
        (lambda: Vertex("", Processor), ValueError, "the name of a vertex must not be empty"),
        (lambda: Vertex("v", Processor()), TypeError, "a vertex takes a function that makes a processor"),
        (lambda: Vertex("v", "noop"), TypeError, "a vertex takes a function that makes a processor, or a supplier"),
        (lambda: Vertex("v", Processor).local_parallelism("2"), TypeError, "local_parallelism .*str"),
        (lambda: Vertex("v", Processor).update_supplier(3), TypeError, "change must be a function, not int"),
    ],
)
def test_wrong_arguments_of_vertices_are_named(wrong, error, message):
    """At the call."""
    with pytest.raises(error, match=message):
        wrong()


# Suppliers


def test_a_supplier_of_a_function_makes_so_many():
    """Each is another one."""
    one, two = ProcessorSupplier.of(Processor).get(2)

    assert one is not two


def test_a_supplier_refuses_what_is_no_processor():
    """As when a class was written instead of a call."""
    with pytest.raises(TypeError, match="a supplier of processors gave 'x', which is no Processor"):
        ProcessorSupplier.of(lambda: "x").get(1)


class Giving(ProcessorSupplier):
    """Gives what it was given."""

    def __init__(self, given):
        self.given = given

    def get(self, count):
        return self.given


ONE = Processor()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([None, None], TypeError, "gave None, which is no Processor"),
        ([ONE], ValueError, "gave 1 processors, not 2"),
        ([ONE, ONE], ValueError, "gave one processor twice"),
    ],
)
def test_what_a_supplier_gives_is_checked(given, error, message):
    """One processor for two would have the outbox of the last one."""
    with pytest.raises(error, match=message):
        Giving(given).get_one(0, 2)


@pytest.mark.parametrize("kind", [ProcessorSupplier, ProcessorMetaSupplier])
def test_a_supplier_without_get_says_so(kind):
    """A subclass overrides it."""
    with pytest.raises(NotImplementedError, match=rf"{kind.__name__} has no get\(\)"):
        kind().get([])


def test_a_meta_supplier_gives_its_supplier_to_each_address():
    """There is one member."""
    supplier = ProcessorSupplier.of(Processor)

    assert ProcessorMetaSupplier.of(supplier).get(["x"])("x") is supplier


def test_a_single_processor_refuses_more():
    """In the driver, with the name of the vertex."""
    supplier = force_total_parallelism_one(Processor)

    with pytest.raises(ValueError, match="vertex 'v' is to have 2 processors, and its supplier allows one in all"):
        supplier.init(MetaSupplierContext("v", 2))
    supplier.init(MetaSupplierContext("v", 1))


# Key functions


def test_key_functions_give_keys():
    """Of entries and pairs, and of anything."""
    assert (entry_key(("a", 1)), entry_key(Entry("a", 1))) == ("a", "a")
    assert (entry_value(("a", 1)), entry_value(Entry("a", 1))) == (1, 1)
    assert (whole_item(3), constant_key(3), constant_key("x")) == (3, "ALL", "ALL")


@pytest.mark.parametrize("fn", [entry_key, entry_value])
def test_what_is_no_entry_is_refused(fn):
    """With the item."""
    with pytest.raises(TypeError, match="7"):
        fn(7)


def generated(ordinal, items):
    """Yield items, as `processor_of` takes it."""
    yield from items


class WantsArguments(Processor):
    """Cannot be made without one."""

    def __init__(self, limit, step=1):
        """Take it."""


@pytest.mark.parametrize(
    ("supplier", "wanted"), [(generated, "ordinal, items"), (WantsArguments, "limit"), (lambda n: ONE, "n")]
)
def test_a_supplier_that_wants_arguments_is_refused(supplier, wanted):
    """Where the vertex is made, and not when the job runs."""
    with pytest.raises(TypeError, match=rf"wants {wanted}; processor_of\(fn\) makes processors of a generator"):
        DAG().new_vertex("a", supplier)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"get\(addresses\) of Gives must return a function .* gives a ProcessorSupplier, not None"),
        (lambda address: None, r"must give a ProcessorSupplier for the address 'here', not None"),
    ],
)
def test_a_meta_supplier_that_gives_nothing_is_an_error(given, message):
    """Said in the terms of its author, with its class."""

    class Gives(ProcessorMetaSupplier):
        def get(self, addresses):
            return given

    with pytest.raises(TypeError, match=message):
        supplier_at("here", Gives())


NOOP = processors.noop()
PAIR = co_operation(counting(), counting())
TIMES = {"timestamps": [whole_item], "operation": counting()}
OF_ONE_INPUT = {
    "aggregate": processors.aggregate(counting()),
    "accumulate": processors.accumulate(counting()),
    "combine": processors.combine(counting()),
    "aggregate_by_key": processors.aggregate_by_key([whole_item], counting()),
    "accumulate_by_key": processors.accumulate_by_key([whole_item], counting()),
    "combine_by_key": processors.combine_by_key(counting()),
    "without combine": processors.aggregate(AggregateOperation(list, list.append)),
    "sliding": processors.aggregate_to_sliding_window(keys=[whole_item], window=tumbling(10), **TIMES),
    "frames": processors.accumulate_by_frame(keys=[whole_item], window=tumbling(10), **TIMES),
    "of frames": processors.combine_to_sliding_window(window=tumbling(10), operation=counting()),
    "sessions": processors.aggregate_to_session_window(window=session(10), **TIMES),
    "peeked": processors.peek_input(processors.aggregate(counting())),
    "one": force_total_parallelism_one(processors.aggregate(counting())),
}


@pytest.mark.parametrize("supplier", OF_ONE_INPUT.values(), ids=OF_ONE_INPUT)
def test_an_operation_of_one_input_takes_one_edge(supplier):
    """A second one is refused where it is made; it was an IndexError of the job."""
    dag = DAG()
    one, other, end = (dag.new_vertex(name, each) for name, each in zip("abc", (NOOP, NOOP, supplier), strict=True))
    dag.edge(Edge.between(one, end))

    with pytest.raises(ValueError, match=r"b\(0\) -> c\(1\).* takes one inbound edge, and this is number 2: lead all"):
        dag.edge(Edge.from_(other).to(end, 1))


@pytest.mark.parametrize(
    ("supplier", "inputs"),
    [
        (processors.aggregate(PAIR), 2),
        (processors.hash_join(joins=[JoinClause.join_map_entries(len)]), 2),
        (processors.map(str), None),
        (processors.write(to_ilist("out")), None),
    ],
)
def test_processors_take_as_many_edges_as_they_have_inputs(supplier, inputs):
    """Vertices of joins and of two inputs take two edges; vertices that look at each item take any number."""
    dag = DAG()
    end = dag.new_vertex("end", supplier)
    for number in range(inputs or 5):
        dag.edge(Edge.from_(dag.new_vertex(f"in {number}", NOOP)).to(end, number))

    if inputs is not None:
        with pytest.raises(ValueError, match="takes 2 inbound edges, and this is number 3"):
            dag.edge(Edge.from_(dag.new_vertex("more", NOOP)).to(end, inputs))
