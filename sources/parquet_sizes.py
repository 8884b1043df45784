"""How many bytes the values of Parquet take when they are decoded, where the bytes of the file do not say it.

A dictionary holds a value once, however many rows have it: 50 kB of a file may be gigabytes of rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["LARGEST_ROW", "has_dictionary", "largest_value", "longest_of_page", "pieces", "row_bytes"]

LARGEST_ROW = 1 << 30
"""The most bytes that a row may take: one that is a list may have a value of a dictionary a million times."""
_LARGEST_SEARCHED = 16 << 20
"""The values of larger dictionaries are not looked at one by one: one may be as large as all."""


def largest_value(source: Any, chunk: Any, enough: int) -> int:
    """Return how many bytes the largest value in the dictionary of a column has at most; 0 if it has none of bytes.

    Args:
        source: the file, as Arrow reads it.
        chunk: the metadata of the column in a row group.
        enough: the search ends where the largest value has no more bytes than these.
    """
    whole: int = chunk.total_uncompressed_size
    if chunk.physical_type != "BYTE_ARRAY" or not any("DICTIONARY" in each for each in chunk.encodings):
        return 0
    if whole <= enough:
        return whole
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:  # Some writers leave it out: it comes first.
        start = min(start, chunk.dictionary_page_offset)
    page = _dictionary_page(source.read_at(_HEADER, start))
    if page is None or not enough < page.size <= _LARGEST_SEARCHED:
        return whole if page is None else page.size
    content = _decompressed(source.read_at(page.stored, start + page.header), chunk.compression, page.size)
    longest = None if content is None else longest_of_page(content)
    return page.size if longest is None else longest


class _Page(NamedTuple):
    """How many bytes a page has, how many of them are stored, and how many its header has."""

    size: int
    stored: int
    header: int


_HEADER = 64
"""The header of a dictionary has some 25 bytes."""


def _dictionary_page(head: bytes) -> _Page | None:
    """Return the page that begins with some bytes, None if it is no dictionary.

    The header is a struct of Thrift in its compact protocol: the kind of the page, 2 for dictionaries, its size, its
    stored size, perhaps a checksum, and a struct: the number of values, their encoding, and whether they are sorted.
    """
    numbers: list[int] = []
    place = 0
    try:
        while head[place] in _FIELDS:
            if head[place] == _INT:
                number, place = _varint(head, place + 1)
                numbers.append(number)
            else:
                place += 1
        is_whole = head[place : place + 2] == b"\0\0" and len(numbers) in (5, 6)
    except IndexError:
        return None
    return _Page(numbers[1], numbers[2], place + 2) if is_whole and numbers[0] == 2 else None


_INT = 0x15
_FIELDS = (_INT, 0x11, 0x12, 0x3C, 0x4C)
"""How the next field begins: an int, true, false, and a struct behind a checksum and without one."""


def _varint(head: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while head[place] & 0x80:
        number |= (head[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return (number | head[place] << shift) >> 1, place + 1  # Twice the number: none is negative, but a checksum.


def _decompressed(stored: bytes, codec: str, size: int) -> bytes | None:
    """Return the bytes of a page, None if Arrow does not decompress them alone."""
    import pyarrow as pa

    if codec == "UNCOMPRESSED":
        return stored
    try:
        name = "lz4_raw" if codec == "LZ4" else codec.lower()
        return bytes(pa.Codec(name).decompress(stored, size, asbytes=True))
    except (pa.ArrowException, OSError, ValueError):
        return None


def longest_of_page(page: bytes) -> int | None:
    r"""Return the size of the longest value of a page, where each is behind its size in four bytes; None if it is torn.

    Example:
        >>> longest_of_page(b"\2\0\0\0ab\0\0\0\0\1\0\0\0c")
        2
    """
    longest = _longest_of_texts(page)
    return _longest_one_by_one(page) if longest is None else longest


def _longest_of_texts(page: bytes) -> int | None:
    """Return the same of texts without NUL, None of others: zeros are then in sizes alone. 15 times as fast."""
    import numpy as np

    content = np.frombuffer(page, np.uint8)
    zeros = np.flatnonzero(content == 0)
    is_next = np.diff(zeros, prepend=-9, append=-9) == 1
    places = zeros[is_next[:-1] & ~is_next[1:]] - 3  # The last one of two zeros and more ends a size.
    if not len(places) or places[0] != 0:
        return None
    sizes = content[places] + (content[places + 1].astype(np.int64) << 8)
    are_all = np.array_equal(places + 4 + sizes, np.append(places[1:], len(page)))  # So these are the values.
    return int(sizes.max()) if are_all else None


def _longest_one_by_one(page: bytes) -> int | None:
    size_at = struct.Struct("<I").unpack_from
    place = longest = 0
    while place + 4 <= len(page):
        (size,) = size_at(page, place)
        place += 4 + size
        longest = max(size, longest)
    return longest if place == len(page) else None


def pieces(columns: list[Any], size: int, most: int) -> Iterator[slice]:
    """Give stretches of rows that take at most so many bytes with the values of their dictionaries, or are one row.

    Args:
        columns: arrays of all rows.
        size: how many rows there are.
        most: how many bytes.

    Raises:
        OverflowError: a row takes more than 1 GiB; its place is the argument.
    """
    import numpy as np

    if sum(map(_bound, columns)) <= most:
        yield slice(0, size)
        return
    ends = np.cumsum(sum(map(row_bytes, columns)))
    start, before = 0, 0
    while start < size:
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        if ends[end - 1] - before > LARGEST_ROW:
            raise OverflowError(start)
        yield slice(start, end)
        start, before = end, int(ends[end - 1])


def _bound(column: Any) -> int:
    """Return how many bytes the values of dictionaries take at most in an array, at no cost."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 1 << 62 if has_dictionary(column.type) else 0
    lengths = _lengths(column)
    return 0 if lengths is None else (pc.max(lengths).as_py() or 0) * len(column)


