"""Processors that several tests of `verify_processor` give to it."""

from __future__ import annotations

from types import SimpleNamespace

from dstream.core import AbstractProcessor, BroadcastKey

CLOCK = SimpleNamespace(now=0.0)
"""The clock of the processors that take their time."""


class Twice(AbstractProcessor):
    """Emits each item twice, and keeps its place."""

    def start(self, context):
        """Make what keeps the place."""
        self.twice = self.flat_mapper(lambda item: [item, item])

    def try_process(self, ordinal, item):
        """Emit it twice."""
        return self.twice.try_process(item)


class Total(AbstractProcessor):
    """Emits the sum of its items at the end, and saves it."""

    total = 0

    def try_process(self, ordinal, item):
        """Add an item."""
        self.total += item
        return True

    def complete(self):
        """Emit the sum."""
        return self.try_emit(self.total)

    def save_to_snapshot(self):
        """Save the sum."""
        return self.try_emit_to_snapshot(BroadcastKey("total"), self.total)

    def restore_entry(self, key, value):
        """Take the sum back."""
        self.total = value


class SavesNothing(Total):
    """Forgets what it has."""

    def save_to_snapshot(self):
        """Save nothing."""
        return True
