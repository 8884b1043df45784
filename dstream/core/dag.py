"""`DAG`: a graph of vertices and edges in topological order, as a value that any context runs."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from dstream.arguments import kind_of
from dstream.base.pickling import dumps
from dstream.core.vertices import Edge, Vertex
from dstream.pipeline.plan import PipelinePlan
from dstream.plan.processor_graph import GraphVertex, VertexGraph
from dstream.plan.steps import Step
from dstream.spi.processor import NamesOfJet
from dstream.spi.suppliers import AnySupplier

if TYPE_CHECKING:
    from dstream.explain.drawing import Drawing

__all__ = ["DAG", "in_topological_order", "refuse_gaps"]


def refuse_gaps(vertices: Iterable[Vertex], edges: Sequence[Edge]) -> None:
    """Refuse edges whose ordinals leave one out.

    Raises:
        ValueError: those into or out of a vertex do.
    """
    leaving: dict[str, list[tuple[int, Edge]]] = {}
    arriving: dict[str, list[tuple[int, Edge]]] = {}
    for each in edges:
        assert each.destination is not None
        leaving.setdefault(each.source.name, []).append((each.source_ordinal, each))
        arriving.setdefault(each.destination.name, []).append((each.destination_ordinal, each))
    for vertex in vertices:
        _refuse_gap(leaving.get(vertex.name, []), f"leave {vertex.name!r}")
        _refuse_gap(arriving.get(vertex.name, []), f"lead to {vertex.name!r}")


def _refuse_gap(numbered: list[tuple[int, Edge]], what: str) -> None:
    for expected, (number, edge) in enumerate(sorted(numbered, key=lambda each: each[0])):
        if number != expected:
            raise ValueError(
                f"{edge.described()}: no edge has ordinal {expected} of those that {what}: ordinals count from 0, and "
                "leave none out"
            )


def in_topological_order(vertices: Iterable[Vertex], edges: Sequence[Edge]) -> list[Vertex]:
    """Return the vertices so that each follows the sources of its edges; otherwise in their input order.

    Raises:
        ValueError: edges make a cycle; the message has its path.
    """
    below: dict[str, list[Vertex]] = {}
    for each in sorted(edges, key=lambda each: each.source_ordinal):
        assert each.destination is not None
        below.setdefault(each.source.name, []).append(each.destination)
    finished: dict[str, Vertex] = {}
    # Backwards, and the result backwards again: vertices without an order remain in the order in which they were added.
    for vertex in reversed(list(vertices)):
        _visit(vertex, below, finished)
    return list(reversed(finished.values()))


def _visit(root: Vertex, below: Mapping[str, Sequence[Vertex]], finished: dict[str, Vertex]) -> None:
    """Append the vertices below one to those that are finished, and then the vertex: from the end to the beginning."""
    if root.name in finished:
        return
    # Without recursion: a graph may be a longer chain than Python allows calls within calls.
    path = {root.name: root}
    pending = [iter(reversed(below.get(root.name, ())))]
    while pending:
        following = next(pending[-1], None)
        if following is None:
            name, vertex = path.popitem()
            finished[name] = vertex
            pending.pop()
        elif following.name in path:
            raise ValueError(f"the edges of this graph make a cycle: {_cycle(list(path), following.name)}")
        elif following.name not in finished:
            path[following.name] = following
            pending.append(iter(reversed(below.get(following.name, ()))))


def _cycle(path: Sequence[str], again: str) -> str:
    return " -> ".join([*path[path.index(again) :], again])


class DAG(NamesOfJet):
    """The processors that a job runs, and the edges by which items are sent between them.

    Building one starts nothing. It belongs to no context, travels pickled, and may run again, anywhere. A copy can be
    changed apart from it.

    Example:
        >>> from dstream.core import Edge, processors, whole_item
        >>> dag = DAG()
        >>> words = dag.new_vertex("words", processors.flat_map(str.split))
        >>> upper = dag.new_vertex("upper", processors.map(str.upper)).local_parallelism(2)
        >>> dag.edge(Edge.between(words, upper).partitioned(whole_item))
        DAG with 2 vertices
          words
          upper  local_parallelism=2
            from words(0) to upper(0), partitioned by whole_item
    """

    __slots__ = ("_edges", "_vertices")

    def __init__(self) -> None:
        self._vertices: dict[str, Vertex] = {}
        self._edges: list[Edge] = []

    # Building

    def new_vertex(self, name: str, supplier: AnySupplier) -> Vertex:
        """Make a vertex, add it, and return it.

        Args:
            name: unique in this graph.
            supplier: a function that makes a processor, such as a class of processors, or what
                `dstream.core.processors` has; or a `ProcessorSupplier`; or a `ProcessorMetaSupplier`.

        Raises:
            TypeError: the name is no str, or the supplier is none.
            ValueError: another vertex has this name, or it is empty.
        """
        made = Vertex(name, supplier)
        self.vertex(made)
        return made

    def vertex(self, vertex: Vertex) -> Self:
        """Add a vertex, and return this graph.

        Raises:
            TypeError: it is none.
            ValueError: a vertex has its name.
        """
        if not isinstance(vertex, Vertex):
            raise TypeError(f"vertex() takes a Vertex, not {kind_of(vertex)}: new_vertex(name, supplier) makes one")
        other = self._vertices.get(vertex.name)
        if other is not None:
            raise ValueError(f"{_described(other)} is in this graph already: names of vertices are unique")
        self._vertices[vertex.name] = vertex
        return self

    def edge(self, edge: Edge) -> Self:
        """Add an edge between two vertices of this graph, and return this graph.

        Raises:
            TypeError: it is no edge.
            ValueError: it leads nowhere, to where it begins, or from or to a vertex that is not in this graph; or its
                vertices have an edge between them, or one of them has another edge of this ordinal; or processors of
                the destination take fewer edges.
        """
        if not isinstance(edge, Edge):
            raise TypeError(f"edge() takes an Edge, such as Edge.between(words, counts), not {kind_of(edge)}")
        if edge.destination is None:
            raise ValueError(f"{edge.described()} has no destination: to(vertex) gives it one")
        self._check_own(edge, edge.source)
        self._check_own(edge, edge.destination)
        if edge.source is edge.destination:
            raise ValueError(f"{edge.described()} leads to the vertex that it leaves")
        _check_inputs(edge, edge.destination)
        for other in self._edges:
            _refuse_both(edge, other)
        self._edges.append(edge)
        return self

    def _check_own(self, edge: Edge, vertex: Vertex) -> None:
        own = self._vertices.get(vertex.name)
        if own is None:
            raise ValueError(f"{edge.described()}: {_described(vertex)} is not in this graph: new_vertex() or vertex()")
        if own is not vertex:
            raise ValueError(
                f"{edge.described()}: {_described(vertex)} is not in this graph, which has another one of that name"
                f"{_location(own)}"
            )

    # Looking at it

    def get_vertex(self, name: str) -> Vertex | None:
        """Return the vertex of a name; None if there is none."""
        return self._vertices.get(name)

    def inbound_edges(self, name: str) -> list[Edge]:
        """Return the edges that lead to a vertex, by their ordinals.

        Raises:
            ValueError: there is no such vertex.
        """
        self._check_known(name)
        found = (each for each in self._edges if each.destination is not None and each.destination.name == name)
        return sorted(found, key=lambda each: each.destination_ordinal)

    def outbound_edges(self, name: str) -> list[Edge]:
        """Return the edges that leave a vertex, by their ordinals.

        Raises:
            ValueError: there is no such vertex.
        """
        self._check_known(name)
        return sorted((each for each in self._edges if each.source.name == name), key=lambda each: each.source_ordinal)

    def _check_known(self, name: str) -> None:
        if name not in self._vertices:
            known = ", ".join(map(repr, self._vertices)) or "none"
            raise ValueError(f"there is no vertex {name!r} in this graph; there are: {known}")

    def validate(self) -> None:
        """Check the properties of a complete graph; a job does this.

        Raises:
            ValueError: there is no vertex, the ordinals of the edges into or out of a vertex leave one out, or edges
                make a cycle.
        """
        iter(self)

    def __iter__(self) -> Iterator[Vertex]:
        """Return the vertices in topological order; those without an order are in the order in which they were added.

        Raises:
            ValueError: the graph is not valid.
        """
        if not self._vertices:
            raise ValueError("this graph has no vertices: new_vertex(name, supplier) adds one")
        refuse_gaps(self._vertices.values(), self._edges)
        return iter(in_topological_order(self._vertices.values(), self._edges))

    def graph(self) -> VertexGraph:
        """Return the graph for an engine: all vertices and edges as values, independent of later changes.

        Raises:
            ValueError: the graph is not valid, or an edge leads to a vertex that is endless.
        """
        vertices = list(self)
        for each in self._edges:
            if each.destination is not None and each.destination.is_endless:
                raise ValueError(
                    f"{each.described()}: {_described(each.destination)} is endless(), which is for vertices to which "
                    "no edge leads; whether other vertices end is decided by those before them"
                )
        total = len(vertices)
        return VertexGraph(
            tuple(
                GraphVertex(
                    each.name,
                    each.supplier,
                    each.parallelism,
                    Step(f"vertex {each.name!r}", each.where, number, total),
                    each.is_endless,
                )
                for number, each in enumerate(vertices, start=1)
            ),
            tuple(each.as_value() for each in self._edges),
        )

    def plan(self) -> PipelinePlan:
        """Return the plan that a job runs, independent of later changes.

        Raises:
            UnsupportedError: no engine runs such a graph.
            ValueError: the graph is not valid.
        """
        from dstream.core.plan import plan_of_graph

        return plan_of_graph(self.graph())

    @overload
    def explain(self, format: Literal["text"] = "text", *, routes: bool = False) -> None: ...

    @overload
    def explain(self, format: Literal["dot", "mermaid", "svg", "html"], *, routes: bool = False) -> Drawing: ...

    def explain(self, format: str = "text", *, routes: bool = False) -> Drawing | None:
        """Explain in which stages the graph would run, where items are shuffled and why. Nothing runs or starts.

        It is explained for the default context, or for the one that `connect()` would make.

        Args:
            format: `"text"` prints; `"dot"`, `"mermaid"`, `"svg"` and `"html"` return a drawing, which is
                a str; a notebook shows the last two.
            routes: whether to explain why each function is called for each item.

        Raises:
            UnsupportedError: no engine runs such a graph.
            ValueError: the graph is not valid, or there is no such format.
        """
        from dstream.pipeline.plan import explained_in

        return explained_in(format, self.plan, routes=routes)

    def __repr__(self) -> str:
        return _as_lines(list(self._vertices.values()), self._edges)

    def to_dot(self) -> str:
        r"""Return the graph in the language of Graphviz: a box for each vertex, and edges with their options.

        Example:
            >>> from dstream.core import DAG, Edge, processors
            >>> dag = DAG()
            >>> a, b = dag.new_vertex("a", processors.noop()), dag.new_vertex("b", processors.noop())
            >>> print(dag.edge(Edge.between(a, b).broadcast()).to_dot().splitlines()[-2].strip())
            v0 -> v1 [label="0 to 0\lbroadcast\l"];
        """
        return _as_digraph(list(self._vertices.values()), self._edges)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the vertices and edges, and the picture of the plan unless nothing can run."""
        import html

        try:
            below = str(self.explain("html"))
        except Exception as error:
            below = f"<pre>{html.escape(f'{type(error).__name__}: {error}')}</pre>"
        return f"<pre>{html.escape(repr(self))}</pre>\n{below}"

    # Copies

    def __copy__(self) -> Self:
        made = type(self)()
        memo: dict[int, Any] = {}
        made._vertices = {name: copy.deepcopy(each, memo) for name, each in self._vertices.items()}
        for each in self._edges:
            edge = copy.copy(each)
            # The copies that are in the graph: edges and vertices are compared by identity.
            edge.source = memo[id(each.source)]
            edge.destination = memo[id(each.destination)]
            made._edges.append(edge)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (dumps((list(self._vertices.values()), self._edges)),)


