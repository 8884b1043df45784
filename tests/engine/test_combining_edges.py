"""Edges whose senders accumulate first: which ones, what is counted, and that nothing differs."""

from __future__ import annotations

import operator
import pickle
from collections import Counter, defaultdict
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from collectors import counting, to_list, to_set
from dstream.core import DAG, Edge, entry_key, processors, whole_item
from dstream.core.processors.groups import FirstGrouping
from dstream.engine.compiler.processors import with_first_stages
from dstream.plan.processor_graph import Routing, VertexGraph, with_parallelism
from dstream.processors.tasks import FirstStage, as_written
from dstream.spi import AggregateOperation
from dstream.testing import same_items_in_any_order, verify_processor
from dstream.values import Entry
from reducers import to_ilist
from sources import Items

LAST_DIGIT = operator.itemgetter(slice(-1, None))


def combining(last: Any, way: Any, *, parallelism: int = 3, readers: int | None = None) -> tuple[VertexGraph, Any]:
    """Return the graph of words that go to a vertex, one way or another, and what stands in front of that."""
    dag = DAG()
    words = dag.new_vertex("words", processors.map(str)).local_parallelism(2)
    end = dag.new_vertex("end", last).local_parallelism(parallelism)
    dag.edge(way(Edge.between(words, end)))
    if readers is not None:
        graph = with_parallelism(dag.graph(), 2)
        graph = VertexGraph(graph.vertices[1:], graph.edges)  # The words come from outside.
    else:
        graph = with_parallelism(dag.graph(), 2)
    made = with_first_stages(graph, [readers])
    return made.graph, made.first_stages


COUNTED = processors.aggregate_by_key([whole_item], counting())


def test_a_sender_accumulates_before_an_edge_by_the_key_of_the_vertex():
    """The vertex that is put in has the processors of the sender, and sends by the keys that it found."""
    graph, first_stages = combining(COUNTED, lambda edge: edge.partitioned(whole_item).priority(4))

    first = "end (first stage of edge 0)"
    assert [(each.name, each.parallelism) for each in graph.vertices] == [("words", 2), (first, 2), ("end", 3)]
    assert [(each.source, each.destination, each.routing, each.priority) for each in graph.edges] == [
        ("words", first, Routing.UNICAST, 0),
        (first, "end", Routing.PARTITIONED, 4),
    ]
    assert first_stages == (FirstStage(first, "end", 0, 1, 0),)


@pytest.mark.parametrize(
    ("last", "way", "parallelism"),
    [
        (COUNTED, lambda edge: edge.partitioned(str.lower), 3),
        (COUNTED, lambda edge: edge.partitioned(whole_item, lambda key, count: 0), 3),
        (COUNTED, lambda edge: edge.partitioned(whole_item).ordered(whole_item), 3),
        (COUNTED, lambda edge: edge.broadcast(), 3),
        (processors.aggregate(counting()), lambda edge: edge, 3),
        (processors.combine_by_key(counting()), lambda edge: edge.partitioned(entry_key), 3),
        (processors.peek_input(COUNTED), lambda edge: edge.partitioned(whole_item), 3),
        (processors.aggregate_by_key([whole_item], AggregateOperation(list, list.append)), Edge.all_to_one, 1),
        (processors.map(str), lambda edge: edge.partitioned(whole_item), 3),
        (COUNTED, lambda edge: edge, 2),
    ],
    ids=["key", "partitioner", "ordered", "broadcast", "unkeyed", "combined", "peeked", "uncombined", "map", "near"],
)
def test_other_edges_stay_as_they_are(last, way, parallelism):
    """Where the result, or what the user sees of it, could be another one; or nothing moves."""
    graph, first_stages = combining(last, way, parallelism=parallelism)

    assert ([each.name for each in graph.vertices], first_stages) == (["words", "end"], ())


@pytest.mark.parametrize("last", [COUNTED, processors.accumulate(to_list()), processors.aggregate(counting())])
@pytest.mark.parametrize("way", [lambda edge: edge, Edge.broadcast, Edge.all_to_one])
def test_any_edge_to_the_only_processor_is_one(last, way):
    """All items of a key come there."""
    graph, first_stages = combining(last, way, parallelism=1)

    assert len(first_stages) == 1
    assert graph.edges[1].routing is Routing.UNICAST


def test_tasks_that_read_a_source_accumulate():
    """As many as read it; nothing is put in front of what comes otherwise."""
    graph, _ = combining(COUNTED, lambda edge: edge.partitioned(whole_item), readers=5)
    assert [each.parallelism for each in graph.vertices] == [5, 3]
    assert [each.source for each in graph.inlets] == ["words"]


def test_counts_are_those_of_the_vertices_that_the_user_wrote():
    """Wherever the tasks are, and whatever else runs in them."""
    first = FirstStage("end first", "end", 1, 2, 1)

    assert as_written({"words": ([], [9]), "end first": ([9], [4])}, [first]) == {
        "words": ([], [9]),
        "end": ([0, 9], [0]),
    }
    assert as_written({"end": ([2, 4], [3])}, [first]) == {"end": ([2, 0], [3])}
    assert as_written({"words": ([], [9])}, [first]) == {"words": ([], [9])}


