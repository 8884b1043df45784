"""Gathering with the first items of the partitions behind, for what begins in one partition and ends in another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.engine.kernels.columns.column_items import ColumnItems
from dstream.spi import ByPlace

__all__ = ["gathered_ahead"]


def gathered_ahead(
    kind: ByPlace[Any, Any], own: Iterator[Any], behind: Iterable[Any], is_first: Callable[[], bool]
) -> Iterator[Any]:
    """Give what begins in `own`; see `ByPlace.gather_ahead`."""
    if kind.window is not None and type(own) is ColumnItems:
        from dstream.engine.kernels.columns.column_windows import sliding_windows  # loads NumPy

        return ColumnItems(sliding_windows(kind, own.blocks(), behind, is_first))
    assert kind.gather_ahead is not None, "whoever reads ahead has asked for it"
    return kind.gather_ahead(own, behind, is_first)
