"""`Policies`: policies of watermarks as objects, each loaded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Policies"]

_MOST = 10_000


class Policies:
    """Loads pickled policies. Whoever changes one changes a copy.

    Args:
        load: loads a pickle, if the storage lets it.
    """

    def __init__(self, load: Callable[[bytes], Any]) -> None:
        self._load = load
        self._loaded: dict[bytes, Any] = {}

    def load(self, data: bytes) -> Any:
        """Return the policy that was pickled."""
        if data not in self._loaded:
            if len(self._loaded) >= _MOST:
                self._loaded.clear()
            self._loaded[data] = self._load(data)
        return self._loaded[data]