def _unpickled(state: bytes) -> DAG:
    made = DAG()
    vertices, edges = pickle.loads(state)
    made._vertices = {each.name: each for each in vertices}
    made._edges = edges
    return made


def _check_inputs(edge: Edge, destination: Vertex) -> None:
    inputs = destination.supplier.inputs
    if inputs is not None and edge.destination_ordinal >= inputs:
        takes = "one inbound edge" if inputs == 1 else f"{inputs} inbound edges"
        raise ValueError(
            f"{edge.described()}: {destination.supplier!r} takes {takes}, and this is number "
            f"{edge.destination_ordinal + 1}: lead all edges to a vertex of processors.map(...) before it, or give it "
            "an operation of more inputs"
        )


def _refuse_both(edge: Edge, other: Edge) -> None:
    """Refuse an edge that cannot be in one graph with another one."""
    if edge is other:
        raise ValueError(f"{edge.described()} is in this graph already")
    if edge.source is other.source and edge.destination is other.destination:
        raise ValueError(
            f"{edge.described()}: there is an edge between these two vertices, {other.described()}: a vertex between "
            "them, such as one of processors.map(...), makes a second way"
        )
    if edge.source is other.source and edge.source_ordinal == other.source_ordinal:
        raise ValueError(
            f"{edge.described()}: ordinal {edge.source_ordinal} of what leaves {edge.source.name!r} is taken by "
            f"{other.described()}{_advice(edge.source_ordinal)}"
        )
    if edge.destination is None:
        return
    if edge.destination is other.destination and edge.destination_ordinal == other.destination_ordinal:
        raise ValueError(
            f"{edge.described()}: ordinal {edge.destination_ordinal} of what leads to {edge.destination.name!r} is "
            f"taken by {other.described()}{_advice(edge.destination_ordinal)}"
        )


