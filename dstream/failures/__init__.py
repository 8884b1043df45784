"""Failures: the step, the source location and the item that a user's exception carries.

The exception keeps its type, so `except ZeroDivisionError` works as it does around local code.
When it is raised, only data is attached to it (`account`): the step, the item, the line. At the end of the terminal
operation, `dstream.plan.failure_messages` formats them as a message. `attribution` finds the item and the line of the
user's code, `transport` carries an exception from a worker to the driver.
"""

from __future__ import annotations

from dstream.base.showing import near, shown, source_line
from dstream.failures.account import (
    MISSING,
    Failure,
    FailureMessage,
    TransportedError,
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
from dstream.failures.attribution import (
    Origin,
    is_full,
    is_installed,
    is_of_spark,
    is_our_name,
    is_ours,
    item_of,
    origin_of,
    shorten,
)

__all__ = [
    "MISSING",
    "Failure",
    "FailureMessage",
    "Origin",
    "TransportedError",
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
