"""The times of a journal on SQLite: what SQLite says of the clock."""

from __future__ import annotations

import time

import dstream as ds


def test_a_time_is_the_millisecond_of_the_commit(tmp_path):
    """Also where the Julian day that SQLite gives is a float just below it, which is half of all milliseconds."""
    with ds.connect(engine="local", storage=f"sqlite:{tmp_path / 'd.sqlite'}") as ctx:
        kept = ctx.get_map("m", journal=True)
        bounds = []
        for n in range(40):
            before = int(time.time() * 1000)
            kept["a"] = n
            bounds.append((before, time.time() * 1000))
            time.sleep(0.0011)
        times = [event.timestamp for event in kept.journal(0)]

    assert [before <= at <= after for at, (before, after) in zip(times, bounds, strict=True)] == [True] * 40
