"""The walk from core operations to a physical plan: its handlers, functions called by item, and captured containers."""

from __future__ import annotations

import dataclasses
import functools
import gc
import re
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dstream.base.by_value import is_importable
from dstream.base.memory import DEFAULT_BROADCAST, SMALL_SIDE
from dstream.base.records import record
from dstream.engine.physical.graph import Decision, Done, Ending, Graph, Move, PartitionCount
from dstream.engine.physical.vertices import (
    Evaluation,
    Items,
    OutputFormat,
    Pending,
    Splits,
    in_one_task,
    is_one_task,
    piped,
)
from dstream.errors import UnsupportedError
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.resolution import Namespaces
from dstream.expressions.tree import Built
from dstream.failures import is_our_name
from dstream.operators.rows.guards import Action
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.plan.captures import PLAIN, captures_of
from dstream.plan.operations.elementwise import CallResults, Chain
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.sort_limit import Limit, TakeWhile
from dstream.plan.operations.streams import Hint, Node, Read
from dstream.plan.properties import bounded_operations, ordered_operations
from dstream.plan.walk import fold, topological
from dstream.spi import Collector, Gatherer
from dstream.spi.columns import SourceTraits
from dstream.values.fields import has_plain_fields

__all__ = [
    "Across",
    "ClusterFacts",
    "ColumnMode",
    "Compiling",
    "OfOne",
    "Wide",
    "called_as",
    "called_by",
    "compile_end",
    "compile_node",
    "compiled",
    "containers_changed",
    "in_columns_alone",
    "is_ours",
    "line_to",
]


ColumnMode: TypeAlias = Literal["auto", "off", "verify"]
"""Whether functions run as expressions: yes, no, or both, and the results are compared."""


