r"""Columns of strings and of lists of strings as UTF-8 bytes, decoded on demand.

Strings are stored in an Arrow array, or joined: each followed by "\n", as in a file, if none of them holds one. Bytes
that are joined are searched and changed as a whole, without looking at where a text begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MOST_BYTES",
    "StringLists",
    "Strings",
    "array_of",
    "array_of_ints",
    "lists_that_have",
    "numbers_of_array",
    "offsets_and_bytes",
    "strings_of",
]


MOST_BYTES = 2**30
"""An Arrow array of texts has places of 32 bits."""


class Strings:
    """Exact texts, none of which has a surrogate.

    Args:
        array: the texts, of Arrow's type `string`, without nulls; None if they are joined.
        is_ascii: each byte is a character.
        joined: the texts, each followed by a newline, which none of them holds; None if they are in an array.
    """

    __slots__ = ("_array", "_joined", "_size", "is_ascii")

    def __init__(self, array: Any, *, is_ascii: bool, joined: bytes | None = None) -> None:
        self._array = array
        self._joined = joined
        self._size: int | None = None
        self.is_ascii = is_ascii

    @property
    def values(self) -> Any:
        """The texts as an Arrow array."""
        if self._array is None:
            assert self._joined is not None, "texts stand in an array, or joined"
            self._array = _array_of_joined(self._joined)
        return self._array

    @property
    def joined(self) -> bytes | None:
        """The texts, each followed by a newline; None if one of them holds one, or if there is no text."""
        if self._joined is None:
            self._joined = _joined(self._array)
        return self._joined

    @property
    def is_joined(self) -> bool:
        """Return whether the texts are known as joined bytes by now."""
        return self._joined is not None

    def __len__(self) -> int:
        if self._size is None:
            self._size = self._count()
        return self._size

    def _count(self) -> int:
        if self._array is not None:
            return len(self._array)
        # `bytes.count` takes a nanosecond for each byte (CPython 3.11).
        return int(np.count_nonzero(np.frombuffer(self._joined or b"", np.uint8) == _NEWLINE))

    def nbytes(self) -> int:
        """Return how many bytes the texts have, about."""
        return len(self._joined) if self._joined is not None else int(self._array.nbytes)

    def are_filled(self) -> NDArray[np.bool_]:
        """Return for each text whether it is not empty."""
        return np.diff(offsets_and_bytes(self.values)[0]) > 0

    def taken(self, places: NDArray[np.intp]) -> Strings:
        """Return the texts at these places."""
        return Strings(self.values.take(array_of_ints(places.astype(np.int64, copy=False))), is_ascii=self.is_ascii)

    def tolist(self) -> list[str]:
        """Return the texts as objects of Python: one long text is taken apart, which is faster than to make each."""
        separated = self.separated()
        if separated is None:
            texts: list[str] = self._array.to_pylist()
            return texts
        data, separator = separated
        found = data.decode().split(separator)
        # Each string ends in the separator, so an empty one is left behind the last.
        found.pop()
        return found

    def separated(self) -> tuple[bytes, str] | None:
        """Return the texts, each followed by a character that none of them holds, and that; None if there is none."""
        if self._joined is not None:
            return self._joined, "\n"
        if not len(self._array):
            return b"", "\n"
        _, data = offsets_and_bytes(self._array)
        if len(data) + len(self._array) > MOST_BYTES:
            return None
        free = (each for each in _SEPARATORS if not np.any(data == ord(each)))
        return next(((_ended(self._array, each), each) for each in free), None)


_SEPARATORS = ("\n", "\0", "\x1f")


class StringLists:
    """Exact lists of texts.

    Args:
        members: the texts of all lists, one list after another.
        ends: gives where each list ends among them.
        size: how many lists there are.
    """

    __slots__ = ("_ends", "_found", "members", "size")

    def __init__(self, members: Strings, ends: Callable[[], NDArray[Any]], size: int) -> None:
        self.members = members
        self.size = size
        self._ends = ends
        self._found: NDArray[Any] | None = None

    def ends(self) -> NDArray[Any]:
        """Return where each list ends among the members."""
        if self._found is None:
            self._found = self._ends()
        return self._found

    def lengths(self) -> NDArray[np.int64]:
        """Return how many members each list has."""
        return np.diff(self.ends(), prepend=0).astype(np.int64)

    def are_filled(self) -> NDArray[np.bool_]:
        """Return for each list whether it is not empty."""
        return self.lengths() > 0

    def starts(self) -> NDArray[np.int64]:
        """Return where each list starts among the members."""
        return self.ends() - self.lengths()

    def taken(self, places: NDArray[np.intp]) -> StringLists:
        """Return the lists at these places."""
        lengths = self.lengths().take(places)
        ends = np.cumsum(lengths)
        # The distance of each remaining member to its new place, plus that place.
        rows = np.repeat(self.starts().take(places) - ends + lengths, lengths) + np.arange(lengths.sum())
        return StringLists(self.members.taken(rows), lambda: ends, len(places))

    def __reduce__(self) -> tuple[Any, ...]:
        # `_ends` may be a lambda, which pickle refuses.
        return _lists_that_end, (self.members, self.ends(), self.size)

    def tolist(self) -> list[list[str]]:
        """Return the lists as objects of Python."""
        texts, start, found = self.members.tolist(), 0, []
        for end in self.ends().tolist():
            found.append(texts[start:end])
            start = end
        return found


def _lists_that_end(members: Strings, ends: NDArray[Any], size: int) -> StringLists:
    return StringLists(members, lambda: ends, size)


def lists_that_have(members: Strings, lists: Sequence[Sequence[str]]) -> StringLists:
    """Return lists of Python, given the texts of all of them, as a column."""
    return _lists_that_end(members, np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists))), len(lists))


def strings_of(texts: Sequence[str]) -> Strings | None:
    """Return exact texts as a column; None if one has a surrogate, or they have more bytes than Arrow takes."""
    together = "\n".join(texts)
    try:
        joined = f"{together}\n".encode()
    except UnicodeEncodeError:
        return None
    if len(joined) > MOST_BYTES:
        return None
    if together.count("\n") == len(texts) - 1:
        return Strings(None, is_ascii=together.isascii(), joined=joined)
    # Not by `pyarrow.array`, which loads pandas (26).
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    return Strings(array_of(offsets, b"".join(encoded)), is_ascii=together.isascii())


def array_of(offsets: NDArray[Any], data: Any) -> Any:
    """Return texts as an Arrow array, given where each begins in the data, and at the end where the last one ends."""
    import pyarrow as pa

    places = pa.py_buffer(np.ascontiguousarray(offsets, np.int32))
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, places, pa.py_buffer(data)])


def offsets_and_bytes(array: Any) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where each text of an Arrow array begins in its bytes, and where the last one ends; and the bytes."""
    _, places, data = array.buffers()
    first = array.offset
    if not len(array):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    offsets = np.frombuffer(places, np.int32)[first : first + len(array) + 1]
    found = np.frombuffer(data, np.uint8)[: offsets[-1]] if data is not None and data.size else np.empty(0, np.uint8)
    # A slice shares the buffers of its array, so its first offset need not be 0.
    return offsets - offsets[0], found[offsets[0] :]