def row_bytes(column: Any) -> Any:
    """Return how many bytes the values of dictionaries take in each row of an array, as an array of NumPy."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, none = column.type, np.zeros(len(column), np.int64)
    if not has_dictionary(kind):
        return none
    if pa.types.is_dictionary(kind):
        lengths = _lengths(column)
        if lengths is None or not len(lengths):
            return none
        places = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
        return np.where(pc.is_valid(column).to_numpy(zero_copy_only=False), lengths.to_numpy()[places], 0)
    if pa.types.is_struct(kind):
        return sum((row_bytes(column.field(index)) for index in range(kind.num_fields)), none)
    if pa.types.is_map(kind):
        parts = row_bytes(column.keys) + row_bytes(column.items)
    elif pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        return row_bytes(column.values.slice(column.offset * size, len(column) * size)).reshape(-1, size).sum(axis=1)
    else:
        parts = row_bytes(column.values)
    ends = np.append(0, np.cumsum(parts))[column.offsets.to_numpy()]
    return ends[1:] - ends[:-1]


def _lengths(column: Any) -> Any:
    """Return the sizes of the values of a dictionary; None if they are of a type that has no large ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        lengths = pc.binary_length(column.dictionary)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    return pc.fill_null(lengths.cast(pa.int64()), 0)


def has_dictionary(kind: Any) -> bool:
    """Say whether values of a type are in dictionaries, or have some that are.

    Example:
        >>> import pyarrow as pa
        >>> has_dictionary(pa.list_(pa.dictionary(pa.int32(), pa.string())))
        True
    """
    import pyarrow as pa

    fields = range(0 if pa.types.is_dictionary(kind) else kind.num_fields)
    return pa.types.is_dictionary(kind) or any(has_dictionary(kind.field(index).type) for index in fields)
