"""The keys of a block of items, as a dict finds them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.keys import canonical, canonical_all
from dstream.values.blaming import each

__all__ = ["keys_of"]


def keys_of(key: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Return the canonical keys of items; a function that fails, or a key that is refused, is told with its item."""
    keys = each(key, items)
    try:
        return canonical_all(keys)
    except Exception:
        return each(_canonical, items, keys)


def _canonical(key: Any, item: Any) -> Any:
    return canonical(key)
