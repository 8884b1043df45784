"""The file of a storage: what it holds for others, how it is shared, and what it says when it cannot be used."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings

import pytest

from dstream import connect
from dstream.errors import EngineError, IllegalStateError, SetupError
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from dstream.storage.sqlite import SqliteStorage, database, rows
from dstream.storage.sqlite.database import FORMAT
from dstream.storage.sqlite.maps import SqliteMap


def test_storage_is_readable_by_any_sqlite(base):
    """A map is a table of keys and values, a list one of positions and items."""
    base.put(base.map("Counts!"), whale=1, naïve=2.5)
    base.list("call", "me")
    tables = [name for (name,) in base.sql("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '[ml]*'")]

    assert tables == ["map_Counts__1", "list_l_2"]
    assert base.sql("SELECT key, value FROM map_Counts__1 ORDER BY key") == [("naïve", 2.5), ("whale", 1)]
    assert base.sql("SELECT key, value FROM list_l_2") == [(0, "call"), (1, "me")]
    assert base.sql("PRAGMA integrity_check") == [("ok",)]


def test_storage_makes_nothing_before_the_first_collection(base):
    """Looking around leaves no file behind."""
    storage = base.storage()
    assert (storage.names(), storage.records.read("a"), storage.records.names()) == ([], None, [])
    assert storage.open("map", "m", Options()) is None
    storage.records.remove("a")

    assert not base.path.exists()


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:///data.db", "sqlite://host/data.db", "sqlite::memory:"])
def test_storage_refuses_urls_that_name_no_file(url):
    """What SQLAlchemy takes for a relative path and others for an absolute one is refused."""
    with pytest.raises(ValueError, match="names no file"):
        open_storage(url, Settings())


def test_storage_is_relative_to_the_folder_where_it_was_opened(base, monkeypatch):
    """A program that goes elsewhere afterwards finds it still, and so do its workers."""
    monkeypatch.chdir(base.path.parent)
    with connect(engine="local", storage="sqlite:data.db") as ctx:
        ctx.collections()
        monkeypatch.chdir("/")
        ctx.get_map("m")["a"] = 1
        assert ctx.running_storage().url == f"sqlite:{base.path}"
    assert base.path.exists()


def test_reducers_write_into_another_storage_of_sqlite(base, monkeypatch):
    """A relative path behind `sqlite:` is that of a file, not of a folder of that name."""
    from reducers import to_imap

    monkeypatch.chdir(base.path.parent)
    with connect(engine="local", storage="memory:") as ctx:
        ctx.stream([("a", 1)]).collect(to_imap("m", storage="sqlite:data.db"))

    assert base.content(base.map()) == {"a": 1}
    assert not (base.path.parent / "sqlite:data.db").exists()


# What it says


def test_storage_of_a_folder_is_refused(tmp_path):
    """A folder cannot be a database."""
    with pytest.raises(SetupError, match="is a folder"):
        open_storage(f"sqlite:{tmp_path}", Settings())


def test_storage_of_something_else_is_refused(base):
    """The tables of another program are left alone."""
    base.sql("CREATE TABLE theirs (a)")
    with pytest.raises(SetupError, match="something else"):
        base.map()
    assert base.sql("SELECT name FROM sqlite_master") == [("theirs",)]


def test_storage_of_a_later_format_is_refused(base):
    """A database that a later dstream has written is not guessed at."""
    base.map()
    base.storage().close()
    base.sql(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(SetupError, match=f"format {FORMAT + 1}"):
        base.map()


def test_storage_that_is_no_database_is_damaged(base):
    """A file of anything is not overwritten."""
    base.path.write_text("call me Ishmael " * 100)
    with pytest.raises(IllegalStateError, match="damaged"):
        base.map()
    assert base.path.read_text().startswith("call me")


def test_storage_that_is_locked_says_so(base, monkeypatch):
    """A writer who waits in vain is told for how long, and by what."""
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.05)
    store = base.map()
    base.put(store, a=1)
    other = sqlite3.connect(base.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(EngineError, match=r"map 'm' in the storage sqlite:.*locked"):
        base.put(store, a=2)
    assert store.get_many(["a"]) == [1]
    other.execute("ROLLBACK")
    other.close()
    base.put(store, a=3)
    assert store.get_many(["a"]) == [3]


def test_storage_without_space_says_so_and_changes_nothing(base):
    """An entry that does not fit is an error; those that are there stay."""
    store = base.map()
    base.put(store, a=1)
    [pages] = store._database.row(store._collection, "PRAGMA page_count")
    store._database.row(store._collection, f"PRAGMA max_page_count = {pages}")

    for keys in (["b"], ["b", "c"]):
        with pytest.raises(EngineError, match=r"no space.*nothing was changed"):
            store.update(keys, lambda old: ["x" * 100_000] * len(old))
    assert base.content(store) == {"a": 1}


def test_storage_that_cannot_be_written_says_so(base):
    """A read-only file is an error that says what is read-only."""
    store = base.map()
    base.put(store, a=1)
    store._database.row(store._collection, "PRAGMA query_only = ON")

    with pytest.raises(EngineError, match="read-only"):
        base.put(store, a=2)
    assert store.get_many(["a"]) == [1]


def test_storage_that_was_removed_takes_no_more_changes(base):
    """SQLite would write into a file that nobody can ever open again."""
    store = base.map()
    base.put(store, a=1)
    base.path.unlink()

    for change in (lambda: base.put(store, a=2), store.clear, lambda: base.put(store, a=2, b=3)):
        with pytest.raises(IllegalStateError, match="removed or replaced"):
            change()


def test_storage_in_a_folder_that_is_none(base):
    """The error of the file system is told."""
    base.path.write_text("")
    with pytest.raises(EngineError, match="cannot be made"):
        open_storage(f"sqlite:{base.path}/data.db", Settings()).create("map", "m", Options())


# Other processes between two statements


def test_storage_opens_a_collection_whose_types_others_decide(base, monkeypatch):
    """Types that another process decides between reading and writing them do not make a collection absent."""
    base.map()
    storage, opened = base.storage(), SqliteStorage._opened

    def after_others(self, *arguments):
        monkeypatch.undo()
        base.map(key_type=str)
        return opened(self, *arguments)

    monkeypatch.setattr(SqliteStorage, "_opened", after_others)
    store = storage.open("map", "m", Options(value_type=int))

    assert store is not None
    assert (store.options.key_type, store.options.value_type) == (str, int)


def test_storage_opens_nothing_that_others_destroy(base, monkeypatch):
    """A collection that is destroyed between reading and writing its types is absent."""
    store = base.map()
    opened = SqliteStorage._opened

    def after_others(self, *arguments):
        monkeypatch.undo()
        store.destroy()
        return opened(self, *arguments)

    monkeypatch.setattr(SqliteStorage, "_opened", after_others)

    assert base.storage().open("map", "m", Options(value_type=int)) is None


def test_vacuum_of_a_storage_spares_what_others_destroy(base, monkeypatch):
    """A collection that is destroyed between its lookup and its vacuum is skipped; the others get theirs."""
    kept, gone = base.map("kept"), base.map("gone")
    base.put(kept, a=1)
    splits = kept.splits(1)
    vacuum = SqliteMap.vacuum

    def after_others(self, older_than):
        monkeypatch.undo()
        gone.destroy()
        return vacuum(self, older_than)

    monkeypatch.setattr(SqliteMap, "vacuum", after_others)

    assert base.storage().vacuum(0) == len(splits)


# What vacuum removes


@pytest.fixture
def orphan(base, monkeypatch):
    """The folder with the staged file of a collection whose `destroy` could not remove it."""
    store = base.map("gone")
    _stage(store)
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
    store.destroy()
    monkeypatch.undo()
    return base.path.parent / "data.db-files" / "staged" / store.identity


def _stage(store):
    writer = store.begin("job").writer
    list(writer.write_bucket(writer.bucket_of("a"), iter([("a", 1)])))


def _age(folder, seconds):
    """Set the time of a folder and of all files in it to some time ago."""
    then = time.time() - seconds
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


def test_vacuum_removes_staged_files_of_destroyed_collections(base, orphan):
    """A folder that outlived its collection is removed, and those of collections that exist stay."""
    kept = base.map("kept")
    _stage(kept)
    _age(orphan, 100)

    assert base.storage().vacuum(60) == 1
    assert [path.name for path in orphan.parent.iterdir()] == [kept.identity]


@pytest.mark.parametrize("is_old", [True, False], ids=["one new file", "all new"])
def test_vacuum_spares_young_staged_files_of_destroyed_collections(base, orphan, is_old):
    """A folder in which anything is newer stays as it is: a task may still write there."""
    if is_old:
        _age(orphan, 100)
        (orphan / "new").touch()
        os.utime(orphan, (0, 0))

    assert base.storage().vacuum(60) == 0
    assert len(list(orphan.iterdir())) == 1 + is_old


@pytest.mark.parametrize("name", ["7x", "07", "-7", "jobs"])
def test_vacuum_leaves_folders_that_are_no_number_alone(base, orphan, name):
    """Files beside staged output that dstream has not made are not removed."""
    other = orphan.rename(orphan.parent / name)
    _age(other, 100)

    assert base.storage().vacuum(0) == 0
    assert len(list(other.iterdir())) == 1


def test_vacuum_follows_no_link_to_staged_files(base, orphan, tmp_path):
    """A link in place of a folder of a destroyed collection leads nowhere."""
    elsewhere = orphan.rename(tmp_path / "elsewhere")
    orphan.symlink_to(elsewhere)

    assert base.storage().vacuum(0) == 0
    assert len(list(elsewhere.iterdir())) == 1


def test_vacuum_reports_a_folder_that_cannot_be_removed(base, orphan, monkeypatch):
    """The error of the file system has the path, and the next vacuum tries again."""

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    with pytest.raises(EngineError, match=rf"{orphan} cannot be removed: Permission denied"):
        base.storage().vacuum(0)
    monkeypatch.undo()

    assert base.storage().vacuum(0) == 1
    assert not orphan.exists()


# Processes


def test_forked_processes_have_a_connection_of_their_own(base):
    """A child reads and writes while a thread of its parent is in a transaction, and the parent goes on."""
    store = base.map()
    base.put(store, a=1)
    held, release = threading.Event(), threading.Event()

    def hold():
        with store._database.reading(store._collection):
            held.set()
            release.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    code = _forked(lambda: (base.put(store, b=2), base.content(store) == {"a": 1, "b": 2} or os._exit(4)))
    release.set()
    thread.join()

    assert code == 0
    base.put(store, c=3)
    assert base.content(store) == {"a": 1, "b": 2, "c": 3}
    assert base.sql("PRAGMA integrity_check") == [("ok",)]


def test_a_forked_process_drops_no_pin_of_its_parent(base):
    """It inherits the iterators of its parent, and may let go of them."""
    store = base.map()
    base.put(store, **{f"k{n}": "old" for n in range(200)})
    read = [split.read() for split in store.splits(4)]
    code = _forked(lambda: (read.clear(), gc.collect(), store.splits(4)))
    base.put(store, **{f"k{n}": "new" for n in range(200)})

    assert code == 0
    assert {value for split in read for _, value in split} == {"old"}


def _forked(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads is what is tested
        child = os.fork()
    if not child:
        try:
            threading.Timer(20, os._exit, [3]).start()
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


_WRITER = """
import sys
from dstream import connect
with connect(engine="local", storage=sys.argv[1]) as ctx:
    numbers, both = ctx.get_map("numbers", journal=True), ctx.get_map("both")
    n = 0
    while True:
        n += 1
        numbers.put("n", n)
        both.put_all({"left": n, "right": n})
        print(n, flush=True)
