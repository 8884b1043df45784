"""Pairs that share their second part: an iterator and a batch of them, which know their keys without the pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias, overload

__all__ = ["Pairs", "PairsOfOneValue"]


if TYPE_CHECKING:
    _Zip: TypeAlias = zip[tuple[Any, Any]]
else:
    _Zip = zip


class PairsOfOneValue(_Zip):
    """Gives the pair of each item and a value, at the speed of C.

    Attributes:
        keys: the items; whoever takes them takes the pairs.
        value: stands in each pair.

    Example:
        >>> list(PairsOfOneValue(iter("ab"), 1))
        [('a', 1), ('b', 1)]
    """

    keys: Iterator[Any]
    value: Any

    def __new__(cls, keys: Iterator[Any], value: Any) -> PairsOfOneValue:
        """Make the iterator."""
        pairs: Any = super().__new__(cls, keys, repeat(value))
        pairs.keys, pairs.value = keys, value
        made: PairsOfOneValue = pairs
        return made


class Pairs(Sequence[tuple[Any, Any]]):
    """The pairs of some keys and one value.

    Example:
        >>> list(Pairs(["a", "b"], 1))
        [('a', 1), ('b', 1)]
    """

    __slots__ = ("keys", "value")

    def __init__(self, keys: list[Any], value: Any) -> None:
        self.keys = keys
        self.value = value

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, place: int) -> tuple[Any, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Pairs: ...
    def __getitem__(self, place: int | slice) -> Any:
        found = self.keys[place]
        return Pairs(found, self.value) if isinstance(place, slice) else (found, self.value)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.keys, repeat(self.value), strict=False)
