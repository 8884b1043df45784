"""`SideRows`: what came beside the items of a job, in the order in which it was seen; on disk past a bound."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from dstream.engine.kernels.spilling import Run
from dstream.engine.worker.rows import Row

__all__ = ["FEW_BYTES", "SideRows"]

FEW_BYTES = 32 * 2**20
"""How many bytes of such rows the driver holds in memory."""


class SideRows:
    """Rows of `peek` steps and guards on their way to what the driver does with them.

    Args:
        few: how many bytes of payload stay in memory.
    """

    def __init__(self, few: int = FEW_BYTES) -> None:
        self._few = few
        self._held: list[Row] = []
        self._bytes = 0
        self._runs: list[Run] = []

    def add(self, row: Row) -> None:
        """Take a row; its payload is copied, so that what it came with can go."""
        row = row._replace(payload=bytes(row.payload))
        self._held.append(row)
        self._bytes += len(row.payload)
        if self._bytes > self._few:
            self._runs.append(Run(self._sorted()))

    def in_order(self) -> Iterator[Row]:
        """Give all rows, once: channel by channel, in encounter order."""
        if not self._held and not self._runs:
            return iter(())
        runs, self._runs = self._runs, []
        return heapq.merge(*runs, self._sorted(), key=_place)

    def _sorted(self) -> list[Row]:
        rows, self._held, self._bytes = self._held, [], 0
        return sorted(rows, key=_place)


def _place(row: Row) -> tuple[int, int, int]:
    return row.channel, row.source, row.sequence
