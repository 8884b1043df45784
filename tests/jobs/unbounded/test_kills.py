"""The kit of the soak `tests.soak.unbounded`, with few kills."""

from __future__ import annotations

import json
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.jobs.unbounded.clocked_events import Clocked, event, expected
from tests.jobs.unbounded.killed_windows import Terms, connected, pipeline_of
from tests.soak.unbounded import Round, problems_of


@pytest.fixture
def terms(tmp_path):
    """Those of a job whose events are over after two and a half seconds."""
    return Terms(str(tmp_path), 500, 5, 200.0, time.time())


def test_every_sink_is_whole_after_kills(terms):
    """At a point between two publications; and a driver that was stopped, which finds that another one has the job."""
    job = Round(terms, random.Random(2))
    ended = job.driver(point="between", passes=9).ended()
    job.frozen("committed")
    job.run(0)

    assert (ended, sorted(job.were)[-1]) == (-signal.SIGKILL, "driver stopped at 'committed' until another had the job")
    assert problems_of(terms) == []


def test_every_sink_is_whole_after_kills_while_epochs_move(terms):
    """At the moment of a move, and behind an epoch that another process than that of the one before has staged."""
    moving = replace(terms, engine="moving", count=2_000, rate=800.0)
    job = Round(moving, random.Random(3), {"kill": 1})
    ended = [job.driver(point=point, passes=passes).ended() for point, passes in (("moved", 4), ("staged", 7))]
    job.run(0)

    assert ended == [-signal.SIGKILL] * 2
    assert problems_of(moving) == []


def test_what_is_wrong_is_told(terms):
    """An item that is there twice, one that is missing, and a line that is torn."""
    few = replace(terms, count=100)
    with connected(few) as ctx:
        ctx.new_job(pipeline_of(few)).join(30)
        ctx.get_list("rolling").append(("k0", 1))
        ctx.get_map("totals").put("k0", -1)
    path = next(Path(few.folder, "files").glob("part-*"))
    gone, *lines = path.read_text().splitlines()
    path.write_text("\n".join(lines))

    assert problems_of(few) == [
        "totals: 1 lost [('k0', 80)], 1 too many [('k0', -1)]",
        "rolling: 0 lost [], 1 too many [('k0', 1)]",
        f"files: 1 lost ['{json.loads(gone)}'], 0 too many []",
        "rolling: not in order",
    ]


def test_events_come_with_the_clock():
    """A range is the same however often it is read; an end is left out."""
    now = [10.0]
    source = Clocked(10, 3, 2.0, 8.0, lambda: now[0])

    assert source.reach({"0": 0, "1": 1}) == {"0": 4, "1": 3}
    now[0] = 20.0
    assert source.reach({"0": 0, "1": 10}, most=3) == {"0": 3}
    assert list(source.split("1", 2, 4).read()) == [event(1, 2, 3), event(1, 3, 3)]
    assert sum(expected(10, 3).totals.values()) == 40
