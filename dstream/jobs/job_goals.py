"""`Goal`: how a job is going to go on, and how each request changes that. The life of a job is this one table.

A driver has one goal at a time. A request replaces it or is refused, as the table says, under one lock, whatever thread
or process it comes from; so no request that was taken is lost. The driver acts on its goal at the next border: between
two epochs, before a run begins, in the pause before a restart; or at once, where the run is stopped for it.
"""

from __future__ import annotations

from enum import Enum

from dstream.jobs.job_records import Want

__all__ = ["AT_ONCE", "Goal", "goal_after"]


class Goal(Enum):
    """How a job is going to go on."""

    RUN = "it runs, or waits for its next start"
    RUN_AGAIN = "its run ends, and another one begins, with the pipeline of the last update"
    SUSPEND = "it is suspended, or will be when its epoch has ended"
    LEAVE = "its driver ends; it goes on when it is submitted again"
    CANCEL = "it is cancelled"
    COMPLETE = "it publishes its end, which nothing stops"


AT_ONCE: frozenset[Want] = frozenset({"cancel", "restart"})
"""Requests for which a run is stopped where it is; for the others it ends its epoch first."""

_TABLE: dict[Goal, dict[Want, Goal]] = {
    Goal.RUN: {
        "cancel": Goal.CANCEL,
        "leave": Goal.LEAVE,
        "suspend": Goal.SUSPEND,
        "restart": Goal.RUN_AGAIN,
        "update": Goal.RUN_AGAIN,
    },
    Goal.RUN_AGAIN: {
        "cancel": Goal.CANCEL,
        "leave": Goal.LEAVE,
        "suspend": Goal.SUSPEND,
        "update": Goal.RUN_AGAIN,
    },
    Goal.SUSPEND: {
        "cancel": Goal.CANCEL,
        "leave": Goal.LEAVE,
        "resume": Goal.RUN_AGAIN,
        "restart": Goal.RUN_AGAIN,
        "update": Goal.RUN_AGAIN,
    },
    Goal.LEAVE: {"cancel": Goal.CANCEL},
    Goal.CANCEL: {},
    Goal.COMPLETE: {},
}


def goal_after(goal: Goal, want: Want) -> Goal | None:
    """Return the goal that a request makes of another one; None: the request changes nothing, and is not taken."""
    return _TABLE[goal].get(want)
