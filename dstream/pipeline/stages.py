"""`AnyStage`, `FlowingStage`, `SinkStage`, `StageView`: the bases of all stages, and steps of processors.

A stage has two type parameters: its items, and whether these end, `Bounded` or `Unbounded`. No type checker can
express that `map` of a class makes the same class of other items, but each infers that `map` of a `Stage[T, B]` makes a
`Stage[U, B]`. So for type checkers `BatchStage[T]` is `Stage[T, Bounded]`, `StreamStage[T]` is `Stage[T, Unbounded]`,
and a method that one of both lacks has the type of the other one for `self`. In a running program they are two classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar, cast

from dstream.arguments import checked_function, kind_of, whole
from dstream.errors import IllegalStateError, SerializationError
from dstream.pipeline.arguments import checked_name, service_of, sink_of
from dstream.pipeline.stage_records import StageRecord
from dstream.plan import Node, call_site, called, describe
from dstream.plan.operations.calls import FlatMap, WithService
from dstream.plan.operations.elementwise import Action
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.processor_graph import GraphEdge, GraphVertex, Routing, VertexGraph
from dstream.plan.steps import SourceLocation, Step
from dstream.processors.blocks import users_items
from dstream.spi import ProcessorSink, Sink
from dstream.spi.suppliers import AnySupplier, meta_supplier
from dstream.stream import Stream
from dstream.stream.base import BaseStream
from dstream.stream.processors import OUTSIDE
from dstream.stream.runtime import ended

if TYPE_CHECKING:
    from dstream.pipeline.bounded import Stage
    from dstream.pipeline.builder import Pipeline
    from dstream.pipeline.unbounded import StreamStage

__all__ = [
    "AnyStage",
    "B",
    "Bounded",
    "Ended",
    "Endless",
    "FlowingStage",
    "Hinting",
    "SinkStage",
    "StageOf",
    "StageView",
    "Unbounded",
    "as_of_streams",
    "before_sink",
    "end_branch",
    "known_as",
    "placed",
    "transformed",
    "with_processors",
]


class Hinting:
    """A class whose errors suggest one of its names for one that it does not have."""

    __slots__ = ()

    if not TYPE_CHECKING:  # A type checker would take it for every name.

        def __getattr__(self, name: str) -> NoReturn:
            # imported lazily: only an unknown name needs it
            from dstream.suggestions.stages import no_such_name

            raise AttributeError(no_such_name(type(self), name))


class AnyStage(Hinting):
    """A stage of a pipeline: a handle by which it is named, changed, and read by later stages. Nothing runs."""

    __slots__ = ("_pipeline", "_record")

    def __init__(self, pipeline: Pipeline, record: StageRecord) -> None:
        self._pipeline = pipeline
        self._record = record

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that it is a stage of."""
        return self._pipeline

    @property
    def name(self) -> str:
        """The name, unique in the pipeline: as set, or the name of the method, followed by `-2`, `-3`."""
        return self._pipeline._name_of(self._record)

    def set_name(self, name: str) -> Self:
        """Set the name of the stage in plans, metrics and failures; return the stage.

        It also identifies the stage's state when a job is changed.

        Raises:
            IllegalStateError: another stage of the pipeline has that name.
            ValueError: the name is empty.
        """
        self._pipeline._rename(self._record, checked_name(name))
        return self

    def set_local_parallelism(self, n: int) -> Self:
        """Set the number of partitions in which the stage runs; return the same stage.

        A source is asked for that number of parts, and may have its own idea of them; other stages have their items
        spread first, which costs a shuffle. The local engine has one partition.

        Args:
            n: how many; -1 leaves it to the data and the cores.

        Raises:
            ValueError: `n` is neither -1 nor at least 1.
        """
        number = whole(n, "n")
        if number != -1 and number < 1:
            raise ValueError(f"n must be at least 1, or -1 for the default: {number}")
        # A stage that deals with the failures of another one runs as a part of it.
        self._record.step.parallelism = number
        return self

    def _check_same_pipeline(self, other: AnyStage, call: str) -> None:
        """Refuse a stage of another pipeline.

        Raises:
            IllegalStateError: it is one.
        """
        if other._pipeline is not self._pipeline:
            raise IllegalStateError(
                f"{call}() takes stages of one pipeline: {placed(self.name, self._record)} and "
                f"{placed(other.name, other._record)} belong to two; build both from one Pipeline()"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {describe(self._record.node)}>"

    def _stays_in_the_driver(self) -> str:
        """Explain why a function that runs on the workers cannot capture this, and the alternative."""
        return (
            "cannot be used inside a function that runs on the workers; join the stages, or let the function capture "
            "plain values"
        )

    def __reduce__(self) -> NoReturn:
        raise SerializationError(
            f"a stage {self._stays_in_the_driver()}: {self!r}; what travels as a whole is its pipeline"
        )


def placed(name: str, record: StageRecord) -> str:
    """Return how a message speaks of a stage: its name and the source location of the call that made it."""
    return f"the stage {name!r}" + (f" at {record.where}" if record.where else "")


class SinkStage(AnyStage):
    """The end of a branch that `write_to(sink)` returns: it has a name and a parallelism; no other stage reads it."""

    __slots__ = ()

    def __repr__(self) -> str:
        sink = self._record.sink
        return f"<SinkStage {self.name!r}: {'' if sink is None else sink.label}>"


def end_branch(pipeline: Pipeline, record: StageRecord) -> SinkStage:
    """Return the stage that ends a branch; processors give it their name."""
    stage = SinkStage(pipeline, record)
    if isinstance(record.sink, ProcessorSink):
        stage.set_name(
            record.sink.name
        )  # Before it is added: a stage whose name is refused must not be in the pipeline.
    pipeline._add(record)
    return stage


class StageView(Hinting):
    """A view of a stage by keys or windows. It is no stage: it has no name, and nothing runs for it."""

    __slots__ = ("_stage",)

    def __init__(self, stage: Any) -> None:
        self._stage = stage

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of its stage."""
        pipeline: Pipeline = self._stage.pipeline
        return pipeline

    @property
    def _node(self) -> Node:
        node: Node = self._stage._record.node
        return node

    def _step(self, kind: str, node: Node, others: Iterable[AnyStage] = ()) -> Any:
        return self._stage._step(kind, node, others)

    def _other(self, other: Any, call: str) -> Self:
        """Return the other view of an operation with this one.

        Raises:
            IllegalStateError: it belongs to another pipeline.
            TypeError: it is another kind of stage.
        """
        if not isinstance(other, type(self)):
            raise TypeError(f"{call}() of {self._called_by()}, not {kind_of(other)}")
        self._stage._check_same_pipeline(other._stage, call)
        return other

    def _called_by(self) -> str:
        """Return the words for the kinds that an operation takes, for an error."""
        return f"a {type(self).__name__} takes others of this kind"

    def _stays_in_the_driver(self) -> str:
        """Explain why a function that runs on the workers cannot capture this, and the alternative."""
        stays: str = self._stage._stays_in_the_driver()
        return stays

    def __reduce__(self) -> NoReturn:
        self._stage.__reduce__()
        raise AssertionError("a stage refuses to be pickled")


def transformed(
    upstream: Node, name: str, supplier: AnySupplier, called: str, key: Callable[[Any], Any] | None = None
) -> Node:
    """Return the output of a supplier's processors for the items of a node.

    Args:
        upstream: the node.
        name: the name of the stage.
        supplier: makes the processors.
        called: the method, as the user wrote it up to its arguments.
        key: items of equal keys are sent to one processor; None: each is sent to any.

    Raises:
        TypeError: the name is no str, or the supplier none.
        ValueError: the name is empty.
    """
    checked_name(name)
    where = call_site()
    vertex = GraphVertex(name, meta_supplier(supplier), -1, Step(f"vertex {name!r}", where, 1, 1))
    routing = Routing.UNICAST if key is None else Routing.PARTITIONED
    edges = GraphEdge(OUTSIDE, 0, name, 0, routing=routing, key=key), GraphEdge(name, 0, OUTSIDE, 0)
    graph = VertexGraph((vertex,), edges)
    blocks = ProcessorGraph(
        (upstream,), graph, stage=called, is_one_step=True, step=Step(f".{called}({name!r})", where)
    )
    return FlatMap(blocks, users_items, step=Step("", where))


def before_sink(node: Node, sink: Sink[Any, Any], where: SourceLocation | None) -> Node:
    """Return the input of a sink from a node: nothing, where its processors take the items before."""
    return ended(node, sink, None, "write_to", where)[0]


def known_as(node: ProcessorGraph, stage: str) -> ProcessorGraph:
    """Return the node under the name of its stage, which its one vertex takes too, as metrics are counted by it."""
    (vertex,) = node.graph.vertices
    edges = (
        dataclasses.replace(
            each,
            source=stage if each.source == vertex.name else each.source,
            destination=stage if each.destination == vertex.name else each.destination,
        )
        for each in node.graph.edges
    )
    graph = VertexGraph((dataclasses.replace(vertex, name=stage),), tuple(edges))
    return dataclasses.replace(node, graph=graph, stage=stage)


def with_processors(node: ProcessorGraph, count: int) -> ProcessorGraph:
    """Return the node with `count` processors."""
    vertices = tuple(dataclasses.replace(each, parallelism=count) for each in node.graph.vertices)
    return dataclasses.replace(node, graph=VertexGraph(vertices, node.graph.edges))


class Bounded:
    """Items that end, as a type parameter of stages. Nothing is a span of their time, as there is none."""


class Unbounded(Protocol):
    """Items without an end, as a type parameter of stages; an argument of this type is a span of time, as `ttl=` is."""

    def __abs__(self) -> Any:
        """Return its length: ints, floats and timedeltas have this."""


T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
B = TypeVar("B", bound=Bounded | Unbounded)
T_co = TypeVar("T_co", covariant=True)
B_co = TypeVar("B_co", covariant=True)
S = TypeVar("S", bound="AnyStage | StageView")


class StageOf(Protocol[T_co, B_co]):
    """A stage, for a type checker: one of tuples is one of entries too, where items are only read."""

    def _gives(self) -> Iterator[T_co]: ...
    def _ends(self) -> B_co: ...


class FlowingStage(AnyStage, Generic[T, B]):
    """A stage through which items flow."""

    __slots__ = ()

    _has_no_end = False

    if TYPE_CHECKING:
        _keyed: ClassVar[Callable[..., Any]]  # Makes the keyed stage of such a stage.

        def _gives(self) -> Iterator[T]: ...
        def _ends(self) -> B: ...
        def _as_stream(self) -> StreamStage[T]: ...  # The stage by which the source is run as a stream.

    def apply(self, fn: Callable[[Self], S]) -> S:
        """Return `fn(self)`: a named fragment of a pipeline.

        Args:
            fn: takes this stage and returns one of the same pipeline.

        Raises:
            IllegalStateError: the stage that `fn` returns belongs to another pipeline.
            TypeError: `fn` returns no stage.
        """
        made = checked_function(fn, "fn")(self)
        if not isinstance(made, AnyStage | StageView):
            raise TypeError(f"fn must return a stage, not {kind_of(made)}")
        self._check_same_pipeline(made._stage if isinstance(made, StageView) else made, "apply")
        return made

    def write_to(self, sink: Sink[T, Any]) -> SinkStage:
        """End this branch in a sink, such as `to_imap(...)`.

        Items that end are published when the job has ended, those without an end epoch by epoch. A job of several sinks
        writes all of them or none. Each sink object can be used once.

        Args:
            sink: a reducer, as for `collect` of streams.

        Raises:
            IllegalStateError: it is `to_processor(name, ...)`, and another stage has that name.
            TypeError: `sink` is none.
        """
        where = call_site()
        node = before_sink(self._record.node, sink_of(sink), where)
        return end_branch(self._pipeline, StageRecord("write_to", node, (self._record,), where, sink=sink))

    # How stages are made

    def _stream(self) -> Stream[T]:
        return Stream(self._record.node, None)

    def _made(self, kind: str, stream: BaseStream[U], *others: AnyStage) -> Stage[U, B]:
        """Return the stage that reads this one, and others, and ends where `stream` does."""
        return self._added(StageRecord(kind, stream._node, self._read_with(others), stream._node.step.where))

    def _with(self, call: str, other: Any, *args: Any, **named: Any) -> Stage[Any, B]:
        """Return the stage of the results of a method of streams for this stage and another one."""
        stage = self._other(other, call)
        return self._made(call, getattr(self._stream(), call)(stage._stream(), *args, **named), stage)

    def _step(
        self, kind: str, node: Node, others: Iterable[AnyStage] = (), late_to: Sink[Any, Any] | None = None
    ) -> Stage[Any, B]:
        """Return the stage that reads this one, and others, and ends in `node`; late items are written to a sink."""
        return self._added(StageRecord(kind, node, self._read_with(others), node.step.where, late_to=late_to))

    def _using(self, action: Action, service: Any, fn: Any) -> Stage[Any, B]:
        name, giver = f"{action}_using", service_of(service)
        return self._step(name, WithService(self._record.node, giver, fn, action, step=called(name, repr(giver), fn)))

    def _transformed(
        self, name: str, supplier: AnySupplier, called: str, key: Callable[[T], Any] | None = None
    ) -> Stage[Any, B]:
        """Return the named stage of the processors' output."""
        node = transformed(self._record.node, name, supplier, called, key)
        return self._added(StageRecord("custom_transform", node, (self._record,), node.step.where), name)

    def _added(self, record: StageRecord, name: str | None = None) -> Stage[Any, B]:
        """Return the stage of a record, of the same class as this one."""
        stage = type(self)(self._pipeline, record)
        if name is not None:
            stage.set_name(name)  # Before it is added: one with a name that is refused would end nowhere.
        self._pipeline._add(record)
        return cast("Stage[Any, B]", stage)

    def _read_with(self, others: Iterable[AnyStage]) -> tuple[StageRecord, ...]:
        return (self._record, *(other._record for other in others))

    def _others(self, others: Iterable[Any], call: str) -> list[Any]:
        """Return the other stages of an operation.

        Raises:
            IllegalStateError: one of them belongs to another pipeline.
            TypeError: one of them is no stage.
        """
        return [self._other(each, call) for each in others]

    def _other(self, other: Any, call: str) -> Any:
        if not isinstance(other, FlowingStage):
            raise TypeError(f"{call}() takes stages of this pipeline, not {_kind(other)}")
        self._check_same_pipeline(other, call)
        return other

    def _ending(self, other: Any, call: str) -> Any:
        """Return the other stage of an operation, whose items end.

        Raises:
            IllegalStateError: its items have no end.
        """
        stage = FlowingStage._other(self, other, call)
        if stage._has_no_end:
            raise IllegalStateError(
                f"{call}() takes stages whose items end beside it, and {stage.name!r} has no end: merge(...) of that "
                "stage takes those that do, too, and its hash_join(...) reads one beside it"
            )
        return stage

    def _unending(self, other: Any, call: str) -> Any:
        """Return the other stage of an operation, whose items have no end.

        Raises:
            IllegalStateError: its items end.
        """
        stage = FlowingStage._other(self, other, call)
        if not stage._has_no_end:
            raise IllegalStateError(
                f"{call}() takes stages without an end, and {stage.name!r} ends: add_timestamps(fn) runs it as one"
            )
        return stage


Ended: TypeAlias = FlowingStage[T, Bounded]
Endless: TypeAlias = FlowingStage[T, Unbounded]


# The caller determines the type of the items.
def as_of_streams(stage: Any, name: str, *args: Any) -> R:  # type: ignore[type-var]
    """Return the stage of the results of the method of streams of this name for the items of `stage`."""
    made: R = stage._made(name, getattr(stage._stream(), name)(*args))
    return made


def _kind(other: object) -> str:
    if isinstance(other, BaseStream):
        return "a stream, which belongs to a context: pipeline.read_from(source) makes a stage"
    return "None" if other is None else type(other).__name__
