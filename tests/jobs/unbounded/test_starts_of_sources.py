"""Sources that begin at a time, as jobs read them."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import dstream as ds
from reducers import to_ilist
from sources import imap_journal, watch_files
from tests.jobs.unbounded.streams import eventually


def read_by_a_job(ctx, source):
    """Return what a job makes of a source, once it has published something."""
    pipeline = ds.Pipeline()
    pipeline.read_from(source).write_to(to_ilist("out"))
    job = ctx.new_job(pipeline)
    eventually(lambda: job.epoch > 0)
    job.cancel()
    return ctx.get_list("out").copy()


def test_files_are_watched_from_a_time_on(ctx, tmp_path):
    """What was there before is left out; what comes later is read."""
    folder = tmp_path / "lines"
    folder.mkdir()
    for name, hours in (("old", 2), ("new", 0)):
        path = folder / f"{name}.txt"
        path.write_text(f"{name}\n")
        os.utime(path, (time.time() - hours * 3600,) * 2)
    start = datetime.now(UTC) - timedelta(hours=1)

    assert read_by_a_job(ctx, watch_files(folder, start=start)) == ["new"]


def test_a_journal_is_read_from_a_time_on(ctx):
    """By the time of the commits."""
    ages = ctx.get_map("ages", journal=True)
    ages["Ada"] = 36
    time.sleep(0.01)
    start = datetime.now(UTC)
    ages["Grace"] = 85

    assert read_by_a_job(ctx, imap_journal("ages", start=start, projection=lambda event: event.key)) == ["Grace"]
