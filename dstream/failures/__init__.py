"""Failures: how an exception of the user's own carries the step, the place and the item.

The exception keeps its type, so `except ZeroDivisionError` works as it does around local code.
Where it is raised it is given data only (`known`): the step, the item, the line. Where the terminal
operation ends, `dstream.plan.failure_messages` makes words of them. `frames` knows whose code a traceback
shows, `showing` writes items and places short.
"""

from dstream.failures.frames import Origin, is_full, is_of_spark, item_of, origin_of, shorten
from dstream.failures.known import (
    MISSING,
    Account,
    Carried,
    Failure,
    attach,
    blame,
    failure,
    forget,
    is_told,
    known_of,
    naming,
    refuse_an_end,
    told,
)
from dstream.failures.showing import near, shown, source_line
from dstream.failures.whose_code import is_installed, is_our_name, is_ours

__all__ = [
    "MISSING",
    "Account",
    "Carried",
    "Failure",
    "Origin",
    "attach",
    "blame",
    "failure",
    "forget",
    "is_full",
    "is_installed",
    "is_of_spark",
    "is_our_name",
    "is_ours",
    "is_told",
    "item_of",
    "known_of",
    "naming",
    "near",
    "origin_of",
    "refuse_an_end",
    "shorten",
    "shown",
    "source_line",
    "told",
]