"""


def test_a_killed_writer_leaves_what_it_has_acknowledged(base):
    """Nothing that returned is lost, nothing is there by half, and the journal is that of the map."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, f"sqlite:{base.path}"], stdout=subprocess.PIPE, text=True)
    said = [int(next(writer.stdout)) for _ in range(200)]
    writer.send_signal(signal.SIGKILL)
    said += [int(line) for line in writer.stdout if line.endswith("\n")]
    writer.wait()
    writer.stdout.close()

    numbers, both = base.map("numbers", journal=True), base.content(base.map("both"))
    [n] = numbers.get_many(["n"])
    assert said[-1] <= n <= said[-1] + 1
    assert both["left"] == both["right"] >= said[-1]
    assert [event.new_value for event in numbers.journal(0)] == list(range(1, n + 1))


# Readers


def test_pinned_entries_are_read_by_pages_while_everything_changes(base, monkeypatch):
    """A reader sees the state that it pinned, whatever is changed, removed or added between two of its pages."""
    monkeypatch.setattr(rows, "ROWS_AT_A_TIME", 3)
    store = base.map()
    before = {f"k{n:02}": n for n in range(20)}
    base.put(store, **before)
    [split] = store.splits(1)
    reader, seen = split.read(), {}
    for round in range(20):
        key, value = next(reader)
        seen[key] = value
        base.put(store, **{f"k{n:02}": None if (n + round) % 3 else -round for n in range(20)}, **{f"new{round}": 1})

    assert (seen, list(reader)) == (before, [])
    assert dict(split.read()) == before


