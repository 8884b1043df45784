"""Guards: recovery from failed items in tasks, and attribution of the failures of sources.

A task writes one value for each such item to the channel of its guard: a dead letter, or the name of the exception.
`dstream.engine.dead_letters` receives them in the driver.

The generator that attributes the failures of a source costs a tenth of an item-wise step, so it is only added to
sources that run code for each item.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from dstream.base.functions import checked_result, many
from dstream.base.pickling import dumps
from dstream.errors import SourceError
from dstream.failures import blame, naming, shown
from dstream.operators.rows.blocks import Block, ColumnItems, blocks_of_range
from dstream.operators.rows.loops import converted
from dstream.plan.steps import Guard, Op, Step
from dstream.spi import ArrowRows, Split, SplitOfRecords
from dstream.spi.source import Misread
from dstream.values import DeadLetter

if TYPE_CHECKING:
    from dstream.operators.rows.operations import Task

__all__ = ["Action", "Handler", "HandlerOfMisread", "items_of", "recovering", "shipped"]


Action = tuple[Step, Callable[[Any], object]]
"""A step, and the function to call in the caller's process with the values that the step recorded."""


def recovering(op: Op, task: Task) -> Op:
    """Return a guarded step as a `flat_map` that catches the exceptions of its guards."""
    return Op("flat_map", _Recovering(op, Handler(op.guards, task)), None, op.step)


def shipped(op: Op) -> Op:
    """Return a step without the parts of its guards that are only used in the driver."""
    return dataclasses.replace(op, guards=tuple(guard.on_a_worker() for guard in op.guards))


class _Recovering:
    """Function from an item to the list of a step's results; only the handler's if the step fails half-way."""

    def __init__(self, op: Op, handle: Handler) -> None:
        self._op = op
        self._handle = handle

    def __call__(self, item: Any) -> Sequence[Any]:
        try:
            return self._results(item)
        except Exception as error:
            handled = self._handle(item, error)
            if handled is None:
                raise
            return handled

    def _results(self, item: Any) -> Sequence[Any]:
        result = checked_result(self._op.fn(item))
        if self._op.action == "filter":
            return (item,) if result else ()
        if self._op.action == "flat_map":
            return [converted(each, self._op.kind) for each in many(result)]
        return (converted(result, self._op.kind),)


class Handler:
    """Handler of items on which a step failed: the first guard for the exception decides."""

    def __init__(self, guards: Iterable[Guard], task: Task) -> None:
        self._guards = [(guard, task.noting(guard)) for guard in guards]

    def __call__(self, item: Any, error: Exception) -> tuple[Any, ...] | None:
        """Return the replacement of the item, maybe nothing; None if no guard is for this exception."""
        for guard, note in self._guards:
            if isinstance(error, guard.kinds):
                return _treated(guard, note, item, error)
        return None


class HandlerOfMisread:
    """Handler of bad records of a source.

    A guard may be for the `SourceError` with the location of the record, or for the exception of the parser.
    """

    def __init__(self, guards: Iterable[Guard], task: Task) -> None:
        self._guards = [(guard, task.noting(guard)) for guard in guards]

    def __call__(self, misread: Misread) -> tuple[Any, ...]:
        """Return the replacement of a bad record, maybe nothing.

        Raises:
            SourceError: no guard is for it.
        """
        for guard, note in self._guards:
            is_for_all = issubclass(SourceError, guard.kinds)
            if is_for_all or isinstance(misread.problem, guard.kinds):
                kind = SourceError if is_for_all else type(misread.problem)
                if guard.treatment == "ignored":  # Its location is not needed, which may take reading.
                    note(kind.__name__)
                    return ()
                return _treated(guard, note, misread.record(), misread.error() if is_for_all else misread.problem)
        raise misread.error()


def _treated(guard: Guard, note: Callable[[Any], object], item: Any, error: Exception) -> tuple[Any, ...]:
    note(_letter(item, error, guard.of) if guard.treatment == "sent" else type(error).__name__)
    return _resolved(guard, item, error) if guard.treatment == "resolved" else ()


def _resolved(guard: Guard, item: Any, error: Exception) -> tuple[Any]:
    assert guard.fn is not None, "what resolves has a function"
    try:
        return (converted(checked_result(guard.fn(item, error)), guard.kind),)
    except Exception as problem:
        # A function may raise its argument, the failure: then the step that resolves is attributed, too.
        blame(problem, guard.step, item)
        raise


def _letter(item: Any, error: Exception, step: Step) -> DeadLetter:
    # A dead letter is sent to the driver: an item that cannot be pickled is replaced by a string.
    try:
        dumps(item)
    except Exception:
        item = shown(item)
    return DeadLetter(item, type(error).__name__, _message(error), step.label, str(step.where or ""))


def _message(error: Exception) -> str:
    # `__str__` of a user's exception may raise.
    try:
        return str(error)
    except Exception:
        return shown(error)


# A range beyond 64 bits has an iterator of another type (CPython 3.11).
_NEVER_FAIL = frozenset(map(type, map(iter, ([], (), range(0), range(2**70), ""))))


def items_of(
    split: Split[Any],
    step: Any,
    misread: Callable[[Misread], Iterable[Any]] | None = None,
    *,
    may_be_columns: bool = False,
) -> Iterator[Any]:
    """Open a split and return its items; exceptions of the split name `step`.

    Args:
        split: of any source; a `SplitOfRecords` if there is a `misread`.
        step: the name of the source in messages.
        misread: returns the items that replace a bad record.
        may_be_columns: whether the caller accepts `ColumnItems`.
    """
    if misread is not None:
        return _named(cast("SplitOfRecords[Any]", split).read_past(misread), step)
    with naming(step):
        read_blocks = getattr(split, "read_blocks", None)  # Asking for `InBlocks` takes as long as a small job.
        blocks = None if read_blocks is None else _named(read_blocks(), step)
        if blocks is not None and getattr(split, "gives_texts", False):
            return ColumnItems(blocks)
        items = split.read() if blocks is None else chain.from_iterable(blocks)
        arrow_rows = getattr(split, "arrow_rows", None) if may_be_columns else None
        rows = None if arrow_rows is None else arrow_rows()
    items = items if type(items) in _NEVER_FAIL or blocks is not None else _named(items, step)
    if rows is not None:
        return ColumnItems(_blocks(rows, step), items)
    of_range = blocks_of_range(items) if may_be_columns else None
    return items if of_range is None else ColumnItems(of_range, items)


def _blocks(rows: Iterator[ArrowRows | Iterator[Any]], step: Any) -> Iterator[Block]:
    from dstream.operators.columns.arrow_rows import blocks_of_rows  # loads NumPy and pyarrow

    yield from blocks_of_rows(_named(rows, step), step)


def _named(items: Iterator[Any], step: Any) -> Iterator[Any]:
    with naming(step):
        yield from items
