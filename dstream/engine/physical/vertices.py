"""Vertices and edges of the physical plan: inputs, output ports, and the evaluation of user functions.

The channel of a row is the type of its content: items, a sample of them, a mark, watermarks, a failure, or a side
output of a step. A port selects some of the rows; the engine translates it to a query of Spark.

Items between two operations are a tuple of inputs, in encounter order: the partitions of the first input come first. An
operation that needs one partition only is appended to each input. If rows have to be written, a `Vertex` writes them,
and `Rows` read it.

The `Evaluation` of the functions of a vertex never runs: the compiler stores it with the operations, and `explain()`
shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, NamedTuple, overload

from dstream.base.records import record
from dstream.engine.tasks import rows
from dstream.engine.tasks.readers import read_items
from dstream.engine.tasks.stage import Piece, Reader, Sink
from dstream.expressions.reader import Unreadable
from dstream.operators.rows.operations import Operation
from dstream.plan.operations.streams import Node, Read, Table
from dstream.plan.steps import Step

__all__ = [
    "BESIDE",
    "BESIDE_AND_FAILURES",
    "BESIDE_AND_WATERMARKS",
    "EVERYTHING",
    "ITEMS",
    "ITEMS_AND_BESIDE",
    "ITEMS_AND_MARKS",
    "ITEMS_AND_WATERMARKS",
    "ONE_BY_ONE",
    "SAMPLE",
    "SCHEMAS",
    "SORTED_RUNS",
    "SUMMARY",
    "CachedInput",
    "Evaluation",
    "ForEachPiece",
    "FromTable",
    "Input",
    "InputFormat",
    "Items",
    "OutputFormat",
    "OutputPort",
    "Pending",
    "Rows",
    "SourceSplits",
    "Splits",
    "StageCall",
    "Taken",
    "Vertex",
    "in_one_task",
    "is_one_task",
    "one_after_another",
    "one_by_one",
    "only_if",
    "operations_of",
    "piped",
    "together",
    "with_calls",
]


@record
class Evaluation:
    """The evaluation of a function by tasks.

    Attributes:
        name: which function of its call it is, such as `summing(fn)`; empty: it is the only one.
        unread: why it is called for each item, if its expression is not known.
        obstacle: why it does not run over columns, in any format of the items, in words that follow "since";
            empty if it runs over columns as soon as the items are in columns.
        is_inlined: elsewhere the loop of the task evaluates its expression.
        called: why it is called elsewhere all the same, in words that follow "the function".
        written: how it is called in words, if it is no Python function.
        conditions: what has to be true of the data for it to run over columns, in words that follow "if".
    """

    name: str = ""
    unread: Unreadable | None = None
    obstacle: str = ""
    is_inlined: bool = False
    called: str = ""
    written: str = ""
    conditions: tuple[str, ...] = ()


@record
class InputFormat:
    """The format of an operation's items.

    Attributes:
        obstacle: why items arrive one by one, in words that follow "since"; empty: they are in columns.
        conditions: conditions on the data: items are in columns if all are true.
    """

    obstacle: str = ""
    conditions: tuple[str, ...] = ()


ONE_BY_ONE = InputFormat("the items before it come one by one")


def together(stands: Iterable[InputFormat]) -> InputFormat:
    """Return the common format of items in several formats."""
    found = list(stands)
    obstacle = next((each.obstacle for each in found if each.obstacle), "")
    if obstacle:
        return InputFormat(obstacle)
    return InputFormat("", tuple(dict.fromkeys(chain.from_iterable(each.conditions for each in found))))


@record
class OutputFormat:
    """The format of an operation's results.

    Attributes:
        obstacle: as of a `InputFormat`; empty: they are in columns if the items are of which they are made.
        conditions: as of a `InputFormat`.
    """

    obstacle: str = ""
    conditions: tuple[str, ...] = ()

    def of(self, items: InputFormat) -> InputFormat:
        """Return the format of results that are made of such items."""
        return together((items, InputFormat(self.obstacle, self.conditions)))


def only_if(condition: str) -> OutputFormat:
    """Return the format of results that are in columns if the items are, and if the condition is true of the data."""
    return OutputFormat(conditions=(condition,))


def one_by_one(obstacle: str = ONE_BY_ONE.obstacle) -> OutputFormat:
    """Return the format of results that are emitted one by one."""
    return OutputFormat(obstacle)


@record(slots=False)
class OutputPort:
    """A selection of the rows of a vertex.

    Attributes:
        name: a description of the rows.
        channels: the selected channels up to `ITEMS`: those of items and of reports about items.
        has_beside: whether the higher channels are selected too: those of `peek` steps and guards.
        sources: the tasks whose rows are selected; None: all.
        targets: the target partitions of the selected rows; None: all.
    """

    name: str
    channels: frozenset[int]
    has_beside: bool = False
    sources: range | None = None
    targets: range | None = None

    def has(self, row: rows.Row) -> bool:
        """Return whether a row is one of these."""
        # Above `ITEMS` each peek and guard has its own channel, so they cannot be selected by name.
        is_meant = row.channel in self.channels if row.channel <= rows.ITEMS else self.has_beside
        return is_meant and _is_within(row.source, self.sources) and _is_within(row.target, self.targets)

    def of_sources(self, start: int, stop: int) -> OutputPort:
        """Return the port of the rows of a range of tasks."""
        return replace(self, name=f"{self.name} of tasks {start} to {stop - 1}", sources=range(start, stop))

    def to_targets(self, start: int, stop: int) -> OutputPort:
        """Return the port of the rows that are sent to a range of partitions."""
        return replace(self, name=f"{self.name} for partitions {start} to {stop - 1}", targets=range(start, stop))

    def with_beside(self) -> OutputPort:
        """Return these rows, and the side rows."""
        return replace(self, has_beside=True)

    def with_counts(self) -> OutputPort:
        """Return these rows, and how many of all rows were sent."""
        return replace(self, channels=self.channels | {rows.COUNTS})

    def without_beside(self) -> OutputPort:
        """Return these rows, for readers after the delivery of the side rows."""
        return replace(self, has_beside=False)


def _is_within(number: int, numbers: range | None) -> bool:
    return numbers is None or number in numbers


_UP_TO_ITEMS = frozenset(range(rows.FAILED, rows.ITEMS + 1))

EVERYTHING = OutputPort("everything", _UP_TO_ITEMS, has_beside=True)
ITEMS = OutputPort("items", frozenset({rows.ITEMS}))
ITEMS_AND_MARKS = OutputPort("items and marks", _UP_TO_ITEMS)
ITEMS_AND_WATERMARKS = OutputPort("items and watermarks", frozenset({rows.ITEMS, rows.WATERMARKS}))
ITEMS_AND_BESIDE = OutputPort("items and what is beside them", frozenset({rows.ITEMS}), has_beside=True)
BESIDE = OutputPort("what is beside the items", frozenset(), has_beside=True)
BESIDE_AND_WATERMARKS = OutputPort(
    "what is beside the items, and watermarks", frozenset({rows.WATERMARKS}), has_beside=True
)
BESIDE_AND_FAILURES = OutputPort("failures and what is beside the items", frozenset({rows.FAILED}), has_beside=True)
SAMPLE = OutputPort("sample", frozenset({rows.SAMPLE}))
SORTED_RUNS = OutputPort("sorted runs", _UP_TO_ITEMS - {rows.SAMPLE}, has_beside=True)
SCHEMAS = OutputPort("schemas of columns", _UP_TO_ITEMS - {rows.ITEMS}, has_beside=True)
SUMMARY = OutputPort("summaries of partitions by gatherers", frozenset({rows.SUMMARY}))


ForEachPiece = Callable[[tuple[Piece, ...]], Callable[[int], Operation]]
"""A function that takes all pieces, and returns the operation of each by its number, if they differ."""


class StageCall(NamedTuple):
    """A user's call in a stage, and its effect in it.

    Attributes:
        node: the call; None: the operation belongs to the call before.
        operation: the operation of each partition; None: there is none.
        note: the effect of the call on this vertex, such as that all items are in one partition.
        decided: the decisions on the functions in it; of a `Chain` one for each step, None if it has none.
        gives: the format of the results; None: for a `Chain` the format of its steps, for other operations one by one.
        beside: the vertices whose rows were sent to the caller's process and are sent to every task of this operation.
    """

    node: Node | None
    operation: Operation | None
    note: str = ""
    decided: Sequence[Evaluation | None] = ()
    gives: OutputFormat | None = None
    beside: tuple[Vertex, ...] = ()


@record(slots=False, eq=False)
class SourceSplits:
    """The splits of a source: asked for when they run, one after another.

    Attributes:
        divisor: into how many splits the source is to be divided.
    """

    node: Read
    divisor: int


@record(slots=False, eq=False)
class Splits:
    """An input that reads splits of sources, one task for each piece.

    Attributes:
        parts: whose pieces it has, one part after another.
        applied: what each piece does with its items.
        start: the number of the first piece that is read.
        stop: the number of the piece before which it ends; None: after the last one.
        tasks: the number of tasks that read the pieces, at most one for each piece; each reads consecutive ones;
            None: one task for each piece.
        for_each: returns a separate last operation for each piece, or for each of those tasks.
    """

    parts: tuple[SourceSplits | Splits, ...]
    applied: Sequence[StageCall] = ()
    start: int = 0
    stop: int | None = None
    tasks: int | None = None
    for_each: ForEachPiece | None = None

    @property
    def is_one_task(self) -> bool:
        """Whether one task reads all pieces, in sequence."""
        return self.tasks == 1

    def inner(self) -> Sequence[Splits]:
        """Return the splits among its parts."""
        return [part for part in self.parts if isinstance(part, Splits)]

    def between(self, start: int, stop: int | None) -> Splits:
        """Return a range of the pieces."""
        # Wraps these splits instead of copying them, so that the source is divided once for all ranges.
        return Splits((self,), start=start, stop=stop)


@record(slots=False, eq=False)
class Rows:
    """An input that reads the output of vertices.

    Attributes:
        taken: whose rows.
        targets: to how many partitions the rows are sent, each to its target; None: they are read where they are.
        reader: makes items of the rows of a partition.
        is_ordered: whether the items have an encounter order; None: if those had it that were written.
        why: what the rows are moved or read again for, in words.
        counted: what determines the number of targets, in words.
        notes: further notes on the stage that begins with these rows.
        has_rest: further items of the same source may follow.
    """

    taken: tuple[Taken, ...]
    targets: int | None
    reader: Reader = read_items
    applied: Sequence[StageCall] = ()
    is_ordered: bool | None = None
    why: str = ""
    counted: str = ""
    notes: tuple[str, ...] = ()
    has_rest: bool = False


@record(slots=False, eq=False)
class Taken:
    """Rows of a vertex.

    Attributes:
        port: the rows that are read.
        behind: the number of targets before its first one; below 0: the number of the vertex's targets that are not
            read.
        as_items: rows of another channel are read as items.
    """

    vertex: Vertex
    port: OutputPort = EVERYTHING
    behind: int = 0
    as_items: bool = False


@record(slots=False, eq=False)
class FromTable:
    """An input that reads the rows of a table of the engine's own kind."""

    node: Table
    applied: Sequence[StageCall] = ()


