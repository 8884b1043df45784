"""`IStreamCounter`: a number that many processes add to."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from dstream.arguments import kind_of
from dstream.collections.base import NoTable
from dstream.spi.store import Kind

__all__ = ["COUNTED", "IStreamCounter"]

COUNTED = "count"
"""The key of the only entry of the map in which a counter is stored; without the entry the number is 0."""


class IStreamCounter(NoTable):
    """An int in a storage, 0 at first. Get one with `Context.get_counter`.

    Each `add` is atomic and a separate commit: no addition is lost, for any number of threads and processes. It has no
    bounds.

    Example:
        >>> with connect(engine="local", storage="memory:") as ctx:
        ...     visits = ctx.get_counter("visits")
        ...     visits.add(), visits.add(5), visits.get()
        (1, 6, 6)
    """

    _kind: ClassVar[Kind] = "counter"
    _unit = ("number", "numbers")
    _columns = ("count",)
    _instead = "get() its number before"

    def add(self, n: int = 1) -> int:
        """Add an int, which may be negative, and return the sum.

        Raises:
            TypeError: `n` is no int.
        """
        if isinstance(n, bool) or not hasattr(type(n), "__index__"):
            raise TypeError(f"n must be an int, not {kind_of(n)}")
        number = operator.index(n)
        (before,) = self.store.update([COUNTED], lambda old: [(old[0] or 0) + number])
        # Not read again: another process may have added something since.
        return int(before or 0) + number

    def get(self) -> int:
        """Return the current number."""
        (number,) = self.store.get_many([COUNTED])
        return int(number or 0)

    def size(self) -> int:
        """Return 1: a counter is one number."""
        self.store.size()  # A destroyed counter is refused here too.
        return 1

    def _why_no_table(self) -> str:
        return f"counter {self.name!r} is a number and no table; get() gives it"

    def __int__(self) -> int:
        return self.get()

    def _seen(self, n: int) -> tuple[str, list[Sequence[object]], bool]:
        number = self.get()
        rows: list[Sequence[object]] = [(number,)]
        return str(number), rows[:n], n < 1

    def _few_shown(self, rows: Sequence[Sequence[object]], more: bool) -> str:
        return ""  # The number is stored already.

    def _walk(self) -> Iterator[Sequence[object]]:
        yield (self.get(),)

    def _splits(self) -> Sequence[Any]:
        return ()
