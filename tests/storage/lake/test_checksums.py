"""Checksums and gaps: what is not as it was written is an error; nothing is taken for what it is not."""

from __future__ import annotations

import io
import json
import random
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from dstream.delta import checkpoints
from dstream.errors import IllegalStateError
from dstream.filesystem.checksums import MismatchError, checked, sums_of
from dstream.spi.store import Options
from dstream.storage.lake.caches import BucketCache
from tests.soak.mutations import run

LARGE = random.Random(1).randbytes(3_000_000)


def _entry(store, version):
    return Path(store.log.folder.url) / f"_delta_log/{version:020d}.json"


def _flip(path, at):
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 1
    path.write_bytes(data)


def test_mutations_of_a_lake_are_an_error_or_change_nothing():
    """Each kind of file, damaged in each way: the soak test of that name, a few times."""
    ends, bad = run(60, seed=7)

    assert bad == []
    assert ends["data file: error"] > 0


@pytest.mark.parametrize("at", [0.001, 0.3, 0.5, 0.9, 0.9999])
@pytest.mark.parametrize("value", ["small", LARGE], ids=["small", "large"])
def test_flipped_bit_of_a_data_file_is_an_error(lake, at, value):
    """Wherever it is: in a page, in the names of the columns, in what finds the pages; in a map and in a list."""
    store, items = lake.map(buckets=1), lake.list()
    lake.put(store, a=value, b=1)
    items.extend([value, 1])
    for one in (store, items):
        [path] = Path(one.log.folder.url).glob("*.parquet")
        _flip(path, at)
    single = lake.map()
    single._cache = BucketCache(single._folder, 0)

    for read in (lambda: lake.content(lake.map()), lambda: single.get_many(["a"]), lambda: lake.list().read(0, 9)):
        with pytest.raises(IllegalStateError, match=r"(map|list) '.' is damaged: its file .*\.parquet: .*backup"):
            read()


def test_blocks_are_read_at_any_place():
    """What is read through the checksums is what is there, whatever the order."""
    chosen, file = random.Random(2), checked(io.BytesIO(LARGE), len(LARGE), sums_of(LARGE))
    for _ in range(100):
        start, size = chosen.randrange(len(LARGE) + 10), chosen.choice([1, 1000, 300_000, -1])
        file.seek(start)
        expected = LARGE[start:] if size < 0 else LARGE[start : start + size]
        assert bytes(file.read(size)) == expected
        assert file.tell() == max(start, start + len(expected))
    with pytest.raises(MismatchError, match="2999999 bytes, and 3000000"):
        checked(io.BytesIO(LARGE[1:]), len(LARGE), "")


def _cut(lines):
    return lines[:-1]


def _doubled(lines):
    return [*lines, lines[-1]]


def _exchanged(lines):
    return [lines[0], *lines[:0:-1]]


def _doubled_in_front(lines):
    return [lines[-1], *lines]


@pytest.mark.parametrize("change", [_cut, _doubled, _exchanged, _doubled_in_front])
def test_entry_with_other_lines_is_an_error(lake, change):
    """Each line is JSON, and yet something is missing, twice or out of order."""
    store = lake.map()
    lake.put(store, a=1, b=2)
    entry = _entry(store, 0)
    entry.write_bytes(b"\n".join(change(entry.read_bytes().split(b"\n"))))

    with pytest.raises(IllegalStateError, match=r"map 'm' is damaged: .*0000\.json is no whole log entry.*backup"):
        lake.map().get_many(["a"])


def test_entry_of_another_place_is_an_error(lake):
    """One of another commit, and one of another collection."""
    store, other = lake.map(), lake.map(name="other")
    for n in range(2):
        lake.put(store, a=n)
        lake.put(other, a=9)
    for source in (_entry(store, 0), _entry(other, 1)):
        _entry(store, 1).unlink()
        shutil.copy(source, _entry(store, 1))
        with pytest.raises(IllegalStateError, match=r"0001\.json is no whole log entry"):
            lake.map()


def test_entry_of_another_kind_is_an_error(lake):
    """Whole JSON that says nothing about a table is no commit that does nothing."""
    store = lake.map()
    lake.put(store, a=1)
    _entry(store, 0).write_bytes((lake.path / "names/map/m/00000001.json").read_bytes())

    with pytest.raises(IllegalStateError, match=r"0000\.json is no whole log entry"):
        lake.map()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_missing_entry_is_no_end_of_the_log(lake, version):
    """At the start, in the middle, at the end: neither read past nor filled by the next put."""
    store = lake.map()
    for n in range(3):
        lake.put(store, a=n)
    _entry(store, version).unlink()

    with pytest.raises(IllegalStateError, match=rf"map 'm' is damaged: .*000{version}\.json is missing.*backup"):
        lake.map()
    assert not _entry(store, version).exists()


