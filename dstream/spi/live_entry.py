"""`LiveEntry`: an entry in the hands of a function that reads and changes it atomically."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from dstream.spi.store import UNCHANGED

__all__ = ["LiveEntry", "change_of"]

K = TypeVar("K")
V = TypeVar("V")


class LiveEntry(Generic[K, V]):
    """What `execute_on_key`, `execute_on_entries` and `processing_imap` give to their function.

    Changing the value in place changes nothing in the map: `set_value` does.
    """

    __slots__ = ("_change", "_key", "_value")

    def __init__(self, key: K, value: Any) -> None:
        self._key = key
        self._value: Any = value
        self._change: Any = UNCHANGED

    @property
    def key(self) -> K:
        """The key."""
        return self._key

    @property
    def value(self) -> V:
        """The value as it is by now: None if the map has no entry of this key."""
        value: V = self._value
        return value

    def set_value(self, value: V | None) -> V | None:
        """Give the entry another value and return the one before; None removes the entry."""
        before: V | None = self._value
        self._value = value
        self._change = value
        return before

    def __repr__(self) -> str:
        return f"LiveEntry(key={self._key!r}, value={self._value!r})"


def change_of(entry: LiveEntry[Any, Any], before: Any) -> Any:
    """Return what becomes of an entry with a value, or without one: its new value, None to remove it, or UNCHANGED."""
    # An entry that is not there cannot be removed.
    return UNCHANGED if before is None and entry._change is None else entry._change
