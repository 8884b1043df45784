"""Small values that streams and collectors hand out: `Optional`, `Entry`, statistics.

Look into `optional`, `entry`, `statistics` for each, and into `sums` for how floats are added.
"""

from dstream.values.entry import Entry
from dstream.values.optional import Optional
from dstream.values.statistics import DoubleSummaryStatistics, IntSummaryStatistics, SummaryStatistics
from dstream.values.sums import ExactSum

__all__ = [
    "DoubleSummaryStatistics",
    "Entry",
    "ExactSum",
    "IntSummaryStatistics",
    "Optional",
    "SummaryStatistics",
]
