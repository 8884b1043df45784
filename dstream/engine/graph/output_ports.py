"""Output ports: which of the rows that a vertex writes somebody reads.

A row says by its channel what it carries: items, a sample of them, a mark, watermarks, a failure, or what a step has to
say beside the items. A port names some of these; the engine makes of it what it asks Spark for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dstream.engine.worker import rows

__all__ = [
    "BESIDE",
    "BESIDE_AND_FAILURES",
    "BESIDE_AND_WATERMARKS",
    "EVERYTHING",
    "ITEMS",
    "ITEMS_AND_BESIDE",
    "ITEMS_AND_MARKS",
    "ITEMS_AND_WATERMARKS",
    "SAMPLE",
    "SCHEMAS",
    "SORTED_RUNS",
    "SUMMARY",
    "OutputPort",
]


@dataclass(frozen=True)
class OutputPort:
    """Some of the rows of a vertex.

    Attributes:
        name: what they are, in words.
        channels: which channels are meant, of the items and of what is said of them: those up to `ITEMS`.
        has_beside: whether the channels above are meant too: what `peek` steps saw, and guards noted.
        sources: the tasks whose rows are meant; None: those of all.
        targets: to which partitions the rows go that are meant; None: to any.
    """

    name: str
    channels: frozenset[int]
    has_beside: bool = False
    sources: range | None = None
    targets: range | None = None

    def has(self, row: rows.Row) -> bool:
        """Say whether a row is one of these."""
        is_meant = row.channel in self.channels if row.channel <= rows.ITEMS else self.has_beside
        return is_meant and _is_within(row.source, self.sources) and _is_within(row.target, self.targets)

    def of_sources(self, start: int, stop: int) -> OutputPort:
        """Return the same rows of some tasks."""
        return replace(self, name=f"{self.name} of tasks {start} to {stop - 1}", sources=range(start, stop))

    def to_targets(self, start: int, stop: int) -> OutputPort:
        """Return those of these rows that go to some partitions."""
        return replace(self, name=f"{self.name} for partitions {start} to {stop - 1}", targets=range(start, stop))

    def with_beside(self) -> OutputPort:
        """Return these rows, and what is beside the items."""
        return replace(self, has_beside=True)

    def with_counts(self) -> OutputPort:
        """Return these rows, and how many of all rows were sent."""
        return replace(self, channels=self.channels | {rows.COUNTS})

    def without_beside(self) -> OutputPort:
        """Return these rows, for those to whom what is beside the items has been delivered."""
        return replace(self, has_beside=False)


def _is_within(number: int, numbers: range | None) -> bool:
    return numbers is None or number in numbers


_UP_TO_ITEMS = frozenset(range(rows.FAILED, rows.ITEMS + 1))

EVERYTHING = OutputPort("everything", _UP_TO_ITEMS, has_beside=True)
ITEMS = OutputPort("items", frozenset({rows.ITEMS}))
ITEMS_AND_MARKS = OutputPort("items and marks", _UP_TO_ITEMS)
ITEMS_AND_WATERMARKS = OutputPort("items and watermarks", frozenset({rows.ITEMS, rows.WATERMARKS}))
ITEMS_AND_BESIDE = OutputPort("items and what is beside them", frozenset({rows.ITEMS}), has_beside=True)
BESIDE = OutputPort("what is beside the items", frozenset(), has_beside=True)
BESIDE_AND_WATERMARKS = OutputPort(
    "what is beside the items, and watermarks", frozenset({rows.WATERMARKS}), has_beside=True
)
BESIDE_AND_FAILURES = OutputPort("failures and what is beside the items", frozenset({rows.FAILED}), has_beside=True)
SAMPLE = OutputPort("sample", frozenset({rows.SAMPLE}))
SORTED_RUNS = OutputPort("sorted runs", _UP_TO_ITEMS - {rows.SAMPLE}, has_beside=True)
SCHEMAS = OutputPort("schemas of columns", _UP_TO_ITEMS - {rows.ITEMS}, has_beside=True)
SUMMARY = OutputPort("what gatherers tell of a partition", frozenset({rows.SUMMARY}))
