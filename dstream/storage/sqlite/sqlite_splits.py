"""What tasks read: stretches of a table, as they were when they were pinned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dstream.storage.codec.codec import Codec
from dstream.storage.sqlite.sqlite_cells import Cell, key_of, value_of
from dstream.storage.sqlite.sqlite_collection import Collection
from dstream.storage.sqlite.sqlite_pins import Pin
from dstream.storage.vanished import removed_error

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EntryStretch", "ItemStretch"]

ROWS_AT_A_TIME = 8192


class _Page(NamedTuple):
    codec: Codec
    rows: Sequence[tuple[Cell, Cell]]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Rows whose keys are not below `low` and below `high`, in their order; None is no bound."""

    collection: Collection
    pin: Pin
    low: Cell | None
    high: Cell | None

    def pages(self) -> Iterator[_Page]:
        """Give the rows; each page is read in a transaction of its own, so that no reader holds the log back."""
        low, compared = self.low, ">="
        while page := self._page(low, compared):
            yield page
            if len(page.rows) < ROWS_AT_A_TIME:
                return
            low, compared = page.rows[-1][0], ">"

    def _page(self, low: Cell | None, compared: str) -> _Page | None:
        collection = self.collection
        with collection.place.shared().reading(collection) as connection:
            state = collection.state(connection)
            if not connection.execute("SELECT 1 FROM dstream_pins WHERE pin = ?", (self.pin.number,)).fetchone():
                raise removed_error(collection)
            kept = connection.execute("SELECT 1 FROM dstream_undo WHERE collection = ? LIMIT 1", (collection.number,))
            sql = _SELECT_KEPT if kept.fetchone() else _SELECT
            bounds = (f" AND key {compared} :low" if low is not None else "") + (
                " AND key < :high" if self.high is not None else ""
            )
            rows = connection.execute(
                sql.format(table=collection.table, bounds=bounds, most=ROWS_AT_A_TIME),
                {"low": low, "high": self.high, "collection": collection.number, "pin": self.pin.number},
            ).fetchall()
        return _Page(collection.codec(state.types), rows) if rows else None


_SELECT = "SELECT key, value FROM {table} WHERE 1{bounds} ORDER BY key LIMIT {most}"
_SELECT_KEPT = (
    "SELECT key, value FROM {table} AS now WHERE NOT EXISTS (SELECT 1 FROM dstream_undo AS kept "
    "WHERE kept.collection = :collection AND kept.key = now.key AND kept.pin >= :pin){bounds} "
    "UNION ALL SELECT key, value FROM dstream_undo AS kept WHERE collection = :collection AND value IS NOT NULL "
    "AND pin = (SELECT min(pin) FROM dstream_undo AS other WHERE other.collection = :collection "
    "AND other.key = kept.key AND other.pin >= :pin){bounds} ORDER BY 1 LIMIT {most}"
)


@dataclass(frozen=True, slots=True)
class EntryStretch(_Stretch):
    """Some of the entries of a map.

    Attributes:
        size: the number of entries.
    """

    size: int

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Give the entries."""
        for codec, rows in self._counted():
            for key, value in rows:
                yield key_of(codec, key), value_of(codec, value)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the entries in columns."""
        for codec, rows in self._counted():
            yield codec.batch([key_of(codec, key) for key, _ in rows], [value_of(codec, value) for _, value in rows])

    def _counted(self) -> Iterator[_Page]:
        """Give the pages, and see at the end that none was lost."""
        read = 0
        for page in self.pages():
            read += len(page.rows)
            yield page
        if read != self.size:
            raise self.collection.damaged(f"of {self.size} entries {read} can be read")


@dataclass(frozen=True, slots=True)
class ItemStretch(_Stretch):
    """Some of the items of a list, in order."""

    def read(self) -> Iterator[Any]:
        """Give the items."""
        for codec, rows in self._counted():
            for _, value in rows:
                yield value_of(codec, value)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Give the items in a column."""
        for codec, rows in self._counted():
            yield codec.batch((), [value_of(codec, value) for _, value in rows])

    def _counted(self) -> Iterator[_Page]:
        """Give the pages, and see at the end that each position has its item."""
        read = 0
        for page in self.pages():
            read += len(page.rows)
            yield page
        self.collection.check_items(read, self.low, self.high)  # type: ignore[arg-type]  # positions
