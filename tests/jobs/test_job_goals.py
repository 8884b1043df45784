"""The life of a job as one table: what a request makes of each goal."""

from __future__ import annotations

from dstream.jobs.state import AT_ONCE, Goal, goal_after

WANTS = ("cancel", "leave", "suspend", "resume", "restart", "update")


def row(goal: Goal) -> list[str]:
    """Return the goals behind each request, `-` where it changes nothing."""
    return [getattr(goal_after(goal, want), "name", "-") for want in WANTS]


def test_the_table():
    """Cancel comes above all, nothing takes it back, and no request that is taken makes another one a failure."""
    assert {goal.name: row(goal) for goal in Goal} == {
        "RUN": ["CANCEL", "DETACH", "SUSPEND", "-", "RESTART", "RESTART"],
        "RESTART": ["CANCEL", "DETACH", "SUSPEND", "-", "-", "RESTART"],
        "SUSPEND": ["CANCEL", "DETACH", "-", "RESTART", "RESTART", "RESTART"],
        "DETACH": ["CANCEL", "-", "-", "-", "-", "-"],
        "CANCEL": ["-", "-", "-", "-", "-", "-"],
        "COMPLETE": ["-", "-", "-", "-", "-", "-"],
    }


def test_an_epoch_is_left_for_a_cancel_or_a_restart_only():
    """A job that is suspended, updated or left ends its epoch first."""
    assert set(AT_ONCE) == {"cancel", "restart"}
