"""`SideRows`: what comes beside the items of a job."""

from __future__ import annotations

import itertools

import pytest

from dstream.engine.tasks.rows import Row
from dstream.engine.tasks.runtime import SideRows


@pytest.mark.parametrize("few", [0, 5, 10**6])
def test_side_rows_come_in_encounter_order(few):
    """Channel by channel, task by task, also if some of them were on disk meanwhile."""
    places = list(itertools.product((1, 2), (0, 1, 2), (0, 1)))
    rows = SideRows(few)
    for channel, source, sequence in sorted(places, key=lambda place: hash(str(place))):
        rows.add(Row(0, source, sequence, channel, 1, memoryview(f"{channel}{source}{sequence}".encode())))
    found = list(rows.in_order())

    assert [(row.channel, row.source, row.sequence) for row in found] == places
    assert [row.payload.decode() for row in found] == ["".join(map(str, place)) for place in places]
    assert list(rows.in_order()) == []
