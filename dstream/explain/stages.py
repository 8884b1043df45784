"""Stages of a plan on Spark or on the local engine, with one end or several. Neither engine is started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from dstream.engine.compiler import ClusterFacts, ColumnMode, compiled
from dstream.engine.compiler.ends import FEW
from dstream.engine.compiler.inputs import Keep, parts_of
from dstream.engine.physical.graph import Assembled, Combined, Ending, Last, Nothing, Pulled
from dstream.engine.physical.vertices import Items, Pending, StageCall, Vertex, piped
from dstream.engine.tasks.sinks import WriteItems
from dstream.explain.bounds import MANY, Cost, InputAlternatives, OfEarlierJob, range_of
from dstream.explain.estimates import CostEstimate, FutureJob
from dstream.explain.routes import calls_of
from dstream.explain.worst_case import WorstCaseStages
from dstream.plan.operations.ends import End, Loop, Several, ToList, Write
from dstream.plan.operations.streams import Cache, CacheIdentity, Concat, Node
from dstream.plan.properties import configuration, guards_of, is_bounded, is_ordered, ordered_operations, parallelism
from dstream.plan.stages import NOTHING, ONE, Amount, Call, Exchange, Job, Stage, Stages, exactly, total
from dstream.plan.walk import CacheContent, CacheLookup, nothing_kept, recalled, topological
from dstream.spi import Collector, Sink

__all__ = ["local_stages", "named", "spark_stages", "stages_of_ends"]


_MANY = 4


OfOneGraph = Callable[[End | Several, CacheLookup], tuple[Stages, Mapping[CacheIdentity, OfEarlierJob]]]
"""A function that returns the stages of one graph, and the stored items of its `cache()` calls and forks, by its own
numbers of stages."""


def stages_of_ends(several: Several, found: CacheLookup, stages: OfOneGraph) -> Stages:
    """Return the stages of all graphs of a plan, in the order in which they run."""
    ordered = {each.identity: is_ordered(each) for each in topological(several) if isinstance(each, Cache)}
    computed: dict[CacheIdentity, OfEarlierJob] = {}

    def found_by_then(node: Cache) -> CacheContent | None:
        if node.identity in computed:
            cached = computed[node.identity]
            before = sum(len(part.stages) for part in drawn)
            return CacheContent(
                replace(cached, stages=tuple(stage - before for stage in cached.stages)), ordered[node.identity]
            )
        return found(node)

    drawn: list[Stages] = []
    for part in parts_of(several):
        shown, cached = stages(part.end, found_by_then)
        before = sum(len(part.stages) for part in drawn)
        computed.update(
            (identity, replace(each, stages=tuple(stage + before for stage in each.stages)))
            for identity, each in cached.items()
        )
        drawn.append(shown)
    return _in_one_picture(drawn, named(several.ends))


def named(ends: Sequence[Node]) -> str:
    """Return the name of a plan with these ends: the calls that end it, unless they are many."""
    calls = [end.label().removeprefix(".") for end in ends]
    return ", ".join(calls) if len(calls) < _MANY else f"{len(calls)} sinks"


def _in_one_picture(parts: Sequence[Stages], name: str) -> Stages:
    """Return the stages of several graphs that one call runs."""
    stages: list[Stage] = []
    jobs: list[Job] = []
    for part in parts:
        stages += _moved(_with_end(part), len(stages), len(jobs))
        jobs += part.jobs
    return Stages(
        parts[0].engine,
        Call(name),
        "this process gets the receipts of all sinks, and then commits them",
        tuple(stages),
        tuple(jobs),
        total(part.job_count for part in parts),
        total(part.shuffles for part in parts),
        total(part.python_stages for part in parts),
        parts[0].notes,
    )


def _with_end(part: Stages) -> list[Stage]:
    """Return the stages, with the call that ends them at the end of the last one."""
    *before, last = part.stages
    return [*before, replace(last, calls=(*last.calls, part.end))]


def _moved(part: Sequence[Stage], stages: int, jobs: int) -> list[Stage]:
    """Return the stages of a graph, renumbered to follow `stages` others."""
    return [
        replace(
            stage,
            inputs=tuple(replace(each, source=each.source + stages) for each in stage.inputs),
            jobs=tuple(number + jobs for number in stage.jobs),
        )
        for stage in part
    ]


def spark_stages(
    end: End | Several, cores: int | None, largest_small_side: int, found: CacheLookup, columns: ColumnMode = "auto"
) -> Stages:
    """Return the stages of a plan on Spark.

    Args:
        end: the end of the plan; a writer may be missing, whose collection need not be there yet.
        cores: how many tasks run at the same time; None if unknown yet.
        largest_small_side: how many bytes of one side of a join may be sent to every task; below 0, none.
        found: returns the content of a `cache()`.
        columns: whether functions are read.

    Raises:
        UnsupportedError: Spark does not run such a plan.
    """
    if isinstance(end, Several):
        return stages_of_ends(
            end, found, lambda one, kept: _of_one_graph(one, cores, largest_small_side, kept, columns)
        )
    return _of_one_graph(end, cores, largest_small_side, found, columns)[0]


def _of_one_graph(
    end: End | Several, cores: int | None, largest_small_side: int, found: CacheLookup, columns: ColumnMode
) -> tuple[Stages, dict[CacheIdentity, OfEarlierJob]]:
    """Return the stages of one graph, and its contents of each `cache()` or fork, by its own numbers of stages."""
    core = recalled(end, found)
    facts = [replace(each, columns=columns) for each in _facts(core, cores, largest_small_side)]
    graphs = [compiled(*bounds)[0] for bounds in _bounds(core, facts)]
    outlook = CostEstimate(graphs)
    ending = _Ending(core, graphs[-1].ending, outlook)
    last = ending.job()
    jobs = [*chain.from_iterable(each.jobs for each in outlook.foreseen), last]
    cost = outlook.cost(*ending.cost())
    settings = configuration(core)
    picture = WorstCaseStages(outlook, [job.vertices for job in jobs])
    drawn = Stages(
        "Spark" if cores is None else f"Spark with {exactly(cores).of('core')}",
        Call(_label(core)),
        ending.outcome(),
        picture.stages(),
        tuple(Job(job.title, replace(job.amount, words=job.condition)) for job in jobs),
        cost.jobs,
        cost.shuffles,
        cost.python_stages,
        (f"with the settings {settings}",) if settings else (),
    )
    keeping = [each for each in graphs[-1].decisions if isinstance(each, Keep)]
    return drawn, {
        each.node.identity: OfEarlierJob(
            outlook.counting.partitions(outlook.settled(each.items)),
            picture.written_by(outlook.keeping[each.node.identity]),
        )
        for each in keeping
    }


@dataclass(frozen=True)
class _SomeMap:
    """The placeholder of the writer of a map that was not opened."""

    buckets: int

    def bucket_of(self, key: Any) -> int:
        raise AssertionError("nothing is written when a plan is explained")

    def write_bucket(self, bucket: int, entries: Any) -> Any:
        raise AssertionError("nothing is written when a plan is explained")


def _bounds(end: End | Several, facts: Sequence[ClusterFacts]) -> list[tuple[End | Several, ClusterFacts]]:
    """Return the inputs of the graph: with the least and with the most of all that is not known yet."""
    if not isinstance(end, Write):
        return [(end, each) for each in facts]
    few, many = (replace(end, writer=_SomeMap(buckets)) for buckets in (1, MANY))
    return [(many, each) for each in facts] if end.collector is None else [(few, facts[0]), (many, facts[-1])]


def _facts(end: End | Several, cores: int | None, largest_small_side: int) -> Sequence[ClusterFacts]:
    """Return the facts that the graph depends on: if the number of cores is unknown, one with few and one with many."""
    requested = parallelism(end)
    if cores is not None:
        return [ClusterFacts(requested or cores, cores, largest_small_side)]
    return [
        ClusterFacts(requested or 2, 1, largest_small_side),
        ClusterFacts(requested or MANY, MANY, largest_small_side),
    ]


def _label(end: End | Several) -> str:
    match end:
        case ToList():
            return "to_list()"
        case Loop():
            return "iter(stream)"
        case Several(ends=ends):
            return ", ".join(map(_label, ends))
    return end.label().removeprefix(".")


_OFTEN = Amount(1, None)
_ENDLESS = Cost(jobs=_OFTEN, python_stages=_OFTEN)


@dataclass(frozen=True)
class _Ending:
    """The end of a graph, with the last job."""

    end: End | Several
    ending: Ending
    outlook: CostEstimate

    def job(self) -> FutureJob:
        """Return the last job."""
        jobs = self.cost()[0].jobs
        match self._last():
            case Last(vertex):
                return FutureJob(_label(self.end), (vertex,), jobs)
            case Pulled(ends=False) as pulled:
                title = "chunks of 1,024, 4,096, ... items, each computed again from the start"
                return FutureJob(title, (self._read(pulled.inputs),), jobs)
            case Pulled() as pulled:
                count = 0 if pulled.limit is None else pulled.limit.count
                title = f"{_label(self.end)}: partitions run in waves of 1, 4, 16, ... until {count:,} items are there"
                note = "in each partition; then as many as are wanted"
                return FutureJob(title, (self._read(piped(pulled.inputs, pulled.limit, None, note)),), jobs)
        raise AssertionError("a plan is explained with an end of its own")

    def cost(self) -> tuple[Cost, dict[InputAlternatives, Amount]]:
        """Return the cost of the last job, and how often it reads a decision's result."""
        counting = self.outlook.counting
        match self._last():
            case Pulled(inputs, ends=False):
                before, reads = counting.cost_of(inputs)
                return _ENDLESS + before.times(_OFTEN), dict.fromkeys(reads, _OFTEN)
            case Pulled(inputs, limit):
                return self._cost_of_waves(inputs, 0 if limit is None else limit.count)
            case Last(vertex):
                lasts = self.outlook.lasts if isinstance(self.ending, Pending) else [Last(vertex, Nothing())]
            case _:
                raise AssertionError("a plan is explained with an end of its own")
        costs = [counting.cost_of_job(last.vertex) for last in lasts]
        one = replace(Cost.one_of([cost for cost, _ in costs]), jobs=self._with_letters(ONE, self._last_inputs()))
        all_reads = {either for _, reads in costs for either in reads}
        return one, {either: range_of(exactly(int(either in reads)) for _, reads in costs) for either in all_reads}

    def _cost_of_waves(self, items: Items, count: int) -> tuple[Cost, dict[InputAlternatives, Amount]]:
        """Return the cost of finding the first items."""
        counting = self.outlook.counting
        found = counting.waves(items) if count else exactly(0)
        before, reads = counting.cost_of(items)
        is_whole = counting.segments(items) == ONE and found.least > 0
        often = ONE if is_whole else Amount(0, 1)
        jobs = self._with_letters(found, items)
        if count > FEW:
            jobs = Amount(found.least, None)  # Large results are fetched partition by partition, some ahead of time.
        return Cost(jobs, python_stages=found) + before.times(often), dict.fromkeys(reads, often)

    def _with_letters(self, jobs: Amount, items: Items) -> Amount:
        """Return the number of jobs with those of dead letters after the items: one measures them, others read them."""
        if not any(guard.treatment == "sent" for guard in guards_of(topological(self.end))):
            return jobs
        parts = self.outlook.counting.partitions(items).most
        most = None if parts is None or jobs.most is None else jobs.most * (2 + max(parts, 1))
        return Amount(jobs.least * 2, most, "dead letters come behind the items")

    def _last(self) -> Ending:
        match self.ending:
            case Pending():
                return self.outlook.lasts[-1]
            case Last(vertex):
                return replace(self.ending, vertex=replace(vertex, inputs=self.outlook.settled(vertex.inputs)))
            case Pulled(inputs):
                return replace(self.ending, inputs=self.outlook.settled(inputs))
        return self.ending

    def _last_inputs(self) -> Items:
        last = self._last()
        return last.vertex.inputs if isinstance(last, Last) else ()

    def _read(self, items: Items) -> Vertex:
        return Vertex(items, WriteItems(), self.end.step)

    def outcome(self) -> str:
        """Return a sentence on how the result reaches the caller."""
        in_order = ", in order" if is_ordered(self.end) else ""
        match self._last():
            case Last(finish=Combined()):
                return "this process combines the containers of the tasks in order and finishes the result"
            case Last(finish=Assembled(is_ordered=ordered)):
                order = ", in the order in which the keys were first seen" if ordered else ""
                return f"one finished value for each key comes to this process{order}"
            case Pulled(ends=False):
                return "a loop gets the items chunk by chunk, without end; to_list() is refused"
            case Pulled(limit=limit) if limit is not None:
                return f"the first {limit.count:,} items come to this process{in_order}"
        if isinstance(self.end, Write | Several):
            return "this process gets receipts and commits them all at once"
        return f"all items come to this process{in_order}"


