"""What a function given to `flat_map` may return, as something to iterate over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

__all__ = ["many"]


def many(result: Any) -> Iterable[Any]:
    """Return what a function given to `flat_map` made: None as nothing, a stream so that it is closed at its end."""
    if type(result) in _COMMON:
        return cast(Iterable[Any], result)
    if result is None:
        return ()
    traverse = getattr(type(result), "_traverse_and_close", None)
    if traverse is not None:
        return cast(Iterable[Any], traverse(result))
    if not isinstance(result, Iterable) and not hasattr(type(result), "__getitem__"):
        raise TypeError(f"flat_map() needs a function that gives an iterable or None, not {type(result).__name__}")
    return cast(Iterable[Any], result)


_COMMON = frozenset({list, tuple, str, dict, set, range})
