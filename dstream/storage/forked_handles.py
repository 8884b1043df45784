"""What a forked process must not take over as it is: locks that threads hold which it does not have."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["Renewed", "renewed_after_fork"]


class Renewed(Protocol):
    """An object with a lock."""

    def renew(self) -> None:
        """Take a new lock, and forget what may be half changed."""
        ...


_renewed: WeakSet[Renewed] = WeakSet()


def renewed_after_fork(renewed: Renewed) -> None:
    """Have an object renewed in every process that is forked from this one, as long as it lives."""
    _renewed.add(renewed)


def _renew_all() -> None:
    for renewed in list(_renewed):
        renewed.renew()


os.register_at_fork(after_in_child=_renew_all)
