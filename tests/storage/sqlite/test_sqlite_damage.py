"""A database that something else has written into: whatever stands there is input, and damage is named."""

from __future__ import annotations

import os
import pickle

import pytest

from dstream.errors import CollectionDestroyedError, IllegalStateError
from dstream.spi.store import Options

TABLE = "map_m_1"


@pytest.mark.parametrize(
    "damage",
    [
        f"UPDATE {TABLE} SET value = x'd9'",
        f"UPDATE {TABLE} SET value = x''",
        f"UPDATE {TABLE} SET value = CAST(x'fe' AS TEXT)",
        f"UPDATE {TABLE} SET key = x'7a7a7a7a'",
        f"UPDATE {TABLE} SET key = x''",
        "UPDATE dstream_collections SET types = '[]'",
        "UPDATE dstream_collections SET types = x'00'",
        f"DROP TABLE {TABLE}",
    ],
)
def test_damage_of_a_map_is_named(base, damage):
    """A value, a key, types or a table that is none: the error names the map, and is not that of a destroyed one."""
    base.put(base.map(), a=1)
    base.storage().close()
    base.sql(damage)

    with pytest.raises(IllegalStateError, match=r"map 'm'.*damaged") as caught:
        base.content(base.map())
    assert not isinstance(caught.value, CollectionDestroyedError)


@pytest.mark.parametrize("shape", ["5", "{}", "nonsense", '{"buckets": -1, "journal": 0, "ttl": 0, "max_idle": 0}'])
def test_damage_of_the_registry_is_named(base, shape):
    """A collection that does not say how it was made is not opened."""
    base.map()
    base.sql("UPDATE dstream_collections SET shape = ?", shape)

    with pytest.raises(IllegalStateError, match="does not say how it was made"):
        base.map()


def test_damage_of_the_names_is_named(base):
    """A kind that there is not is not listed."""
    base.map()
    base.sql("UPDATE dstream_collections SET kind = 'tree'")

    with pytest.raises(IllegalStateError, match="tree"):
        base.storage().names()


LIST_READS = {
    "size": lambda store: store.size(),
    "read": lambda store: store.read(0, 10),
    "splits": lambda store: [item for split in store.splits(2) for item in split.read()],
    "extend": lambda store: store.extend(["d"]),
}


@pytest.mark.parametrize(("read", "lost"), [("read", 1), ("splits", 1), *((read, 2) for read in LIST_READS)])
def test_damage_of_a_list_makes_it_no_shorter(base, read, lost):
    """An item that is gone, in the middle or at the end, is missed by the size that is noted."""
    base.list("a", "b", "c")
    base.sql(f"DELETE FROM list_l_1 WHERE key = {lost}")

    with pytest.raises(IllegalStateError, match=r"list 'l'.*damaged"):
        LIST_READS[read](base.storage().open("list", "l", Options()))


def test_damage_of_a_map_that_a_task_reads_is_missed(base):
    """A part of a map has the number of entries that it had when it was planned."""
    store = base.map()
    base.put(store, a=1, b=2, c=3)
    splits = store.splits(2)
    for event in ("insert", "update", "delete"):
        base.sql(f"DROP TRIGGER {TABLE}_undo_{event}")
    base.sql(f"DELETE FROM {TABLE} WHERE key = 'b'")

    with pytest.raises(IllegalStateError, match=r"map 'm'.*damaged: of 2 entries 1"):
        [pair for split in splits for pair in split.read()]


def test_damage_of_the_schema_is_named(base):
    """The message of SQLite has a name that is no UTF-8, which Python cannot read."""
    base.map()
    base.storage().close()
    data = base.path.read_bytes()
    base.path.write_bytes(data.replace(b"CREATE TABLE dstream_records", b"CRE\xc1TE TABLE dstream_records"))

    with pytest.raises(IllegalStateError, match="damaged"):
        base.map()


def test_damage_of_a_journal_is_named(base):
    """Events that are missing are not skipped."""
    store = base.map(journal=True)
    for n in range(3):
        base.put(store, a=n)
    base.sql(f"DELETE FROM {TABLE}_journal WHERE offset = 2")

    with pytest.raises(IllegalStateError, match="no longer reaches back to offset 1"):
        list(store.journal(0))


