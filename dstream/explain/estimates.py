"""`CostEstimate`: the cost of a physical plan, over the possible results of its decisions.

A decision is driven with every possible report: of one, few and many partitions, and then with each result of its
requests. Costs that are equal in all cases are certain; the rest is a range from the cheapest to the most expensive
case.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from dstream.engine.physical.graph import (
    AskForKept,
    Decision,
    Done,
    Graph,
    Last,
    Move,
    PartitionCount,
    Report,
    SendToAll,
    Totalled,
    Wanted,
)
from dstream.engine.physical.vertices import (
    CachedInput,
    Items,
    Pending,
    Rows,
    Taken,
    Vertex,
    one_after_another,
    with_calls,
)
from dstream.engine.tasks.process import InFunction
from dstream.errors import UnsupportedError
from dstream.explain.bounds import ANY, MANY, Cost, Counting, InputAlternatives, amount, may_read, range_of
from dstream.plan.operations.streams import CacheIdentity, Fork
from dstream.plan.stages import NOTHING, ONE, SEVERAL_PARTITIONS, Amount, exactly

__all__ = ["CostEstimate", "DecisionEstimate", "FutureJob"]


_MOST_TURNS = 40
"""After this number of requests, the number of further requests of a decision is unknown."""


_NOT_YET = Done()
_NOBODY: frozenset[InputAlternatives] = frozenset()
_FREE = Cost()
_ONE_STAGE = Cost(jobs=ONE, python_stages=ONE)


@dataclass(frozen=True)
class FutureJob:
    """A job that a decision may run.

    Attributes:
        vertices: whose rows it requests; several if it is one of several waves.
        condition: when it runs; empty: always.
    """

    title: str
    vertices: tuple[Vertex, ...]
    amount: Amount
    condition: str = ""


@dataclass(frozen=True)
class Reads:
    """The reads of other decisions' results on one path through a decision.

    Attributes:
        by_jobs: the results that its own jobs read, with the number of such jobs.
        passed_on: the results that the readers of its output read.
    """

    by_jobs: tuple[InputAlternatives, ...]
    passed_on: frozenset[InputAlternatives]


@dataclass(frozen=True, eq=False)
class DecisionEstimate:
    """The facts known of a decision before it is made.

    Attributes:
        jobs: the jobs that it may run, in order.
        cost: the cost of the jobs, from the results of earlier decisions.
        given: its alternative results, if there are several.
        ways: the reads of other decisions' rows in each case.
        conditions: the condition under which drawn rows are moved or read again, by the `id` of what they take.
        tasks: the number of tasks that read drawn rows, by the same `id`, if it varies.
        alone: rows that are not moved if all items are in one partition already.
    """

    jobs: tuple[FutureJob, ...]
    cost: Cost
    given: InputAlternatives | None
    ways: tuple[Reads, ...]
    conditions: dict[int, str]
    tasks: dict[int, Amount]
    alone: frozenset[int]


@dataclass(frozen=True, eq=False)
class _Case:
    """One path through a decision.

    Attributes:
        jobs: the purpose of each job on the path, its vertex, and when it runs.
        reads: the results of other decisions that the jobs read.
        condition: when this case applies.
    """

    done: Done = _NOT_YET
    jobs: tuple[tuple[str, Vertex, str], ...] = ()
    cost: Cost = _FREE
    reads: tuple[InputAlternatives, ...] = ()
    condition: str = ""

    @property
    def given(self) -> Items:
        """The inputs of downstream readers, or those of the last job."""
        return self.done.inputs if self.done.last is None else self.done.last.vertex.inputs


@dataclass
class CostEstimate:
    """The possible results of the decisions of one plan.

    Args:
        graphs: the graph of the plan; twice if the cores are not known: with the fewest, and with many.
    """

    graphs: Sequence[Graph]
    counting: Counting = field(default_factory=Counting)
    foreseen: list[DecisionEstimate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._inputs: list[list[Items]] = [[] for _ in self.graphs]
        self.lasts: list[Last] = []
        self._seen: dict[int, Rows] = {}
        self._refusals: list[UnsupportedError] = []
        self.keeping: dict[CacheIdentity, Vertex] = {}
        """The vertex that writes the stored items of a `cache()` or a fork."""
        for number in range(len(self.graphs[-1].decisions)):
            self._follow(number)

    def settled(self, items: Items, graph: int = -1) -> Items:
        """Return inputs with possible results of decisions instead of their placeholders."""
        if not any(isinstance(each, Pending) for each in items):
            return items
        given = self._inputs[graph]
        parts = (
            with_calls(given[each.decision], each.applied) if isinstance(each, Pending) else (each,) for each in items
        )
        return one_after_another(tuple(chain.from_iterable(parts)))

    def cost(self, end: Cost, reads: Mapping[InputAlternatives, Amount]) -> Cost:
        """Return the cost of the whole plan.

        Args:
            end: the cost of the last job, from the results of decisions.
            reads: how often the last job reads the result of a decision.
        """
        total, often = end, defaultdict(lambda: NOTHING, reads)
        # Readers first: the number of runs of a decision's jobs is known once the reads of downstream decisions are
        # known.
        for decision in reversed(self.foreseen):
            times = NOTHING
            if decision.given is not None:
                times = often[decision.given]
                total += decision.given.cost.times(times)
            total += decision.cost
            for either in {each for path in decision.ways for each in (*path.by_jobs, *path.passed_on)}:
                more = range_of(_times_read(either, path, times) for path in decision.ways)
                known = often[either]  # Two that read it in one job read it once.
                often[either] = replace(known + more, least=max(known.least, more.least))
        return total

    def _follow(self, number: int) -> None:
        """Examine all cases of a decision, after those that it depends on."""
        all_cases = [self._cases(graph.decisions[number], place) for place, graph in enumerate(self.graphs)]
        cases = list(chain.from_iterable(all_cases))
        rows_of = [self._new_rows(case.given) for case in cases]
        # If no rows are written and all are read, the inputs are unchanged in each case.
        is_same = len({len(case.given) for case in cases}) == 1
        is_same = is_same and not any(case.jobs or rows for case, rows in zip(cases, rows_of, strict=True))
        is_open = len(cases) > 1 and not is_same
        either = self._either([case.done.inputs for case in cases]) if is_open else None
        for place, some in enumerate(all_cases):
            self._inputs[place].append(some[-1].done.inputs if either is None else (CachedInput(either),))
        self.lasts = [case.done.last for case in cases if case.done.last is not None] or self.lasts
        self.foreseen.append(self._summed_up(cases, all_cases[-1], rows_of, either))

    # -------------------------------------------------------------------------------------------------------- cases

    def _cases(self, decision: Decision, graph: int) -> list[_Case]:
        """Return every path through a decision, the one with the most work last."""
        inputs = tuple(self.settled(items, graph) for items in decision.inputs)
        cases: list[_Case] = []
        for partitions in self._numbers(inputs, decision.counts):
            cases += self._paths(functools.partial(decision.begin, inputs, partitions))
        if not cases:
            raise self._refusals[-1]
        return cases

    def _numbers(self, inputs: tuple[Items, ...], counts: bool) -> Iterator[tuple[PartitionCount, ...]]:
        """Yield the numbers of partitions that the decision may receive: one, several, many."""
        if len(inputs) == 1:
            is_one = self.counting.may_be_one(inputs[0])
            if is_one is not False:
                yield (1,)
            if is_one:
                return
        amounts = [self.counting.partitions(items) for items in inputs]
        if not counts:
            yield (None,) * len(inputs)
            return
        # One partition is the case above.
        least = tuple(_at_least(2, each) if len(inputs) == 1 else each.least for each in amounts)
        most = tuple(MANY if each.most is None else each.most for each in amounts)
        if least != most:
            yield least
        yield most

    def _paths(self, begin: Callable[[], Move]) -> Iterator[_Case]:
        """Follow a decision from its first move, through each outcome of its questions; a refusal is no path."""
        pending = [(begin, _Case())]
        while pending:
            step, case = pending.pop()
            try:
                move = step()
            except UnsupportedError as refusal:
                self._refusals.append(refusal)
                continue
            if isinstance(move, Done):
                yield replace(case, done=move)
            else:
                # Taken from the end, so that outcomes are followed in their order, the one with the most work last.
                pending += reversed(list(self._on(move, case)))

    def _on(self, move: Wanted, case: _Case) -> Iterator[tuple[Callable[[], Move], _Case]]:
        """Yield the possible next steps, and the case up to each."""
        go_on = move.then.next
        if isinstance(move, Totalled):
            yield functools.partial(go_on, move.fn(())), case  # Without rows no function of the user's runs.
            return
        if isinstance(move, SendToAll):
            yield functools.partial(go_on, InFunction("", ())), case
            return
        if isinstance(move, AskForKept):
            self.keeping[move.node.identity] = move.vertex
            readers = "all that read them" if isinstance(move.node, Fork) else "later plans too"
            again = Rows((Taken(move.vertex),), None, why=f"items stay where they were computed, for {readers}")
            yield functools.partial(go_on, again), self._after(case, move.vertex, "computes the items to keep")
            return
        partitions = self.counting.partitions(move.vertex.inputs)
        if move.unless_empty and partitions.least == 0:
            yield functools.partial(go_on, Report(move.vertex, 0)), case
        if move.unless_empty and partitions.most == 0:
            return
        requested = self._after(case, move.vertex, move.purpose)
        if move.unless_empty and self.counting.segments(move.vertex.inputs) != ONE:
            # One input represents several, each of which is a wave: the first of them may be sufficient.
            found = replace(requested, cost=case.cost + _ONE_STAGE, reads=case.reads)
            yield functools.partial(go_on, Report(move.vertex, 1, move.outcomes[0].rows)), found
            requested = replace(requested, cost=requested.cost + self._further_waves(move.vertex.inputs))
        is_enough = len(case.jobs) >= _MOST_TURNS
        outcomes = move.outcomes[:1] if is_enough else move.outcomes
        requested = replace(requested, cost=requested.cost + ANY) if is_enough else requested
        for outcome in outcomes:
            condition = outcome.condition or case.condition
            report = Report(move.vertex, 1, outcome.rows)
            yield functools.partial(go_on, report), replace(requested, condition=condition)

    def _further_waves(self, items: Items) -> Cost:
        """Return the cost of the jobs after the first wave, for inputs that represent several."""
        waves = self.counting.waves(items).most
        more = Amount(0, None if waves is None else max(waves - 1, 0))
        return Cost(jobs=more, python_stages=more)

    def _after(self, case: _Case, vertex: Vertex, purpose: str) -> _Case:
        """Return the case with a job that requests rows; rows that were requested before are not computed again."""
        job = (f"{vertex.step.label}: {purpose}", vertex, case.condition)
        if any(requested is vertex for _, requested, _ in case.jobs):
            return replace(case, jobs=(*case.jobs, job), cost=case.cost + Cost(jobs=ONE))
        cost, reads = self.counting.cost_of_job(vertex)
        return replace(case, jobs=(*case.jobs, job), cost=case.cost + cost, reads=(*case.reads, *reads))

    # ------------------------------------------------------------------------------------------------------ summary

    def _either(self, given: Sequence[Items]) -> InputAlternatives:
        """Return one representative of the inputs of several cases; the last ones are drawn."""
        return InputAlternatives(
            given[-1],
            range_of(map(self.counting.partitions, given)),
            range_of(map(self.counting.segments, given)),
            any(map(may_read, chain.from_iterable(given))),
            Cost.one_of([self.counting.cost_of(items)[0] for items in given]),
        )

    def _summed_up(
        self,
        cases: Sequence[_Case],
        drawn: Sequence[_Case],
        rows_of: Sequence[Sequence[Rows]],
        either: InputAlternatives | None,
    ) -> DecisionEstimate:
        main, rows = drawn[-1], rows_of[-1]
        is_open = bool(rows) and not cases[0].jobs and not rows_of[0]
        condition = SEVERAL_PARTITIONS if is_open else main.condition
        moved = [max((each.targets or 0 for each in some), default=0) for some in rows_of]
        # Keep references to the rows, since they are identified by the `id` of what they take.
        self._seen.update((id(each.taken), each) for some in rows_of for each in some)
        targets = range_of([amount(most) for most in moved if most] or [ONE])
        if targets.least == MANY:  # One for each core, whose number is unknown.
            targets = replace(targets, least=1)
        return DecisionEstimate(
            tuple(_jobs(drawn)),
            Cost.one_of([case.cost for case in cases]),
            either,
            tuple(Reads(case.reads, _NOBODY if either is None else self._reads(case)) for case in cases),
            {id(each.taken): condition for each in rows if condition},
            {id(each.taken): replace(targets, words=each.counted) for each in rows if each.targets == moved[-1] != 0},
            frozenset(id(each.taken) for each in main.given if isinstance(each, Rows)) if is_open else frozenset(),
        )

    def _reads(self, case: _Case) -> frozenset[InputAlternatives]:
        return self.counting.cost_of(case.done.inputs)[1]

    def _new_rows(self, items: Items) -> list[Rows]:
        """Return the rows that a decision reads or moves, without the rows of earlier decisions."""
        found: dict[int, Rows] = {}
        pending = list(items)
        while pending:
            each = pending.pop()
            if isinstance(each, Rows) and id(each.taken) not in found and id(each.taken) not in self._seen:
                found[id(each.taken)] = each
                for vertex in (taken.vertex for taken in each.taken):
                    pending += () if vertex.is_kept else vertex.inputs
        return list(found.values())


def _at_least(bound: int, of: Amount) -> int:
    """Return the least of an amount, but no less than a bound that it can have."""
    return max(of.least, bound if of.most is None else min(bound, of.most))


def _times_read(either: InputAlternatives, path: Reads, times: Amount) -> Amount:
    """Return how often a path reads another decision's result, if its own result is read `times` times."""
    own = exactly(path.by_jobs.count(either))
    return own + times if either in path.passed_on else own


def _jobs(cases: Sequence[_Case]) -> Iterator[FutureJob]:
    """Yield the jobs of all cases in the order in which they would run; equal ones are waves of one."""
    found: dict[tuple[str, str], list[tuple[Vertex, ...]]] = {}
    for case in cases:
        waves: dict[tuple[str, str], tuple[Vertex, ...]] = {}
        for title, vertex, condition in case.jobs:
            waves[title, condition] = (*waves.get((title, condition), ()), vertex)
        for key, vertices in waves.items():
            found.setdefault(key, []).append(vertices)
    for (title, condition), all_vertices in found.items():
        counts = [len(vertices) for vertices in all_vertices]
        least = min(counts) if len(counts) == len(cases) else 0
        most = None if max(counts) >= _MOST_TURNS else max(counts)
        yield FutureJob(title, all_vertices[-1], Amount(least, most), condition)
