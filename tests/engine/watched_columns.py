"""What is said of the functions of a stream against what runs: which expressions tasks evaluate over columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from dstream.engine.compiler import ClusterFacts
from dstream.engine.physical.vertices import Input, Splits, StageCall
from dstream.engine.tasks.gatherers import Bordering
from dstream.expressions import Argument, Called, Constant, Indexed
from dstream.operators.columns import chain_evaluation, collectors, ranks, top
from dstream.operators.joins import columns as joins
from dstream.operators.rows.keys import Side
from dstream.plan import Collect, ToList, called, rewrite
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.streams import Node
from dstream.plan.steps import KeyInColumns
from dstream.session.connection import stages_on
from dstream.spi import Collector, InColumns
from dstream.stream import Stream
from tests.engine.graphs_here import GraphHere

__all__ = ["Watched", "check"]

_FIRST_PARTS = Indexed(Argument(0), Constant(0))


class Watched:
    """The expressions that were evaluated over columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen: dict[int, Any] = {}
        for module in (chain_evaluation, collectors, joins, ranks, top):
            monkeypatch.setattr(module, "evaluated", functools.partial(self._evaluated, module.evaluated))

    def _evaluated(self, evaluated: Callable[..., Any], expression: Any, columns: Any) -> Any:
        found = evaluated(expression, columns)
        self._seen[id(expression)] = expression
        return found

    def begin(self) -> None:
        """Forget all: a function that is read twice may be the same expression."""
        self._seen.clear()

    def has_method(self) -> bool:
        """Say whether a method of items was among them."""
        of_class = (each for seen in self._seen.values() for each in seen.walk() if isinstance(each, Called))
        return any(each.function == "dstream.is_of" for each in of_class)

    def has(self, expression: Any) -> bool:
        """Say whether an expression was among them; the keys of pairs are found by one that a task makes."""
        return id(expression) in self._seen or (expression == _FIRST_PARTS and expression in self._seen.values())


def ran(graph: GraphHere, watched: Watched) -> dict[str, bool]:
    """Return for each function that some task ran whether it ran over columns, by the call."""
    found: dict[str, bool] = {}

    def note(label: str, expressions: Any) -> None:
        # A collector runs over columns if all of its functions do.
        found[label] = found.get(label, False) or any(all(map(watched.has, each)) for each in expressions)

    for vertex in graph.ran:
        for applied in chain.from_iterable(map(_applied, vertex.inputs)):
            if isinstance(applied.node, Chain):
                for op, decided in zip(applied.node.ops, applied.decided, strict=True):
                    if decided is not None and op.step.label:  # Others are shown nowhere.
                        note(op.step.label, [[op.evaluation.expression]])
            elif applied.decided:
                note(applied.node.label(), _expressions(getattr(applied.operation, "args", ())))
        if vertex.decided:
            note(vertex.step.label, _expressions(vars(vertex.output).values()))
    return found


def _applied(each: Input) -> Iterator[StageCall]:
    """Give what is applied to an input, and to what it is made of."""
    for part in each.parts if isinstance(each, Splits) else ():
        if isinstance(part, Splits):
            yield from _applied(part)
    yield from each.applied


def _expressions(values: Any) -> Iterator[Any]:
    for value in values:
        match value:
            case Bordering(sink=sink):
                yield from _expressions(vars(sink).values())
            case Side(in_columns=KeyInColumns(expression)):
                yield [expression]
            case KeyInColumns(expression):
                yield [expression]
            case Collector(in_columns=InColumns() as known):
                yield list(_of(known))


def _of(known: InColumns) -> Iterator[Any]:
    for part in known.parts:
        yield from _of(part)
    if known.is_filtered and not known.parts:
        yield known.condition
    is_evaluated = known.finds != "count" or any(action == "map" for action, _ in known.before)
    if is_evaluated and not known.parts:
        yield known.expression
    if known.downstream is not None:
        yield from _of(known.downstream)


def said(node: Node, into: Any) -> dict[str, list[str]]:
    """Return what is said of the functions of each call."""
    found: dict[str, list[str]] = {}
    for stage in stages_on(2, node, into).stages:
        for call in stage.calls:
            if call.why:
                found.setdefault(call.label, []).append(call.note)
    return found


def check(stream: Stream[Any], watched: Watched, into: Any = None) -> dict[str, list[str]]:
    """Run a stream, and compare what is said of each function with what ran over columns."""
    node = stream._node
    end = rewrite(ToList(node) if into is None else Collect(node, into, step=called("collect", into.name or "...")))
    graph = GraphHere(end, ClusterFacts(2, 2, 2**22))
    watched.begin()
    graph.run()
    notes, columns = said(node, into), ran(graph, watched)
    assert notes.keys() == columns.keys()
    for label, is_in_columns in columns.items():
        assert is_in_columns in as_said(notes[label]), (label, notes[label], stream)
    return notes


def as_said(notes: list[str]) -> set[bool]:
    """Return whether a function runs over columns somewhere, as notes say: both if that depends on the items."""
    says = set(map(says_columns, notes))
    return {True} if True in says else {False, True} if None in says else {False}


_OPEN = ("inlined", "Python", "more than one partition", "each item has a partner", "values repeat")


def says_columns(note: str) -> bool | None:
    """Say whether a note says that a function runs over columns; None if that depends on what only a run can tell."""
    says = "columns" in note.replace("columns do not", "")
    is_open = any(part in note for part in _OPEN)
    return None if says and is_open else says
