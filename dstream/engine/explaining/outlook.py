"""`Outlook`: where the decisions of a graph can go, and what runs for that.

A decision is driven with every report that may come: of one partition, of few and of many, and then with each outcome
of what it asks for. What is the same in all cases is sure; between the cheapest and the dearest case lies the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from dstream.engine.explaining.bounds import ANY, MANY, Cost, Counting, Either, amount, may_read, range_of
from dstream.engine.graph.decisions import Ask, AskForKept, Decision, Done, Graph, Move, Report, Several, Totalled
from dstream.engine.graph.results import Last
from dstream.engine.graph.vertices import Items, Kept, Pending, Rows, Taken, Vertex, one_after_another, with_calls
from dstream.plan.stages import ONE, SEVERAL_PARTITIONS, Amount

__all__ = ["Foreseen", "FutureJob", "Outlook"]

_MOST_TURNS = 40
"""After so many questions nobody knows how many more a decision may ask."""


_NOT_YET = Done()
_FREE = Cost()


@dataclass(frozen=True)
class FutureJob:
    """A job that a decision may run.

    Attributes:
        vertex: whose rows it asks for.
        condition: when it runs; empty: in any case.
    """

    title: str
    vertex: Vertex
    amount: Amount
    condition: str = ""


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What is known of a decision before it is made.

    Attributes:
        jobs: those that it may run, in order.
        cost: what they run.
        conditions: of rows that are drawn, by the `id` of what they take: when they are moved, or read again.
        tasks: of rows that are drawn, in the same way: how many tasks read them, if that depends.
        alone: rows that are not moved if all items stand in one partition before.
    """

    jobs: tuple[FutureJob, ...]
    cost: Cost
    conditions: dict[int, str]
    tasks: dict[int, Amount]
    alone: frozenset[int]


@dataclass(frozen=True, eq=False)
class _Case:
    """One way through a decision.

    Attributes:
        jobs: the asking vertices on the way, and what the job is for.
        condition: when it goes this way.
    """

    done: Done = _NOT_YET
    jobs: tuple[tuple[str, Vertex, str], ...] = ()
    cost: Cost = _FREE
    condition: str = ""

    @property
    def given(self) -> Items:
        """The inputs that others read, or those of the last job."""
        return self.done.inputs if self.done.last is None else self.done.last.vertex.inputs