@record(slots=False, eq=False)
class CachedInput:
    """An input that reads the cached rows of an earlier run, in the engine's own terms."""

    held: Any
    applied: Sequence[StageCall] = ()


@record(slots=False, eq=False)
class Pending:
    """Placeholder for the inputs of a decision; an applied call is appended to each of them."""

    decision: int
    applied: Sequence[StageCall] = ()


Input = Splits | Rows | FromTable | CachedInput | Pending
Items = tuple[Input, ...]


@record(slots=False, eq=False)
class Vertex:
    """The work of each task of a stage: read a partition of an input, run its operations, write rows.

    Attributes:
        output: the sink that makes rows of the items of a task.
        is_kept: the rows are written once, when the first job needs them, and stored.
        first: the number of its first partition; earlier ones ran in earlier waves, or belong to the other side.
        step: the operation that it belongs to.
        does: a description of the tasks' work on the items before they write them, if it is worth a line.
        notes: further notes on these tasks.
        decided: the decisions on the functions that the output runs.
    """

    inputs: Items
    output: Sink
    step: Step
    is_kept: bool = False
    first: int = 0
    does: str = ""
    notes: tuple[str, ...] = ()
    decided: Sequence[Evaluation | None] = ()


class _Calls(Sequence[StageCall]):
    """A sequence of calls. Appending copies only a few of them, so that thousands can be added one by one."""

    __slots__ = ("_full", "_last", "_size")

    def __init__(self, full: tuple[tuple[StageCall, ...], ...], last: tuple[StageCall, ...], size: int) -> None:
        self._full, self._last, self._size = full, last, size

    def then(self, applied: Sequence[StageCall]) -> _Calls:
        """Return these calls followed by others."""
        last, size = (*self._last, *applied), self._size + len(applied)
        return _Calls(self._full, last, size) if len(last) < _MANY else _Calls((*self._full, last), (), size)

    def __iter__(self) -> Iterator[StageCall]:
        return chain(chain.from_iterable(self._full), self._last)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> StageCall: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[StageCall]: ...

    def __getitem__(self, index: int | slice) -> StageCall | Sequence[StageCall]:
        return tuple(self)[index]