def _advice(ordinal: int) -> str:
    return "; Edge.from_(vertex, ordinal).to(vertex, ordinal) says other ones" if ordinal == 0 else ""


def _described(vertex: Vertex) -> str:
    return f"vertex {vertex.name!r}{_location(vertex)}"


def _location(vertex: Vertex) -> str:
    return f" at {vertex.where}" if vertex.where else ""


def _as_lines(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """Return how many vertices there are, and a line for each, with the edges that lead to it below."""
    count = f"DAG with {len(vertices)} {'vertex' if len(vertices) == 1 else 'vertices'}"
    return "\n".join([count, *_lines(vertices, edges)])


def _lines(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> Iterator[str]:
    for vertex in vertices:
        yield "  ".join(["", vertex.name, *vertex.said()])
        inbound = (each for each in edges if each.destination is vertex)
        for edge in sorted(inbound, key=lambda each: each.destination_ordinal):
            source = f"from {edge.source.name}({edge.source_ordinal}) to {vertex.name}({edge.destination_ordinal})"
            yield f"    {', '.join([source, *edge.how()])}"


def _as_digraph(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """Return a digraph: a box for each vertex, and an edge for each edge, with its options."""
    from dstream.explain.text import quoted  # imported lazily: it loads the code of all drawings

    numbers = {id(each): number for number, each in enumerate(vertices)}
    lines = ["rankdir=TB;", 'node [shape=box, fontname="monospace"];']
    for number, vertex in enumerate(vertices):
        tooltip = str(vertex.where or vertex.name)
        lines.append(f"v{number} [label={quoted(vertex.name, *vertex.said())}, tooltip={quoted(tooltip)}];")
    for edge in edges:
        ends = f"v{numbers[id(edge.source)]} -> v{numbers[id(edge.destination)]}"
        ordinals = f"{edge.source_ordinal} to {edge.destination_ordinal}"
        lines.append(f"{ends} [label={quoted(ordinals, *edge.how())}];")
    return "\n".join(["digraph dstream {", *(f"  {line}" for line in lines), "}"])
