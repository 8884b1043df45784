"""The keys of a block of items, as a dict finds them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.keys import canonical, canonical_all
from dstream.values.blaming import each

__all__ = ["canonical_keys", "keys_of"]


def keys_of(key: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the canonical keys of items; a function that fails is told with its item."""
    return canonical_keys(each(key, items), items)


def canonical_keys(keys: list[Any], items: Sequence[Any]) -> list[Any]:
    """Return the canonical forms of the keys that items have; a key that is refused is told with its item."""
    try:
        return canonical_all(keys)
    except Exception:
        return each(_canonical, items, keys)


def _canonical(key: Any, item: Any) -> Any:
    return canonical(key)
