"""What a process keeps of shards and of files, and when it lets go of them."""

from __future__ import annotations

import pytest

from dstream.operators.state import shards as module
from dstream.operators.state.shards import CachedShard, RecentFiles, ShardCache, ShardLocation
from dstream.storage import Settings, open_storage
from tests.state.counting import Counts
from tests.state.epochs import JOB

PLACE = ShardLocation("counts", 1)


def test_kept_shards_are_taken_by_one():
    """Who comes second finds nothing."""
    kept, shard = ShardCache(), CachedShard("a", Counts())
    kept.put("job", "", PLACE, shard)

    assert (kept.take("job", "", PLACE), kept.take("job", "", PLACE)) == (shard, None)


def test_kept_shards_of_jobs_that_ended_go(monkeypatch):
    """When another job needs some, ten minutes after their last epoch; or at once, when it is said."""
    kept, now = ShardCache(), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    kept.put("ended", "", PLACE, CachedShard("a", Counts()))
    kept.put("told", "", PLACE, CachedShard("a", Counts()))
    now[0] = 500.0
    kept.put("runs", "", PLACE, CachedShard("a", Counts()))
    kept.forget("told")
    now[0] = 601.0
    kept.put("new", "", PLACE, CachedShard("a", Counts()))

    assert [kept.take(job, "", PLACE) is None for job in ("ended", "told", "runs", "new")] == [True, True, False, False]


def test_kept_shards_of_plans_before_go():
    """A job whose pipeline was replaced keeps those of its new plan alone."""
    kept, other = ShardCache(), ShardLocation("counts", 2)
    kept.put("job", "1", PLACE, CachedShard("a", Counts()))
    assert kept.take("job", "2", PLACE) is None
    kept.put("job", "2", other, CachedShard("a", Counts()))

    assert kept.take("job", "1", PLACE) is kept.take("job", "2", PLACE) is None
    assert kept.take("job", "2", other) is not None


@pytest.fixture
def stored():
    """Files in memory, which can be taken away."""
    return open_storage("memory:", Settings()).state_files(JOB)


def test_recent_files_are_read_once(stored):
    """A small one as a whole, so that its other parts come at no cost."""
    recent = RecentFiles()
    stored.write("a", b"0123456789")
    assert recent.read(stored, "a", 2, 3) == b"234"
    stored.remove("a")

    assert recent.read(stored, "a", 5, 5) == b"56789"


def test_recent_files_that_were_written_are_not_read(stored):
    """The process has the bytes already."""
    recent = RecentFiles()
    recent.put("a", b"0123456789")

    assert recent.read(stored, "a", 2, 3) == b"234"


def test_recent_files_are_small(stored, monkeypatch):
    """Of a larger one, the parts are read that are asked for, also those that begin in its head."""
    monkeypatch.setattr(module, "_SMALL_FILE", 8)
    recent = RecentFiles()
    stored.write("a", b"0123456789")
    recent.put("a", b"wrong, and too large")

    assert [recent.read(stored, "a", *part) for part in ((0, 3), (6, 4), (8, 2))] == [b"012", b"6789", b"89"]


def test_recent_files_are_few(stored, monkeypatch):
    """The oldest go first."""
    monkeypatch.setattr(module, "_MOST_RECENT", 10)
    recent = RecentFiles()
    for name in "abc":
        recent.put(name, b"01234")

    with pytest.raises(FileNotFoundError):
        recent.read(stored, "a", 0, 1)
    assert (recent.read(stored, "b", 0, 1), recent.read(stored, "c", 0, 1)) == (b"0", b"0")


def test_kept_shards_are_shown_while_nobody_else_has_them():
    """Of one job and version, each with its token still; what is taken out is not shown."""
    kept, seen = ShardCache(), []
    for shard in range(3):
        kept.put("job", "", ShardLocation("counts", shard), CachedShard(f"token {shard}", Counts()))
    taken = kept.take("job", "", ShardLocation("counts", 1))

    def look(state):
        seen.append(state)
        return len(seen) == 2

    assert (kept.visit("job", "", look), kept.visit("other", "", look), kept.visit("job", "2", look)) == (
        True,
        False,
        False,
    )
    assert taken.state not in seen
    assert [kept.take("job", "", ShardLocation("counts", shard)).token for shard in (0, 2)] == ["token 0", "token 2"]
