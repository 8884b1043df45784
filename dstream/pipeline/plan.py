"""`PipelinePlan`: the part of a pipeline that a job runs, as a copy, with its drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from dstream.errors import UnsupportedError
from dstream.pipeline.stage_records import At, Flat, flat_nodes, nodes_again
from dstream.plan import Node, Read, Recover, SourceLocation, inputs_first, topological
from dstream.plan.operations.calls import Tally
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.timestamps import StreamRead
from dstream.spi import MapWriter, Sink, Writer
from dstream.spi.epochs import EdgeCounts
from dstream.stream.runtime import default_stages, writing

if TYPE_CHECKING:
    from dstream.explain.drawing import Drawing
    from dstream.plan.stages import Stages

__all__ = [
    "PipelinePlan",
    "PlannedStage",
    "PlannedWrite",
    "check_that_all_or_none_takes_epochs",
    "explained_in",
]


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage, as far as jobs speak of it.

    Attributes:
        name: unique in its pipeline.
        kind: the name of its method, such as `map` or `write_to`.
        upstreams: the names of the stages that it reads from.
        where: the source location of the call that made it.
    """

    name: str
    kind: str
    upstreams: tuple[str, ...]
    where: SourceLocation | None


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One end of the plan.

    Attributes:
        stage: the name of the sink stage.
        node: the last node before it.
        sink: where the items are written.
        where: the source location of `write_to`.
        is_named: the user set the name of the stage.
    """

    stage: str
    node: Node
    sink: Sink[Any, Any]
    where: SourceLocation | None
    is_named: bool = False

    @property
    def is_unbounded(self) -> bool:
        """Return whether it is written epoch by epoch."""
        return any(map(_takes_epochs, topological(self.node)))

    def handed(self, writer: Writer | MapWriter | None) -> Write:
        """Return the end that hands its items to a writer; None only explains."""
        end = writing(self.node, self.sink, writer, "write_to", self.where)
        return replace(end, step=replace(end.step, stage=self.stage)) if self.is_named else end


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """Stages, and the ends that make them run.

    Attributes:
        stages: in the order in which they were made.
        writes: in the order of their `write_to`.
        last_nodes: the names and nodes of the stages whose number of output items differs from that of their input.
    """

    stages: tuple[PlannedStage, ...]
    writes: tuple[PlannedWrite, ...]
    last_nodes: tuple[tuple[str, Node], ...] = ()

    @property
    def is_unbounded(self) -> bool:
        """Return whether a job runs it epoch by epoch: it has a source without an end, timestamps, or states."""
        return any(write.is_unbounded for write in self.writes)

    def several(self, writers: Sequence[Writer | MapWriter | None]) -> Several:
        """Return the plan that hands items to these writers, one for each of `writes`; None only explains."""
        return Several(tuple(each.handed(writer) for each, writer in zip(self.writes, writers, strict=True)))

    def counting(
        self,
        take: Callable[[str], Callable[[int], object]],
        take_edges: Callable[[EdgeCounts], object] | None = None,
    ) -> PipelinePlan:
        """Return a plan that counts the items that stages emit.

        Args:
            take: returns the receiver of the counts of a stage, by its name: one count for each of its tasks.
            take_edges: receives the counts of the edges of a graph of processors: one for each of its tasks.
        """
        stage_of = {id(node): name for name, node in self.last_nodes}

        def counted(node: Node, made: Node) -> Node:
            if isinstance(made, ProcessorGraph):
                made = replace(made, take=take_edges)
            stage = stage_of.get(id(node))
            return made if stage is None else Tally(made, take(stage))

        became = self._rebuilt(counted)
        return replace(self, writes=tuple(replace(each, node=became[id(each.node)]) for each in self.writes))

    def delivering(self, change: Callable[[str, Node, Any], Any]) -> PipelinePlan:
        """Return a plan whose dead letters are written elsewhere.

        Args:
            change: takes the name of a stage, its node and the present delivery; returns the new delivery.
        """

        def delivered(node: Node, made: Any) -> Any:
            taking = getattr(made, "delivery", None)
            return made if taking is None else replace(made, delivery=change(self._stage_of(node), made, taking))

        became = self._rebuilt(delivered)
        writes = tuple(replace(each, node=became[id(each.node)]) for each in self.writes)
        # Stages that lead to no sink are as they were.
        last_nodes = tuple((name, became.get(id(node), node)) for name, node in self.last_nodes)
        return replace(self, writes=writes, last_nodes=last_nodes)

    def _rebuilt(self, change: Callable[[Node, Node], Node]) -> dict[int, Node]:
        """Return the replacement of each node, by its `id`.

        Args:
            change: takes a node and the same node with its new inputs; returns the replacement.
        """
        became: dict[int, Node] = {}
        for write in self.writes:
            # Nodes that several ends share are visited once: the paths through forks may be many more than the nodes.
            for node in inputs_first(write.node, lambda found: () if id(found) in became else found.inputs()):
                if id(node) not in became:
                    became[id(node)] = change(node, node.reading([became[id(each)] for each in node.inputs()]))
        return became

    def _stage_of(self, node: Node) -> str:
        return self.stage_of(node) or next(each.name for each in self.stages if each.where == node.step.where)

    def stage_of(self, node: Node) -> str | None:
        """Return the name of the stage that ends in a node, or whose failures later stages handle."""
        above = {each.name: each.upstreams for each in self.stages}
        for name, found in self.last_nodes:
            while found is not node and isinstance(found, Recover) and above[name]:
                # A step whose failures are handled has no separate entry: the stages that handle them contain it.
                (name,), found = above[name], found.upstream
            if found is node:
                return name
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        # Flat, since pickle recurses into nested objects, and a long pipeline would exceed Python's limit.
        nodes, positions = flat_nodes([*(each.node for each in self.writes), *(node for _, node in self.last_nodes)])
        without = [(each.stage, each.sink, each.where, each.is_named) for each in self.writes]
        return _again, (self.stages, nodes, positions, without, [name for name, _ in self.last_nodes])

    def shape(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return the names, kinds and inputs of all stages. Jobs take pipelines with equal ones for the same.

        A kind contains where items or dead letters are written, if the stage writes them.
        """
        labels = {each.stage: each.sink.label for each in self.writes}
        kinds = {each.name: each.kind for each in self.stages}
        for node in chain.from_iterable(topological(write.node) for write in self.writes):
            if (delivery := getattr(node, "delivery", None)) is not None:
                stage = self._stage_of(node)
                labels[stage] = f"{kinds[stage]}(into={delivery.label})"
        return [(each.name, labels.get(each.name, each.kind), each.upstreams) for each in self.stages]

    def with_writes(self, writes: Sequence[PlannedWrite]) -> PipelinePlan:
        """Return the plan of the same stages with other sinks."""
        return replace(self, writes=tuple(writes))