def _array_of_joined(joined: bytes) -> Any:
    ends = np.flatnonzero(np.frombuffer(joined, np.uint8) == _NEWLINE)
    offsets = np.zeros(len(ends) + 1, np.int32)
    # The newlines before a string are left out of the bytes.
    offsets[1:] = ends - np.arange(len(ends))
    return array_of(offsets, joined.translate(None, b"\n"))


_NEWLINE = 10


def _joined(array: Any) -> bytes | None:
    _, data = offsets_and_bytes(array)
    if len(data) + len(array) > MOST_BYTES or np.any(data == _NEWLINE):
        return None
    return _ended(array, "\n") if len(array) else b""


def _ended(array: Any, separator: str) -> bytes:
    """Return the texts, each followed by a character of one byte."""
    offsets, data = offsets_and_bytes(array)
    # Each byte moves by the number of texts before it.
    ends = offsets[1:] + np.arange(len(array))
    joined = np.full(len(data) + len(array), ord(separator), np.uint8)
    is_of_text = np.ones(len(joined), np.bool_)
    is_of_text[ends] = False
    joined[is_of_text] = data
    return joined.tobytes()


def numbers_of_array(array: Any) -> NDArray[Any]:
    """Return the values of an array of numbers or bools without nulls, of numbers without a copy."""
    import pyarrow as pa

    # `to_numpy` loads pandas (pyarrow 26), which takes a small program 0.3 to 0.5 s: more than all that it does.
    read = _bools_of_chunk if pa.types.is_boolean(array.type) else _numbers_of_chunk
    if not isinstance(array, pa.ChunkedArray):
        return read(array)
    chunks = [read(chunk) for chunk in array.chunks if len(chunk)]
    return np.concatenate(chunks) if len(chunks) > 1 else chunks[0] if chunks else np.empty(0, _type_in_numpy(array))


def _numbers_of_chunk(chunk: Any) -> NDArray[Any]:
    kind = _type_in_numpy(chunk)
    if not len(chunk):
        return np.empty(0, kind)
    # The buffer may be longer, also by a part of a number.
    values = np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
    values.setflags(write=False)  # The buffer is that of the array.
    return values


def _bools_of_chunk(chunk: Any) -> NDArray[np.bool_]:
    if not len(chunk):
        return np.empty(0, np.bool_)
    end = chunk.offset + len(chunk)
    bits = np.unpackbits(np.frombuffer(chunk.buffers()[1], np.uint8), count=end, bitorder="little")
    return bits[chunk.offset :].view(np.bool_)


def _type_in_numpy(array: Any) -> np.dtype[Any]:
    return np.dtype(_NAMES.get(str(array.type), str(array.type)))


_NAMES = {"float": "float32", "bool": "bool_"}
"""The types of Arrow whose names in NumPy are others."""


def array_of_ints(values: NDArray[Any]) -> Any:
    """Return ints of 64 bits as an array of Arrow, without a copy; `pyarrow.array` loads pandas as well."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])
