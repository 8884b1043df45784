"""What the driver knows of the state of a step, and how it stands in records."""

from __future__ import annotations

import pytest

from dstream.errors import IllegalStateError
from dstream.jobs.records import packed, unpacked
from dstream.operators.state.index import Part, Shard, ShardIndex
from dstream.operators.state.index_format import changes_from_plain, changes_to_plain, index_from_plain, index_to_plain
from dstream.spi.epochs import ShardChange
from tests.state.counting import Counting

FILE = "counts-0123456789ab/000000000007-0123456789abcdef0123456789abcdef"
OTHER = FILE.replace("7-", "8-")
INDEX = ShardIndex.new("counts", Counting(10), 2)
SNAPSHOT = ShardChange(1, True, FILE, 0, 100, 3, deadline=50)
CHANGE = ShardChange(1, False, OTHER, 10, 20, 4, clock_deadline=1.5)


def test_index_of_a_new_step_has_shards_without_parts():
    """Nothing has a file before its first epoch."""
    assert (INDEX.shards, INDEX.files(), INDEX.keys) == ((Shard(), Shard()), set(), 0)


def test_index_grows_by_the_changes_of_an_epoch():
    """A snapshot replaces what was there; a change comes behind it; keys and deadlines are those of the last one."""
    index = INDEX.applied([SNAPSHOT]).applied([CHANGE])

    assert index.shards[1] == Shard((Part(FILE, 0, 100, 1), Part(OTHER, 10, 20, 1)), 4, None, 1.5)
    assert index.files() == {FILE, OTHER}
    assert index.applied([SNAPSHOT]).files() == {FILE}


def test_index_replaces_parts_that_were_merged():
    """The new part has the changes of those before, too."""
    merged = ShardChange(1, False, FILE, 30, 40, 4, merges=2)
    index = INDEX.applied([SNAPSHOT]).applied([CHANGE]).applied([CHANGE]).applied([merged])

    assert index.shards[1].parts == (Part(FILE, 0, 100, 1), Part(FILE, 30, 40, 3))


def test_index_has_the_least_deadlines_of_all_shards():
    """Also of those that the last epoch did not touch."""
    index = INDEX.applied([SNAPSHOT, ShardChange(0, True, FILE, 0, 1, 1, deadline=60, clock_deadline=2.5)])

    assert (index.deadline, index.clock_deadline) == (50, 2.5)
    assert (INDEX.deadline, INDEX.clock_deadline) == (None, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (CHANGE, "stands on a state that is not there"),
        (ShardChange(2, True, FILE, 0, 1, 1), "has 2 shards, and none with 2"),
    ],
)
def test_index_refuses_changes_of_another_state(change, words):
    """They would make an index that cannot be loaded."""
    with pytest.raises(IllegalStateError, match=words):
        INDEX.applied([change])


def test_index_and_changes_stand_in_records():
    """What is packed as plain data is the same when it is read."""
    index = INDEX.applied([SNAPSHOT]).applied([CHANGE, ShardChange(0, True, OTHER, 0, 1, 1, deadline=-(2**63))])
    changes = (SNAPSHOT, CHANGE, ShardChange(0, False, "", 0, 0, 1, deadline=2**63 - 1))

    assert index_from_plain(unpacked(packed(index_to_plain(index)))) == index
    assert changes_from_plain(unpacked(packed(changes_to_plain(changes)))) == changes


@pytest.mark.parametrize("file", ["../../data/x", "/etc/passwd", f"a/../{FILE}", FILE + ".", 7, None])
def test_index_names_no_file_that_is_not_of_a_state(file):
    """A record that somebody has written makes no job read or remove other files."""
    with pytest.raises(IllegalStateError, match="is damaged"):
        index_from_plain(["counts", "counting", [], [file], []])
    with pytest.raises(IllegalStateError, match="is damaged"):
        changes_from_plain([[file], []])


@pytest.mark.parametrize(
    "data",
    [
        None,
        ["counts", "counting", [], [FILE]],
        ["counts", 7, [], [FILE], []],
        ["counts", "counting", [], [FILE], [[[[1, 0, 1, 1]], 0, None, None]]],
        ["counts", "counting", [], [FILE], [[[[0, -1, 1, 1]], 0, None, None]]],
        ["counts", "counting", [], [FILE], [[[[0, 0, 1]], 0, None, None]]],
        ["counts", "counting", [], [FILE], [[[], 0, "soon", None]]],
        ["counts", "counting", [], [FILE], [[[], 0, None, "soon"]]],
        ["counts", "counting", [], [FILE], [], "2"],
        ["counts", "counting", [], [FILE], [], 2, 2],
    ],
)
def test_index_that_makes_no_sense_is_refused(data):
    """Each field is checked when it is read."""
    with pytest.raises(IllegalStateError, match="what a record says of the state of a step is damaged"):
        index_from_plain(data)


@pytest.mark.parametrize("sharding", [[], [1], [2], [4]], ids=["not named", "first", "older", "newer"])
def test_state_with_keys_in_other_shards_is_refused(sharding):
    """A job would not find the states of its keys, and begin each anew."""
    plain = index_to_plain(INDEX)[:5] + sharding

    with pytest.raises(IllegalStateError, match=r"'counts' was written by another version of dstream.* version [124] "):
        index_from_plain(plain).check_fits(Counting(10))
