"""Small values that streams, collectors and maps hand out: `Optional`, `Entry`, `DeadLetter`, statistics, and others.

Look into `optional`, `entry`, `journal_events`, `dead_letter`, `bad_record`, `statistics` for each, into `conditions`
for `where`, and into `sums` for how floats are added. `secrets` says what may be shown of a URL.
"""

from dstream.values.bad_record import BadRecord
from dstream.values.conditions import where
from dstream.values.dead_letter import DeadLetter
from dstream.values.entry import Entry
from dstream.values.journal_events import JournalEvent
from dstream.values.optional import Optional
from dstream.values.predicates import Predicate
from dstream.values.statistics import DoubleSummaryStatistics, IntSummaryStatistics, SummaryStatistics
from dstream.values.sums import ExactSum

__all__ = [
    "BadRecord",
    "DeadLetter",
    "DoubleSummaryStatistics",
    "Entry",
    "ExactSum",
    "IntSummaryStatistics",
    "JournalEvent",
    "Optional",
    "Predicate",
    "SummaryStatistics",
    "where",
]


def __dir__() -> list[str]:
    return sorted(__all__)
