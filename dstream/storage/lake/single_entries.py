"""`SingleEntries`: data files of one entry, made of the bytes of a file for another one.

Most puts write a Parquet file of one row. Files of two entries differ in the key and the value alone, if these have the
same types and take as many bytes. So what pyarrow has written once for such an entry serves the next ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as parquet

from dstream.storage.codec.scalars import SCALARS, is_large
from dstream.storage.lake.lake_tables import Layout, small_file

__all__ = ["SingleEntries"]

_MOST_FORMS = 1024
_KEYS = frozenset({str, int, bytes})


class _Form(NamedTuple):
    """A file without the key and the value: what stands before, between and behind them."""

    before: bytes
    between: bytes
    behind: bytes

    def filled(self, key: bytes, value: bytes) -> bytes:
        return b"".join((self.before, key, self.between, value, self.behind))


class SingleEntries:
    """The forms of files of one entry by one layout."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._forms: dict[tuple[int, int], _Form | None] = {}

    def file(self, layout: Layout, key: Any, value: Any) -> bytes | None:
        """Return the file that pyarrow would make for an entry, None if it is to make it itself.

        That is for keys and values without a plain form in bytes, and for lengths that were not seen before: texts of
        a thousand lengths would have as many forms, each used once.
        """
        if layout is not self._layout:
            self._layout, self._forms = layout, {}
        cells = _cells(layout, key, value)
        if cells is None:
            return None
        lengths = len(cells[0]), len(cells[1])
        form = self._forms.get(lengths)
        if form is None:
            if lengths not in self._forms:
                if len(self._forms) == _MOST_FORMS:
                    self._forms.clear()
                self._forms[lengths] = None
                return None
            form = self._forms[lengths] = _form(layout, key, value, cells)
        return None if form is None else form.filled(*cells)


def _cells(layout: Layout, key: Any, value: Any) -> tuple[bytes, bytes] | None:
    """Return a key and a value as the pages of a file hold them; None if one goes another way than into its column."""
    kinds, codec = (type(key), type(value)), layout.codec
    if is_large(value):
        return None  # A form is made by copies of the value.
    if kinds[0] not in _KEYS or kinds[1] not in _CELLS or layout.journal or not layout.has_keys:
        return None
    if codec.key != SCALARS[kinds[0]] or codec.value != SCALARS[kinds[1]]:
        return None
    try:
        return _CELLS[kinds[0]](key), _CELLS[kinds[1]](value)
    except (OverflowError, UnicodeEncodeError):
        return None


_CELLS: dict[type, Callable[[Any], bytes]] = {
    str: str.encode,
    bytes: bytes,
    int: lambda number: number.to_bytes(8, "little", signed=True),
    float: struct.Struct("<d").pack,
    bool: lambda value: b"\1" if value else b"\0",
}
"""The types with a plain form, which is that of PLAIN in Parquet behind the length of a text."""

_OTHERS: dict[type, Callable[[int], Any]] = {
    str: lambda length: "~" * length,
    bytes: lambda length: b"~" * length,
    int: lambda _: -2,
    float: lambda _: -0.5,
    bool: lambda _: False,
}
"""Values of some length that are others than those in use, as a rule."""


def _form(layout: Layout, key: Any, value: Any, cells: tuple[bytes, bytes]) -> _Form | None:
    """Take the form from the file of another entry; None if it does not give that of this one.

    So a pyarrow that writes more about values, such as the least of them, would be noticed.
    """
    other = _OTHERS[type(key)](len(cells[0])), _OTHERS[type(value)](len(cells[1]))
    data = small_file(layout.entries([other[0]], [other[1]]))
    row = parquet.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    ends = {}
    for number in range(row.num_columns):
        column = row.column(number)
        ends[column.path_in_schema] = column.data_page_offset + column.total_compressed_size
    form = _Form(
        data[: ends["key"] - len(cells[0])],
        data[ends["key"] : ends["value"] - len(cells[1])],
        data[ends["value"] :],
    )
    return form if form.filled(*cells) == small_file(layout.entries([key], [value])) else None
