"""`WorstCaseStages`: the stages of a physical plan in the case with the most work.

Each input of a vertex is a stage: the input of its tasks, and their calls. Inputs with a common prefix share its stage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any, cast

from dstream.engine.physical.vertices import (
    CachedInput,
    FromTable,
    Input,
    Items,
    Rows,
    SourceSplits,
    Splits,
    StageCall,
    Vertex,
    with_calls,
)
from dstream.engine.tasks.distinct import read_forwarded, read_placed
from dstream.engine.tasks.readers import read_batches, read_buckets
from dstream.engine.tasks.sinks import WriteEach
from dstream.explain.bounds import InputAlternatives, OfEarlierJob
from dstream.explain.estimates import CostEstimate
from dstream.explain.routes import (
    ItemFormat,
    call_of_vertex,
    calls_of,
    calls_on_branches,
    formats_behind,
    formats_in_tasks,
    formats_of_batches,
    formats_of_source,
)
from dstream.plan.operations.streams import ReadCache
from dstream.plan.stages import SEVERAL_PARTITIONS, Amount, Call, Exchange, Stage
from dstream.plan.steps import Step
from dstream.plan.walk import inputs_first

__all__ = ["WorstCaseStages"]


Task = Vertex | Input
"""A part of a drawing: an input is a stage, a vertex ends one or more."""

_IN_CALLER = "its items travel inside the tasks; 4 MB of them or more in a shuffle of their own, which is not counted"
_ALONE = "if all items are in one partition before, it runs there and nothing moves"
_KEPT_BEFORE = "the items that an earlier plan left where it computed them"
_COMPUTED_BEFORE = "the items that an earlier job left where it computed them"
_TABLE = "rows become items; Spark runs the DataFrame as it sees fit, which is not counted"


@dataclass
class _Draft:
    """A stage that is being drawn.

    Attributes:
        kept: the stages that it reads from earlier jobs.
        formats: the formats of the items after its last call.
        is_closed: the next call begins a new stage.
    """

    tasks: Amount
    is_ordered: bool
    inputs: tuple[Exchange, ...] = ()
    kept: frozenset[int] = frozenset()
    formats: tuple[ItemFormat, ...] = (ItemFormat(),)
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    is_closed: bool = False


class WorstCaseStages:
    """The stages of some jobs.

    Args:
        outlook: the estimates of the decisions.
        jobs: each by the vertices whose rows it requests, in the order in which they run.
    """

    def __init__(self, outlook: CostEstimate, jobs: Sequence[Sequence[Vertex]]) -> None:
        self._outlook = outlook
        self._drafts: list[_Draft] = []
        self._inputs: dict[int, Items] = {}
        self._ends: dict[int, tuple[int, ...]] = {}
        self._begun: dict[tuple[int, int | None], tuple[int, Sequence[StageCall]]] = {}
        self._held: list[object] = []
        self._conditions = {key: words for each in outlook.foreseen for key, words in each.conditions.items()}
        self._tasks = {key: tasks for each in outlook.foreseen for key, tasks in each.tasks.items()}
        self._alone = frozenset().union(*(each.alone for each in outlook.foreseen))
        order = self._order([vertex for job in jobs for vertex in job])
        self._members = _members(order)
        self._readers = _readers(order, self._reads)
        for each in order:
            self._ends[id(each)] = self._written(each) if isinstance(each, Vertex) else (self._stage(each),)
        kept: set[int] = set()
        for number, job in enumerate(jobs):
            for vertex in job:
                if id(vertex) not in kept:  # The results of an earlier job are only read.
                    self._run(number, vertex)
            kept.update(id(vertex) for vertex in job if vertex.is_kept)

    def written_by(self, vertex: Vertex) -> tuple[int, ...]:
        """Return the numbers of the stages that write the rows of a vertex."""
        return self._ends.get(id(vertex), ())

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, each after those that it reads from."""
        return tuple(
            Stage(tuple(each.calls), each.inputs, each.tasks, each.is_ordered, tuple(each.jobs), tuple(each.notes))
            for each in self._drafts
        )

    # --------------------------------------------------------------------------------------------------------- order

    def _order(self, vertices: Sequence[Vertex]) -> list[Task]:
        """Return all tasks of jobs, each after its inputs."""
        order: list[Task] = []
        seen: set[int] = set()
        for vertex in vertices:
            if id(vertex) not in seen:
                new = inputs_first(cast(Task, vertex), lambda each: [] if id(each) in seen else self._reads(each))
                order += (each for each in new if id(each) not in seen)
                seen.update(map(id, new))
        return order

    def _reads(self, each: Task) -> Sequence[Task]:
        if isinstance(each, Vertex):
            return self._drawn_inputs(each)
        beside = [vertex for applied in each.applied for vertex in applied.beside]
        if isinstance(each, Rows):
            return [*beside, *(taken.vertex for taken in each.taken)]
        return (
            [*beside, *(part for part in each.parts if isinstance(part, Splits))]
            if isinstance(each, Splits)
            else beside
        )

    def _drawn_inputs(self, vertex: Vertex) -> Items:
        """Return the inputs of a vertex, with decisions replaced by the inputs that are drawn."""
        if id(vertex) not in self._inputs:
            # Identified by its `id`, which must not be reused.
            self._held.append(vertex)
            self._inputs[id(vertex)] = tuple(self._expanded(vertex.inputs))
        return self._inputs[id(vertex)]

    def _expanded(self, items: Items) -> Iterator[Input]:
        # Without recursion: decisions may be nested thousands deep.
        pending = list(reversed(items))
        while pending:
            each = pending.pop()
            if isinstance(each, CachedInput) and isinstance(each.held, InputAlternatives):
                pending += reversed(with_calls(each.held.drawn, tuple(each.applied)))
            else:
                yield each

    # -------------------------------------------------------------------------------------------------------- stages

    def _written(self, vertex: Vertex) -> tuple[int, ...]:
        """End the stages of a vertex; return them."""
        ends = []
        for each in self._drawn_inputs(vertex):
            (stage,) = self._ends[id(each)]
            if isinstance(vertex.output, WriteEach):
                self._drafts[stage].calls += calls_on_branches(vertex.output, vertex.decided)
            elif call := call_of_vertex(vertex, self._drafts[stage].formats):
                if vertex.does:
                    stage = self._called(stage, [call])
                elif call not in self._drafts[stage].calls:
                    self._drafts[stage].calls.append(call)
            self._drafts[stage].notes += (note for note in vertex.notes if note not in self._drafts[stage].notes)
            self._drafts[stage].is_closed = True
            ends.append(stage)
        return tuple(dict.fromkeys(ends))

    def _stage(self, each: Input) -> int:
        """Return the stage of an input, after its last call."""
        key = _beginning(each)
        if key not in self._begun:
            shared = _in_common(self._members[key])
            self._begun[key] = self._applied(self._base(each), shared), shared
            self._drafts[self._begun[key][0]].is_closed |= len(self._members[key]) > 1
        stage, shared = self._begun[key]
        stage = self._applied(stage, tuple(each.applied)[len(shared) :])
        self._drafts[stage].is_closed |= self._readers[id(each)] > 1
        return stage

    def _base(self, each: Input) -> int:
        """Begin the stage that reads an input, before any call."""
        match each:
            case Splits(parts=(SourceSplits(node),)):
                notes = [_IN_CALLER] if node.source.in_caller else []
                pieces = self._outlook.counting.partitions((Splits(each.parts),))
                draft = _Draft(
                    self._count(each),
                    node.source.ordered,
                    formats=self._in_tasks_of(each, formats_of_source(node, pieces), pieces),
                    calls=[Call(node.label(), node.step.where)],
                    notes=notes,
                )
            case Splits(parts=(Splits() as inner,)):
                (stage,) = self._ends[id(inner)]
                return stage if each.tasks is None else self._in_tasks(stage, each)
            case Splits(parts=parts):
                stages = [self._ends[id(part)][0] for part in parts if isinstance(part, Splits)]
                formats = tuple(dict.fromkeys(each for stage in stages for each in self._drafts[stage].formats))
                formats = self._in_tasks_of(each, formats, self._outlook.counting.partitions((Splits(parts),)))
                draft = _Draft(self._count(each), self._all_ordered(stages), self._piped(stages), formats=formats)
            case Rows():
                draft = self._moved(each)
            case CachedInput(ReadCache() as recall):
                earlier = recall.items.stages if isinstance(recall.items, OfEarlierJob) else ()
                note = _COMPUTED_BEFORE if isinstance(recall.items, OfEarlierJob) else _KEPT_BEFORE
                draft = _Draft(
                    self._count(each),
                    recall.is_ordered,
                    tuple(Exchange(stage, "kept") for stage in earlier),
                    frozenset(earlier),
                    calls=[Call(recall.label(), recall.step.where, note)],
                )
            case FromTable(node):
                draft = _Draft(self._count(each), False, calls=[Call(node.label(), node.step.where, _TABLE)])
            case _:
                raise AssertionError("what a decision gives is drawn in its place")
        return self._added(draft)

    def _moved(self, rows: Rows) -> _Draft:
        """Draw the stages that rows are read from."""
        sources: dict[int, Vertex] = {}
        for taken in rows.taken:
            sources.update(dict.fromkeys(self._ends[id(taken.vertex)], taken.vertex))
        condition = self._conditions.get(id(rows.taken), "")
        step = rows.taken[0].vertex.step if rows.taken else None
        inputs = tuple(self._exchange(stage, rows, condition, step) for stage in sources)
        kept = frozenset(stage for stage, vertex in sources.items() if vertex.is_kept)
        ordered = self._all_ordered(sources) if rows.is_ordered is None else rows.is_ordered
        notes = [*rows.notes, *([_ALONE] if id(rows.taken) in self._alone else [])]
        before = [self._drafts[stage].formats for stage in self._drafts_passing(rows)]
        formats = formats_of_batches(before, are_batches=rows.reader in _OF_BATCHES)
        if condition == SEVERAL_PARTITIONS or id(rows.taken) in self._alone:
            formats = tuple(each.only_if(SEVERAL_PARTITIONS.removeprefix("if ")) for each in formats)
        if rows.has_rest:
            formats = tuple(dict.fromkeys((*formats, *chain.from_iterable(before))))
        return _Draft(self._tasks.get(id(rows.taken), self._count(rows)), ordered, inputs, kept, formats, notes=notes)

    def _drafts_passing(self, rows: Rows) -> Iterable[int]:
        """Return the stages whose items go on: of two sides that meet, the last one passes by the other."""
        return self._ends[id(rows.taken[-1].vertex)] if rows.taken else ()

    def _exchange(self, stage: int, rows: Rows, condition: str, step: Step | None) -> Exchange:
        why = f"{step.label}: {rows.why}" if step and step.label else rows.why
        return Exchange(stage, "kept" if rows.targets is None else "shuffle", why, not condition, condition)

    def _applied(self, stage: int, applied: Sequence[StageCall]) -> int:
        for one in applied:
            if one.node is not None:
                stage = self._called(self._sent_to(stage, one), calls_of(one, self._drafts[stage].formats))
                draft = self._drafts[stage]
                draft.is_ordered = one.node.has_order([draft.is_ordered])
            elif one.operation is not None:
                stage = self._called(stage, ())
            self._drafts[stage].formats = formats_behind(self._drafts[stage].formats, one)
        return stage

    def _sent_to(self, stage: int, applied: StageCall) -> int:
        """Return the stage in which a call runs that also gets what the caller's process sends to every task."""
        sources = tuple(source for vertex in applied.beside for source in self._ends[id(vertex)])
        if not sources:
            return stage
        before = self._drafts[stage]
        if before.is_closed or max(sources) > stage:  # A stage is drawn after all stages that it reads.
            before = _Draft(before.tasks, before.is_ordered, self._piped([stage]), formats=before.formats)
            stage = self._added(before)
        before.inputs += tuple(Exchange(source, "sent") for source in sources)
        before.kept |= frozenset(sources)
        return stage

    def _called(self, stage: int, calls: Iterable[Call]) -> int:
        """Add calls to the end of a stage, or to one that continues it if others read it too."""
        before = self._drafts[stage]
        if before.is_closed:
            stage = self._added(_Draft(before.tasks, before.is_ordered, self._piped([stage]), formats=before.formats))
        self._drafts[stage].calls += calls
        return stage

    def _in_tasks(self, stage: int, splits: Splits) -> int:
        before, tasks = self._drafts[stage], self._count(splits)
        formats = self._in_tasks_of(splits, before.formats, before.tasks)
        if before.is_closed and before.tasks != tasks:
            return self._added(_Draft(tasks, before.is_ordered, self._piped([stage]), formats=formats))
        before.tasks, before.formats = tasks, formats
        return stage

    def _in_tasks_of(self, splits: Splits, formats: tuple[ItemFormat, ...], pieces: Amount) -> tuple[ItemFormat, ...]:
        return formats if splits.tasks is None else formats_in_tasks(formats, pieces)

    def _piped(self, stages: Iterable[int]) -> tuple[Exchange, ...]:
        for stage in stages:
            self._drafts[stage].is_closed = True
        return tuple(Exchange(stage, "pipe") for stage in stages)

    def _added(self, draft: _Draft) -> int:
        self._drafts.append(draft)
        return len(self._drafts) - 1

    def _count(self, each: Input) -> Amount:
        return self._outlook.counting.partitions((replace(each, applied=()),))

    def _all_ordered(self, stages: Iterable[int]) -> bool:
        return all(self._drafts[stage].is_ordered for stage in stages)

    # ---------------------------------------------------------------------------------------------------------- jobs

    def _run(self, number: int, vertex: Vertex) -> None:
        """Mark the stages that run in a job: up to the stored results of earlier jobs."""
        pending = list(self._ends[id(vertex)])
        while pending:
            draft = self._drafts[pending.pop()]
            # Jobs are marked in their order, so a stage that has this one has it last.
            if number not in draft.jobs[-1:]:
                draft.jobs.append(number)
                pending += (each.source for each in draft.inputs if each.source not in draft.kept)


