"""`SqliteStorage`: collections by kind and name, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from dstream.errors import IllegalStateError
from dstream.spi.store import Kind, ListStore, MapStore, Options
from dstream.storage.checking import NOT_UNDERSTOOD
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.pickles import Pickles
from dstream.storage.lake.lake_state_files import LakeStateFiles
from dstream.storage.lake.local_folder import LocalFolder
from dstream.storage.lake.trust import Trust, are_private
from dstream.storage.shape import Shape, check_name
from dstream.storage.sqlite.sqlite_collection import Collection, types_of
from dstream.storage.sqlite.sqlite_database import DAMAGE, Place, Titled
from dstream.storage.sqlite.sqlite_lists import SqliteList
from dstream.storage.sqlite.sqlite_maps import SqliteMap
from dstream.storage.sqlite.sqlite_records import SqliteRecords
from dstream.storage.sqlite.sqlite_schema import content_statements
from dstream.storage.state_pickles import for_state

__all__ = ["SqliteStorage"]


class SqliteStorage:
    """A handle to the collections of one database.

    Args:
        place: where it is.
        pickles: which pickles are loaded at most.
        is_judging: nobody has said which are, so that depends on who can write there.
    """

    def __init__(self, place: Place, pickles: Pickles, is_judging: bool) -> None:
        self._place = place
        self._database = place.shared()
        self._most = pickles
        self._is_judging = is_judging

    @property
    def url(self) -> str:
        """What was connected to."""
        return f"sqlite:{self._place.path}"

    @property
    def records(self) -> SqliteRecords:
        """What is kept beside the collections."""
        return SqliteRecords(self._place)

    def load_pickle(self, data: bytes) -> Any:
        """Load a pickle as those of values are, or one of what steps keep."""
        return for_state(self._pickles()).load(data)

    def state_files(self, job: str) -> LakeStateFiles:
        """Return the state of a job, in files beside the database."""
        place = self._place
        folder = LocalFolder(place.files, place.durable, inside=os.path.dirname(place.path), private=True)
        return LakeStateFiles.of(Trust(folder, self._pickles(), self._is_judging), job)

    def create(self, kind: Kind, name: str, options: Options) -> MapStore | ListStore:
        """Return the store of that name, made if there is none."""
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
        found = self._found(kind, name)
        return None if found is None else self._opened(found, options, self._pickles())

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
        """Remove from all collections what nobody needs; destroyed ones leave nothing behind.

        Raises:
            IllegalStateError: the structure of the file is damaged, in whatever part.
        """
        if self._place.exists():
            [found] = self._database.row(_WHOLE, "PRAGMA quick_check(1)")
            if found != "ok":
                raise IllegalStateError(f"the storage {self.url} is damaged: {found:.200}; {DAMAGE}")
        stores = (self.open(kind, name, Options()) for kind, name in self.names())
        return sum(store.vacuum(older_than) for store in stores if store is not None)

    def close(self) -> None:
        """Close the connection; stores of this storage connect again if they are used."""
        self._database.close()

    def _pickles(self) -> Pickles:
        """Return which pickles are loaded, as it is now."""
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
        """Make a collection, unless somebody else was faster."""
        with self._database.writing(Titled(f"{kind} {name!r}")) as connection:
            made = connection.execute(
                "INSERT INTO dstream_collections (kind, name, shape, types, version, size) VALUES (?, ?, ?, ?, 0, 0) "
                "ON CONFLICT DO NOTHING",
                (kind, name, shape, types),
            )
            if made.rowcount == 1:
                number = made.lastrowid or 0
                has_journal = bool(json.loads(shape)["journal"])
                for statement in content_statements(kind, name, number, has_journal):
                    connection.execute(statement)

    def _opened(self, found: _Described, options: Options, pickles: Pickles) -> SqliteMap | SqliteList | None:
        """Return a handle, with types decided that are open and given now; None if the collection is no more."""
        found.shape.check(found.kind, found.name, options)
        collection = Collection(self._place, found.number, found.kind, found.name, found.shape, options, pickles)
        types, settled = found.types, types_of(collection.codec(found.types))
        if settled != types:
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
