"""Small values that streams, collectors and maps hand out: `Optional`, `Entry`, `JournalEvent`, statistics.

Look into `optional`, `entry`, `journal`, `statistics` for each, and into `sums` for how floats are added.
"""

from dstream.values.entry import Entry
from dstream.values.journal import JournalEvent
from dstream.values.optional import Optional
from dstream.values.statistics import DoubleSummaryStatistics, IntSummaryStatistics, SummaryStatistics
from dstream.values.sums import ExactSum

__all__ = [
    "DoubleSummaryStatistics",
    "Entry",
    "ExactSum",
    "IntSummaryStatistics",
    "JournalEvent",
    "Optional",
    "SummaryStatistics",
]