def test_several_pins_see_a_state_each(base):
    """An old pin reads what stood there before a newer one, and values are kept once for each."""
    store = base.map()
    states, splits = [], []
    for n in range(4):
        base.put(store, a=n, **{f"only{n}": n}, **({f"only{n - 1}": None} if n else {}))
        states.append(base.content(store))
        splits.append(store.splits(1))
    store.clear()

    assert [dict(pair for split in some for pair in split.read()) for some in splits] == states


def test_pins_end_with_their_splits(base):
    """What nobody reads any more costs nothing: not a row for each change since."""
    store = base.map()
    base.put(store, a=1)
    for n in range(5):
        assert base.content(store) == {"a": n + 1}
        base.put(store, a=n + 2)
    base.content(store)

    assert base.sql("SELECT count(*) FROM dstream_pins") == [(1,)]
    assert base.sql("SELECT count(*) FROM dstream_undo") == [(0,)]


def test_a_pin_that_was_removed_is_an_error(base):
    """A reader that came too late reads nothing else instead."""
    store = base.map()
    base.put(store, a=1)
    [split] = store.splits(1)
    assert store.vacuum(0) == 1

    with pytest.raises(IllegalStateError, match="removed by vacuum"):
        list(split.read())


def test_a_change_runs_again_if_only_the_type_of_the_value_has_changed(base):
    """1 and 1.0 are one for SQLite, and not for a function that gets the old value."""
    store = base.map(value_type=float, key_type=str)
    base.put(store, a=1)
    seen = []

    def change(old):
        seen.extend(map(repr, old))
        if len(seen) == 1:
            base.put(base.map(), a=1.0)
        return [f"was {old[0]!r}"]

    assert store.update(["a"], change) == [1.0]
    assert (seen, store.get_many(["a"])) == (["1", "1.0"], ["was 1.0"])
