"""`OpenPlan`: the plan of an unbounded job with its sources opened, and what leads where in it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from dstream.errors import UnsupportedError
from dstream.executor.graph_operator import GraphOperator
from dstream.executor.graph_steps import in_steps
from dstream.jobs.unbounded.ranges import Whole
from dstream.pipeline.pipeline_plan import PipelinePlan
from dstream.pipeline.source_in_parts import InParts
from dstream.plan import Node, rewrite, topological
from dstream.plan.core import Cache, CacheIdentity, Core, Read
from dstream.plan.core_of_epochs import OverEpochs, Stamped
from dstream.plan.core_of_forks import Fork, Several
from dstream.plan.core_of_graphs import Processing
from dstream.plan.core_of_pairs import HashJoin
from dstream.plan.graph_parallelism import with_parallelism
from dstream.plan.nodes import Read as ReadNode
from dstream.plan.opening import opened
from dstream.plan.steps import Step
from dstream.plan.stream_read import StreamRead
from dstream.plan.timed import timed
from dstream.plan.vertex_graph import VertexGraph
from dstream.spi import Streamable, StreamSource
from dstream.spi.sink import Collections
from dstream.spi.state_operator import OfFixedShards

__all__ = ["OpenPlan", "open_plan"]


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """A plan that is made once, and filled in for each epoch.

    Attributes:
        several: the plan in core operations.
        sources: what is read epoch by epoch, by the name of its stage.
        reads: the names of these stages, by the `id` of the operation.
        stamps: the stages that give timestamps, by their names.
        steps: those whose state outlives an epoch, by their names.
        sources_of: the sources whose items each of `stamps` sees.
        stamps_of: which of `stamps` lead to each of `steps`.
        inputs_of: the sources whose items come by each input of a step, for those that are told when an input ends; and
            the steps of other graphs whose processors go on for ever, by which items come.
        read_steps: the calls that read them, by the names of their stages.
        refreshed: the seconds after which sides of joins are read again, by the `id` of what keeps them.
    """

    several: Several
    sources: Mapping[str, StreamSource[Any]]
    reads: Mapping[int, str]
    stamps: Mapping[str, Stamped]
    steps: Mapping[str, OverEpochs]
    sources_of: Mapping[str, frozenset[str]]
    stamps_of: Mapping[str, frozenset[str]]
    read_steps: Mapping[str, Step] = field(default_factory=dict)
    refreshed: Mapping[int, float] = field(default_factory=dict)
    inputs_of: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)

    @property
    def is_fed_by_processors(self) -> bool:
        """Whether steps have to hear when processors of another graph have ended, which might have gone on for ever."""
        return any(origins - self.sources.keys() for inputs in self.inputs_of.values() for origins in inputs)


def _as_it_is(node: Processing) -> VertexGraph:
    """Return the graph of an operation of which nothing is to run."""
    return with_parallelism(node.graph, 1)


def open_plan(
    plan: PipelinePlan,
    context: Collections,
    ready: Callable[[Processing], VertexGraph] = _as_it_is,
    guarantee: str = "exactly-once",
) -> OpenPlan:
    """Open the sources and services of a plan, and look at what leads where.

    Args:
        plan: of a job without an end.
        context: opens sources.
        ready: gives the graphs of processors as they are to run.
        guarantee: what processors are told.

    Raises:
        SourceError: a source is not there.
        UnsupportedError: a bounded source is both a side of a join that is kept and a stream.
    """
    several = plan.several([None] * len(plan.writes))
    is_open = opened(several, context)
    names = _names_of_sources(plan, topological(several), topological(is_open))
    core = _with_kept_sides(timed(in_steps(rewrite(is_open), ready, guarantee)))
    passing, held = _passing(core)
    reads = {id(each): names[id(each.source)] for each in passing}
    for each in passing:
        if id(each) in held:
            raise UnsupportedError(f"{each.label()} is read as a stream and as the kept side of a join: read it twice")
    order = topological(core)
    stamps = {each.stage: each for each in order if isinstance(each, Stamped)}
    steps = {each.stage: each for each in order if isinstance(each, OverEpochs)}
    return OpenPlan(
        core,
        {reads[id(each)]: _streamed(each) for each in passing},
        reads,
        stamps,
        steps,
        {name: frozenset(reads[id(read)] for read in _above(each, Read)) for name, each in stamps.items()},
        {name: frozenset(stamp.stage for stamp in _above(each, Stamped)) for name, each in steps.items()},
        {reads[id(each)]: each.step for each in passing},
        _refreshed(order),
        {
            name: tuple(_origins_of(upstream, each.step, reads) for upstream in each.upstreams)
            for name, each in steps.items()
            if isinstance(each.operator, OfFixedShards)
        },
    )


def _origins_of(root: Core, step: Step, reads: Mapping[int, str]) -> frozenset[str]:
    """Return the names of what the items of an operation come from; parts of a graph tell each other of an end."""
    above = list(_reached([root], []))
    endless = (each for each in above if isinstance(each, OverEpochs) and each.step is not step)
    return frozenset(
        (
            *(reads[id(each)] for each in above if isinstance(each, Read)),
            *(each.stage for each in endless if isinstance(each.operator, GraphOperator) and each.operator.is_endless),
        )
    )


def _refreshed(order: Sequence[Core]) -> dict[int, float]:
    """Return how long sides of joins are kept that are read again, with all that is kept above them."""
    found: dict[int, float] = {}
    for join in order:
        if isinstance(join, HashJoin) and join.refresh_every is not None:
            kept = (each for each in topological(join.right) if isinstance(each, Cache))
            found.update((id(each), join.refresh_every) for each in kept)
    return found


def _with_kept_sides(several: Several) -> Several:
    """Return the same plan, in which the right side of a hash join is read in the first epoch, and kept for others.

    A driver that goes on with the job reads it again. What several joins read is computed once in each run (`Fork`),
    and so is not kept by itself.
    """
    became: dict[int, Core] = {}
    for node in topological(several):
        made = node.with_inputs([became[id(each)] for each in node.inputs()])
        if isinstance(made, HashJoin) and made.refresh_every is not None:
            made = replace(made, right=_with_own_caches(made.right))
        if isinstance(made, HashJoin) and (not isinstance(made.right, Cache) or isinstance(made.right, Fork)):
            made = replace(made, right=Cache(made.right, CacheIdentity(), step=made.right.step))
        became[id(node)] = made
    return cast(Several, became[id(several)])


def _with_own_caches(right: Core) -> Core:
    """Return the same side, which keeps for itself what others keep as well: they do not read it again."""
    became: dict[int, Core] = {}
    for node in topological(right):
        before = list(node.inputs())
        inputs = [became[id(each)] for each in before]
        is_same = all(map(operator.is_, before, inputs))  # What reads stays itself: others may not read it as a stream.
        made = node if is_same else node.with_inputs(inputs)
        became[id(node)] = replace(made, identity=CacheIdentity()) if isinstance(made, Cache) else made
    return became[id(right)]


def _names_of_sources(plan: PipelinePlan, before: Sequence[Node], after: Sequence[Node]) -> dict[int, str]:
    """Return the names of the stages that read, by the `id` of their open source."""
    stage_of = {id(node): name for name, node in plan.last_nodes}
    others = [each for each in plan.stages if not each.upstreams and each.name not in stage_of.values()]
    names: dict[int, str] = {}
    for node, is_open in zip(before, after, strict=True):
        if isinstance(node, ReadNode) and isinstance(is_open, ReadNode):
            found = stage_of.get(id(node)) or next((each.name for each in others if each.where == node.where), None)
            names.setdefault(id(is_open.source), found or f"source-{len(names) + 1}")
            others = [each for each in others if each.name != found]
    return names


def _passing(core: Core) -> tuple[list[Read], set[int]]:
    """Return the reads whose items pass by, epoch after epoch, and the `id` of those that a join keeps."""
    passing, held = [core], list[Core]()
    found: dict[int, Read] = {}
    for node in _reached(passing, held):
        if isinstance(node, Read):
            found[id(node)] = node
    return list(found.values()), {id(each) for root in held for each in topological(root)}


def _reached(stack: list[Core], held: list[Core]) -> Iterator[Core]:
    """Give each operation once, without the right sides of hash joins, which come into `held`."""
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        inputs = list(node.inputs())
        if isinstance(node, HashJoin):
            held.append(inputs.pop())
        stack.extend(reversed(inputs))


def _streamed(read: Read) -> StreamSource[Any]:
    source = read.source.source if isinstance(read.source, InParts) else read.source
    if isinstance(source, StreamRead):
        return source.stream
    return source.as_stream() if isinstance(source, Streamable) else Whole(read.source)


def _above(root: Core, kind: type[Any]) -> Iterable[Any]:
    """Return the operations of a kind that lead to one, without what stands behind the first of them on each way."""
    found: dict[int, Core] = {}
    stack = list(root.inputs())
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, kind):
            found[id(node)] = node
            continue
        inputs = list(node.inputs())
        stack.extend(inputs[:1] if isinstance(node, HashJoin) else inputs)
    return found.values()
