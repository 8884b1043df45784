"""`Placement`: the engine on which a plan begins, with the estimate that decides it.

A pure function of the plan, of the known sizes of its sources, and of the machine, so that `explain()` returns the
same answer as the terminal operation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple

from dstream.base.copies import are_plain
from dstream.base.memory import DEFAULT_BOUND, DEFAULT_BROADCAST, largest_side
from dstream.base.records import record
from dstream.engine.auto.estimates import Machine, MeasuredCosts, PlanEstimate, estimated
from dstream.engine.compiler import ClusterFacts, ColumnMode, compiled
from dstream.engine.compiler.inputs import parts_of
from dstream.engine.runs.moves import CompiledPlan
from dstream.operators.rows.caches import read_here
from dstream.plan.capture_checks import has_immutable_captures
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.ends import Columns, End, ForEachPartition, Partitions, Several
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.operations.streams import Cache, Configure, Node, Parallel, Read, ReadCache, Table
from dstream.plan.operations.unbounded import ProcessorGraph
from dstream.plan.properties import guards_of, parallelism
from dstream.plan.walk import CacheLookup, recalled, topological
from dstream.spi.columns import SourceTraits
from dstream.spi.source import asking_sizes_once, input_size

__all__ = ["FRAMES", "MOST_ITEMS", "AutoSettings", "Placement", "held_items", "placed"]


@record
class AutoSettings:
    """The settings of a context that affect the placement of its plans.

    Attributes:
        local_limit: the seconds of estimated work from which on plans run on Spark; None: the faster engine.
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
        columns: whether functions are compiled to expressions, which run instead of them.
        worker_memory: the bytes of memory that a task may use before its operations spill.
    """

    local_limit: float | None = None
    broadcast_limit: int = DEFAULT_BROADCAST
    columns: ColumnMode = "auto"
    worker_memory: int = DEFAULT_BOUND


@record
class Placement:
    """The engine on which a plan begins.

    Attributes:
        engine: the interpreter of plans, the graphs of this process, or Spark.
        reason: a line on where, and why.
        estimate: the expected cost of the plan; None: no estimate was needed.
        must: only Spark supports the plan.
        facts: the facts of its graph in this process; None: it has no graph, or does not run in this process.
        lost: the additional seconds, since packages of columns are not imported for it.
        compiled: the plan with its graph for these facts; None: the estimate needed none for them.
    """

    engine: Literal["local", "inprocess", "spark"]
    reason: str
    estimate: PlanEstimate | None = None
    must: bool = False
    facts: ClusterFacts | None = None
    lost: float = 0.0
    compiled: CompiledPlan | None = None


@asking_sizes_once()
def placed(
    end: End | Several,
    found: CacheLookup,
    machine: Callable[[], Machine],
    costs: MeasuredCosts,
    settings: AutoSettings,
) -> Placement:
    """Return the engine on which a plan begins to run.

    Args:
        end: the end of the plan, in core operations.
        found: returns what is stored of a `cache()`.
        machine: returns the machine on which it may run; called if an estimate is needed.
        costs: the measured costs of functions in earlier runs.
        settings: the settings of the context.
    """
    plan = recalled(end, found)
    operations = topological(plan)
    only = _only_on_spark(operations)
    if only:
        return Placement("spark", f"runs on Spark: {only}", must=True)
    shows_partitions = isinstance(end, Partitions | ForEachPartition)
    number = math.inf if shows_partitions else held_items(operations)
    if number <= MOST_ITEMS:
        reason = f"runs in this process: {number:,} item{'s' * (number != 1)} from the caller"
        if _needs_no_copies(operations) and has_immutable_captures(plan):
            return Placement("local", reason)
        return Placement("inprocess", reason, facts=_facts(end, 1, settings))
    known = machine()
    facts, compilations = _facts(end, known.cores, settings), _Compilations(plan)
    estimate = _estimate(compilations, facts, known, costs)
    if not estimate.is_measured:
        if not facts.is_sequential:
            # A function may take a microsecond or a second: in small pieces it shows soon, and the rest can move.
            facts = replace(facts, most_pieces=_PIECES_OF_A_CORE * known.cores)
    elif not shows_partitions and estimate.seconds_here < _WORTH_A_LOOK * _SHORT:
        # What surely ends before Spark could help need not move, and one task shuffles nothing.
        alone = _facts(end, 1, settings)
        of_one = estimate if _surely_ends_here(estimate, known) else _estimate(compilations, alone, known, costs)
        if _surely_ends_here(of_one, known):
            facts, estimate = alone, of_one
    loading, lost = _loading_seconds(known) if facts.columns == "auto" else 0.0, 0.0
    if loading > 0 and estimate.seconds_here < _LONGEST_LOADING:
        # Calls have the same results, and need none of the packages of columns.
        called = _estimate(compilations, facts, known, costs, in_columns=False)
        lost = max(called.seconds_here - estimate.seconds_here, 0.0)
        if costs.lost + lost < loading:
            facts = replace(facts, columns="off")
    chosen = replace(_sooner(estimate, known, settings.local_limit), compiled=compilations.known(facts))
    if chosen.engine != "inprocess" or facts.columns == settings.columns:
        return replace(chosen, facts=facts)
    reason = f"{chosen.reason}; functions are called, since columns would take longer to load"
    return replace(chosen, reason=reason, facts=facts, lost=lost)


def _surely_ends_here(estimate: PlanEstimate, machine: Machine) -> bool:
    there = machine.start_seconds() + estimate.seconds_there
    return estimate.is_sure and estimate.seconds_here < min(_SHORT, there / _DOUBT)


FRAMES = "DataFrames are tables of Spark"


def _only_on_spark(operations: Sequence[Node]) -> str:
    """Return the part of a plan that only Spark runs, in words; empty if there is none."""
    for each in operations:
        match each:
            case Configure(settings=settings) if settings:
                return "its settings are those of Spark"
            case Columns(is_frame=True):
                return FRAMES
            case Table():
                return f"{each.label()} is there"
            case ReadCache() if read_here(each) is None:
                return f"{each.step.label or 'cache()'} keeps its items there"
    return ""


MOST_ITEMS = 4096
"""The largest number of the caller's items with which a plan runs in this process without an estimate."""


