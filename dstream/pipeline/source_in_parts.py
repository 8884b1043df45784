"""`InParts`: a source that is asked for as many parts as the user wants of its stage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dstream.spi import Collections, Counted, Held, OpenedLater, SizedSource, Source, Split

__all__ = ["InParts"]


@dataclass(frozen=True, slots=True)
class InParts:
    """The items of a source, divided into about `parts` splits whatever the engine would suggest.

    Attributes:
        source: says in the end how many splits there are.
        parts: how many it is asked for.
    """

    source: Source[Any]
    parts: int

    @property
    def ordered(self) -> bool:
        """Whether the items have an encounter order."""
        return self.source.ordered

    @property
    def bounded(self) -> bool:
        """Whether the items end."""
        return self.source.bounded

    @property
    def in_caller(self) -> bool:
        """Whether the splits hold their items themselves."""
        return self.source.in_caller

    @property
    def on_bad(self) -> str:
        """What becomes of bad records; a source without records has none."""
        return getattr(self.source, "on_bad", "fail")

    def splits(self, parallelism: int) -> Iterable[Split[Any]]:
        """Divide the source into the parts that were asked for."""
        return self.source.splits(self.parts)

    def count_splits(self, parallelism: int) -> int | None:
        """Return how many splits there would be, if the source can say it without reading."""
        return self.source.count_splits(self.parts) if isinstance(self.source, Counted) else None

    def size(self) -> int | None:
        """Return how many items there are, if the source knows it without reading."""
        return self.source.size() if isinstance(self.source, SizedSource) else None

    def count_items(self) -> float | None:
        """Return how many items this process holds at most; None if only workers should read them."""
        return self.source.count_items() if isinstance(self.source, Held) else None

    def opened(self, context: Collections) -> InParts:
        """Return the same with the source that is there once a context is."""
        if isinstance(self.source, OpenedLater):
            return replace(self, source=self.source.opened(context))
        return self
