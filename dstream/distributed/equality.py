"""When a stored value is the one that is looked for."""

from __future__ import annotations

from typing import Any

__all__ = ["same"]


def same(left: Any, right: Any) -> bool:
    """Say whether two values are equal; a float NaN equals every other.

    A list or a dict finds a NaN by its identity, which no value keeps in a storage.
    """
    return left is right or bool(left == right) or (_is_nan(left) and _is_nan(right))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