@pytest.mark.parametrize("change", ["data = x'00'", "version = 7", "version = 'x'", "sum = 0", "data = 'text'"])
def test_damage_of_a_record_is_named(base, change):
    """Data or a version that was not written there is no record."""
    records = base.storage().records
    records.write("jobs/a", b"data", 1)
    base.sql(f"UPDATE dstream_records SET {change}")

    with pytest.raises(IllegalStateError, match=r"jobs/a.*damaged"):
        records.read("jobs/a")


def _staged(store, entries):
    job = store.begin("job")
    buckets = {}
    for key, value in entries.items():
        buckets.setdefault(job.writer.bucket_of(key), []).append((key, value))
    return job, [receipt for bucket, part in buckets.items() for receipt in job.writer.write_bucket(bucket, iter(part))]


def test_staged_rows_that_are_gone_change_nothing(base):
    """A commit of a file that was removed, shortened or emptied says so."""
    store = base.map()
    base.put(store, a=1)
    job, [receipt] = _staged(store, {"b": 2})
    file = base.path.parent / "data.db-files" / "staged" / "1" / receipt["at"]
    content = file.read_bytes()

    for damage in (b"", content[: len(content) // 2], b"nonsense" * 1000, None):
        file.unlink() if damage is None else file.write_bytes(damage)
        with pytest.raises(IllegalStateError, match="map 'm'"):
            job.commit([receipt])
        assert base.content(store) == {"a": 1}
    file.write_bytes(content)
    job.commit([receipt])
    assert base.content(store) == {"a": 1, "b": 2}


@pytest.mark.parametrize("at", ["../../data.db", "/etc/passwd", "", 5, "0" * 65, "z" * 32 + "-" + "0" * 32])
def test_receipts_name_no_other_files(base, at):
    """What a receipt says becomes part of a path only if a task could have said it."""
    job, [receipt] = _staged(base.map(), {"b": 2})

    with pytest.raises(IllegalStateError, match="no receipt"):
        job.commit([{**receipt, "at": at}])
    with pytest.raises(IllegalStateError, match="removed by vacuum"):
        job.commit([{**receipt, "size": 2}])


class _Runs:
    ran = False

    def __reduce__(self):
        return _run, ()


def _run():
    _Runs.ran = True
    return {}


@pytest.mark.parametrize("pickle_mode", ["never", "restricted"])
def test_pickles_are_not_loaded_where_they_are_not_trusted(base, pickle_mode):
    """A pickle that somebody has put into a cell runs nothing."""
    base.put(base.map(), a=1)
    base.sql(f"UPDATE {TABLE} SET value = ?", b"\xc1" + pickle.dumps(_Runs()))
    store = base.storage(pickle=pickle_mode).open("map", "m", Options())

    with pytest.raises(TypeError, match="map 'm'"):
        store.get_many(["a"])
    assert not _Runs.ran


@pytest.mark.parametrize("shared", ["folder", "file"])
def test_pickles_are_trusted_only_where_nobody_else_writes(base, shared):
    """Without a word of the user, a folder or a file that others may change holds plain types only."""
    base.put(base.map(), a=_Runs)
    assert base.storage().open("map", "m", Options()).get_many(["a"]) == [_Runs]
    target = base.path.parent if shared == "folder" else base.path
    mode = os.stat(target).st_mode
    os.chmod(target, mode | 0o020)
    try:
        with pytest.raises(TypeError, match="restricted"):
            base.storage().open("map", "m", Options()).get_many(["a"])
    finally:
        os.chmod(target, mode)


def test_pickles_are_trusted_in_files_that_were_made_under_a_loose_mask(base):
    """A mask that lets groups write does not make the user's own files those of others."""
    mask = os.umask(0o002)
    try:
        store = base.map()
        job, receipts = _staged(store, {"a": _Runs})
        job.commit(receipts)
    finally:
        os.umask(mask)

    assert base.storage().open("map", "m", Options()).get_many(["a"]) == [_Runs]