_OF_BATCHES = (read_batches, read_buckets, read_forwarded, read_placed)
"""Readers that return the output of another task unchanged."""


def _beginning(each: Input) -> tuple[int, int | None]:
    """Return the common part of inputs that differ in their calls only: their source, and the number of tasks."""
    match each:
        case Splits(parts=(Splits() as inner,), tasks=tasks):
            return id(inner), tasks
        case Splits(parts=parts):
            return id(parts), None
        case Rows(taken=taken):
            return id(taken), None
        case CachedInput(held) | FromTable(held):
            return id(held), None
        case _:
            return id(each), None


def _members(order: Sequence[Task]) -> dict[tuple[int, int | None], list[Sequence[StageCall]]]:
    """Return the calls of inputs with a common prefix, each once."""
    found: dict[tuple[int, int | None], dict[tuple[int, ...], Sequence[StageCall]]] = defaultdict(dict)
    for each in order:
        if not isinstance(each, Vertex):
            applied = tuple(each.applied)
            found[_beginning(each)].setdefault(tuple(map(id, applied)), applied)
    return {key: list(of.values()) for key, of in found.items()}


def _readers(order: Sequence[Task], reads: Any) -> dict[int, int]:
    """Return how many others read each input."""
    counts: dict[int, int] = defaultdict(int)
    for each in order:
        for read in reads(each):
            counts[id(read)] += 1
    return counts


def _in_common(members: Sequence[Sequence[StageCall]]) -> Sequence[StageCall]:
    """Return the calls that all of them begin with."""
    first, *others = members
    shared = len(first)
    for other in others:
        pairs = takewhile(lambda pair: pair[0] is pair[1], zip(first[:shared], other, strict=False))
        shared = sum(1 for _ in pairs)
    return first[:shared]
