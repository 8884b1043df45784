"""`Nowhere`: the end of a graph without a sink, whose processors write by themselves, or into nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dstream.spi import Collections, Receipt

__all__ = ["Nowhere"]


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A sink, its target, what writes one epoch into it, and the writer: none of them keeps anything."""

    @property
    def label(self) -> str:
        """What stands in pictures."""
        return "nowhere"

    @property
    def collector(self) -> None:
        """None."""
        return None

    @property
    def job(self) -> None:
        """None."""
        return None

    @property
    def is_done(self) -> bool:
        """Whether a job of that name has written: never."""
        return False

    def open(self, context: Collections) -> Self:
        """Return it."""
        return self

    def begin(self, job: str | None, epoch: int = 1) -> Self:
        """Return it."""
        return self

    def result(self) -> None:
        """Return None."""

    @property
    def writer(self) -> Self:
        """It."""
        return self

    def write(self, items: Iterator[Any]) -> Iterator[Receipt]:
        """Let the tasks do their work; give no receipts."""
        deque(items, maxlen=0)
        yield from ()

    def commit(self, receipts: Sequence[Receipt]) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""
