"""Registry of the internal classes whose instances job state contains.

A storage that others can write to loads plain types, and the classes that the user allows. What collectors and steps
keep besides, no user has a name for: it is marked here, once it is clear that nothing can be done with it.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["state_value", "state_values"]


C = TypeVar("C", bound=type[Any])

_marked: dict[type, None] = {}


def state_value(kind: C) -> C:
    """Mark a class that only holds values: neither making an instance nor setting its attributes has an effect."""
    _marked[kind] = None
    return kind


def state_values() -> tuple[type, ...]:
    """Return the marked classes of the modules that are loaded: those of a step are where its operator is."""
    return tuple(_marked)
