"""`FlowingStage`: a stage through which items flow, whether they end or not, and how it makes the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from dstream.errors import IllegalStateError
from dstream.pipeline.any_stage import AnyStage
from dstream.pipeline.sink_stage import SinkStage, ended
from dstream.pipeline.stage_arguments import service_of, sink_of
from dstream.pipeline.stage_record import StageRecord
from dstream.pipeline.stage_view import StageView
from dstream.pipeline.transforming import before_sink, transformed
from dstream.plan import Node, call_site
from dstream.plan.nodes_of_stages import Action, Using
from dstream.spi import Sink
from dstream.spi.processor_suppliers import AnySupplier
from dstream.stream import Stream
from dstream.stream.base import BaseStream
from dstream.stream.stream_arguments import function, kind_of

__all__ = ["FlowingStage", "StageOf"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="AnyStage | StageView")


class StageOf(Protocol[T_co]):
    """A stage, for a type checker: one of tuples is one of entries too, where items are only read."""

    def _gives(self) -> Iterator[T_co]: ...


class FlowingStage(AnyStage, Generic[T]):
    """A stage through which items flow."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _gives(self) -> Iterator[T]: ...

    def apply(self, fn: Callable[[Self], S]) -> S:
        """Return `fn(self)`: a part of a pipeline under a name of its own.

        Args:
            fn: takes this stage and returns one of the same pipeline.

        Raises:
            IllegalStateError: the stage that `fn` returns belongs to another pipeline.
            TypeError: `fn` returns no stage.
        """
        made = function(fn, "fn")(self)
        if not isinstance(made, AnyStage | StageView):
            raise TypeError(f"fn must return a stage, not {kind_of(made)}")
        self._check_same_pipeline(made._stage if isinstance(made, StageView) else made, "apply")
        return made

    def write_to(self, sink: Sink[T, Any]) -> SinkStage:
        """End this branch in a sink, such as `to_imap(...)`.

        Items that end are there when the job has ended, those without an end epoch by epoch. A job of several sinks
        writes all of them or none. Each sink object can be used once.

        Args:
            sink: what streams call a reducer.

        Raises:
            IllegalStateError: it is `to_processor(name, ...)`, and another stage has that name.
            TypeError: `sink` is none.
        """
        where = call_site()
        node = before_sink(self._record.node, sink_of(sink), where)
        return ended(self._pipeline, StageRecord("write_to", node, (self._record,), where, sink=sink))

    # How stages are made

    def _stream(self) -> Stream[T]:
        return Stream(self._record.node, None)

    def _made(self, kind: str, stream: BaseStream[Any], *others: AnyStage) -> Any:
        """Return the stage that reads this one, and others, and ends where `stream` does."""
        return self._added(StageRecord(kind, stream._node, self._read_with(others), stream._node.where))

    def _step(
        self, kind: str, node: Node, others: Iterable[AnyStage] = (), late_to: Sink[Any, Any] | None = None
    ) -> Any:
        """Return the stage that reads this one, and others, and ends in `node`; what came too late goes to a sink."""
        return self._added(StageRecord(kind, node, self._read_with(others), node.where, late_to=late_to))

    def _using(self, action: Action, service: Any, fn: Any) -> Any:
        name = f"{action}_using"
        return self._step(name, Using(self._record.node, service_of(service), fn, action, name, where=call_site()))

    def _transformed(self, name: str, supplier: AnySupplier, called: str, key: Callable[[T], Any] | None = None) -> Any:
        """Return the stage of what processors make of the items, by a name of its own."""
        stage = self._step("custom_transform", transformed(self._record.node, name, supplier, called, key))
        return stage.set_name(name)

    def _added(self, record: StageRecord) -> Any:
        """Return the stage of a record, of the same class as this one."""
        self._pipeline._add(record)
        return type(self)(self._pipeline, record)

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

    _has_no_end = False


def _kind(other: object) -> str:
    if isinstance(other, BaseStream):
        return "a stream, which belongs to a context: pipeline.read_from(source) makes a stage"
    return "None" if other is None else type(other).__name__