def check_that_all_or_none_takes_epochs(plan: PipelinePlan) -> None:
    """Refuse a plan with both bounded and unbounded parts.

    Raises:
        UnsupportedError: some written streams end, and others run in epochs.
    """
    for write in plan.writes if plan.is_unbounded else ():
        if not write.is_unbounded:
            location = f" at {write.where}" if write.where else ""
            raise UnsupportedError(
                f"the stage {write.stage!r}{location} writes items that end, and others of the pipeline have no end: "
                "give it a pipeline of its own"
            )


def _takes_epochs(node: Node) -> bool:
    match node:
        case ProcessorGraph(graph=graph):
            return graph.is_endless
        case Read(source=source):
            return isinstance(source, StreamRead)
    return node.is_of_epoch


def _again(
    stages: tuple[PlannedStage, ...],
    flat: list[Flat],
    positions: list[At],
    without: list[tuple[str, Sink[Any, Any], SourceLocation | None, bool]],
    names: list[str],
) -> PipelinePlan:
    """Return the plan of which `__reduce__` made flat data: nodes, and writes without theirs."""
    made = nodes_again(flat)
    nodes = [made[at.place] for at in positions]
    writes = [
        PlannedWrite(stage, node, sink, where, is_named)
        # Not strict: the nodes of stages follow the nodes of the writes.
        for (stage, sink, where, is_named), node in zip(without, nodes, strict=False)
    ]
    return PipelinePlan(stages, tuple(writes), tuple(zip(names, nodes[len(writes) :], strict=True)))


def explained_in(format: str, plan: Callable[[], PipelinePlan], *, routes: bool = False) -> Drawing | None:
    """Return the drawing of a plan in the default context; or print it, if the format is text.

    Args:
        format: as `explain` takes it; looked at before the plan is made.
        plan: makes it.
        routes: whether to explain why each function runs as it does.

    Raises:
        ValueError: there is no such format.
    """
    from dstream.explain.drawing import show

    return show(lambda: _stages(plan()), format, routes=routes)


def _stages(plan: PipelinePlan) -> Stages:
    stages: Stages = default_stages(plan.several([None] * len(plan.writes)), None)
    return stages
