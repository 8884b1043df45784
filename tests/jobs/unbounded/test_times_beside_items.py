"""Timestamps that a source has beside its items, which do not say them."""

from __future__ import annotations

import pytest

import dstream as ds
from collectors import counting, to_list
from dstream.errors import IllegalStateError, UnsupportedError
from dstream.windows import tumbling
from reducers import to_ilist
from sources import item_stream, long_stream, stream_of
from tests.jobs.unbounded.streams import eventually

SOON = ds.JobConfig(epoch_length=0.05)


class Clock:
    """Says what it was told, in seconds; a job that begins again has a copy of it."""

    def __init__(self, place, now):
        self.place = place / "now"
        self.turn(now)

    def turn(self, now):
        """Go to a time."""
        self.place.write_text(str(now))

    def __call__(self):
        return float(self.place.read_text() or 0)


def named(timestamp, sequence):
    """Make a text that says no time."""
    return f"n{sequence}"


def windows_of(found):
    """Return the ends and results of windows, in order."""
    return sorted(tuple(each) for each in found)


def test_windows_take_the_time_of_item_stream(engine, tmp_path):
    """Which passes while the job goes on, also when it begins again, in several partitions."""
    name, clock = tmp_path.name, Clock(tmp_path, 2.4)
    pipeline = ds.Pipeline()
    stamped = pipeline.read_from(item_stream(4, named, start=0, partitions=2, clock=clock)).native_timestamps()
    results = stamped.filter(lambda text: text != "n2").window(tumbling(1000)).aggregate(to_list())
    results.map(lambda found: (found.end, sorted(found.result))).write_to(to_ilist(name))
    job = engine.context.new_job(pipeline, name=name, config=SOON)
    out = engine.context.get_list(name)
    eventually(lambda: len(out) == 2)
    job.restart()
    clock.turn(4.3)
    eventually(lambda: len(out) == 4)
    job.cancel()

    assert windows_of(out.copy()) == [
        (1000, ["n0", "n1", "n3"]),
        (2000, ["n4", "n5", "n6", "n7"]),
        (3000, ["n10", "n11", "n8", "n9"]),
        (4000, ["n12", "n13", "n14", "n15"]),
    ]


def test_other_stages_read_the_items_without_their_times(engine, tmp_path):
    """One that has times of its own beside them, and one that has none."""
    name, clock = tmp_path.name, Clock(tmp_path, 3.0)
    pipeline = ds.Pipeline()
    numbers = pipeline.read_from(long_stream(2, start=0, clock=clock))
    for part, stamped in (
        ("native", numbers.native_timestamps(allowed_lag=500)),
        ("own", numbers.add_timestamps(lambda n: n * 1000)),
    ):
        counted = stamped.window(tumbling(2000)).aggregate(counting())
        counted.map(lambda found: (found.end, found.result)).write_to(to_ilist(f"{name} {part}"))
    numbers.map(lambda n: -n).write_to(to_ilist(name))
    job = engine.context.new_job(pipeline, name=name, config=SOON)
    own, native, plain = (engine.context.get_list(f"{name}{part}") for part in (" own", " native", ""))
    eventually(lambda: len(own) == 3 and len(native) == 1 and len(plain) == 7)
    job.cancel()

    assert windows_of(own.copy()) == [(2000, 2), (4000, 2), (6000, 2)]
    assert native.copy() == [(2000, 4)]
    assert plain.copy() == [-n for n in range(7)]


def test_items_of_before_go_no_further(ctx, tmp_path):
    """By the time beside them."""
    pipeline = ds.Pipeline()
    source = item_stream(1, named, start=0, clock=Clock(tmp_path, 5.0))
    pipeline.read_from(source).native_timestamps(drop_before=3000).write_to(to_ilist("out"))
    job = ctx.new_job(pipeline, config=SOON)
    eventually(lambda: len(ctx.get_list("out")) == 3)
    job.cancel()

    assert ctx.get_list("out").copy() == ["n3", "n4", "n5"]


def test_the_stage_is_shown_as_any_other():
    """And stands behind the source alone."""
    read = ds.Pipeline().read_from(item_stream(1, named))

    assert repr(read.native_timestamps(allowed_lag=5)).endswith("native_timestamps(allowed_lag=5)>")
    with pytest.raises(IllegalStateError, match=r"stands directly behind read_from\(...\)"):
        read.map(len).native_timestamps()
    with pytest.raises(UnsupportedError, match="has no timestamps of its own"):
        ds.Pipeline().read_from(stream_of([1])).native_timestamps()
