"""`SmallEpochs`: whether the next epoch is expected to be so small that one task takes it."""

from __future__ import annotations

__all__ = ["SmallEpochs"]

_MOST_DIVIDED = 64
"""So many epochs at most are divided before one task is tried again."""


class SmallEpochs:
    """Expects each epoch to be as the one before it, as long as that turns out right.

    Functions that wait take as many times longer in one task as tasks would wait at once: divided, an epoch of few
    items is quick, and so the next one would take long in one task, in turns. Each time that one task took long, twice
    as many epochs are divided before it is tried again.
    """

    def __init__(self) -> None:
        self._is_expected = False
        self._is_tried = False
        self._divided = 0
        self._divided_next = 1

    def begin(self, *, may_be: bool) -> bool:
        """Say whether the epoch that begins is expected to be small, if it may be."""
        self._is_tried = self._is_expected and may_be
        return self._is_tried

    def end(self, *, has_few: bool, is_quick: bool) -> None:
        """Take note of how the epoch was.

        Args:
            has_few: its items were few enough for one task.
            is_quick: it was quick enough.
        """
        self._divided = max(0, self._divided - 1)
        if self._is_tried and has_few and is_quick:
            self._divided_next = 1
        elif self._is_tried and has_few:
            self._divided, self._divided_next = self._divided_next, min(2 * self._divided_next, _MOST_DIVIDED)
        self._is_expected = has_few and is_quick and self._divided == 0
