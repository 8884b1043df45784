"""`processor_of`: processors of a generator function, for those who do not want the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any

from dstream.core.block_processor import BlockProcessor, without_none
from dstream.spi.functions import shown_function
from dstream.spi.processor import Processor
from dstream.stream.stream_arguments import function, kind_of
from dstream.values.blaming import failed_on

__all__ = ["processor_of"]


def processor_of(fn: Callable[[int, Iterator[Any]], Iterable[Any]]) -> Callable[[], Processor]:
    """Return what makes processors that emit what a generator function yields.

    It is called for each block of items that there are at the moment, and how many those are nobody knows: so it keeps
    nothing between items. A processor with a state is an `AbstractProcessor`, which can save it too.

    Args:
        fn: takes the ordinal of the edge, and an iterator of items; those that it leaves come in another call.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processor_of
        >>> def both(ordinal, items):
        ...     for item in items:
        ...         yield item
        ...         yield -item
        >>> processor_of(both)
        processor_of(both)
    """
    return _MakerOfGenerators(function(fn, "fn"))


@dataclass(frozen=True, slots=True)
class _MakerOfGenerators:
    fn: Callable[[int, Iterator[Any]], Iterable[Any]]

    def __call__(self) -> Processor:
        return _OfGenerator(self.fn)

    def __repr__(self) -> str:
        return f"processor_of({shown_function(self.fn)})"


class _OfGenerator(BlockProcessor):
    def __init__(self, fn: Callable[[int, Iterator[Any]], Iterable[Any]]) -> None:
        super().__init__()
        self._fn = fn

    def made_of(self, ordinal: int, items: list[Any]) -> Iterator[Any]:
        """Call the function until it has taken all items: one that stops early goes on with the others."""
        waiting = iter(items)
        while left := length_hint(waiting):
            try:
                made = self._fn(ordinal, waiting)
                if not isinstance(made, Iterable):
                    raise TypeError(f"{shown_function(self._fn)} must yield items, and gave {kind_of(made)}")
                yield from without_none(made)
            except Exception as error:
                if taken := len(items) - length_hint(waiting):
                    failed_on(error, items[taken - 1])
                raise
            if length_hint(waiting) == left:
                raise RuntimeError(f"{shown_function(self._fn)} took none of the items that it was given")