@record(slots=False)
class ClusterFacts:
    """The facts that a graph depends on in addition to its plan.

    Attributes:
        parallelism: the number of partitions into which sources are divided.
        cores: the number of concurrent tasks.
        largest_small_side: the largest side of a join in bytes that may be broadcast; below 0, none is.
        items_of_a_piece: the largest number of the caller's items in one split, if that is bounded.
        broadcast_limit: the largest right side in bytes of a hash join without its own limit.
        columns: whether functions are compiled to expressions, which run instead of them.
        most_pieces: the number of splits into which a source may be divided beyond that, so that each is read quickly.
    """

    parallelism: int
    cores: int
    largest_small_side: int
    items_of_a_piece: int | None = None
    broadcast_limit: int = DEFAULT_BROADCAST
    columns: ColumnMode = "auto"
    most_pieces: int = 0

    @property
    def reads_functions(self) -> bool:
        """Whether functions are read."""
        return self.columns != "off"

    @property
    def is_sequential(self) -> bool:
        """Whether one task does all work."""
        return self.parallelism == 1

    def largest_sent(self, tasks: int, other: int | None = None) -> int:
        """Return how many bytes a side of a join may have to be sent whole to each task of the other side.

        That costs its bytes for each task; a shuffle costs the bytes of both sides once.

        Args:
            tasks: of the other side; 0 if they were not counted.
            other: how many bytes that side has; None: it was not measured, and is taken to be as large.
        """
        most = self.largest_small_side
        if tasks == 1 or (tasks == 2 and other is None):
            return most
        return min(most, SMALL_SIDE if other is None or not tasks else max(SMALL_SIDE, other // (tasks - 1)))

    def targets(self, partitions: int) -> int:
        """Return in how many partitions to shuffle the rows of `partitions` partitions."""
        # Three tasks for each core, so that a free core takes the next one while a slow task still runs.
        return max(1, min(partitions, max(self.parallelism, 3 * self.cores)))


@dataclass
class Compiling:
    """A graph that is being made.

    Attributes:
        root: the end of the plan.
        actions: the functions to call in this process with the items that each `peek` step saw, by channel.
        namespaces: the known values of the globals that functions use.
    """

    root: End | Several
    facts: ClusterFacts
    actions: dict[int, Action] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    namespaces: Namespaces = field(init=False)

    def __post_init__(self) -> None:
        self.namespaces = Namespaces(functools.partial(containers_changed, self.root))
        for each in topological(self.root):
            kind = SourceTraits(each.source).item_class if isinstance(each, Read) else None
            if kind is not None and has_plain_fields(kind):
                self.namespaces.classes[kind] = None
        # Both once for the whole plan: a question for each operation would walk a long one again and again.
        self._bounded, self._ordered = bounded_operations(self.root), ordered_operations(self.root)

    def is_bounded(self, node: Node) -> bool:
        """Return whether the items of an operation end."""
        return self._bounded[id(node)]

    def is_ordered(self, node: Node) -> bool:
        """Return whether the items of an operation have an encounter order that must be preserved."""
        return self._ordered[id(node)]

    def only_reader(self, node: Node) -> Node | None:
        """Return the operation or end that alone reads the items of an operation; None if there are several."""
        readers = self._readers.get(id(node), ())
        return readers[0] if len(readers) == 1 else None

    @functools.cached_property
    def _readers(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = {}
        for each in topological(self.root):
            for upstream in each.inputs():
                found.setdefault(id(upstream), []).append(each)
        return found

    def items_of(self, node: Node) -> Items:
        """Return the items of an operation, compiled with all that it reads from."""
        return fold(node, lambda each, inputs: compile_node(each, inputs, self))

    def decide(self, decision: Decision) -> Pending:
        """Add a decision, and return a placeholder for the inputs, or for the last job, that it will return."""
        self.decisions.append(decision)
        return Pending(len(self.decisions) - 1)


def compiled(end: End | Several, facts: ClusterFacts) -> tuple[Graph, dict[int, Action]]:
    """Return the graph of a plan, and the actions of `peek` steps in this process, by their channels."""
    compiling = Compiling(end, facts)
    ending = compile_end(end, compiling)
    return Graph(tuple(compiling.decisions), ending), compiling.actions


@functools.singledispatch
def compile_end(end: End | Several, compiling: Compiling) -> Ending:
    """Return the ending of the items before `end`."""
    raise UnsupportedError(f"the Spark engine does not run a plan that ends in {end!r}")


@functools.singledispatch
def compile_node(node: Node, inputs: Sequence[Items], compiling: Compiling) -> Items:
    """Return the items of an operation, from the items of its inputs."""
    raise UnsupportedError(f"the Spark engine does not run {node.label()}")


class Wide(ABC):
    """The execution of an operation over several partitions. Each subclass is a value.

    Attributes:
        counts: whether it has to know the number of partitions.
    """

    counts: bool = True

    @abstractmethod
    def begin(self, inputs: Items, partitions: int) -> Move:
        """Decide for items in this number of partitions; 0 if they were not counted."""


@record(slots=False, eq=False)
class OfOne:
    """The base class of decisions about one stream that are the same for any number of partitions."""

    items: Items

    counts = False

    @property
    def inputs(self) -> tuple[Items, ...]:
        return (self.items,)


@record(slots=False, eq=False)
class Across:
    """The choice of every operation that looks beyond one item: one partition does it alone, several do it `wide`.

    Attributes:
        narrow: what the one partition does.
        ends: the items end. One task reads sources that do not, unless a prefix of them is wanted.
        decided: the decisions on the functions that the one partition calls.
        gives: the output format of the one partition.
    """

    node: Node
    items: Items
    narrow: Operation
    wide: Wide
    ends: bool = True
    decided: Sequence[Evaluation] = ()
    gives: OutputFormat | None = None

    @property
    def inputs(self) -> tuple[Items, ...]:
        return (self.items,)

    @property
    def counts(self) -> bool:
        # One task reads an endless source, regardless of its pieces.
        return self.wide.counts and self.ends

    def begin(self, inputs: tuple[Items, ...], partitions: tuple[PartitionCount, ...]) -> Move:
        (items,), (several,) = inputs, partitions
        # Before the question for one partition: this may make it one.
        if not self.ends:
            items = _endless_in_one_task(self.node, items)
        if several == 1 or is_one_task(items):
            return Done(piped(items, self.node, self.narrow, _HERE, self.decided, self.gives))
        return self.wide.begin(items, several or 0)


def across(
    node: Node,
    items: Items,
    compiling: Compiling,
    wide: Callable[[], Wide],
    narrow: Operation | None = None,
    decided: Sequence[Evaluation] = (),
    gives: OutputFormat | None = None,
) -> Items:
    """Run an operation in the only partition, or across several.

    Args:
        node: the operation.
        items: its input.
        compiling: the graph that is being made.
        wide: makes what several partitions do.
        narrow: what one partition does, if that is not what the operation does in the caller's process.
        decided: the decisions on the functions that it calls.
        gives: the output format of one partition.
    """
    narrow, inputs = narrow or operation(node), node.inputs()
    ends = not inputs or compiling.is_bounded(inputs[0])
    # Known before the run, so no decision has to be made.
    if is_one_task(items):
        return piped(items, node, narrow, _HERE, decided, gives)
    return (compiling.decide(Across(node, items, narrow, wide(), ends, decided, gives)),)


_HERE = "here, where all items stand"


def in_columns_alone(
    node: Node,
    items: Items,
    compiling: Compiling,
    wide: Callable[[], Wide],
    gives: OutputFormat,
    decided: Sequence[Evaluation] = (),
) -> Items:
    """Compile an operation that preserves columns only if it is known before the run that one task has all items.

    Otherwise `explain()` would show the plan of several partitions, and a single one would run another.
    """
    if is_one_task(items):
        return piped(items, node, operation(node), _HERE, decided, gives)
    return across(node, items, compiling, wide, functools.partial(_of_items, operation(node)), decided)


def _of_items(operation: Operation, items: Iterator[Any], task: Task) -> Iterator[Any]:
    # The iterator of columns yields their items.
    return operation(iter(items), task)


def _endless_in_one_task(node: Node, items: Items) -> Items:
    """Read unbounded items in one task, unless only a prefix of them is needed."""
    if all(isinstance(each, Splits) for each in items):
        return in_one_task(items)
    if isinstance(node, Limit | TakeWhile):
        return items
    raise UnsupportedError(
        f"the Spark engine does not run {node.label()} on an infinite stream that follows one with a shuffle "
        "(sorted, distinct); limit() it before"
    )


def line_to(node: Node) -> list[Node]:
    """Return an operation and those before it, up to the first that is neither a chain nor a hint."""
    line = [node]
    while isinstance(node, Chain | Hint):
        node = node.upstream
        line.append(node)
    return line


def called_by(node: Node, facts: ClusterFacts) -> tuple[Evaluation, ...]:
    """Return the decisions on the functions of an operation that takes items one by one; nothing if none is read."""
    return called_as(node, [*(["fn"] if isinstance(node, CallResults) else []), *_names(node)], facts)


def called_as(node: Node, names: Iterable[str], facts: ClusterFacts) -> tuple[Evaluation, ...]:
    """Return the evaluations of functions that are called, by these names; a part of the node is named by its call."""
    if not facts.reads_functions:
        return ()
    what = f"{_method(node.step.label)}() takes items one by one"
    return tuple(Evaluation(name, obstacle=what) for name in dict.fromkeys(names))


def _method(label: str) -> str:
    """Return the name of the last call of a label, or of the sink among its arguments."""
    inside = re.fullmatch(r"\.?(?:write_to|collect)\((.*)\)", label)
    calls = inside[1] if inside else label
    # Arguments may be calls themselves, so parentheses go from the inside out.
    while (without := re.sub(r"\([^()]*\)", "", calls)) != calls:
        calls = without
    return calls.rpartition(".")[2].partition("(")[0]


def _names(value: Any) -> Iterator[str]:
    """Yield the names of the fields that contain user functions."""
    for each in dataclasses.fields(value):
        if each.name not in _NOT_OF_ITEMS:
            yield from _names_in(each.name, getattr(value, each.name))


def _names_in(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Collector):
        yield from (each for each, _ in value.functions)
    elif isinstance(value, tuple):
        for each in value:
            yield from _names_in(name, each)
    elif name == "operator" and dataclasses.is_dataclass(value):
        yield from _names(value)
    elif isinstance(value, Gatherer):
        yield from _of_gatherer(value.integrator)
    elif callable(value) and not is_ours(value):
        yield name


def _of_gatherer(integrator: Any) -> Iterator[str]:
    """Yield the name of the function that takes items: ours may call one of the user's for them."""
    if not isinstance(integrator, functools.partial):
        yield from () if is_ours(integrator) else ("integrator",)
    elif any(callable(each) and not is_ours(each) for each in integrator.args):
        yield "fn"


_NOT_OF_ITEMS = frozenset({"create", "kind", "take", "policy"})
"""Fields of functions that make a state, or run in the caller's process."""


def is_ours(fn: Any) -> bool:
    """Return whether dstream has written a function, or its class."""
    return is_our_name(getattr(fn, "__module__", None) or type(fn).__module__)


def containers_changed(root: End | Several) -> frozenset[int] | None:
    """Return the ids of the lists, dicts and sets that functions of a plan reach which may do more than to look.

    A function that was compiled changes nothing, except by operators of objects that it creates. Any other function may
    change what it captures, and everything reachable from it: in its task the other functions see the change, since
    they are pickled together. The objects of a source are pickled in its splits, apart from them.

    Returns:
        The ids; None if there are too many objects to look at, so that any container may change.
    """
    pending: list[Any] = [
        value
        for each in topological(root)
        for _, value in each.shipped()
        if not (isinstance(each, Read) and value is each.source)
    ]
    seen: dict[int, Any] = {}
    while pending:
        value = pending.pop()
        if type(value) in PLAIN or id(value) in seen:
            continue
        seen[id(value)] = value  # The entry keeps the object alive, so that its id is not reused.
        if len(seen) > _MOST_REACHED:
            return None
        pending.extend(_reached(value))
    return frozenset(number for number, value in seen.items() if isinstance(value, dict | list | set))


_MOST_REACHED = 20_000


def _reached(value: Any) -> Iterable[Any]:
    """Return the objects that an object may change."""
    match value:
        case types.ModuleType():
            return ()
        case types.FunctionType():
            return () if is_importable(value) else _captured(value)
        case type():
            # A metaclass has the code of calls, and bases have methods and attributes.
            return () if is_importable(value) else (*vars(value).values(), *value.__mro__[1:], type(value))
    # The class of an object has its methods.
    return [*gc.get_referents(value), type(value)]


def _captured(function: types.FunctionType) -> Iterable[Any]:
    """Return what a function may change: one that is read runs the operators of its defaults and its classes alone."""
    found = read(function, function.__code__.co_argcount)
    if isinstance(found, Unreadable):
        return (captured for _, captured in captures_of(function))
    kinds = (each.kind for each in found.walk() if isinstance(each, Built))
    return (*kinds, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *vars(function).values())
