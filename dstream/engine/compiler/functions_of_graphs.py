"""Functions in graphs of processors: called for each item, whatever they do, and named with their vertices."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dstream.engine.compiler.called_functions import is_ours
from dstream.engine.compiler.compiling import Facts
from dstream.engine.graph.decided import Decided
from dstream.plan.vertex_graph import GraphEdge, VertexGraph
from dstream.spi import AggregateOperation, Collector
from dstream.spi.processor_suppliers import ProcessorMetaSupplier, ProcessorSupplier

__all__ = ["called_in_graph"]


def called_in_graph(graph: VertexGraph, facts: Facts) -> tuple[Decided, ...]:
    """Return what is decided of the functions of a graph, or of a part of one; nothing if none is read."""
    if not facts.reads_functions:
        return ()
    return tuple(Decided(name, obstacle="processors take items one by one") for name in dict.fromkeys(_names(graph)))


def _names(graph: VertexGraph) -> Iterator[str]:
    for vertex in graph.vertices:
        yield from (f"{name} of {vertex.name!r}" for name in dict.fromkeys(_of_maker(vertex.supplier)))
    for edge in graph.edges:
        if edge.source in graph.names or not edge.carries_blocks:  # Otherwise the part before this one routes.
            yield from (f"{name} of {edge.source!r} -> {edge.destination!r}" for name in _of_edge(edge))


def _of_edge(edge: GraphEdge) -> Iterable[str]:
    functions = {"key": edge.key, "partitioner": edge.partitioner, "order": edge.order}
    return (name for name, fn in functions.items() if fn is not None and not is_ours(fn))


def _of_maker(made: Any) -> Iterator[str]:
    """Give the names of the functions of what makes processors: a supplier, or a function."""
    given = _given(made)
    if given is None:
        yield "processor"  # The user has written it.
        return
    if "kind" in given:  # That names the function.
        given = _given(functools.partial(given["kind"], given["fn"])) or {}
    for name, value in given.items():
        if isinstance(value, ProcessorSupplier | ProcessorMetaSupplier) or _is_made_by(made, name):
            yield from _of_maker(value)
        elif name not in _NOT_OF_ITEMS:
            yield from _names_in(name, value)


def _is_made_by(made: Any, name: str) -> bool:
    return name == "create" and isinstance(made, ProcessorSupplier | ProcessorMetaSupplier)


def _given(value: Any) -> Mapping[str, Any] | None:
    """Return what one of ours was made of, by name; None: the user's own."""
    if isinstance(value, functools.partial) and is_ours(value.func):
        return inspect.signature(value.func).bind_partial(*value.args, **value.keywords).arguments
    if not is_ours(value):
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}


def _names_in(name: str, value: Any) -> Iterator[str]:
    """Give the names of the functions in what a processor of ours was made of."""
    if isinstance(value, Collector):
        yield from (each for each, _ in value.functions)
    elif isinstance(value, AggregateOperation):
        yield from _names_in("accumulate", value.accumulates)
    elif isinstance(value, tuple):
        for each in value:
            yield from _names_in(name, each)
    elif callable(value) and _given(value) is None:
        yield name
    else:
        for inner, each in (_given(value) or {}).items():
            if inner not in _NOT_OF_ITEMS:
                yield from _names_in(inner, each)


_NOT_OF_ITEMS = frozenset(
    {"clock", "create", "destroy", "emission", "flush", "groups", "policy", "service", "two_stages", "window"}
)
"""What makes a state, tells the time, or is there for others."""
