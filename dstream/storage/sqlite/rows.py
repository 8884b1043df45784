"""Rows of tables: the cells of keys and values, and splits of rows that tasks read.

So any program that reads SQLite sees plain columns. Two values that SQLite cannot represent are encoded: NaN, which it
converts to NULL, and -0.0, which it returns as 0.0. An int and a float of one value differ by `typeof`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dstream.base.validation import is_unicode
from dstream.errors import IllegalStateError
from dstream.storage.base.options import removed_error
from dstream.storage.codec.collection import Codec
from dstream.storage.sqlite.collection import Pin, SqliteCollection

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Cell",
    "EntryStretch",
    "ItemStretch",
    "cell_of_key",
    "cell_of_value",
    "key_cell",
    "key_data",
    "key_of",
    "value_cell",
    "value_data",
    "value_of",
]


Cell: TypeAlias = str | int | float | bytes
"""The content of a column; never NULL."""

_LEAST, _MOST = -(2**63), 2**63 - 1
_MSGPACK_SCALARS = frozenset(
    [*range(0x80), *range(0xA0, 0xC0), 0xCA, 0xCB, *range(0xCC, 0xD4), 0xD9, 0xDA, 0xDB, *range(0xE0, 0x100)]
)
"""The first bytes of encoded values that are ints, floats or strings."""
_KEY_TAGS = frozenset(b"sif")


def cell_of_key(codec: Codec, key: Any) -> Cell:
    """Return the cell of a key, alike for equal keys; errors as for `Codec.encode_key`."""
    kind = type(key)
    if kind is str and key.isascii():  # the most frequent one first
        return key  # type: ignore[no-any-return]
    if (kind is str and is_unicode(key)) or (kind is int and _LEAST <= key <= _MOST):
        return key  # type: ignore[no-any-return]
    return key_cell(codec, codec.encode_key(key))


def key_cell(codec: Codec, data: bytes) -> Cell:
    """Return the cell of an encoded key."""
    if data[0] in _KEY_TAGS:
        plain = codec.plain_key(data)
        if _is_plain(plain) and not (type(plain) is float and math.isinf(plain)):
            return plain  # type: ignore[no-any-return]
    return data


def key_data(codec: Codec, cell: Cell) -> bytes:
    """Return the encoded key of a cell."""
    return cell if type(cell) is bytes else codec.encode_key(cell)


def key_of(codec: Codec, cell: Any) -> Any:
    """Return the key of a cell; errors as for `Codec.decode_key`."""
    kind = type(cell)
    if kind is str or kind is int or kind is float:
        return codec.shaped_key(cell)
    return codec.decode_key(_checked(codec, cell))


def cell_of_value(codec: Codec, value: Any) -> Cell:
    """Return the cell of a value; errors as for `Codec.encode_value`."""
    return value if _is_plain(value) else codec.encode_value(value)


def value_cell(codec: Codec, data: bytes) -> Cell:
    """Return the cell of an encoded value."""
    if data[0] in _MSGPACK_SCALARS:
        plain = codec.decode_value(data)
        if _is_plain(plain):
            return plain  # type: ignore[no-any-return]
    return data


def value_data(codec: Codec, cell: Any) -> bytes:
    """Return the encoded value of a cell."""
    return cell if type(cell) is bytes else codec.encode_value(_checked(codec, cell))


def value_of(codec: Codec, cell: Any) -> Any:
    """Return the value of a cell, afresh; errors as for `Codec.decode_value`."""
    kind = type(cell)
    if kind is str or kind is int or kind is float:
        return cell
    return codec.decode_value(_checked(codec, cell))


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(_LEAST <= value <= _MOST)
    if kind is str:
        return is_unicode(value)
    return kind is float and value == value and (value != 0.0 or math.copysign(1.0, value) > 0)


def _checked(codec: Codec, cell: Any) -> Any:
    if cell is None:
        raise IllegalStateError(f"{codec} is damaged: a cell of its table is NULL; something else has written it")
    return cell


ROWS_AT_A_TIME = 8192


class _Page(NamedTuple):
    codec: Codec
    rows: Sequence[tuple[Cell, Cell]]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Rows whose keys are not below `low` and below `high`, in their order; None is no bound."""

    collection: SqliteCollection
    pin: Pin
    low: Cell | None
    high: Cell | None

    def pages(self) -> Iterator[_Page]:
        """Yield the rows; each page is read in a separate transaction, so that no reader blocks the log."""
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
            # Looked up for each page: a vacuum in between removes the pin, and the old values with it.
            if not connection.execute("SELECT 1 FROM dstream_pins WHERE pin = ?", (self.pin.number,)).fetchone():
                raise removed_error(collection)
            kept = connection.execute("SELECT 1 FROM dstream_undo WHERE collection = ? LIMIT 1", (collection.number,))
            # Without saved old values, the table alone has the same rows, without two subqueries for each row.
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
    """Range of the entries of a map.

    Attributes:
        size: the number of entries.
    """

    size: int

    def read(self) -> Iterator[tuple[Any, Any]]:
        """Yield the entries."""
        for codec, rows in self._counted():
            for key, value in rows:
                yield key_of(codec, key), value_of(codec, value)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the entries in columns."""
        for codec, rows in self._counted():
            yield codec.batch([key_of(codec, key) for key, _ in rows], [value_of(codec, value) for _, value in rows])

    def _counted(self) -> Iterator[_Page]:
        """Yield the pages, and check at the end that none was lost."""
        read = 0
        for page in self.pages():
            read += len(page.rows)
            yield page
        if read != self.size:
            raise self.collection.damaged(f"of {self.size} entries {read} can be read")


@dataclass(frozen=True, slots=True)
class ItemStretch(_Stretch):
    """Range of the items of a list, in order."""

    def read(self) -> Iterator[Any]:
        """Yield the items."""
        for codec, rows in self._counted():
            for _, value in rows:
                yield value_of(codec, value)

    def read_arrow(self) -> Iterator[pa.RecordBatch]:
        """Yield the items in a column."""
        for codec, rows in self._counted():
            yield codec.batch((), [value_of(codec, value) for _, value in rows])

    def _counted(self) -> Iterator[_Page]:
        """Yield the pages, and check at the end that each position has its item."""
        read = 0
        for page in self.pages():
            read += len(page.rows)
            yield page
        self.collection.check_items(read, self.low, self.high)  # type: ignore[arg-type]  # positions
