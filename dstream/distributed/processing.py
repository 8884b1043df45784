"""`Processing`: a function that reads and changes entries atomically, each as a `LiveEntry`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from dstream.failures import shown
from dstream.plan.steps import shown_function
from dstream.spi.live_entry import LiveEntry, change_of
from dstream.spi.store import UNCHANGED
from dstream.values import Entry
from dstream.values.contexts import contextmanager

__all__ = ["Processing", "noting"]

R = TypeVar("R")


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
        return change_of(entry, value)


@contextmanager
def noting(place: str, key: Any) -> Iterator[None]:
    """Let an exception of the user's function say where it arose, and on which key."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {place}, on the key {shown(key)}; this entry was not changed")
        raise
