"""`SqliteRecords`: records in a table of the database."""

from __future__ import annotations

from zlib import crc32

from dstream.errors import IllegalStateError
from dstream.spi.records import Record
from dstream.storage.record_names import check_prefix, check_record, check_write, is_record_name
from dstream.storage.sqlite.sqlite_database import Place, Titled

__all__ = ["SqliteRecords"]


class SqliteRecords:
    """The records of one database; reading makes none."""

    def __init__(self, place: Place) -> None:
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
        """Return the names that begin in some way, sorted."""
        check_prefix(prefix)
        if not self._place.exists():
            return []
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
        """Remove a record, of which nothing stays anyway."""
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
