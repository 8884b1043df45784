"""`SourceMetrics`: how far a job has read a source, and how far that is from its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dstream.values.event_time import shown_time

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["SourceMetrics", "sources_table"]

_WIDEST = 80


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """A source of an unbounded job in numbers.

    Attributes:
        partitions: how many there are.
        offsets: how far each has been read, by its name, in the source's own terms; of the first 100.
        left: how many items it had behind these offsets when the last epoch began; of Kafka, how many offsets, some of
            which hold no message; of a journal, how many events, also those that it leaves out. None: it cannot count
            them without reading them, as lines of files, rows of tables, and events of more than a hundred commits in a
            lake; or no epoch has run yet.
        has_ended: nothing will come of it any more.
        shown: these offsets in words, where the source has some, such as the commit of a journal.
    """

    partitions: int
    offsets: Mapping[str, Any] = field(default_factory=dict)
    left: int | None = None
    has_ended: bool = False
    shown: Mapping[str, str] = field(default_factory=dict)


def sources_table(sources: Mapping[str, SourceMetrics], watermarks: Mapping[str, int]) -> Table:
    """Return sources as a table of `rich`."""
    from rich.table import Table  # here: few programs print it
    from rich.text import Text

    table = Table("source", "partitions", "left", "watermark", "offsets", box=None, pad_edge=False)
    for name, source in sources.items():
        left = "" if source.left is None else f"{source.left:,}"
        table.add_row(
            Text(name), f"{source.partitions:,}", left, shown_time(watermarks.get(name)), Text(_offsets(source))
        )
    return table


def _offsets(source: SourceMetrics) -> str:
    if source.has_ended:
        return "ended"
    text = ", ".join(
        f"{partition}: {source.shown.get(partition, offset)}" for partition, offset in source.offsets.items()
    )
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