class _ItemBound(NamedTuple):
    """The number of items of the caller's that a part of a plan reads.

    Attributes:
        number: an upper bound; infinite if it is unknown, or others are read too.
        is_exact: no step adds or drops items, so that a `limit` bounds the number that is read.
    """

    number: float
    is_exact: bool = False


def held_items(operations: Sequence[Node]) -> float:
    """Return at most how many items of the caller's a plan reads; infinite if that is unknown, or others are read too.

    A source counts with its items, twice if two steps read it. A `limit` counts instead of the source before it, if
    only `map` and `peek` are between. What steps add or leave out does not count: that is known only once they ran.

    Args:
        operations: the operations of the plan, each after its inputs; the content of a `cache()` replaces its inputs.
    """
    partitions = [each.partitions for each in operations if isinstance(each, Parallel)]
    if partitions and (partitions[-1] or 1) > 1:
        return math.inf
    found: dict[int, _ItemBound] = {}
    for each in operations:
        found[id(each)] = _bound(each, [found[id(above)] for above in each.inputs()])
    return found[id(operations[-1])].number


def _bound(operation: Node, inputs: Sequence[_ItemBound]) -> _ItemBound:
    match operation:
        case Read(source=source):
            size = input_size(source)
            if not size.is_held:
                # A few items of a collection are read in this process before Spark could start.
                return _ItemBound(math.inf, size.is_near)
            return _ItemBound(math.inf if size.items is None else size.items, is_exact=True)
        case ReadCache(items=items):
            return _ItemBound(len(items))
        case Table() | ProcessorGraph(upstreams=()):
            return _ItemBound(math.inf)
        # These steps add and leave out nothing, so a limit after them bounds what is read.
        case Chain(ops=ops) if all(op.action in ("map", "peek", "count") and not op.guards for op in ops):
            return inputs[0]
        case Limit(count=most) if inputs[0].is_exact:
            return _ItemBound(min(inputs[0].number, most), is_exact=True)
    # Ever doubled, the exact number would be too long to add.
    return _ItemBound(min(sum(each.number for each in inputs), MOST_ITEMS + 1))


def _needs_no_copies(operations: Sequence[Node]) -> bool:
    """Return whether the interpreter, which does not copy items, has the same results as tasks that copy them.

    Plans that cache items, peek at them, or send failed ones to a sink run in tasks.
    """
    if any(isinstance(each, Cache | ReadCache) for each in operations) or any(guards_of(operations)):
        return False
    if any(isinstance(each, Chain) and any(op.action == "peek" for op in each.ops) for each in operations):
        return False
    sources = (each.source for each in operations if isinstance(each, Read))
    return all(map(_gives_immutable, sources))


def _gives_immutable(source: Any) -> bool:
    """Return whether the items of a source are immutable, so that they need not be copied."""
    traits = SourceTraits(source)
    try:
        return traits.is_free_to_read or _are_immutable(traits.iterable)
    except Exception:
        # Such as the exception of a metaclass that allows no hash: a task reports that item.
        return False


def _are_immutable(items: Any) -> bool:
    kind = type(items)
    if kind is range or kind is str:
        return True
    if kind not in (list, tuple, set, frozenset):
        return False  # Such as an iterator, which would be asked for its items.
    if tuple in set(map(type, items)):
        items = [*chain.from_iterable(each if type(each) is tuple else (each,) for each in items)]
    return are_plain(items)


