"""State that is larger than a worker may be: it moves to disk, and nobody sees a difference."""

from __future__ import annotations

import pytest

import dstream as ds
from dstream.operators.state import keys
from dstream.operators.state.disk import StatesOnDisk
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed, eventually, read_stream

NO_ROOM, ROOM = 1, 2**40
KEYS = 300


@pytest.fixture
def tables(monkeypatch):
    """The tables that were made, where each shard of 4 keys or more is worth one."""
    made, filled = [], StatesOnDisk.__init__

    def init(self, *given):
        filled(self, *given)
        made.append(self)

    monkeypatch.setattr(StatesOnDisk, "__init__", init)
    monkeypatch.setattr(keys, "_MANY", 4)
    return made


def counted(state, key, number):
    """Number the items of a key."""
    state.append(number)
    return key, len(state), sum(state)


def key_of(number):
    """Return one of 300 keys."""
    return f"key {number % KEYS}"


def submitted(ctx, feed):
    """Run the job that counts in three steps."""
    pipeline = ds.Pipeline()
    stage = read_stream(pipeline, feed).add_timestamps(int)
    counts = stage.grouping_key(key_of).map_stateful(list, counted, ttl=700)
    counts.grouping_key(lambda count: count[0]).distinct().write_to(to_ilist("firsts"))
    counts.write_to(to_ilist("out"))
    return ctx.new_job(pipeline, name="counts", config=ds.JobConfig(shards=4))


def ran(connect, folder, memory):
    """Return what two drivers write, the second of which goes on where the first ended."""
    feed, first = Feed({"0": list(range(1000))}), connect(storage=folder, worker_memory=memory)
    job = submitted(first, feed)
    eventually(lambda: job.epoch == 1)
    feed.give(*range(1000, 1200))
    eventually(lambda: job.epoch >= 2)
    first.close()
    feed.give(*range(1200, 2500))
    feed.end()
    ctx = connect(storage=folder, worker_memory=memory)
    submitted(ctx, feed).join(20)
    return sorted(ctx.get_list("out")), sorted(ctx.get_list("firsts"))


def test_state_beyond_memory_gives_what_state_in_memory_gives(connect, tables, tmp_path):
    """In every epoch, and for the driver that goes on from snapshots and changes."""
    without = ran(connect, str(tmp_path / "without"), ROOM)
    assert not tables
    beyond = ran(connect, str(tmp_path / "beyond"), NO_ROOM)

    assert tables
    assert beyond == without
    assert (len(beyond[0]), len(beyond[1])) == (2500, KEYS)
