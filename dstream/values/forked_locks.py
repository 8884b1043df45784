"""What a forked process must not take over as it is: locks that threads hold which it does not have."""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["Renewed", "RenewedLock", "renewed_after_fork"]


class Renewed(Protocol):
    """An object with a lock."""

    def renew(self) -> None:
        """Take a new lock, and forget what may be half changed."""
        ...


class RenewedLock:
    """A lock that its own thread may take again, and that is free in a forked process, whoever held it in the parent.

    Those of `threading` are faster, for what happens with every item.
    """

    def __init__(self) -> None:
        self.renew()
        renewed_after_fork(self)

    def renew(self) -> None:
        """Take a lock that nobody holds."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()


_renewed: WeakSet[Renewed] = WeakSet()


def renewed_after_fork(renewed: Renewed) -> None:
    """Have an object renewed in every process that is forked from this one, as long as it lives."""
    _renewed.add(renewed)


def _renew_all() -> None:
    for renewed in list(_renewed):
        renewed.renew()


os.register_at_fork(after_in_child=_renew_all)
