"""`LiveEntry`: an entry in the hands of a function that reads and changes it atomically."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from dstream.failures import shown
from dstream.plan.steps import shown_function
from dstream.spi.store import UNCHANGED
from dstream.values import Entry
from dstream.values.contexts import contextmanager

__all__ = ["LiveEntry", "Processing"]

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class LiveEntry(Generic[K, V]):
    """What `execute_on_key` and `execute_on_entries` give to their function.

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


class Processing(Generic[R]):
    """One run of a user's function over some entries, as a `change` of `MapStore.update`.

    Attributes:
        results: what the function returned, by key, in the last run.
    """

    def __init__(
        self,
        place: str,
        keys: list[Any],
        fn: Callable[[LiveEntry[Any, Any]], R],
        predicate: Callable[[Any], object] | None = None,
    ) -> None:
        self.results: dict[Any, R] = {}
        self._place = place
        self._keys = keys
        self._fn = fn
        self._predicate = predicate

    def each(self, values: list[Any]) -> list[Any]:
        """Let the function change each entry, also one that is not there."""
        self.results.clear()
        return [self._run(key, value) for key, value in zip(self._keys, values, strict=True)]

    def each_present(self, values: list[Any]) -> list[Any]:
        """Let the function change each entry that is there and satisfies the predicate."""
        self.results.clear()
        return [
            self._run(key, value) if value is not None and self._is_chosen(key, value) else UNCHANGED
            for key, value in zip(self._keys, values, strict=True)
        ]

    def _is_chosen(self, key: Any, value: Any) -> bool:
        with noting(self._place, key):
            return self._predicate is None or bool(self._predicate(Entry(key, value)))

    def _run(self, key: Any, value: Any) -> Any:
        entry: LiveEntry[Any, Any] = LiveEntry(key, value)
        with noting(f"{self._place}, {shown_function(self._fn)}", key):
            self.results[key] = self._fn(entry)
        # An entry that is not there cannot be removed.
        return UNCHANGED if value is None and entry._change is None else entry._change


@contextmanager
def noting(place: str, key: Any) -> Iterator[None]:
    """Let an exception of the user's function say where it arose, and on which key."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {place}, on the key {shown(key)}; this entry was not changed")
        raise
