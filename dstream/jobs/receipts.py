"""Counts of the edges of a job, and dead letters staged until the sinks publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from dstream.spi import WriteJob
from dstream.spi.epochs import EdgeCounts
from dstream.spi.sink import Receipt, Target
from dstream.stream.runtime import Delivery

__all__ = ["StagedLetters", "add_edges"]


def add_edges(known: dict[str, dict[str, Any]], counts: EdgeCounts) -> None:
    """Add the counts of one task to those of each vertex in the state of a job.

    Args:
        known: by the name of the vertex; it is changed.
        counts: of the task.
    """
    for vertex, (received, sent) in counts.items():
        of_vertex = known.setdefault(vertex, {})
        for name, more in (("items_in_by_edge", received), ("items_out_by_edge", sent)):
            before = of_vertex.get(name) or [0] * len(more)
            of_vertex[name] = [number + further for number, further in zip(before, more, strict=True)]
        of_vertex["items_out"] = sum(of_vertex["items_out_by_edge"])


class StagedLetters:
    """Dead letters of one stage, staged run after run instead of being committed immediately.

    Args:
        stage: its name.
        delivery: where they are sent.
        context: has the collections.
        begin: returns the write job of the run; called at the first letter.

    Attributes:
        target: of the reducer.
        count: how many letters were written in this run.
    """

    def __init__(
        self,
        stage: str,
        delivery: Delivery,
        context: Any,
        begin: Callable[[StagedLetters], WriteJob[Any]],
    ) -> None:
        self.stage = stage
        self.sink = delivery.reducer
        self.target: Target[Any] = delivery.reducer.open(context)
        self._delivery = delivery.opened(context)
        self._begin = begin
        self.count = 0
        self._receipts: list[Receipt] = []
        self._reports: list[Callable[[], object]] = []

    @property
    def label(self) -> str:
        """The reducer of the letters, as the user wrote it."""
        return self._delivery.label

    def __call__(self, letters: Iterable[Any]) -> None:
        """Write letters that are invisible until the run is published; none if they were published before."""
        rest = iter(letters)
        for first in rest:
            # At the first letter: an epoch without failures begins no write of letters.
            job = self._begin(self)
            if job.is_done:
                return
            self._receipts += self._delivery.staged(self._counted(chain([first], rest)), job.writer)

    def _counted(self, letters: Iterable[Any]) -> Iterator[Any]:
        for letter in letters:
            self.count += 1
            yield letter

    def report(self, report: Callable[[], object]) -> None:
        """Report to the user that letters were sent when they are published, if they are."""
        if self._receipts:
            self._reports.append(report)

    def published(self) -> None:
        """Report to the user the letters that are published now."""
        reports, self._reports = self._reports, []
        for report in reports:
            report()

    def forget(self) -> None:
        """Forget the letters of a run that is not published."""
        self._receipts, self._reports, self.count = [], [], 0

    def none_written(self, job: WriteJob[Any]) -> list[Receipt]:
        """Write as a sink does that gets no item, and return the receipts."""
        return list(self._delivery.staged((), job.writer))

    def taken(self) -> list[Receipt]:
        """Return the receipts since the last call."""
        receipts, self._receipts = self._receipts, []
        return receipts
