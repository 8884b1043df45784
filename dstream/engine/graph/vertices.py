"""Vertices and edges: what each task of a stage does, and how rows come to it from sources and other vertices.

Items between two operations are a tuple of inputs, in encounter order: the partitions of the first input come first.
An operation that needs one partition only is appended to each input. Where rows have to be written, a `Vertex` is made,
and `Rows` read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, NamedTuple, overload

from dstream.engine.graph.decided import Decided, Gives
from dstream.engine.graph.output_ports import EVERYTHING, OutputPort
from dstream.engine.kernels.core_operations import Operation
from dstream.engine.worker.readers import read_items
from dstream.engine.worker.rows import Row
from dstream.engine.worker.stage import Piece, Sink
from dstream.plan.core import Core, Read, Table
from dstream.plan.steps import Step

__all__ = [
    "Applied",
    "ForEachPiece",
    "FromTable",
    "Input",
    "Items",
    "Kept",
    "Pending",
    "Rows",
    "SourceSplits",
    "Splits",
    "Taken",
    "Vertex",
    "in_one_task",
    "is_one_task",
    "one_after_another",
    "operations_of",
    "piped",
    "with_calls",
]

Reader = Callable[[Iterator[Row]], Iterator[Any]]

ForEachPiece = Callable[[tuple[Piece, ...]], Callable[[int], Operation]]
"""Takes all pieces, and gives what each does by its number: where pieces do not all do the same."""


class Applied(NamedTuple):
    """A call of the user's in a stage, and what it does there.

    Attributes:
        node: the call; None: what is done belongs to the call before.
        operation: what each partition does; None: nothing.
        note: what the call means here, such as that all items stand in one partition.
        decided: what was decided of the functions that run here; of a `Chain` that of each step, None if it has none.
        gives: in what the results stand; None: of a `Chain` as its steps say, of another operation one by one.
        beside: the vertices whose rows came to the caller's process and are sent to every task of this operation.
    """

    node: Core | None
    operation: Operation | None
    note: str = ""
    decided: Sequence[Decided | None] = ()
    gives: Gives | None = None
    beside: tuple[Vertex, ...] = ()


@dataclass(frozen=True, eq=False)
class SourceSplits:
    """The splits of a source: asked for when they run, one after another.

    Attributes:
        divisor: into how many splits the source is to be divided.
    """

    node: Read
    divisor: int


@dataclass(frozen=True, eq=False)
class Splits:
    """An input that reads splits of sources, one task for each piece.

    Attributes:
        parts: whose pieces it has, one part after another.
        applied: what each piece does with its items.
        start: the number of the first piece that is read.
        stop: the number of the piece before which it ends; None: after the last one.
        tasks: so many tasks read the pieces, of which there are as many or more, each some that follow each other;
            None: one task for each piece.
        for_each: gives each piece, or each of those tasks, a last operation of its own.
    """

    parts: tuple[SourceSplits | Splits, ...]
    applied: Sequence[Applied] = ()
    start: int = 0
    stop: int | None = None
    tasks: int | None = None
    for_each: ForEachPiece | None = None

    @property
    def is_one_task(self) -> bool:
        """Whether one task reads all pieces, one after another."""
        return self.tasks == 1

    def between(self, start: int, stop: int | None) -> Splits:
        """Return some of the pieces."""
        return Splits((self,), start=start, stop=stop)


@dataclass(frozen=True, eq=False)
class Rows:
    """An input that reads what vertices wrote.

    Attributes:
        taken: whose rows.
        targets: to how many partitions the rows are sent, each to its target; None: they are read where they are.
        reader: makes items of the rows of a partition.
        is_ordered: whether the items have an encounter order; None: if those had it that were written.
        why: what the rows are moved or read again for, in words.
        counted: what decides how many targets there are, in words.
        notes: what else a reader of the plan should know of the stage that begins here.
        has_rest: items that the vertices did not ask for may follow, from where theirs came.
    """

    taken: tuple[Taken, ...]
    targets: int | None
    reader: Reader = read_items
    applied: Sequence[Applied] = ()
    is_ordered: bool | None = None
    why: str = ""
    counted: str = ""
    notes: tuple[str, ...] = ()
    has_rest: bool = False


@dataclass(frozen=True, eq=False)
class Taken:
    """Rows of a vertex.

    Attributes:
        port: which of them.
        behind: how many targets stand before its first one; below 0: how many of those of the vertex are not read.
        as_items: rows of another channel are read as items.
    """

    vertex: Vertex
    port: OutputPort = EVERYTHING
    behind: int = 0
    as_items: bool = False


@dataclass(frozen=True, eq=False)
class FromTable:
    """An input that reads the rows of a table of the engine's own kind."""

    node: Table
    applied: Sequence[Applied] = ()


