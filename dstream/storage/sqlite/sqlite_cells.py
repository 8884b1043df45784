"""Keys and values as SQLite has them: texts, 64-bit ints and floats as they are, anything else as encoded bytes.

So any program that reads SQLite sees plain columns. Two forms that SQLite takes for one, or for nothing, stay encoded:
NaN, which it makes NULL, and -0.0, which it says is 0.0. An int and a float of one value differ by `typeof`.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from dstream.errors import IllegalStateError
from dstream.storage.codec.codec import Codec

__all__ = [
    "Cell",
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
"""What stands in a column; never NULL."""

_LEAST, _MOST = -(2**63), 2**63 - 1
_MSGPACK_SCALARS = frozenset(
    [*range(0x80), *range(0xA0, 0xC0), 0xCA, 0xCB, *range(0xCC, 0xD4), 0xD9, 0xDA, 0xDB, *range(0xE0, 0x100)]
)
"""The first bytes of encoded values that are ints, floats or texts."""
_KEY_TAGS = frozenset(b"sif")


def cell_of_key(codec: Codec, key: Any) -> Cell:
    """Return the cell of a key, alike for equal keys; errors as for `Codec.encode_key`."""
    kind = type(key)
    if kind is str and key.isascii():  # the most frequent one first
        return key  # type: ignore[no-any-return]
    if (kind is str and _is_text(key)) or (kind is int and _LEAST <= key <= _MOST):
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
    """Return the encoded key that a cell stands for."""
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
    """Return the encoded value that a cell stands for."""
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
        return _is_text(value)
    return kind is float and value == value and (value != 0.0 or math.copysign(1.0, value) > 0)


def _is_text(value: str) -> bool:
    """Say whether a text has no lone surrogate, which UTF-8 has no form for."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked(codec: Codec, cell: Any) -> Any:
    if cell is None:
        raise IllegalStateError(f"{codec} is damaged: a cell of its table is NULL; something else has written it")
    return cell