@pytest.mark.parametrize("read", [False, True])
def test_missing_entry_is_found_by_a_handle_from_before(lake, read, monkeypatch):
    """A put never fills the gap; who only reads looks for one now and then."""
    old, new = lake.map(), lake.map()
    lake.put(old, a=0)
    for n in range(2):
        lake.put(new, a=n + 1)
    _entry(new, 1).unlink()
    if read:
        monkeypatch.setattr(old.log, "_look_again", 0.5)

    with pytest.raises(IllegalStateError, match=r"0001\.json is missing, and commit 2 was made; "):
        old.get_many(["a"]) if read else lake.put(old, b=1)
    assert not _entry(new, 1).exists()


def test_missing_entry_of_the_journal_is_an_error(lake):
    """A checkpoint says what is there, and not what has happened."""
    store = lake.map(journal=True)
    for n in range(3):
        lake.put(store, a=n)
    checkpoints.write_checkpoint(store.log.folder)
    _entry(store, 1).unlink()

    assert lake.content(lake.map()) == {"a": 2}
    with pytest.raises(IllegalStateError, match=r"0001\.json is missing"):
        list(lake.map().journal(0))


def test_missing_entry_without_a_second_name_is_found_by_listing(lake):
    """Object stores have no second name for the newest entry; whoever opens the log lists what is behind its end."""
    store = lake.map()
    for n in range(3):
        lake.put(store, a=n)
    (_entry(store, 0).parent / "_last_created").unlink()
    assert lake.content(lake.map()) == {"a": 2}
    _entry(store, 1).unlink()

    with pytest.raises(IllegalStateError, match=r"0001\.json is missing, and commit 2 was made"):
        lake.map()


def test_flipped_checkpoint_is_not_used(lake):
    """The log says what is there."""
    store = lake.map()
    for n in range(30):
        lake.put(store, **{f"k{n}": n})
    checkpoints.write_checkpoint(store.log.folder)
    [path] = _entry(store, 0).parent.glob("*.checkpoint.parquet")
    whole = path.read_bytes()
    for at in range(20):
        path.write_bytes(whole)
        _flip(path, at / 20)
        assert lake.content(lake.map()) == {f"k{n}": n for n in range(30)}


def test_flipped_identity_of_a_collection_is_an_error(lake):
    """It would read as an empty one."""
    store = lake.map()
    lake.put(store, a=1)
    [path] = (lake.path / "names/map/m").glob("0*.json")
    identity = store.description.identity
    path.write_text(path.read_text().replace(identity, identity[:-1] + "0123456789abcdef"[int(identity[-1], 16) ^ 1]))

    for ask in (lake.map, lake.storage().names):
        with pytest.raises(IllegalStateError, match=r"is damaged: .*00000001\.json is not what was written.*backup"):
            ask()


def test_description_of_another_name_is_an_error(lake):
    """Also where both are whole, and where they were written before there were checksums."""
    lake.put(lake.map(), a=1)
    lake.put(lake.map(name="n"), a=2)
    _strip(lake)
    shutil.copy(lake.path / "names/map/n/00000001.json", lake.path / "names/map/m/00000001.json")

    with pytest.raises(IllegalStateError, match=r"map/m/00000001\.json is not what was written"):
        lake.map()


def test_missing_name_of_a_collection_is_not_given_to_a_new_one(lake):
    """The newest collection of a name is not forgotten for one that was destroyed before it, or for an empty one."""
    lake.map().destroy()
    lake.put(lake.map(), a=1)
    (lake.path / "names/map/m/00000002.json").unlink()

    for ask in (lake.map, lake.storage().names, lambda: lake.storage().open("map", "m", Options())):
        with pytest.raises(IllegalStateError, match=r"map/m/00000002\.json is missing"):
            ask()


@pytest.mark.parametrize("put", [False, True])
def test_missing_folder_of_a_collection_is_not_an_empty_collection(lake, put):
    """Nor is that of a collection in which there never was anything."""
    store = lake.map()
    if put:
        lake.put(store, a=1)
    assert lake.content(lake.map()) == ({"a": 1} if put else {})
    shutil.rmtree(store.log.folder.url)

    with pytest.raises(IllegalStateError, match=r"map 'm' is damaged: there is nothing in .*backup"):
        lake.map()


