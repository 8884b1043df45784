"""Records: small named values that any process may read and replace, one version after another."""

from __future__ import annotations

import contextlib
import itertools
import pickle

import pytest

from dstream.errors import IllegalStateError
from dstream.spi.records import Record
from dstream.storage.record_frames import framed, unframed


@pytest.fixture
def records(storage):
    """The records of a storage."""
    return storage.records


def test_a_record_has_its_last_version(records):
    """One that nobody has written is None."""
    assert records.read("jobs/a/state") is None
    assert records.write("jobs/a/state", b"one", 1)
    assert records.write("jobs/a/state", b"", 2)
    assert records.read("jobs/a/state") == Record(2, b"")


@pytest.mark.parametrize("version", [0, 1, 2, 4, -1])
def test_only_the_next_version_is_written(records, version):
    """Whoever has read an older one is told so, and changes nothing."""
    assert records.write("a", b"one", 1)
    assert records.write("a", b"two", 2)

    assert not records.write("a", b"other", version)
    assert records.read("a") == Record(2, b"two")


def test_names_are_those_of_the_records(records):
    """By prefix, sorted; a name may be the beginning of another one."""
    for name in ("jobs/b/state", "jobs/a/state", "jobs/a", "names/x"):
        assert records.write(name, b"", 1)
        records.write(name, b"again", 2)

    assert records.names() == ["jobs/a", "jobs/a/state", "jobs/b/state", "names/x"]
    assert records.names("jobs/a") == ["jobs/a", "jobs/a/state"]
    assert records.names("jobs/") == ["jobs/a", "jobs/a/state", "jobs/b/state"]
    assert records.read("jobs/a") == Record(2, b"again")


def test_a_record_that_was_removed_is_new_again(records):
    """Removing is not told from never having been."""
    records.write("a", b"one", 1)
    records.write("a", b"two", 2)
    records.remove("a")
    records.remove("a")

    assert (records.read("a"), records.names()) == (None, [])
    assert records.write("a", b"new", 1)


@pytest.mark.parametrize(
    "name", ["", "/", "a/", "/a", "a//b", "../a", "A", "a.b", "a" * 65, "a\n", "/".join("abcdefghi")]
)
def test_what_is_no_name_is_refused(records, name):
    """It would become a path, or a key."""
    for call in (records.read, records.remove, lambda name: records.write(name, b"", 1)):
        with pytest.raises(ValueError, match="no record has the name"):
            call(name)


def test_records_of_megabytes_come_back(records):
    """Such as a pickled pipeline; any bytes."""
    data = bytes(range(256)) * 2**13
    assert records.write("a", data, 1)
    assert records.read("a") == Record(1, data)


def test_another_handle_sees_records(backend, storage, records):
    """And a vacuum leaves them alone."""
    records.write("a", b"one", 1)
    storage.vacuum(0)
    if backend.shared:
        with contextlib.closing(backend.open()) as other:
            assert other.records.read("a") == Record(1, b"one")
    assert records.read("a") == Record(1, b"one")


def test_threads_that_write_one_version_are_told_apart(records, use):
    """Exactly one of them has written it."""
    won: list[tuple[int, int]] = []

    def write(number):
        won.extend((version, number) for version in range(1, 21) if records.write("a", b"%d" % number, version))

    use.together(*(lambda number=number: write(number) for number in range(4)))
    assert sorted(version for version, _ in won) == list(range(1, (last := records.read("a")).version + 1))
    assert last.data == b"%d" % dict(won)[last.version]


def _count(backend, times):
    records, done = backend.open().records, 0
    while done < times:
        record = records.read("n") or Record(0, b"0")
        done += records.write("n", b"%d" % (int(record.data) + 1), record.version + 1)
    return done


def test_processes_that_count_lose_nothing(backend, records, elsewhere):
    """Each reads, adds one, and writes the next version, or tries again."""
    if not backend.shared:
        return
    for process in [elsewhere(_count, backend, 50) for _ in range(3)]:
        assert process.returned() == 50

    assert records.read("n") == Record(150, b"150")


def _write_for_ever(backend):
    records = backend.open().records
    for version in itertools.count(1):
        assert records.write("a", pickle.dumps([version] * 1000), version)
        yield version


@pytest.mark.parametrize("last", [1, 7, 20])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(backend, records, elsewhere, last):
    """And leaves no part of a version."""
    if not backend.shared:
        return
    writer, acknowledged = elsewhere(_write_for_ever, backend), 0
    for acknowledged in writer.said():
        if acknowledged == last:
            writer.kill()

    version, data = records.read("a")
    assert version >= acknowledged
    assert pickle.loads(data) == [version] * 1000
    assert records.write("a", b"alive", version + 1)


@pytest.mark.parametrize(
    "kept", [b"", b"x", framed("a", 1, b"one")[:-1], framed("b", 1, b"one"), framed("a", 2, b"one")]
)
def test_what_is_no_version_is_damage(kept):
    """A part of one, one of another name or number, something else."""
    with pytest.raises(IllegalStateError, match="the record a is damaged"):
        unframed("a", 1, kept)
    assert unframed("a", 1, framed("a", 1, b"one")) == b"one"


def test_pickles_of_records_follow_the_rule_of_the_storage(backend):
    """As those of collections do."""
    from pathlib import Path

    data = pickle.dumps(Path("a"))
    with contextlib.closing(backend.open()) as trusted, contextlib.closing(backend.open(pickle="never")) as never:
        assert trusted.load_pickle(data) == Path("a")
        with pytest.raises(TypeError):
            never.load_pickle(data)
