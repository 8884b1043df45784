"""The functions that edges and processors are given most often."""

from __future__ import annotations

from typing import Any, TypeVar

from dstream.values.entry import entry_key, entry_value

__all__ = ["constant_key", "entry_key", "entry_value", "same_key", "whole_item"]

T = TypeVar("T")


def whole_item(item: T) -> T:
    """Return the item: it is its own key."""
    return item


def constant_key(item: Any) -> str:
    """Return "ALL": all items have one key."""
    return "ALL"


def same_key(item: Any) -> None:
    """Return None: the key of all items of an edge that leads to one processor."""