def _strip(lake):
    """Leave of a lake what was written before there were checksums."""
    for path in lake.path.rglob("*"):
        if path.name in ("_made", "_last_created"):
            path.unlink()
        elif path.suffix == ".json":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for line in lines:
                for part in (line, line.get("commitInfo", {}), line.get("add", {})):
                    for name in ("crc32", "commit", "path" if part is line else "", "tags"):
                        part.pop(name, None)
            path.unlink()
            path.write_text("\n".join(map(json.dumps, lines)))


def test_lake_without_checksums_is_read_and_written(lake):
    """What older versions have written stays readable, and what comes on top of it has checksums."""
    store, items, empty = lake.map(journal=True), lake.list(), lake.map(name="empty")
    lake.put(store, a=1, b="x" * 2_000_000)
    items.extend([1, 2])
    shutil.rmtree(empty.log.folder.url)
    _strip(lake)

    assert lake.content(lake.map(name="empty")) == {}
    assert lake.items(lake.list()) == [1, 2]
    lake.put(lake.map(), a=2)
    assert [lake.map().get_many(["a"]), len(lake.content(lake.map()))] == [[2], 2]
    assert len(list(lake.map().journal(0))) == 3
    assert [bool(file.sums) for file in sorted(lake.map().log.files())] == [False, False, True]


def test_checksums_disturb_no_other_reader(lake):
    """delta-rs reads the files, the history and a checkpoint with them in it."""
    store = lake.map(buckets=1)
    for n in range(3):
        lake.put(store, a=n)
    checkpoints.write_checkpoint(store.log.folder)
    lake.put(store, a=3)
    table = DeltaTable(store.log.folder.url)

    assert sorted(table.to_pyarrow_table().column("value").to_pylist()) == [0, 1, 2, 3]
    assert len(table.history()) == 4
    table.create_checkpoint()
    assert all(file.sums for file in lake.map().log.files())


def _old_style(lines):
    info = json.loads(lines[0])["commitInfo"]
    return [json.dumps({"commitInfo": {"timestamp": info["timestamp"], "dstream": info["dstream"]}}).encode()]


@pytest.mark.parametrize("change", [*(lambda lines, n=n: lines[n:] for n in (1, 2, 3)), _old_style])
@pytest.mark.parametrize("version", [0, 1])
def test_entry_without_its_checksum_is_an_error(lake, change, version):
    """Cut from the front, or as it was written before there were checksums: all of this collection have one."""
    items = lake.list()
    for n in range(2):
        items.extend([n, str(n)])
    entry = _entry(items, version)
    entry.write_bytes(b"\n".join(change(entry.read_bytes().split(b"\n"))) or b"{}")

    with pytest.raises(IllegalStateError, match=rf"list 'l' is damaged: .*000{version}\.json is no whole log entry"):
        lake.list()


@pytest.mark.parametrize("change", [lambda lines: lines[1:], lambda lines: [lines[0].replace(b'"crc32"', b'"crc33"')]])
def test_entry_without_its_checksum_is_an_error_in_a_lake_from_before(lake, change):
    """Who wrote it stands in front, and what was written since has its number there."""
    lake.put(lake.map(), a=1)
    _strip(lake)
    lake.put(lake.map(), a=2)
    entry = _entry(lake.map(), 1)
    entry.write_bytes(b"\n".join(change(entry.read_bytes().split(b"\n"))))

    with pytest.raises(IllegalStateError, match=r"0001\.json is no whole log entry"):
        lake.map()


@pytest.mark.parametrize("ask", ["journal", "checkpoint"])
def test_entry_that_lost_its_checksum_is_met_by_all_who_read_it(lake, ask):
    """Behind a checkpoint only the journal, and the next checkpoint that is made of the whole log, read it."""
    store = lake.map(journal=True)
    for n in range(3):
        lake.put(store, a=n)
    if ask == "journal":
        checkpoints.write_checkpoint(store.log.folder)
    entry = _entry(store, 1)
    entry.write_bytes(b"\n".join(_old_style(entry.read_bytes().split(b"\n"))))

    with pytest.raises(IllegalStateError, match=r"0001\.json is no whole log entry"):
        list(lake.map().journal(0)) if ask == "journal" else checkpoints.write_checkpoint(store.log.folder, True)