_MANY = 128


def piped(
    inputs: Items,
    node: Node | None,
    operation: Operation | None,
    note: str = "",
    decided: Sequence[Evaluation | None] = (),
    gives: OutputFormat | None = None,
    beside: tuple[Vertex, ...] = (),
) -> Items:
    """Return the inputs with a call at the end of each; see `StageCall`."""
    return with_calls(inputs, (StageCall(node, operation, note, decided, gives, beside),))


def with_calls(inputs: Items, applied: Sequence[StageCall]) -> Items:
    """Return the inputs with calls at the end of each."""
    if not applied:
        return inputs
    return tuple(replace(each, applied=_then(each.applied, applied)) for each in inputs)


def _then(before: Sequence[StageCall], applied: Sequence[StageCall]) -> Sequence[StageCall]:
    if not isinstance(before, _Calls):
        before = _Calls((), tuple(before), len(before))
    return before.then(applied)


def operations_of(applied: Sequence[StageCall]) -> tuple[Operation, ...]:
    """Return the operations of calls on items."""
    return tuple(each.operation for each in applied if each.operation is not None)


def one_after_another(inputs: Items) -> Items:
    """Return the inputs with neighbouring splits as one input, whose pieces are asked for one by one.

    A stream that is concatenated with itself 60 times has more pieces than could ever be listed.
    """
    # Only neighbours: the rows of a shuffle have a position in the order, too.
    groups = ((is_splits, tuple(group)) for is_splits, group in groupby(inputs, lambda each: isinstance(each, Splits)))
    joined = ((Splits(group),) if is_splits and len(group) > 1 else group for is_splits, group in groups)  # type: ignore[arg-type]
    return tuple(chain.from_iterable(joined))


def in_one_task(inputs: Items) -> Items:
    """Return splits as one that a single task reads."""
    if is_one_task(inputs):
        return inputs
    assert all(isinstance(each, Splits) for each in inputs), "one task reads from sources"
    return (Splits(inputs, tasks=1),)  # type: ignore[arg-type]


def is_one_task(inputs: Items) -> bool:
    """Return whether it is known before the run that all items are in one partition."""
    # Each input has its own partitions.
    if len(inputs) != 1:
        return False
    (each,) = inputs
    return (isinstance(each, Splits) and each.is_one_task) or (isinstance(each, Rows) and each.targets == 1)
