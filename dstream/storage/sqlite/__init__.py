"""The storage of one machine: maps, lists and caches in one SQLite file, which any program that reads SQLite opens.

- `SqliteStorage` is the catalog of collections by name.
- `database` has the tables and the connection, `rows` the cells of keys and values, and the splits that tasks read.
- `maps` and `lists` are the stores and the jobs that write to them, `collection` has the common part of both, and
`staging` the
  files that tasks write.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast, get_args
from zlib import crc32

from dstream.base.validation import NOT_UNDERSTOOD
from dstream.errors import CollectionDestroyedError, IllegalStateError, SetupError
from dstream.filesystem.local import LocalFolder
from dstream.spi.records import Record
from dstream.spi.store import Kind, ListStore, MapStore, Options, Settings
from dstream.storage.base.named_folders import FolderStateFiles, Trust, are_private
from dstream.storage.base.options import Shape, check_name, check_prefix, check_record, check_write, is_record_name
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles, for_state
from dstream.storage.sqlite.collection import SqliteCollection, types_of
from dstream.storage.sqlite.database import DAMAGE, DatabaseLocation, Titled, content_statements
from dstream.storage.sqlite.lists import SqliteList
from dstream.storage.sqlite.maps import SqliteMap
from dstream.storage.sqlite.staging import removed_orphans

__all__ = ["SqliteRecords", "SqliteStorage", "open_sqlite"]


class SqliteRecords:
    """The records of one database; reading does not create it."""

    def __init__(self, place: DatabaseLocation) -> None:
        self._place = place
        self._database = place.shared()

    def read(self, name: str) -> Record | None:
        """Look a name up."""
        check_record(name)
        if not self._place.exists():
            return None
        sql = "SELECT version, data, sum FROM dstream_records WHERE name = ?"
        row = self._database.row(_title(name), sql, (name,))
        if row is None:
            return None
        version, data, found = row
        if type(version) is not int or version < 1 or type(data) is not bytes or found != _sum(name, version, data):
            raise self._damaged(f"record {name!r}", "it is not what was written there")
        return Record(version, data)

    def write(self, name: str, data: bytes, version: int) -> bool:
        """Replace a record if it has the version before this one, in one statement."""
        check_write(name, data, version)
        values = (version, data, _sum(name, version, data))
        if version == 1:
            sql = "INSERT INTO dstream_records (name, version, data, sum) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            return self._database.change(_title(name), sql, (name, *values)) == 1
        sql = "UPDATE dstream_records SET version = ?, data = ?, sum = ? WHERE name = ? AND version = ?"
        return self._database.change(_title(name), sql, (*values, name, version - 1)) == 1

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        check_prefix(prefix)
        if not self._place.exists():
            return []
        # `LIKE` treats an underscore as a wildcard, and ignores case.
        sql = "SELECT name FROM dstream_records WHERE substr(name, 1, ?) = ? ORDER BY name"
        found = [name for (name,) in self._database.rows(Titled("the records"), sql, (len(prefix), prefix))]
        if not all(type(name) is str and is_record_name(name) for name in found):
            raise self._damaged("the index of records", "it has what is no name of a record")
        return found

    def remove(self, name: str) -> None:
        """Remove a record."""
        check_record(name)
        if self._place.exists():
            self._database.change(_title(name), "DELETE FROM dstream_records WHERE name = ?", (name,))

    def forget(self, name: str) -> None:
        """Remove a record, without a trace."""
        self.remove(name)

    def _damaged(self, what: str, why: str) -> IllegalStateError:
        return IllegalStateError(
            f"{what} in the storage sqlite:{self._place.path} is damaged: {why}; something else than dstream has "
            "changed it"
        )


def _title(name: str) -> Titled:
    return Titled(f"record {name!r}")


def _sum(name: str, version: int, data: bytes) -> int:
    """Return a checksum of a record, which no other record passes with."""
    return crc32(data, crc32(f"{name} {version}".encode()))


class SqliteStorage:
    """A handle to the collections of one database.

    Args:
        place: its location.
        pickles: the pickles that are loaded at most.
        is_judging: the user has not set which pickles are loaded: it depends on the users that can write to it.
    """

    def __init__(self, place: DatabaseLocation, pickles: Pickles, is_judging: bool) -> None:
        self._place = place
        self._database = place.shared()
        self._most = pickles
        self._is_judging = is_judging

    @property
    def url(self) -> str:
        """The URL of the connection."""
        return f"sqlite:{self._place.path}"

    @property
    def records(self) -> SqliteRecords:
        """The records next to the collections."""
        return SqliteRecords(self._place)

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle by the policy for values, or a pickle of the state of steps."""
        return for_state(self._pickles()).load(data)

    def state_files(self, job: str) -> FolderStateFiles:
        """Return the state of a job, in files next to the database."""
        place = self._place
        folder = LocalFolder(place.files, place.durable, inside=os.path.dirname(place.path), private=True)
        return FolderStateFiles.of(Trust(folder, self._pickles(), self._is_judging), job)

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, created if it does not exist."""
        check_name(name)
        pickles = self._pickles()
        shape = json.dumps(Shape.of(kind, name, options).to_json())
        types = types_of(Codec.of(kind, name, options, pickles))
        while True:
            found = self._found(kind, name)
            if found is None:
                self._make(kind, name, shape, types)
            elif (opened := self._opened(found, options, pickles)) is not None:
                return opened

    def open(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore | None:
        """Return the store of that name, or None."""
        check_name(name)
        pickles = self._pickles()
        # Another process may decide the types, or destroy the collection, after it was found: retry.
        while (found := self._found(kind, name)) is not None:
            if (opened := self._opened(found, options, pickles)) is not None:
                return opened
        return None

    def names(self) -> list[tuple[Kind, str]]:
        """Return the kinds and names of all stores, sorted."""
        if not self._place.exists():
            return []
        rows = self._database.rows(_REGISTRY, "SELECT kind, name FROM dstream_collections")
        for kind, name in rows:
            if kind not in get_args(Kind) or not isinstance(name, str) or not name:
                raise IllegalStateError(
                    f"{self.url} is damaged: dstream_collections holds {kind!r:.50} {name!r:.200}, which dstream has "
                    "not written"
                )
        return sorted(cast("list[tuple[Kind, str]]", rows))

    def vacuum(self, older_than: float) -> int:
        """Remove garbage from all collections, and staged files of destroyed ones.

        Raises:
            IllegalStateError: any part of the file is damaged.
            EngineError: the file system refuses to remove a folder.
        """
        if not self._place.exists():
            return 0
        # It reads the whole file, which a vacuum can afford and an open cannot.
        [found] = self._database.row(_WHOLE, "PRAGMA quick_check(1)")
        if found != "ok":
            raise IllegalStateError(f"the storage {self.url} is damaged: {found:.200}; {DAMAGE}")
        removed = 0
        for kind, name in self.names():
            store = self.open(kind, name, Options())
            with suppress(CollectionDestroyedError):  # by another process, a moment ago
                removed += 0 if store is None else store.vacuum(older_than)
        return removed + removed_orphans(self._place, time.time() - older_than)

    def close(self) -> None:
        """Close the connection; stores of this storage connect again if they are used."""
        self._database.close()

    def _pickles(self) -> Pickles:
        """Return the pickles that are currently loaded."""
        path = self._place.path
        if not self._is_judging or are_private(map(_looked_at, _parts(path)), os.getuid()):
            return self._most
        return replace(self._most, mode="restricted")

    def _found(self, kind: Kind, name: str) -> _Described | None:
        if not self._place.exists():
            return None
        sql = "SELECT id, shape, types FROM dstream_collections WHERE kind = ? AND name = ?"
        row = self._database.row(Titled(f"{kind} {name!r}"), sql, (kind, name))
        if row is None:
            return None
        number, shape, types = row
        try:
            return _Described(kind, name, number, Shape.from_json(json.loads(shape), kind), types)
        except NOT_UNDERSTOOD as error:
            raise IllegalStateError(
                f"{kind} {name!r} in {self.url} is damaged: dstream_collections does not say how it was made: {error}"
            ) from error

    def _make(self, kind: Kind, name: str, shape: str, types: str) -> None:
        """Create a collection, unless another process was faster."""
        with self._database.writing(Titled(f"{kind} {name!r}")) as connection:
            made = connection.execute(
                "INSERT INTO dstream_collections (kind, name, shape, types, version, size) VALUES (?, ?, ?, ?, 0, 0) "
                "ON CONFLICT DO NOTHING",
                (kind, name, shape, types),
            )
            if made.rowcount == 1:
                number = made.lastrowid or 0
                has_journal = bool(json.loads(shape)["journal"])
                # In the same transaction as the name, so that there is no name without its table.
                for statement in content_statements(kind, name, number, has_journal):
                    connection.execute(statement)

    def _opened(self, found: _Described, options: Options, pickles: Pickles) -> SqliteMap | SqliteList | None:
        """Return a handle, with types decided that are open and given now; None if another process was faster."""
        found.shape.check(found.kind, found.name, options)
        collection = SqliteCollection(self._place, found.number, found.kind, found.name, found.shape, options, pickles)
        types, settled = found.types, types_of(collection.codec(found.types))
        if settled != types:
            # Nothing changes if another process has decided the types meanwhile, or destroyed the collection.
            sql = "UPDATE dstream_collections SET types = ? WHERE id = ? AND types = ?"
            if not self._database.change(collection, sql, (settled, found.number, types)):
                return None
        return (SqliteList if found.kind == "list" else SqliteMap)(collection, settled)


_REGISTRY = Titled("the names of collections")
_WHOLE = Titled("the whole file")


@dataclass(frozen=True, slots=True)
class _Described:
    """The entry of a collection in the database."""

    kind: Kind
    name: str
    number: int
    shape: Shape
    types: str


def _parts(path: str) -> Iterator[str]:
    return iter((os.path.dirname(path), path, f"{path}-wal", f"{path}-files", f"{path}-files/staged"))


def _looked_at(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_sqlite(url: str, settings: Settings) -> SqliteStorage:
    """Open the storage in a file; nothing is made before the first collection is.

    Args:
        url: `sqlite:` and a path, relative or absolute.
        settings: which pickled values are loaded; unset, all of them if only this user can write, otherwise pickles of
            plain and allowed types. It also contains the durability of acknowledged changes.

    Raises:
        ValueError: the URL has no path, or an ambiguous one.
        SetupError: the path is a folder.
    """
    path = url.removeprefix("sqlite:")
    if not path or path.startswith("//") or path == ":memory:":
        raise ValueError(
            f"{url!r} names no file: write sqlite:data.db or sqlite:/path/to/data.db; memory: is the storage of one "
            "process"
        )
    path = os.path.realpath(os.path.expanduser(path))
    if os.path.isdir(path):
        raise SetupError(f"storage in SQLite is a file, and {path} is a folder")
    place = DatabaseLocation(path, settings.durability == "power")
    return SqliteStorage(place, Pickles(settings.pickle or "trusted", settings.allowed), settings.pickle is None)
