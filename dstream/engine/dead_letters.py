"""The recovered failures of one run in the driver: dead letters, and the report of failed items.

A task notes one value for each such item on the channel of its guard: a dead letter, or the name of the exception.
`RecoveryReport` takes these notes in the caller's process, delivers the letters, and reports in one line for each guard
how many items there were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from dstream.failures import near
from dstream.operators.rows.spill import Run
from dstream.plan.operations.streams import Node
from dstream.plan.properties import guards_of
from dstream.plan.steps import Guard, Step
from dstream.values import DeadLetter

if TYPE_CHECKING:
    from dstream.engine.calls import Progress

__all__ = ["RecoveryReport"]


_HELD = 1024


class RecoveryReport:
    """The notes of a run's guards. As a context it is reported and delivered at the end, unless the run failed.

    Args:
        operations: the operations of the plan that runs.
        progress: decides whether the counts are reported to the user.
    """

    def __init__(self, operations: Iterable[Node], progress: Progress) -> None:
        self._progress = progress
        self._taken = {guard.channel: _Taken(guard) for guard in guards_of(operations)}

    def taking(self, guard: Guard) -> Callable[[Any], None]:
        """Return a function that records the notes of a guard."""
        return self._taken[guard.channel].take

    def actions(self) -> dict[int, tuple[Step, Callable[[Any], None]]]:
        """Return the step and the function that records its notes, by their channel."""
        return {channel: (taken.guard.step, taken.take) for channel, taken in self._taken.items()}

    @property
    def has_letters(self) -> bool:
        """Whether whole items may arrive, in any number."""
        return any(taken.guard.delivery is not None for taken in self._taken.values())

    def __enter__(self) -> RecoveryReport:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        # A loop that was left early has seen enough; what failed until then counts.
        if kind is None or issubclass(kind, GeneratorExit):
            self.finish()

    def finish(self) -> None:
        """Deliver the letters and report the number of items since the last time."""
        # All deliveries before the first report: a run that fails in one of them reports nothing as sent.
        for taken in self._taken.values():
            taken.deliver()
        for taken in self._taken.values():
            if taken.counts:
                taken.report(partial(self._progress.report, taken.line()))
                taken.counts.clear()

    def watching(self, items: Iterator[Any]) -> Iterator[Any]:
        """Yield the items; finish at the end, also at an early one."""
        with self:
            yield from items


class _Taken:
    """The notes of one guard: a limited number of letters in memory, the rest on disk."""

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
        # Taken away first, so that the next delivery has only later letters.
        letters = chain(self._on_disk, self._held)
        self._on_disk, self._held = Run(), []
        self.guard.delivery(letters)

    def report(self, report: Callable[[], object]) -> None:
        """Report the fate of the items to the user, once it is decided."""
        if self.guard.delivery is None:
            report()
        else:
            self.guard.delivery.report(report)

    def line(self) -> str:
        """Write the number of failed items, their step, the errors, and their fate."""
        of, total = self.guard.of, self.counts.total()
        location = f" at {near(of.where.file, of.where.line)}" if of.where else ""
        items, were = ("1 item", "was") if total == 1 else (f"{total:,} items", "were")
        return f"dstream: {of.label}{location}: {items} failed with {self._kinds()} and {were} {self._treatment()}"

    def _kinds(self) -> str:
        if len(self.counts) == 1:
            return next(iter(self.counts))
        return " or ".join(f"{kind} ({number:,})" for kind, number in sorted(self.counts.items()))

    def _treatment(self) -> str:
        delivery = self.guard.delivery
        return self.guard.treatment if delivery is None else f"sent to {delivery.label}"
