"""Records: small named values that any process may replace, each version once."""

from __future__ import annotations

import contextlib

import pytest

from dstream.spi.records import Record

BAD_NAMES = ["", "/", "a/", "/a", "a//b", "..", "a/../b", "A", "a.b", "a b", "a\n", "a\x00", "é", "a" * 65, "a*", "{a}"]


@pytest.fixture
def other(backend):
    """The records of one more handle."""
    with contextlib.closing(backend.open()) as storage:
        yield storage.records


def test_record_is_read_as_it_was_written(storage, other):
    """Another handle sees what one has written, bytes of any kind included."""
    data = bytes(range(256)) * 3
    assert storage.records.read("jobs/a-1/state") is None
    assert storage.records.write("jobs/a-1/state", data, 1)
    assert storage.records.write("empty", b"", 1)

    assert other.read("jobs/a-1/state") == Record(1, data)
    assert other.read("empty") == Record(1, b"")
    assert other.read("jobs/a-1") is None


def test_record_has_each_version_once(storage, other):
    """Who writes a version that is there, or one that is not the next, changes nothing."""
    records = storage.records
    assert records.write("r", b"one", 1)
    assert not other.write("r", b"other", 1)
    assert other.write("r", b"two", 2)
    assert [records.write("r", b"late", version) for version in (1, 2, 4)] == [False, False, False]

    assert records.read("r") == other.read("r") == Record(2, b"two")


def test_record_is_replaced_many_times(storage):
    """Versions go on, and the last one counts."""
    assert all(storage.records.write("r", b"%d" % version, version) for version in range(1, 31))

    assert storage.records.read("r") == Record(30, b"30")
    assert storage.records.names() == ["r"]


def test_record_of_a_few_megabytes(storage):
    """A pickled pipeline may have them."""
    data = bytes(5_000_000) + b"end"
    assert storage.records.write("plan", data, 1)

    assert storage.records.read("plan") == Record(1, data)


def test_records_are_named_in_order(storage):
    """A prefix may end inside of a part; a name may have others below it."""
    records = storage.records
    assert records.names() == []
    for name in ("jobs/b/state", "jobs/a", "jobs/a/state", "jobs-1", "job"):
        records.write(name, b"x", 1)

    assert records.names() == ["job", "jobs-1", "jobs/a", "jobs/a/state", "jobs/b/state"]
    assert records.names("jobs/") == ["jobs/a", "jobs/a/state", "jobs/b/state"]
    assert records.names("jobs/a/st") == ["jobs/a/state"]
    assert records.names("none/") == []
    assert records.read("jobs/a") == Record(1, b"x")


def test_record_that_is_removed_begins_anew(storage):
    """It is not there, has no name, and its next version is 1 again; those below it stay."""
    records = storage.records
    for version in (1, 2, 3):
        records.write("r", b"old", version)
    records.write("r/below", b"stays", 1)
    for name in ("r", "r", "never"):
        records.remove(name)

    assert (records.read("r"), records.names()) == (None, ["r/below"])
    assert not records.write("r", b"late", 4)
    assert records.write("r", b"new", 1)
    assert (records.read("r"), records.names()) == (Record(1, b"new"), ["r", "r/below"])


def test_record_that_is_forgotten_leaves_nothing(storage):
    """It is as if it had never been there; those below it stay."""
    records = storage.records
    for version in (1, 2, 3):
        records.write("r", b"old", version)
    records.write("r/below", b"stays", 1)
    for name in ("r", "r", "never"):
        records.forget(name)

    assert (records.read("r"), records.names()) == (None, ["r/below"])
    assert records.write("r", b"new", 1)
    assert records.read("r") == Record(1, b"new")


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_record_of_another_name_is_refused(storage, name):
    """A name becomes a part of a path or of a key, so it can lead nowhere else."""
    records = storage.records
    for ask in (records.read, records.remove, records.forget, lambda name: records.write(name, b"x", 1)):
        with pytest.raises(ValueError, match="is no name of a record"):
            ask(name)
    with pytest.raises(ValueError, match="no name of a record begins with"):
        records.names("../")


def test_record_of_other_arguments_is_refused(storage):
    """Each is named; a record that nobody could read again is not written."""
    write = storage.records.write
    with pytest.raises(TypeError, match="the name of a record is a str, not b'a'"):
        storage.records.read(b"a")
    with pytest.raises(TypeError, match="the record 'a' holds bytes, not str"):
        write("a", "text", 1)
    with pytest.raises(TypeError, match="the version of the record 'a' is an int, not True"):
        write("a", b"", True)
    with pytest.raises(ValueError, match="the record 'a' cannot have version 0"):
        write("a", b"", 0)
    with pytest.raises(ValueError, match="the record 'a' cannot hold 64000001 bytes"):
        write("a", bytes(64_000_001), 1)
    with pytest.raises(ValueError, match="is no name of a record"):
        write("/".join(["a" * 64] * 7), b"", 1)


def test_records_are_no_collections_and_stay(storage, use):
    """Neither a vacuum nor what is done to collections touches them."""
    use.put(use.map(storage, "r"), {"k": 1})
    storage.records.write("r", b"one", 1)
    storage.records.write("r", b"two", 2)
    use.map(storage, "r").destroy()
    storage.vacuum(0)

    assert storage.names() == []
    assert storage.records.read("r") == Record(2, b"two")
    assert storage.records.write("r", b"three", 3)


def test_records_raced_for_by_threads_have_one_winner(storage, other, use):
    """Of several who write one version one gets True, and its data stand there."""
    won: list[tuple[int, bytes]] = []

    def race(records, who):
        won.extend((version, who) for version in range(1, 31) if records.write("r", who, version))

    use.together(*(lambda at=at, who=who: race(at, who) for at, who in ((storage.records, b"a"), (other, b"b"))))
    assert sorted(version for version, _ in won) == list(range(1, 31))
    assert storage.records.read("r") == Record(*max(won))


# ------------------------------------------------------------------------------------------------------ other processes


def _counted(backend, times):
    """Add to a record so many times, and return how many attempts were told that they had written."""
    records, won = backend.open().records, 0
    while won < times:
        there = records.read("n")
        version, value = (0, 0) if there is None else (there.version, int(there.data.partition(b" ")[0]))
        won += records.write("n", b"%d " % (value + 1) + b"x" * 50_000, version + 1)
    return won


@pytest.mark.usefixtures("shared")
def test_records_counted_by_processes_lose_nothing(backend, storage, elsewhere):
    """Each True is a version of its own, and nobody reads half of a record."""
    counting = [elsewhere(_counted, backend, 60) for _ in range(2)]
    assert [process.returned() for process in counting] == [60, 60]

    assert storage.records.read("n") == Record(120, b"120 " + b"x" * 50_000)


def _numbered(backend):
    """Write for ever, and say after each write which version was acknowledged."""
    records = backend.open().records
    there = records.read("n")
    version = 0 if there is None else there.version
    while True:
        version += 1
        assert records.write("n", b"%d" % version * 20_000, version)
        yield version


@pytest.mark.usefixtures("shared")
def test_records_survive_a_kill_of_their_writer(backend, storage, elsewhere):
    """What was acknowledged is there, whole; the next writer goes on, wherever the kill came."""
    last = 0
    for round in range(2):
        writing = elsewhere(_numbered, backend)
        for last in writing.said():
            if last >= 10 * (round + 1):
                writing.kill()
        there = storage.records.read("n")
        assert there.version in (last, last + 1)
        assert there.data == b"%d" % there.version * 20_000
