"""What a window gives: the finished container of a key, as a result that knows its window; and whom failures blame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dstream.operators.independent_copies import copy_of_results
from dstream.spi import AggregateOperation
from dstream.values.blaming import MISSING_ITEM, given, given_to, item_failed_on, shown
from dstream.values.window_results import KeyedWindowResult, WindowResult

__all__ = ["WindowOutput"]


class WindowOutput:
    """Makes the results of windows.

    Args:
        operation: finishes containers.
        to: takes (start, end, result), or (start, end, key, result) where there are keys; None: the usual results.
        is_keyed: there are keys.
    """

    def __init__(
        self, operation: AggregateOperation[Any, Any, Any], to: Callable[..., Any] | None, is_keyed: bool
    ) -> None:
        self._finish = operation.on_input(0).finish
        self._apart = copy_of_results(operation)
        self._make = (_keyed(to) if is_keyed else _unkeyed(to)) if to else (KeyedWindowResult if is_keyed else _plain)
        self._is_keyed = is_keyed

    def last(self, start: int, end: int, key: Any, container: Any) -> Any:
        """Return the result of a container that nobody needs any more."""
        try:
            return self._make(start, end, key, self._finish(container), False)
        except Exception as error:
            self._blame(error, start, end, key)
            raise

    def passing(self, start: int, end: int, key: Any, container: Any, is_early: bool = False) -> Any:
        """Return the result of a container that goes on to change: it shares nothing with that."""
        try:
            return self._make(start, end, key, self._apart(self._finish(container)), is_early)
        except Exception as error:
            self._blame(error, start, end, key)
            raise

    def _blame(self, error: Exception, start: int, end: int, key: Any) -> None:
        if item_failed_on(error) is MISSING_ITEM:
            group = f" of the key {shown(key)}" if self._is_keyed else ""
            inner = given_to(error)
            given(error, f"in the window from {start} to {end}{group}" + (f", {inner}" if inner else ""))


def _plain(start: int, end: int, key: Any, result: Any, is_early: bool) -> WindowResult[Any]:
    return WindowResult(start, end, result, is_early)


def _keyed(to: Callable[..., Any]) -> Callable[..., Any]:
    return lambda start, end, key, result, is_early: to(start, end, key, result)


def _unkeyed(to: Callable[..., Any]) -> Callable[..., Any]:
    return lambda start, end, key, result, is_early: to(start, end, result)
