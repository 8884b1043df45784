"""The keys of a block of items, as a dict finds them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dstream.keys import canonical_keys
from dstream.values.blaming import each

__all__ = ["keys_of"]


def keys_of(key: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the canonical keys of items; a function that fails is told with its item."""
    return canonical_keys(each(key, items), items)
