"""Graphs, processors and traversers; two type checkers read this file, nothing runs it."""

from __future__ import annotations

from typing import assert_type

from dstream.core import (
    DAG,
    AbstractProcessor,
    AppendableTraverser,
    Edge,
    EdgeConfig,
    FlatMapper,
    Processor,
    ResettableSingletonTraverser,
    Traverser,
    Vertex,
    force_total_parallelism_one,
    lazy,
    processor_of,
    processors,
    traverse,
    whole_item,
)


def graphs(dag: DAG) -> None:
    """Calls chain."""
    vertex = dag.new_vertex("v", processors.map(lambda n: n + 1))
    assert_type(vertex, Vertex)
    assert_type(vertex.local_parallelism(2).endless(), Vertex)
    assert_type((vertex.is_endless, vertex.said()), tuple[bool, list[str]])
    assert_type(dag.vertex(Vertex("w", force_total_parallelism_one(Processor))), DAG)
    assert_type(dag.edge(Edge.between(vertex, vertex).partitioned(whole_item).distributed()), DAG)
    assert_type(Edge.from_(vertex, 1).to(vertex, 2).priority(1).set_config(EdgeConfig(queue_size=2)), Edge)
    assert_type(dag.get_vertex("v"), Vertex | None)
    assert_type(dag.inbound_edges("v"), list[Edge])
    assert_type([each.name for each in dag], list[str])
    assert_type(dag.to_dot(), str)
    dag.new_vertex("g", processor_of(lambda ordinal, items: (item for item in items)))


def traversers(words: Traverser[str]) -> None:
    """The items of lambdas are known."""
    assert_type(words.next(), str | None)
    assert_type(words.map(lambda word: len(word)), Traverser[int])
    assert_type(words.map(lambda word: len(word) or None), Traverser[int])
    assert_type(words.filter(lambda word: word.islower()).append("x").prepend("y"), Traverser[str])
    assert_type(words.flat_map(lambda word: [len(word)]), Traverser[int])
    assert_type(words.take_while(str.islower).drop_while(str.isupper).peek(print), Traverser[str])
    assert_type(words.on_first_none(lambda: None), Traverser[str])
    assert_type([word.upper() for word in words], list[str])
    assert_type(traverse([1, 2]), Traverser[int])
    assert_type(lazy(lambda: [1.5]), Traverser[float])
    assert_type(AppendableTraverser[int]().add(1), AppendableTraverser[int])
    assert_type(ResettableSingletonTraverser[int]().next(), int | None)


class Lengths(AbstractProcessor):
    """What a processor of users' own looks like."""

    def try_process(self, ordinal: int, item: str) -> bool:
        """Emit the length."""
        mapper: FlatMapper[str] = self.flat_mapper(lambda word: [len(word)])
        assert_type(mapper.try_process(item), bool)
        return self.try_emit(len(item), to=[0]) and self.emit_from_traverser(iter([1]))


def mapping(processor: AbstractProcessor) -> None:
    """A flat mapper takes what its function takes."""
    assert_type(processor.flat_mapper(str.split), FlatMapper[str])
    lines: FlatMapper[str] = processor.flat_mapper(lambda line: traverse(line.split()).map(lambda word: word.upper()))
    numbers: FlatMapper[int] = processor.flat_mapper(lambda n: (half for half in (n // 2, n.bit_length())), to=[1])
    assert_type((lines, numbers), tuple[FlatMapper[str], FlatMapper[int]])
