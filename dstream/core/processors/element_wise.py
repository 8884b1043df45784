"""Processors that look at each item by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import length_hint
from typing import Any

from more_itertools import chunked

from dstream.core.block_processor import BlockProcessor, kinds_of, without_none
from dstream.core.traverser import Traverser
from dstream.spi.functions import shown_function
from dstream.spi.processor import Inbox, Processor
from dstream.stream.stream_arguments import function, running
from dstream.values.blaming import chosen, each, failed_on

__all__ = ["Filtering", "FlatMapping", "Mapping", "filter", "flat_map", "map", "noop"]


def map(fn: Callable[[Any], Any]) -> Callable[[], Processor]:
    """Return what makes processors that emit what a function makes of each item; what it makes None of is left out.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.map(str.upper)
        map(str.upper)
    """
    return _Maker(Mapping, function(fn, "fn"))


def filter(predicate: Callable[[Any], object]) -> Callable[[], Processor]:
    """Return what makes processors that emit the items which satisfy a predicate.

    Raises:
        TypeError: it is no function, or one that would give no answer.

    Example:
        >>> from dstream.core import processors
        >>> processors.filter(bool)
        filter(bool)
    """
    return _Maker(Filtering, running(predicate, "predicate"))


def flat_map(fn: Callable[[Any], Traverser[Any] | Iterable[Any] | None]) -> Callable[[], Processor]:
    """Return what makes processors that emit all that a function makes of each item.

    Args:
        fn: gives a traverser, anything that can be iterated, or None for no items; a generator is read as the outbox
            takes its items.

    Raises:
        TypeError: it is no function.

    Example:
        >>> from dstream.core import processors
        >>> processors.flat_map(str.split)
        flat_map(str.split)
    """
    return _Maker(FlatMapping, function(fn, "fn"))


def noop() -> Callable[[], Processor]:
    """Return what makes processors that take all items and emit none."""
    return _Noop


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes processors of one kind for a function."""

    kind: Callable[[Any], Processor]
    fn: Callable[[Any], Any]

    def __call__(self) -> Processor:
        return self.kind(self.fn)

    def __repr__(self) -> str:
        kind = getattr(self.kind, "name", "")
        return f"{kind}({shown_function(self.fn)})"


class Mapping(BlockProcessor):
    """Emits what a function makes of each item; None is left out."""

    name = "map"

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        super().__init__()
        self._fn = fn

    def made_of(self, ordinal: int, items: list[Any]) -> list[Any]:
        """Return what the function makes of the items."""
        return [made for made in each(self._fn, items) if made is not None]


class Filtering(BlockProcessor):
    """Emits the items that satisfy a predicate."""

    name = "filter"

    def __init__(self, predicate: Callable[[Any], object]) -> None:
        super().__init__()
        self._predicate = predicate

    def made_of(self, ordinal: int, items: list[Any]) -> list[Any]:
        """Return the items that satisfy it."""
        return chosen(self._predicate, items)


class FlatMapping(BlockProcessor):
    """Emits all that a function makes of each item."""

    name = "flat_map"

    def __init__(self, fn: Callable[[Any], Iterable[Any] | None]) -> None:
        super().__init__()
        self._fn = fn

    def made_of(self, ordinal: int, items: list[Any]) -> Iterator[Any]:
        """Give all that the function makes of each item."""
        return chain.from_iterable(self._blocks(items))

    def _blocks(self, items: list[Any]) -> Iterator[list[Any]]:
        """Give the same in lists; what a few items become is read together."""
        for few in chunked(items, _FEW):
            made = each(self._fn, few)
            kinds = kinds_of(made)
            if type(None) in kinds:
                made = [() if several is None else several for several in made]
                kinds = kinds_of(made)
            left = iter(made)
            if kinds <= _KEPT:  # What fails later finds its item in them.
                for block in _of_kept(made):
                    _check_no_none(block, made, few)
                    yield block
                continue
            flat = chain.from_iterable(without_none(several) for several in left)
            while block := self._next(flat, left, few):
                yield block

    def _next(self, flat: Iterator[Any], left: Iterator[Any], items: Sequence[Any]) -> list[Any]:
        try:
            return list(islice(flat, _AT_ONCE))
        except Exception as error:  # What was made of an item is read here, so it may fail here.
            failed_on(error, items[len(items) - length_hint(left) - 1])
            raise


def _of_kept(made: list[Any]) -> Iterator[list[Any]]:
    flat = chain.from_iterable(made)
    return iter(lambda: list(islice(flat, _AT_ONCE)), [])


def _check_no_none(block: list[Any], made: list[Any], items: Sequence[Any]) -> None:
    """Refuse None among what was made; the failure is about the item that it was made of."""
    if type(None) in kinds_of(block):
        for item, several in zip(items, made, strict=True):
            try:
                without_none(several)
            except TypeError as error:
                failed_on(error, item)
                raise


_KEPT = frozenset((list, tuple))
_FEW = 64
_AT_ONCE = 1024


class _Noop(Processor):
    def process(self, ordinal: int, inbox: Inbox) -> None:
        inbox.drain()
