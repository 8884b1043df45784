"""What indices and slices of a list mean in one state of a stored list, with the errors that a list raises."""

from __future__ import annotations

import operator
from typing import Any

from dstream.distributed.equality import same
from dstream.spi.store import ListView, Splice

__all__ = ["assigned", "deleted", "found", "insertion", "position", "selected", "whole"]

_CHUNK = 4096


def whole(index: Any) -> int:
    """Return what stands in brackets and is no slice as an int.

    Raises:
        TypeError: it is none.
    """
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(f"list indices must be integers or slices, not {type(index).__name__}") from None


def position(index: int, size: int, message: str) -> int:
    """Return where `index` points to, counted from the start.

    Raises:
        IndexError: nowhere; with `message`.
    """
    place = index + size if index < 0 else index
    if not 0 <= place < size:
        raise IndexError(message)
    return place


def insertion(index: int, size: int) -> int:
    """Return before which item `insert(index, item)` puts its item."""
    return max(index + size, 0) if index < 0 else min(index, size)


def selected(view: ListView, chosen: slice) -> list[Any]:
    """Return the items of a slice, reading the stretch that they lie in."""
    start, stop, step = _stretch(view, chosen)
    return view.read(start, stop)[::step]


def assigned(view: ListView, chosen: slice, items: list[Any]) -> Splice | None:
    """Return what assigning `items` to a slice changes.

    Raises:
        ValueError: the slice has a step, and not as many items as `items`.
    """
    if chosen.step is None or operator.index(chosen.step) == 1:
        start, stop, _ = chosen.indices(view.size)
        return Splice(start, max(start, stop), items)
    start, stop, step = _stretch(view, chosen)
    size = len(range(start, stop, abs(step)))
    if len(items) != size:
        raise ValueError(f"attempt to assign sequence of size {len(items)} to extended slice of size {size}")
    stretch = view.read(start, stop)
    stretch[::step] = items
    return Splice(start, stop, stretch) if items else None


def deleted(view: ListView, chosen: slice) -> Splice | None:
    """Return what deleting a slice changes, or None for nothing."""
    start, stop, step = _stretch(view, chosen)
    if start == stop:
        return None
    stretch = view.read(start, stop) if abs(step) > 1 else []
    del stretch[::step]
    return Splice(start, stop, stretch)


def _stretch(view: ListView, chosen: slice) -> tuple[int, int, int]:
    """Return (start, stop, step): the items of `chosen` are those of `[start:stop][::step]`."""
    places = range(*chosen.indices(view.size))
    if not places:
        return 0, 0, places.step
    least, greatest = min(places[0], places[-1]), max(places[0], places[-1])
    return least, greatest + 1, places.step


def found(view: ListView, item: Any, start: int, stop: int) -> int | None:
    """Return where `item` first stands from `start` up to `stop`, or None; reads a few thousand items at a time."""
    first, last, _ = slice(start, stop).indices(view.size)
    for place in range(first, last, _CHUNK):
        items = view.read(place, min(place + _CHUNK, last))
        for offset, known in enumerate(items):
            if same(known, item):
                return place + offset
    return None
