"""`Pipeline`: stages from sources to sinks, built step by step, printed, drawn, and run as a job."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from dstream.arguments import kind_of
from dstream.base.pickling import dumps
from dstream.errors import IllegalStateError
from dstream.explain.drawing import graph_as_written
from dstream.failures import shown
from dstream.pipeline.arguments import named_source, sink_of
from dstream.pipeline.bounded import BatchStage
from dstream.pipeline.plan import PipelinePlan, explained_in
from dstream.pipeline.planning import planned
from dstream.pipeline.stage_records import StageRecord, copied, flattened, names_of, restored
from dstream.pipeline.stages import FlowingStage, Hinting, SinkStage, before_sink, end_branch, placed
from dstream.pipeline.unbounded import StreamStage
from dstream.plan import Node, Read, SourceLocation, Step, Union, call_site
from dstream.plan.stages import Call, Exchange, Stage, Stages
from dstream.plan.timestamps import StreamRead
from dstream.spi import ProcessorSource, ProcessorStreamSource, Sink, Source, StreamSource
from dstream.stream.processors import emitted
from dstream.stream.runtime import delivery_of

if TYPE_CHECKING:
    from dstream.explain.drawing import Drawing

__all__ = ["Pipeline", "as_graph", "as_lines"]


def as_lines(records: Sequence[StageRecord]) -> str:
    """Return how many stages there are, and the name and the call of each."""
    names = names_of(records)
    width = max(map(len, names.values()), default=0)
    return "\n".join(
        [_title(records), *(f"  {names[id(each)].ljust(width)}  {_call(each, names)}" for each in records)]
    )


def as_graph(records: Sequence[StageRecord]) -> Stages:
    """Return the graph of the stages, each with its name and its call, and an edge from each that it reads."""
    names = names_of(records)
    numbers = {id(each): number for number, each in enumerate(records)}
    stages = [
        Stage(
            (Call(_written(each), each.where),),
            tuple(Exchange(numbers[id(above)], "written") for above in each.upstreams),
            name=names[id(each)],
        )
        for each in records
    ]
    return graph_as_written(_title(records), stages)


def _title(records: Sequence[StageRecord]) -> str:
    return f"Pipeline with {len(records)} stage{'' if len(records) == 1 else 's'}"


def _call(record: StageRecord, names: Mapping[int, str]) -> str:
    """Return the call that made a stage, on the name of the stage that it was made of."""
    label = _written(record)
    above = [names[id(each)] for each in record.upstreams]
    others = f"  with {', '.join(above[1:])}" if len(above) > 1 else ""
    return f"{above[0] if above else ''}{label}{others}"


def _written(record: StageRecord) -> str:
    """Return the call that made a stage."""
    if record.sink is not None:
        return f".write_to({record.sink.label})"
    node = record.node
    while not node.label():
        node = node.inputs()[0]
    return node.label()


T = TypeVar("T")


class Pipeline(Hinting):
    """A value that describes a job: its sources, its operations, and its sinks.

    Building one starts nothing. It belongs to no context, travels pickled, and may run again, anywhere:
    `ctx.new_job(pipeline)` takes a copy, so that the pipeline may still be changed.

    Example:
        >>> from collectors import counting
        >>> from reducers import to_imap
        >>> from sources import Items
        >>> pipeline = Pipeline()
        >>> words = pipeline.read_from(Items(["sea", "whale", "sea"]))
        >>> words.grouping_key(str.upper).aggregate(counting()).write_to(to_imap("counts"))
        <SinkStage 'write_to': to_imap('counts')>
        >>> pipeline
        Pipeline with 3 stages
          read_from  read_from(Items(['sea', 'whale', 'sea'], partitions=None))
          aggregate  read_from.grouping_key(str.upper).aggregate(counting())
          write_to   aggregate.write_to(to_imap('counts'))
    """

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: list[StageRecord] = []

    # Building

    @overload
    def read_from(self, source: Source[T] | ProcessorSource[T], name: str | None = None) -> BatchStage[T]: ...

    @overload
    def read_from(
        self, source: StreamSource[T] | ProcessorStreamSource[T], name: str | None = None
    ) -> StreamStage[T]: ...

    def read_from(self, source: Any, name: str | None = None) -> BatchStage[Any] | StreamStage[Any]:
        """Begin with the items of a source; items that several stages need are read once.

        Args:
            source: such as `text_files(...)` or `imap(...)`, whose items end; or such as `watch_files(...)` or
                `imap_journal(...)`, whose items do not, and which a job reads epoch by epoch.
            name: the name of the stage, as for `set_name`; unset, that of the processors, if the source has any.

        Raises:
            IllegalStateError: another stage has that name.
            TypeError: `source` is no source.
            ValueError: the name is empty.
        """
        where = call_site()
        record = StageRecord("read_from", _read(source, where), where=where)
        is_endless = isinstance(source, StreamSource | ProcessorStreamSource)
        stage = StreamStage[Any](self, record) if is_endless else BatchStage[Any](self, record)
        if name is None and isinstance(source, ProcessorSource | ProcessorStreamSource):
            name = source.name
        if name is not None:
            stage.set_name(name)  # Set first: a refused name must not leave a source without a sink in the pipeline.
        self._add(record)
        return stage

    def write_to(self, sink: Sink[T, Any], *stages: BatchStage[T] | StreamStage[T]) -> SinkStage:
        """End the branches of several stages in one sink, which gets the items of all of them, in any order.

        Args:
            sink: such as `to_imap(...)`.
            stages: one at least, of this pipeline.

        Raises:
            IllegalStateError: a stage belongs to another pipeline.
            TypeError: there is no stage, or `sink` is no sink.
        """
        sink_of(sink)
        for each in stages:
            if not isinstance(each, FlowingStage):
                raise TypeError(f"write_to() takes a sink and stages, not {kind_of(each)}")
            self._check_own(each)
        if not stages:
            raise TypeError("write_to() takes a sink and at least one stage: pipeline.write_to(sink, stage)")
        if len(stages) == 1:
            return stages[0].write_to(sink)
        where, records = call_site(), tuple(each._record for each in stages)
        node = before_sink(Union(tuple(record.node for record in records), step=Step(where=where)), sink, where)
        return end_branch(self, StageRecord("write_to", node, records, where, sink=sink))

    def _check_own(self, stage: FlowingStage[Any, Any]) -> None:
        if stage.pipeline is not self:
            raise IllegalStateError(
                f"{placed(stage.name, stage._record)} belongs to another pipeline: stages of one pipeline go together"
            )

    def is_empty(self) -> bool:
        """Return whether the pipeline has no stage yet."""
        return not self._records

    # Running

    def plan(self) -> PipelinePlan:
        """Return the plan of a job: a copy, which later changes of the pipeline leave as it is.

        Raises:
            IllegalStateError: nothing is read, a stage ends nowhere, or a sink is used twice.
            UnsupportedError: the input of a sink never ends.
        """
        return planned(self._records)

    @overload
    def explain(self, format: Literal["text"] = "text", *, routes: bool = False) -> None: ...

    @overload
    def explain(self, format: Literal["dot", "mermaid", "svg", "html"], *, routes: bool = False) -> Drawing: ...

    def explain(self, format: str = "text", *, routes: bool = False) -> Drawing | None:
        """Explain in which stages the pipeline would run, where items are shuffled and why. Nothing runs or starts.

        It is explained for the default context, or for the one that `connect()` would make.

        Args:
            format: `"text"` prints; `"dot"`, `"mermaid"`, `"svg"` and `"html"` return a drawing, which is
                a str; a notebook shows the last two.
            routes: whether to explain why each function runs as columns, inlined or as Python, and what to write
                instead where that is easy.

        Raises:
            IllegalStateError: the pipeline is not complete.
            UnsupportedError: the engine does not run such a pipeline.
            ValueError: there is no such format.
        """
        return explained_in(format, self.plan, routes=routes)

    @overload
    def draw(self, format: Literal["text"] = "text") -> None: ...

    @overload
    def draw(self, format: Literal["dot", "mermaid", "svg", "html"]) -> Drawing: ...

    def draw(self, format: str = "text") -> Drawing | None:
        """Draw the stages as they were written: the name and the call of each, and which stages it reads.

        Nothing runs or starts, and the pipeline need not be complete. `explain()` draws what runs instead.

        Args:
            format: as `explain` takes it; `"text"` prints.

        Raises:
            ValueError: there is no such format.

        Example:
            >>> from reducers import to_ilist
            >>> from sources import Items
            >>> pipeline = Pipeline()
            >>> words = pipeline.read_from(Items(["sea", "whale"])).map(str.upper)
            >>> words.write_to(to_ilist("words"))
            <SinkStage 'write_to': to_ilist('words')>
            >>> print(pipeline.draw("mermaid"))
            %% Pipeline with 3 stages
            flowchart TD
              s0["read_from<br/>read_from..."]
              s1["map<br/>.map...
              s0 --> s1
              s2["write_to<br/>.write_to...
              s1 --> s2
        """
        from dstream.explain.drawing import show

        return show(lambda: as_graph(self._records), format)

    # Looking at it, copying it

    def __repr__(self) -> str:
        return as_lines(self._records)

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows; a pipeline that cannot be drawn shows its stages."""
        import html

        try:
            return self.explain("html")
        except Exception as error:
            stages = html.escape(f"{self!r}\n\n{type(error).__name__}: {error}")
            return f"<pre>{stages}</pre>"

    def __copy__(self) -> Self:
        made = type(self)()
        made._records = copied(self._records)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)  # Stages contain only immutable values.

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (dumps(flattened(self._records)),)

    # What stages use

    def _add(self, record: StageRecord) -> None:
        self._records.append(record)

    def _name_of(self, record: StageRecord) -> str:
        return names_of(self._records)[id(record)]

    def _rename(self, record: StageRecord, name: str) -> None:
        for each in self._records:
            if each is not record and each.given_name == name:
                raise IllegalStateError(f"{placed(name, each)} has that name already: names of stages are unique")
        record.given_name = name


def _read(source: Any, where: SourceLocation | None) -> Node:
    """Return the node of the items of a source.

    Raises:
        TypeError: it is none.
    """
    if isinstance(source, ProcessorSource | ProcessorStreamSource):
        return emitted(source, "read_from", where)
    # A class has the methods of the protocol, too, so `isinstance` alone would take it for a source (Python 3.11).
    if isinstance(source, type) or not isinstance(source, Source | StreamSource):
        raise TypeError(f"read_from() takes a source, such as text_files(...), not {named_source(source)}")
    if isinstance(source, StreamRead):  # It has the face of a source that ends.
        raise TypeError(f"read_from() takes the source itself: read_from({shown(source.source)})")
    read: Any = StreamRead(source) if isinstance(source, StreamSource) else source
    return Read(read, delivery_of(read, None), step=Step(f"read_from({shown(source)})", where))


def _unpickled(state: bytes) -> Pipeline:
    made = Pipeline()
    made._records = restored(pickle.loads(state))
    return made
