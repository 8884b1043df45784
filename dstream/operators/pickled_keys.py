"""Keys that came from another process: a NaN that was pickled is another object, and no dict finds it again."""

from __future__ import annotations

from typing import Any, TypeVar

from dstream.keys import canonical_all

__all__ = ["with_keys_of_this_process"]

V = TypeVar("V")


def with_keys_of_this_process(groups: dict[Any, V]) -> dict[Any, V]:
    """Return what belongs to canonical keys that may have travelled; the dict itself if no key has to be replaced."""
    keys = list(groups)
    here = canonical_all(keys)
    return groups if here is keys else dict(zip(here, groups.values(), strict=True))
