"""Small values that streams, collectors and maps return: `Optional`, `Entry`, `DeadLetter`, statistics, and others.

`optional`, `entries`, `bad_records` and `numbers` contain the values themselves, `predicates` the conditions of
`where`, `time` instants and results of windows, `order` the order of sorting, `tables` the text and HTML of tables,
`fields` the fields of dataclasses and similar classes, `user_functions` the checks of user functions and their text,
`attachments` the files of a job.
"""

from dstream.values.bad_records import BadRecord, DeadLetter
from dstream.values.entries import Entry, JournalEvent
from dstream.values.numbers import DoubleSummaryStatistics, ExactSum, IntSummaryStatistics, SummaryStatistics
from dstream.values.optional import Optional
from dstream.values.predicates import Predicate, where

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
