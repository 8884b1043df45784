"""`LeastWatermark`: the watermark of a processor: the least of all that send to it, without those that are idle."""

from __future__ import annotations

from collections.abc import Iterable

from dstream.executor.arrivals_of_graphs import Mark
from dstream.spi.processor import Watermark
from dstream.values.event_time import NO_WATERMARK

__all__ = ["LeastWatermark"]

Sender = tuple[int, int]
"""The ordinal of an edge, and the number of a processor that sends by it."""


class LeastWatermark:
    """Merges the watermarks of several senders; the result never goes back.

    Args:
        senders: all there are.
    """

    def __init__(self, senders: Iterable[Sender]) -> None:
        self._told: dict[Sender, int | None] = dict.fromkeys(senders, NO_WATERMARK)
        self._last = NO_WATERMARK
        self._was_idle = False

    def observe(self, sender: Sender, mark: Watermark | Mark) -> Watermark | Mark | None:
        """Take what a sender says, and return the watermark that this moves on to, or `IDLE` if all are idle now.

        Args:
            sender: which one.
            mark: its watermark; `IDLE`: it holds time back no longer, until it sends something; `ENDED`: for good.
        """
        if isinstance(mark, Watermark):
            self._told[sender] = mark.timestamp
        elif mark is Mark.IDLE:
            self._told[sender] = None
        else:
            self._told.pop(sender, None)
        return self._moved()

    def heard(self, sender: Sender) -> None:
        """Take note of items: a sender that was idle holds time back again, where time is now."""
        if self._told.get(sender, 0) is None:
            self._told[sender] = self._last
            self._was_idle = False

    def _moved(self) -> Watermark | Mark | None:
        holding = [told for told in self._told.values() if told is not None]
        if not holding:
            is_news = bool(self._told) and not self._was_idle
            self._was_idle = bool(self._told)
            return Mark.IDLE if is_news else None
        self._was_idle = False
        least = min(holding)
        if least <= self._last:
            return None
        self._last = least
        return Watermark(least)

    def state(self) -> tuple[dict[Sender, int | None], int]:
        """Return what is known, for `restore`."""
        return dict(self._told), self._last

    def restore(self, state: tuple[dict[Sender, int | None], int]) -> None:
        """Know again what was known when `state` was called; the senders are the same."""
        told, self._last = state
        self._told = dict(told)
