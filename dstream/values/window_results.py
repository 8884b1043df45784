"""What windows give: the result of the items between two instants, for all items or for those of one key."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

__all__ = ["KeyedWindowResult", "WindowResult"]

K = TypeVar("K")
R = TypeVar("R")


class WindowResult(NamedTuple, Generic[R]):
    """The result of the items of a window.

    Attributes:
        start: the first instant of the window, in milliseconds.
        end: the first instant behind it; of a session, the last one that belongs to it.
        result: of the items whose timestamps are in the window.
        is_early: more items may come; another result of the same window follows.

    Example:
        >>> WindowResult(0, 1000, 3)
        WindowResult(start=0, end=1000, result=3, is_early=False)
    """

    start: int
    end: int
    result: R
    is_early: bool = False


class KeyedWindowResult(NamedTuple, Generic[K, R]):
    """The result of the items of one key in a window.

    Attributes:
        start: the first instant of the window, in milliseconds.
        end: the first instant behind it; of a session, the last one that belongs to it.
        key: of the items.
        result: of those of them whose timestamps are in the window.
        is_early: more items may come; another result of the same window follows.

    Example:
        >>> KeyedWindowResult(0, 1000, "whale", 3).result
        3
    """

    start: int
    end: int
    key: K
    result: R
    is_early: bool = False