@dataclass(frozen=True, eq=False)
class Kept:
    """An input that reads what the engine kept of an earlier run, in the engine's own terms."""

    held: Any
    applied: Sequence[Applied] = ()


@dataclass(frozen=True, eq=False)
class Pending:
    """Stands for the inputs that a decision will give; what is applied goes to the end of each of them."""

    decision: int
    applied: Sequence[Applied] = ()


Input = Splits | Rows | FromTable | Kept | Pending
Items = tuple[Input, ...]


@dataclass(frozen=True, eq=False)
class Vertex:
    """What each task of a stage does: read a partition of an input, run its operations, write rows.

    Attributes:
        output: makes rows of the items of a task.
        is_kept: the rows are written once, when the first job needs them, and stay where they are.
        first: the number of its first partition; those before ran in earlier waves, or belong to the other side.
        step: the operation that it belongs to.
        does: what the tasks do to the items before they write them, in words, if that is worth a line.
        notes: what else a reader of the plan should know of these tasks.
        decided: what was decided of the functions that the output runs.
    """

    inputs: Items
    output: Sink
    step: Step
    is_kept: bool = False
    first: int = 0
    does: str = ""
    notes: tuple[str, ...] = ()
    decided: Sequence[Decided | None] = ()


class _Calls(Sequence[Applied]):
    """Calls one after another. To add one copies few of them, so that thousands can be added one by one."""

    __slots__ = ("_full", "_last", "_size")

    def __init__(self, full: tuple[tuple[Applied, ...], ...], last: tuple[Applied, ...], size: int) -> None:
        self._full, self._last, self._size = full, last, size

    def then(self, applied: Sequence[Applied]) -> _Calls:
        """Return these, and others behind them."""
        last, size = (*self._last, *applied), self._size + len(applied)
        return _Calls(self._full, last, size) if len(last) < _MANY else _Calls((*self._full, last), (), size)

    def __iter__(self) -> Iterator[Applied]:
        return chain(chain.from_iterable(self._full), self._last)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Applied: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Applied]: ...

    def __getitem__(self, index: int | slice) -> Applied | Sequence[Applied]:
        return tuple(self)[index]


_MANY = 128


def piped(
    inputs: Items,
    node: Core | None,
    operation: Operation | None,
    note: str = "",
    decided: Sequence[Decided | None] = (),
    gives: Gives | None = None,
    beside: tuple[Vertex, ...] = (),
) -> Items:
    """Return the inputs with a call at the end of each; see `Applied`."""
    return with_calls(inputs, (Applied(node, operation, note, decided, gives, beside),))


def with_calls(inputs: Items, applied: Sequence[Applied]) -> Items:
    """Return the inputs with calls at the end of each."""
    if not applied:
        return inputs
    return tuple(replace(each, applied=_then(each.applied, applied)) for each in inputs)


def _then(before: Sequence[Applied], applied: Sequence[Applied]) -> Sequence[Applied]:
    if not isinstance(before, _Calls):
        before = _Calls((), tuple(before), len(before))
    return before.then(applied)


def operations_of(applied: Sequence[Applied]) -> tuple[Operation, ...]:
    """Return what calls do to items."""
    return tuple(each.operation for each in applied if each.operation is not None)


def one_after_another(inputs: Items) -> Items:
    """Return the same with neighbouring splits as one input, whose pieces are asked for one by one.

    A stream that is concatenated with itself 60 times has more pieces than could ever be listed.
    """
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
    """Say whether it is known before the run that all items stand in one partition."""
    if len(inputs) != 1:
        return False
    (each,) = inputs
    return (isinstance(each, Splits) and each.is_one_task) or (isinstance(each, Rows) and each.targets == 1)
