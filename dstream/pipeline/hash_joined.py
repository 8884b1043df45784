"""What hash joins do with the pairs that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.plan import shown_function

__all__ = ["FirstOfPairs", "Unnested"]


class FirstOfPairs:
    """Applies a function to the item inside of nested pairs: `x` of `((x, match_0), match_1)`."""

    def __init__(self, depth: int, fn: Callable[[Any], Any]) -> None:
        self.depth = depth
        self.fn = fn
        self.__qualname__ = shown_function(fn)

    def __call__(self, pair: Any) -> Any:
        """Return what the function makes of the item inside."""
        for _ in range(self.depth):
            pair = pair[0]
        return self.fn(pair)


class Unnested:
    """Gives an item and its matches to a function: `to(x, match_0, match_1)` of `((x, match_0), match_1)`."""

    def __init__(self, depth: int, to: Callable[..., Any] | None) -> None:
        self.depth = depth
        self.to = to
        self.__qualname__ = "hash_join_all" if to is None else shown_function(to)

    def __call__(self, pair: Any) -> Any:
        """Return what becomes of an item and its matches."""
        matches = []
        for _ in range(self.depth):
            pair, match = pair
            matches.append(match)
        items = (pair, *reversed(matches))
        return items if self.to is None else self.to(*items)
