"""Which status may follow which."""

from __future__ import annotations

import pytest

from dstream.errors import IllegalStateError
from dstream.jobs import JobStatus
from dstream.jobs.state import checked_change

ALLOWED = """
NOT_RUNNING                  STARTING CANCELLED
STARTING                     RUNNING COMPLETING RESTARTING FAILED CANCELLED SUSPENDED NOT_RUNNING
RUNNING                      COMPLETING RESTARTING FAILED CANCELLED SUSPENDED SUSPENDED_EXPORTING_SNAPSHOT NOT_RUNNING
SUSPENDED                    STARTING SUSPENDED_EXPORTING_SNAPSHOT RESTARTING FAILED CANCELLED SUSPENDED NOT_RUNNING
SUSPENDED_EXPORTING_SNAPSHOT SUSPENDED FAILED CANCELLED
RESTARTING                   STARTING RESTARTING FAILED CANCELLED SUSPENDED NOT_RUNNING
COMPLETING                   COMPLETED FAILED RESTARTING
COMPLETED
FAILED                       STARTING
CANCELLED
"""
TABLE = {before: set(after) for before, *after in map(str.split, ALLOWED.strip().splitlines())}


@pytest.mark.parametrize("before", JobStatus)
@pytest.mark.parametrize("after", JobStatus)
def test_a_status_follows_only_as_the_table_says(before, after):
    """What the table does not name is refused, and names both."""
    if after.name in TABLE[before.name]:
        assert checked_change(before, after) is after
    else:
        with pytest.raises(IllegalStateError, match=f"that is {before.name} cannot become {after.name}"):
            checked_change(before, after)


def test_three_of_them_are_the_end():
    """Of a job that completed, failed or was cancelled nobody drives anything any more."""
    assert [each.name for each in JobStatus if each.has_ended] == ["COMPLETED", "FAILED", "CANCELLED"]
