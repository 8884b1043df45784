"""Which item, or which group, of a partial cannot be pickled: looked for once pickling the whole has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dstream.operators.items_by_key import ItemsByKey

__all__ = ["Culprit", "culprit"]


class Culprit(NamedTuple):
    """What cannot be pickled, and why.

    Attributes:
        value: an item, or what there is of a group.
        key: that of the group; None of an item.
        is_item: `value` is an item.
        error: what pickling it has raised.
    """

    value: Any
    key: Any
    is_item: bool
    error: Exception


def culprit(partial: Any, dumps: Callable[[Any], object]) -> Culprit | None:
    """Return what of a partial of an operator cannot be pickled; None if it is not found."""
    for value, key, is_item in _pieces(partial):
        try:
            dumps(value)
        except Exception as error:
            return Culprit(value, key, is_item, error)
    return None


def _pieces(partial: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Give (value, key, whether it is an item) of all that a partial has."""
    match partial:
        case ItemsByKey():
            for item in (*partial.items, *(late for _, late in partial.late)):
                yield item, None, True
            for key in partial.keys:
                yield key, key, False
        case (dict() as groups, list() as late):
            for _, item in late:
                yield item, None, True
            for key, held in groups.items():
                # Frames have groups inside, by the ends of frames; sessions belong to keys themselves.
                frame = held.items() if isinstance(held, dict) else [(key, container) for _, _, container in held]
                for of_key, container in frame:
                    yield container, of_key, False
