"""`StagedLetters`: takes the dead letters of a stage in a job without an end: they are committed with the epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from dstream.spi import WriteJob
from dstream.spi.sink import Receipt, Target
from dstream.stream.error_handling import Delivery

__all__ = ["StagedLetters"]


class StagedLetters:
    """Takes the dead letters of one stage, epoch after epoch, in place of what would commit them at once.

    Args:
        stage: its name.
        delivery: where they go.
        context: has the collections.
        begin: begins a write job of the epoch that runs, at the first letter.

    Attributes:
        target: of the reducer.
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
        self._receipts: list[Receipt] = []

    @property
    def label(self) -> str:
        """Where they go, as the user wrote it."""
        return self._delivery.label

    def __call__(self, letters: Iterable[Any]) -> None:
        """Write letters that nobody sees before the epoch is published."""
        rest = iter(letters)
        for first in rest:
            job = self._begin(self)
            self._receipts += self._delivery.staged(chain([first], rest), job.writer)

    def taken(self) -> list[Receipt]:
        """Return the receipts since the last call."""
        receipts, self._receipts = self._receipts, []
        return receipts