def test_a_first_stage_gives_what_it_has_when_that_is_much(monkeypatch):
    """So it never holds all keys there are."""
    monkeypatch.setattr("dstream.core.processors.groups._MOST", 2)
    first = FirstGrouping(whole_item, counting())

    assert list(first.made_of(0, ["a", "a"])) == []
    assert list(first.made_of(0, ["b", "a"])) == [("a", 3), ("b", 1)]
    assert list(first.made_of(0, ["a"])) == []


def test_both_stages_keep_the_protocol():
    """In all runs; entries of a first stage on one edge, items on the other."""
    stages = processors.aggregate_by_key([whole_item, whole_item], counted_twice()).two_stages
    first = verify_processor(pickle.loads(pickle.dumps(stages.first(1)))).input(["a", "b"])
    first.output_checker(same_items_in_any_order).expect_output([Entry("a", [0, 1]), Entry("b", [0, 1])])
    second = verify_processor(pickle.loads(pickle.dumps(stages.second(frozenset({1})))))
    second.output_checker(same_items_in_any_order).inputs(
        [["a", "a"], [Entry("a", [0, 2]), Entry("b", [0, 3]), Entry("a", [0, 5])]]
    ).expect_output([Entry("a", (2, 7)), Entry("b", (0, 3))])


def counted_twice() -> AggregateOperation[Any, Any, Any]:
    """Return the numbers of items of two inputs."""
    return AggregateOperation(new_pair, (count_left, count_right), add_pairs, finish=tuple)


def new_pair() -> list[int]:
    """Return no items."""
    return [0, 0]


def count_left(pair: list[int], item: object) -> None:
    """Count an item of the first input."""
    pair[0] += 1


def count_right(pair: list[int], item: object) -> None:
    """Count an item of the second input."""
    pair[1] += 1


def add_pairs(pair: list[int], other: list[int]) -> None:
    """Add what was counted elsewhere."""
    pair[:] = map(operator.add, pair, other)


def test_groups_are_those_of_plain_python(engine):
    """Words from vertices and from a source, in two inputs; also all of them, and lists in the order of each sender."""
    name, chance = f"combined-{uuid4().hex}", Random(5)
    words = [[f"{chance.choice('abcdef')}{chance.randrange(10)}" for _ in range(500)] for _ in range(2)]
    dag = DAG()
    left, right = (
        dag.new_vertex(side, processors.read(Items(some, 4))) for side, some in zip("lr", words, strict=True)
    )
    upper = dag.new_vertex("upper", processors.map(str.upper)).local_parallelism(2)
    both = processors.aggregate_by_key([whole_item, whole_item], counted_twice())
    counts = dag.new_vertex("counts", both).local_parallelism(3)
    places = dag.new_vertex("places", processors.aggregate_by_key([LAST_DIGIT], to_set())).local_parallelism(2)
    total = dag.new_vertex("total", processors.aggregate(counting())).local_parallelism(1)
    sinks = [dag.new_vertex(f"sink {n}", processors.write(to_ilist(f"{name}-{n}"))) for n in range(3)]
    dag.edge(Edge.between(left, upper)).edge(Edge.between(upper, counts).partitioned(whole_item))
    dag.edge(Edge.from_(right).to(counts, 1).partitioned(whole_item))
    dag.edge(Edge.from_(upper, 1).to(places).partitioned(LAST_DIGIT)).edge(Edge.from_(right, 1).to(total))
    for each, sink in zip((counts, places, total), sinks, strict=True):
        dag.edge(Edge.between(each, sink))
    job = engine.context.new_job(dag)
    job.join()

    one, other = Counter(word.upper() for word in words[0]), Counter(words[1])
    digits = defaultdict(set)
    for word in one:
        digits[word[-1]].add(word)
    found = [list(engine.context.get_list(f"{name}-{n}")) for n in range(3)]
    assert sorted(found[0]) == sorted((word, (one[word], other[word])) for word in {*one, *other})
    assert dict(found[1]) == digits
    assert found[2] == [500]
    assert job.metrics().stages["counts"].items_in_by_edge == (500, 500)
    assert job.metrics().stages["total"].items_in == 500


def test_a_failure_before_the_shuffle_names_the_vertex_and_the_item(engine):
    """Whoever runs its functions."""
    dag = DAG()
    numbers = dag.new_vertex("numbers", processors.read(Items(range(8), 2)))
    shares = processors.aggregate_by_key([share_of], counting())
    end = dag.new_vertex("shares", shares).local_parallelism(3)
    sink = dag.new_vertex("sink", processors.write(to_ilist(f"never-combined-{uuid4().hex}")))
    dag.edge(Edge.between(numbers, end).partitioned(share_of)).edge(Edge.between(end, sink))

    with pytest.raises(ZeroDivisionError) as caught:
        engine.context.new_job(dag).join()
    notes = " ".join(caught.value.__notes__)
    assert "vertex 'shares' at tests/engine/test_combining_edges.py" in notes
    assert "on the item 5" in notes


def share_of(number: int) -> float:
    """Return nothing for 5."""
    return 1 / (number - 5)