class _Compilations:
    """The graphs of a plan, which is compiled once for the same facts."""

    def __init__(self, plan: End | Several) -> None:
        self._ends = [each.end for each in parts_of(plan)] if isinstance(plan, Several) else [plan]
        self._made: dict[ClusterFacts, list[CompiledPlan]] = {}

    def of(self, facts: ClusterFacts) -> list[CompiledPlan]:
        """Return the graph of each part of the plan."""
        made = self._made.get(facts)
        if made is None:
            made = self._made[facts] = [CompiledPlan(end, *compiled(end, facts)) for end in self._ends]
        return made

    def known(self, facts: ClusterFacts) -> CompiledPlan | None:
        """Return the graph that was compiled for `facts`; None if there is none, or more than one."""
        made = self._made.get(facts, ())
        return made[0] if len(made) == 1 else None


def _estimate(
    plan: _Compilations, facts: ClusterFacts, machine: Machine, costs: MeasuredCosts, *, in_columns: bool | None = None
) -> PlanEstimate:
    in_columns = facts.reads_functions if in_columns is None else in_columns
    found = [estimated(each.graph, machine, costs, in_columns=in_columns) for each in plan.of(facts)]
    most = max(found, key=lambda each: each.seconds_here)
    return replace(
        most,
        seconds_here=sum(each.seconds_here for each in found),
        seconds_there=sum(each.seconds_there for each in found),
        items=sum(each.items for each in found),
        is_sure=all(each.is_sure for each in found),
        is_measured=all(each.is_measured for each in found),
    )


def _sooner(estimate: PlanEstimate, machine: Machine, limit: float | None) -> Placement:
    here, there = estimate.seconds_here, machine.start_seconds() + estimate.seconds_there
    if limit is not None:
        border, allowed = here <= limit, f"local_limit={limit:g}"
    else:
        border = here <= there
        allowed = "and Spark does not start" if there == math.inf else f"{_seconds(there)} on Spark"
    about = f"{estimate.why}: about {_seconds(here)} here, {allowed}"
    if border:
        return Placement("inprocess", f"runs in this process: {about}", estimate)
    return Placement("spark", f"runs on Spark: {about}", estimate)


def _seconds(seconds: float) -> str:
    # Twice, since two digits alone would be 1e+02.
    return f"{float(f'{seconds:.2g}'):g} s" if seconds >= 0.0995 else f"{float(f'{seconds * 1000:.2g}'):g} ms"


def _loading_seconds(machine: Machine) -> float:
    """Return how long the packages of columns take to load that this process has not loaded yet."""
    return machine.scale * sum(seconds for name, seconds in _LOADING.items() if name not in sys.modules)


_LOADING = {"numpy": 0.1, "pyarrow": 0.04, "pyarrow.compute": 0.07}
"""CPU seconds of the first import of each package in a process; the last one includes dstream's own modules."""
_LONGEST_LOADING = 0.3
"""Seconds: a plan that takes longer in columns loads them."""

_SHORT = 1.0
"""Seconds up to which a plan may run in one task: a longer one may move, should its estimate be wrong."""
_WORTH_A_LOOK = 10
"""Shuffles take most of the time of several tasks in one process: without them a plan may take a tenth."""
_DOUBT = 1.5
"""An estimate may be too low by so much."""
_FEW_BYTES = 64 * 1024
_PIECES_OF_A_CORE = 4
"""Small: each task with the whole right side of a join builds a table of it."""


def _facts(end: End | Several, cores: int, settings: AutoSettings) -> ClusterFacts:
    """Return the facts of a graph that begins in this process: Spark's facts, unless one task reads a small input."""
    requested = parallelism(end)
    if not requested and _is_little(end):
        # There is one processor per core.
        requested, cores = 1, cores if _has_processors(end) else 1
    requested, largest = requested or cores, largest_side(settings.worker_memory)
    return ClusterFacts(requested, cores, largest, None, settings.broadcast_limit, settings.columns)


def _has_processors(end: Node) -> bool:
    return any(isinstance(each, ProcessorGraph) for each in topological(end))


def _is_little(end: Node) -> bool:
    """Return whether the sources of a plan surely have so little that dividing it costs more than it saves."""
    if isinstance(end, Partitions | ForEachPartition):
        return False
    few: Callable[[Node], bool] = lambda node: isinstance(node, Read) and _has_little(node)  # noqa: E731
    return all(few(each) for each in topological(end) if not each.inputs())


def _has_little(read: Read) -> bool:
    size = input_size(read.source)
    if size.is_held:
        return size.is_exact and size.items is not None and size.items <= 4096
    return size.stored_bytes is not None and size.stored_bytes <= _FEW_BYTES
