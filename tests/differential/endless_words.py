"""What functions of the user do in pipelines without an end: the same ones in a pipeline and in its definition.

Items are pairs of a key and a value; a value is a number, a text, None, or a tuple of values.
"""

from __future__ import annotations

from typing import Any

__all__ = ["as_number", "farewell", "more", "other_key", "passes", "said", "several", "weight"]


def weight(value: Any) -> int:
    """Return a number that depends on all of a value, and on where it stands there."""
    if isinstance(value, tuple):
        return sum((place + 2) * weight(each) for place, each in enumerate(value)) % 1009
    return int(value) if isinstance(value, int) else len(str(value))


def as_number(value: Any) -> int:
    """Return a value that is an int, and a number in the place of others, by a function that columns take."""
    return value if type(value) is int else 7


def more(value: Any) -> Any:
    """Return another value."""
    return (value, "more")


def passes(value: Any) -> bool:
    """Say whether a value passes a filter."""
    return weight(value) % 3 > 0


def several(value: Any) -> list[Any]:
    """Return none, one or two values."""
    return [(value, each) for each in range(weight(value) % 3)]


def other_key(value: Any) -> Any:
    """Return a key that the value decides."""
    return ("x", None, 2)[weight(value) % 3]


def said(kind: str, state: list[Any]) -> list[Any]:
    """Return what a step with states gives when an item has come; its value is the last one of the state."""
    if kind == "map_stateful":
        return [tuple(state)]
    if kind == "filter_stateful":
        return [state[-1]] if len(state) % 2 else []
    return [(each, "of", len(state)) for each in state[-2:]]


def farewell(kind: str, state: list[Any], watermark: int) -> list[Any]:
    """Return what it gives when a state goes; of some, nothing."""
    if len(state) % 3 == 2:
        return []
    gone = ("gone", *state, watermark)
    return [gone, "again"] if kind == "flat_map_stateful" else [gone]