@dataclass
class _Draft:
    """A stage that is being drawn: the origin of its items, its calls, and the `id` of its last operation."""

    inputs: tuple[int, ...]
    last: int = 0
    calls: list[Call] = field(default_factory=list)
    is_closed: bool = False


def local_stages(root: Node, into: Any, found: CacheLookup = nothing_kept) -> Stages:
    """Return the stages of a plan in this process; arguments as for Spark."""
    core = recalled(root, found)
    nodes = [each for each in topological(core) if not isinstance(each, Several)]
    readers = Counter(id(upstream) for node in nodes for upstream in node.inputs())
    drafts: list[_Draft] = []
    reached: dict[int, int] = {}
    for node in nodes:
        reached[id(node)] = stage = _drawn(node, [reached[id(upstream)] for upstream in node.inputs()], drafts)
        drafts[stage].is_closed = readers[id(node)] > 1
    end, outcome = _end(core, into)
    in_order = ordered_operations(core)
    drawn = tuple(_stage(each, in_order[each.last]) for each in drafts)
    notes = ("everything runs in this process, one item at a time",)
    return Stages("the local engine", end, outcome, drawn, (Job(end.label, ONE),), ONE, NOTHING, NOTHING, notes)


def _drawn(node: Node, inputs: Sequence[int], drafts: list[_Draft]) -> int:
    if len(inputs) != 1 or isinstance(node, Concat) or drafts[inputs[0]].is_closed:
        drafts.append(_Draft(tuple(inputs)))
        for stage in inputs:
            drafts[stage].is_closed = True
        inputs = [len(drafts) - 1]
    (stage,) = inputs
    drafts[stage].calls += calls_of(StageCall(node, None))
    drafts[stage].last = id(node)
    return stage


def _stage(draft: _Draft, ordered: bool) -> Stage:
    return Stage(tuple(draft.calls), tuple(Exchange(each, "pipe") for each in draft.inputs), ONE, ordered, jobs=(0,))


def _end(core: Node, into: Any) -> tuple[Call, str]:
    if isinstance(into, Collector):
        return Call(f"collect({into.name or '...'})"), "the collector takes one item after another"
    if isinstance(into, Sink):
        return Call(f"collect({into.label})"), "the collection takes all items in one commit"
    if isinstance(core, Several):
        return Call(named(core.ends)), "one sink after another takes its items; then all of them commit"
    if is_bounded(core):
        return Call("to_list()"), "all items are listed"
    return Call("iter(stream)"), "a loop gets one item after another, without end; to_list() is refused"
