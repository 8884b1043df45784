"""Recovering: what a task does with items that a step fails on, and what the driver makes of it at the end.

A task notes one value for each such item on the channel of its guard: a dead letter, or the name of
the exception. `Recovered` takes these notes in the caller's process, delivers the letters, and says
in one line for each guard how many items there were.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from dstream.engine.kernels.fused_steps import converted, many
from dstream.engine.kernels.spilling import Run
from dstream.errors import SourceError
from dstream.failures import blame, near, shown
from dstream.pickling import dumps
from dstream.plan.core import Called, Chain, Core, Read
from dstream.plan.steps import Guard, Op, Step
from dstream.spi.source import Misread
from dstream.values import DeadLetter
from dstream.values.flattened import checked_result

if TYPE_CHECKING:
    from dstream.engine.kernels.core_operations import Task
    from dstream.engine.progress import Progress

__all__ = ["Action", "Handler", "HandlerOfMisread", "Recovered", "guards_of", "recovering", "shipped"]

_HELD = 1024

Action = tuple[Step, Callable[[Any], object]]
"""A step, and what to call in the caller's process for what it saw or noted."""


def recovering(op: Op, task: Task) -> Op:
    """Return a guarded step as one that gives from no item to many, and catches what its guards are for."""
    return Op("flat_map", _Recovering(op, Handler(op.guards, task)), None, op.step)


def shipped(op: Op) -> Op:
    """Return a step without what its guards keep in the driver."""
    return dataclasses.replace(op, guards=tuple(guard.on_a_worker() for guard in op.guards))


class _Recovering:
    """A step on one item: a list of what it gives, which is nothing of it if it fails half-way."""

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
    """Decides what becomes of an item on which a step failed: the first guard that is for the exception does."""

    def __init__(self, guards: Iterable[Guard], task: Task) -> None:
        self._guards = [(guard, task.noting(guard)) for guard in guards]

    def __call__(self, item: Any, error: Exception) -> tuple[Any, ...] | None:
        """Return what takes the place of the item, maybe nothing; None if no guard is for this exception."""
        for guard, note in self._guards:
            if isinstance(error, guard.kinds):
                return _treated(guard, note, item, error)
        return None


class HandlerOfMisread:
    """Decides what takes the place of a bad record of a source.

    A guard may be for the `SourceError` that says where the record stands, or for what the parser raised.
    """

    def __init__(self, guards: Iterable[Guard], task: Task) -> None:
        self._guards = [(guard, task.noting(guard)) for guard in guards]

    def __call__(self, misread: Misread) -> tuple[Any, ...]:
        """Return what takes its place, maybe nothing.

        Raises:
            SourceError: no guard is for it.
        """
        for guard, note in self._guards:
            is_for_all = issubclass(SourceError, guard.kinds)
            if is_for_all or isinstance(misread.problem, guard.kinds):
                kind = SourceError if is_for_all else type(misread.problem)
                if guard.treatment == "ignored":  # Nobody asks where it stands, which may take reading.
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
        # A function may raise what it was given: then the step that resolves is to blame, too.
        blame(problem, guard.step, item)
        raise


def _letter(item: Any, error: Exception, step: Step) -> DeadLetter:
    try:
        dumps(item)
    except Exception:
        item = shown(item)
    return DeadLetter(item, type(error).__name__, _message(error), step.label, str(step.where or ""))


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return shown(error)


class Recovered:
    """What the guards of one run noted. As a context it is told and delivered at the end, unless the run failed.

    Args:
        operations: those of the plan that runs.
        progress: says whether the user wants to be told.
    """

    def __init__(self, operations: Iterable[Core], progress: Progress) -> None:
        self._progress = progress
        self._taken = {guard.channel: _Taken(guard) for guard in guards_of(operations)}

    def __bool__(self) -> bool:
        return bool(self._taken)

    def taking(self, guard: Guard) -> Callable[[Any], None]:
        """Return a function that takes what a guard notes."""
        return self._taken[guard.channel].take

    def actions(self) -> dict[int, tuple[Step, Callable[[Any], None]]]:
        """Return the step and what takes its notes, by the channel that these come on."""
        return {channel: (taken.guard.step, taken.take) for channel, taken in self._taken.items()}

    @property
    def has_letters(self) -> bool:
        """Whether whole items may come, of which there may be any number."""
        return any(taken.guard.delivery is not None for taken in self._taken.values())

    def __enter__(self) -> Recovered:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        # Whoever leaves a loop early has seen enough; what failed until then counts.
        if kind is None or issubclass(kind, GeneratorExit):
            self.finish()

    def finish(self) -> None:
        """Deliver the letters and tell how many items there were, since the last time."""
        for taken in self._taken.values():
            taken.deliver()
        for taken in self._taken.values():
            if taken.counts:
                taken.tell(partial(self._progress.tell, taken.line()))
                taken.counts.clear()

    def watching(self, items: Iterator[Any]) -> Iterator[Any]:
        """Give the items; finish at the end, also if it comes early."""
        return self._watching(items) if self._taken else items

    def _watching(self, items: Iterator[Any]) -> Iterator[Any]:
        with self:
            yield from items


def guards_of(operations: Iterable[Core]) -> Iterator[Guard]:
    """Give the guards of the operations of a plan."""
    for each in operations:
        if isinstance(each, Chain):
            yield from chain.from_iterable(op.guards for op in each.ops)
        elif isinstance(each, Called | Read):
            yield from each.guards


class _Taken:
    """What one guard noted: a few letters in memory, more of them on disk."""

    def __init__(self, guard: Guard) -> None:
        self.counts: Counter[str] = Counter()
        self.guard = guard
        self._held: list[DeadLetter] = []
        self._on_disk = Run()

    def take(self, noted: Any) -> None:
        if self.guard.delivery is None:
            self.counts[noted] += 1
            return
        self.counts[noted.error] += 1
        self._held.append(noted)
        if len(self._held) >= _HELD:
            self._on_disk.extend(self._held)
            self._held.clear()

    def deliver(self) -> None:
        if self.guard.delivery is None:
            return
        letters = chain(self._on_disk, self._held)
        self._on_disk, self._held = Run(), []
        self.guard.delivery(letters)

    def tell(self, say: Callable[[], object]) -> None:
        """Tell the user what became of the items, once that is so."""
        if self.guard.delivery is None:
            say()
        else:
            self.guard.delivery.tell(say)

    def line(self) -> str:
        """Write how many items failed where, with what, and what became of them."""
        of, total = self.guard.of, self.counts.total()
        place = f" at {near(of.where.file, of.where.line)}" if of.where else ""
        items, were = ("1 item", "was") if total == 1 else (f"{total:,} items", "were")
        return f"dstream: {of.label}{place}: {items} failed with {self._kinds()} and {were} {self._treatment()}"

    def _kinds(self) -> str:
        if len(self.counts) == 1:
            return next(iter(self.counts))
        return " or ".join(f"{kind} ({number:,})" for kind, number in sorted(self.counts.items()))

    def _treatment(self) -> str:
        delivery = self.guard.delivery
        return self.guard.treatment if delivery is None else f"sent to {delivery.label}"
