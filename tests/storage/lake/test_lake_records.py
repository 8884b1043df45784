"""Records as files: what else may stand or happen where they are."""

from __future__ import annotations

from pickle import dumps

import pytest

from dstream.errors import EngineError, IllegalStateError
from dstream.spi.records import Record
from dstream.storage import Settings, open_storage
from dstream.storage.base.named_folders import NamedFolder
from dstream.storage.lake.records import LakeRecords


@pytest.fixture
def records(tmp_path) -> LakeRecords:
    """The records of a folder."""
    return open_storage(str(tmp_path), Settings()).records


def version_path(tmp_path, version: int):
    """Return the file of a version."""
    return tmp_path / "records" / "a" / f"{version:020d}.record"


def test_few_old_versions_stay(tmp_path, records):
    """The writer of the next one removes them, but for those that a reader may have seen in a listing."""
    for version in range(1, 30):
        assert records.write("a", b"%d" % version, version)

    names = sorted(path.name for path in (tmp_path / "records" / "a").glob("*.record"))
    assert names == [f"{version:020d}.record" for version in (27, 28, 29)]


def test_a_record_that_is_forgotten_leaves_no_file(tmp_path, records):
    """Five records a second for a year must not leave a folder each."""
    records.write("log/other", b"x", 1)
    before = sorted(tmp_path.rglob("*"))
    for number in range(5):
        records.write(f"log/{number}", b"x", 1)
        records.forget(f"log/{number}")

    assert sorted(tmp_path.rglob("*")) == before


def test_a_writer_that_has_slept_takes_nothing_back(tmp_path, records, monkeypatch):
    """Its version was written and removed meanwhile, so that it could create it once more."""
    records.write("a", b"one", 1)
    real = NamedFolder.create

    def late(folder, path, data):
        if data.endswith(b"late"):
            for version in range(2, 8):
                assert records.write("a", b"%d" % version, version)
        return real(folder, path, data)

    monkeypatch.setattr(NamedFolder, "create", late)
    assert not records.write("a", b"late", 2)
    assert records.read("a") == Record(7, b"7")
    assert not version_path(tmp_path, 2).exists()


def test_a_writer_that_looks_late_knows_that_it_wrote(records, monkeypatch):
    """Others have written on what it wrote before it could look."""
    real = NamedFolder.create

    def looked_at_late(folder, path, data):
        created = real(folder, path, data)
        if data.endswith(b"first"):
            for version in range(2, 8):
                assert records.write("a", b"%d" % version, version)
        return created

    monkeypatch.setattr(NamedFolder, "create", looked_at_late)
    assert records.write("a", b"first", 1)
    assert records.read("a") == Record(7, b"7")


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: b"", lambda data: data[:-1] + b"?"])
def test_damage_is_an_error(tmp_path, records, change):
    """It is neither taken for a value, nor for nothing."""
    records.write("a", b"one", 1)
    path = version_path(tmp_path, 1)
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(IllegalStateError, match="record 'a' is damaged"):
        records.read("a")


def test_forgotten_records_take_no_memory(records):
    """An unbounded job reads and forgets a name of its own in each epoch, for years."""

    def after(count):
        for number in range(count):
            records.write(f"log/{number}", b"x", 1)
            records.read(f"log/{number}")
            records.forget(f"log/{number}")
        return len(
            dumps({name: value for name, value in vars(records).items() if isinstance(value, set | dict | list)})
        )

    assert after(5) == after(50)


def test_other_files_are_no_records(tmp_path, records):
    """Neither names nor versions."""
    records.write("a", b"one", 1)
    for name in ("records/a/x.record", "records/a/00000000000000000002.record.tmp", "records/B/1", "records/stray"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    assert records.names() == ["a"]
    assert records.read("a") == Record(1, b"one")


def test_a_link_is_refused(tmp_path, records):
    """It may lead anywhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "a").symlink_to(elsewhere)

    for call in (records.read, lambda name: records.write(name, b"", 1)):
        with pytest.raises(EngineError, match="symbolic link"):
            call("a")
    assert list(elsewhere.iterdir()) == []


def test_only_not_there_means_not_there(records, monkeypatch):
    """A disk that fails is an error, not a record that nobody has written."""
    records.write("a", b"one", 1)

    def fails(*arguments, **options):
        raise OSError(5, "Input/output error")

    for name in ("os.scandir", "os.open"):
        with monkeypatch.context() as patched:
            patched.setattr(name, fails)
            with pytest.raises(EngineError, match="Input/output error"):
                records.read("a")