@dataclass
class Outlook:
    """What can come of the decisions of one plan.

    Args:
        graphs: the graph of the plan; twice if the cores are not known: with the fewest, and with many.
    """

    graphs: Sequence[Graph]
    counting: Counting = field(default_factory=Counting)
    foreseen: list[Foreseen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._given: list[list[Items]] = [[] for _ in self.graphs]
        self.lasts: list[Last] = []
        self._seen: dict[int, Rows] = {}
        for number in range(len(self.graphs[-1].decisions)):
            self._follow(number)

    def settled(self, items: Items, graph: int = -1) -> Items:
        """Return inputs with what decisions may give in the place of what stands for it."""
        if not any(isinstance(each, Pending) for each in items):
            return items
        given = self._given[graph]
        parts = (
            with_calls(given[each.decision], each.applied) if isinstance(each, Pending) else (each,) for each in items
        )
        return one_after_another(tuple(chain.from_iterable(parts)))

    def _follow(self, number: int) -> None:
        """Look at all cases of a decision, after those that it depends on."""
        all_cases = [self._cases(graph.decisions[number], place) for place, graph in enumerate(self.graphs)]
        cases = list(chain.from_iterable(all_cases))
        is_open = any(len(some) > 1 for some in all_cases)
        main = cases[-1]
        either = self._either(cases, main.done.inputs) if is_open else None
        for place, some in enumerate(all_cases):
            self._given[place].append(some[-1].done.inputs if either is None else (Kept(either),))
        ends = [case.done.last for case in cases if case.done.last is not None]
        self.lasts = ends or self.lasts
        self.foreseen.append(self._summed_up(cases, all_cases[-1]))

    # -------------------------------------------------------------------------------------------------------- cases

    def _cases(self, decision: Decision, graph: int) -> list[_Case]:
        """Return every way through a decision, that with the most work last."""
        inputs = tuple(self.settled(items, graph) for items in decision.inputs)
        cases: list[_Case] = []
        for partitions in self._numbers(inputs, decision.counts):
            cases += self._ways(decision.begin(inputs, partitions))
        return cases

    def _numbers(self, inputs: tuple[Items, ...], counts: bool) -> Iterator[tuple[Several, ...]]:
        """Give the numbers of partitions that the decision may be told: one, few, many."""
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
        least = tuple(_at_least(2, each) if len(inputs) == 1 else each.least for each in amounts)
        most = tuple(MANY if each.most is None else each.most for each in amounts)
        if least != most:
            yield least
        yield most

    def _ways(self, begun: Move) -> Iterator[_Case]:
        """Follow a decision from its first move, through each outcome of what it asks."""
        waiting = [(begun, _Case())]
        while waiting:
            move, case = waiting.pop()
            if isinstance(move, Done):
                yield replace(case, done=move)
                continue
            waiting += reversed(list(self._on(move, case)))

    def _on(self, move: Ask | AskForKept | Totalled, case: _Case) -> Iterator[tuple[Move, _Case]]:
        if isinstance(move, Totalled):
            yield move.then.next(move.fn(())), case  # Of no rows nobody's function makes anything.
            return
        if isinstance(move, AskForKept):
            again = Rows((Taken(move.vertex),), None, why="items stay where they were computed, also for later plans")
            yield move.then.next(again), self._after(case, move.vertex, "computes the items to keep")
            return
        partitions = self.counting.partitions(move.vertex.inputs)
        if move.unless_empty and partitions.least == 0:
            yield move.then.next(Report(move.vertex, 0)), case
        if move.unless_empty and partitions.most == 0:
            return
        asked = self._after(case, move.vertex, move.purpose)
        is_enough = len(case.jobs) >= _MOST_TURNS
        outcomes = move.outcomes[:1] if is_enough else move.outcomes
        asked = replace(asked, cost=asked.cost + ANY) if is_enough else asked
        for outcome in outcomes:
            condition = outcome.condition or case.condition
            yield move.then.next(Report(move.vertex, 1, outcome.rows)), replace(asked, condition=condition)

    def _after(self, case: _Case, vertex: Vertex, purpose: str) -> _Case:
        """Return the case with a job that asks for rows; those that were asked for before are still there."""
        is_there = any(asked is vertex for _, asked, _ in case.jobs)
        cost = Cost(jobs=ONE) if is_there else self.counting.cost_of_job(vertex)
        job = (f"{vertex.step.label}: {purpose}", vertex, case.condition)
        return replace(case, jobs=(*case.jobs, job), cost=case.cost + cost)

    # ------------------------------------------------------------------------------------------------------ summary

    def _either(self, cases: Sequence[_Case], drawn: Items) -> Either:
        """Return what stands for the inputs that are given in one case or another."""
        given = [case.done.inputs for case in cases]
        costs = [self.counting.cost_of(items) for items in given]
        reads: dict[Either, bool] = {}
        for either in chain.from_iterable(of for _, of in costs):
            reads[either] = all(either in of for _, of in costs)
        return Either(
            drawn,
            range_of(map(self.counting.partitions, given)),
            range_of(map(self.counting.segments, given)),
            any(map(may_read, chain.from_iterable(given))),
            Cost.one_of([cost for cost, _ in costs]),
            reads,
        )

    def _summed_up(self, cases: Sequence[_Case], drawn: Sequence[_Case]) -> Foreseen:
        main = drawn[-1]
        rows_of = [self._new_rows(case.given) for case in cases]
        rows = rows_of[-1]
        is_open = bool(rows) and not cases[0].jobs and not rows_of[0]
        condition = SEVERAL_PARTITIONS if is_open else main.condition
        moved = [max((each.targets or 0 for each in some), default=0) for some in rows_of]
        self._seen.update((id(each.taken), each) for some in rows_of for each in some)
        targets = range_of([amount(most) for most in moved if most] or [ONE])
        return Foreseen(
            tuple(_jobs(drawn)),
            Cost.one_of([case.cost for case in cases]),
            {id(each.taken): condition for each in rows if condition},
            {id(each.taken): replace(targets, words=each.counted) for each in rows if each.targets == moved[-1] != 0},
            frozenset(id(each.taken) for each in main.given if isinstance(each, Rows)) if is_open else frozenset(),
        )

    def _new_rows(self, items: Items) -> list[Rows]:
        """Return the rows that a decision reads or moves, without those of decisions before it."""
        found: dict[int, Rows] = {}
        waiting = list(items)
        while waiting:
            each = waiting.pop()
            if isinstance(each, Rows) and id(each.taken) not in found and id(each.taken) not in self._seen:
                found[id(each.taken)] = each
                for vertex in (taken.vertex for taken in each.taken):
                    waiting += () if vertex.is_kept else vertex.inputs
        return list(found.values())


def _at_least(bound: int, of: Amount) -> int:
    """Return the least of an amount, but no less than a bound that it can have."""
    return max(of.least, bound if of.most is None else min(bound, of.most))


def _jobs(cases: Sequence[_Case]) -> Iterator[FutureJob]:
    """Give the jobs of all cases in the order in which they would run; equal ones after each other are waves."""
    found: dict[tuple[str, str], list[int]] = {}
    about: dict[tuple[str, str], tuple[Vertex, str]] = {}
    for case in cases:
        counts: dict[tuple[str, str], int] = {}
        for title, vertex, condition in case.jobs:
            key = (title, condition)
            counts[key] = counts.get(key, 0) + 1
            about.setdefault(key, (vertex, condition))
        for key, count in counts.items():
            found.setdefault(key, []).append(count)
    for key, counts_of in found.items():
        vertex, condition = about[key]
        least = min(counts_of) if len(counts_of) == len(cases) else 0
        most = None if max(counts_of) >= _MOST_TURNS else max(counts_of)
        yield FutureJob(key[0], vertex, Amount(least, most), condition)
