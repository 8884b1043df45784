"""Encoding of keys: equal keys give equal bytes in every process, and the bytes contain the type.

Equality is that of `dstream.keys`. A tag byte says what follows: `s` str, `b` bytes, `i` int, `f` float, `q` fraction,
`c` complex, `n` None, `d` date, `t` datetime, `z` aware datetime, `m` time, `w` aware time, `l` timedelta, `u` UUID,
`T` tuple, `F` frozenset, `R` range, `p` path, `E` enum member, `D` dataclass. The parts of a key carry their lengths.
"""

from __future__ import annotations

import dataclasses
import enum
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

from dstream.errors import NullElementError
from dstream.keys import NAN, FieldNan, compared_fields, has_generated_eq, has_generated_hash
from dstream.schema import classes as fielded
from dstream.schema.classes import Classes, ClassRefusedError, reference
from dstream.schema.type_inference import STORED_SCALARS, infer_stored
from dstream.schema.types import ColumnType, TimestampType
from dstream.storage.codec import scalar_keys
from dstream.storage.codec.scalar_keys import refuse_key, without_numpy
from dstream.values.fields import has_default, is_missing

__all__ = ["bucket_of", "decode_key", "encode_key", "identity", "type_of_key"]


def encode_key(key: Any) -> bytes:
    """Return the bytes that stand for `key` and for every key that is equal to it; never empty.

    Raises:
        NullElementError: the key is None.
        UnstableKeyError: the type of the key has no stable encoding; the message names it.
    """
    kind = type(key)
    if kind is str:
        try:
            return b"s" + key.encode()  # type: ignore[no-any-return]
        except UnicodeEncodeError:
            return b"s" + key.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is int:
        return scalar_keys.encode_int(key)
    if key is None:
        raise NullElementError("None cannot be a key")
    return _encode(key)


def decode_key(data: bytes, classes: Classes) -> Any:
    """Return a key equal to the one that was encoded, in normal form: 1 for True, 2 for 2.0, a tuple for a named tuple.

    Raises:
        TypeError: the class of the key is not found, or may not be loaded.
    """
    if data[0] == 115:  # s
        try:
            return data[1:].decode()
        except UnicodeDecodeError:
            return data[1:].decode("utf-8", "surrogatepass")
    return _DECODERS[data[:1]](data[1:], classes)


def identity(key: Any) -> Any:
    """Return the key for a dict that outlives classes: strings, bytes and ints themselves, or an encoding.

    The encoding stands in a tuple of its own. Keys of a class that was defined again, as in a notebook, do not equal
    those of the old class; their encodings do.

    Raises:
        NullElementError: the key is None.
        UnstableKeyError: the type of the key has no stable encoding.
    """
    if type(key) in _STANDS_FOR_ITSELF:
        return key
    data = encode_key(key)
    return _DECODERS[data[:1]](data[1:], _NO_CLASSES) if data[:1] in _PLAIN_TAGS else (data,)


_STANDS_FOR_ITSELF = frozenset({str, int, bytes})
_PLAIN_TAGS = frozenset({b"s", b"b", b"i"})
"""The tags of what stands for itself: the bytes of a subclass, such as `numpy.str_`, become a plain text again."""
_NO_CLASSES: Any = None


def type_of_key(key: Any) -> ColumnType:
    """Return the type of a key: for a scalar of NumPy or an instance of a subclass, the plain type that it equals."""
    key = without_numpy(key)
    if isinstance(key, enum.Enum):
        return infer_stored(key)
    if isinstance(key, datetime):
        return TimestampType("" if key.tzinfo is None else "UTC", is_exact=True)
    return next((scalar for base, scalar in _BASES if isinstance(key, base)), None) or infer_stored(key)


_BASES = sorted(STORED_SCALARS.items(), key=lambda found: -len(found[0].__mro__))
"""The plain types, subclasses first: a bool is an int."""


def bucket_of(data: bytes, buckets: int) -> int:
    """Return the bucket of an encoded key."""
    # Not `hash`, which differs from process to process for strings, and may differ between versions of Python.
    return zlib.crc32(data) % buckets


def _encode(key: Any) -> bytes:
    """Encode any key or part of a key, None among them."""
    if key is None:
        return b"n"
    if isinstance(key, enum.Enum) and type(key).__eq__ is object.__eq__:
        return _encode_member(key)
    # `FieldNan` stands for NaN in fields of dataclasses from Python 3.13 on, and is the same key.
    key = NAN if type(key) is FieldNan else without_numpy(key)
    for base, encode in _ENCODERS:
        if isinstance(key, base):
            return encode(key) if _compares_as(type(key), base) else refuse_key(key)
    if isinstance(key, PurePath):
        return _encode_path(key)
    if dataclasses.is_dataclass(key):
        return _encode_dataclass(key)
    return scalar_keys.encode_number(key) or refuse_key(key)


def _compares_as(kind: type, base: type) -> bool:
    """Say whether a subclass has left equality and hash as they are."""
    equal, hashed = kind.__eq__, kind.__hash__
    return equal is base.__eq__ and hashed is base.__hash__


def _encode_str(key: str) -> bytes:
    return b"s" + str.encode(key, "utf-8", "surrogatepass")


def _encode_tuple(key: tuple[Any, ...]) -> bytes:
    return b"T" + _join(map(_encode, key))


def _encode_frozenset(key: frozenset[Any]) -> bytes:
    # Sorted, since the order of a frozenset depends on the process; as a set, since several NaN in it are one key.
    return b"F" + _join(sorted(set(map(_encode, key))))


def _encode_range(key: range) -> bytes:
    # Ranges are equal if they give the same numbers.
    shape = (len(key), key.start, key.step)[: min(len(key), 2) + 1] if key else (0,)
    return b"R" + _join(map(scalar_keys.encode_int, shape))


def _encode_path(key: PurePath) -> bytes:
    if not isinstance(key, PurePosixPath | PureWindowsPath):
        return refuse_key(key)
    if isinstance(key, PureWindowsPath):
        # Windows paths that differ in upper and lower case alone are equal.
        return b"pw" + _encode_str(str(key).lower())
    return b"pp" + _encode_str(str(key))


def _encode_member(key: enum.Enum) -> bytes:
    kind = type(key)
    if isinstance(key, enum.Flag):  # a combination has no name of its own
        return b"E" + _join([_encode_str(reference(kind)), scalar_keys.encode_int(key.value)])
    return b"E" + _join([_encode_str(reference(kind)), _encode_str(key.name)])


def _encode_dataclass(key: Any) -> bytes:
    kind = type(key)
    if isinstance(key, type | enum.Enum) or not _is_stable(kind):
        return refuse_key(key)
    pairs = [(field.name, _encode(getattr(key, field.name))) for field in dataclasses.fields(kind) if field.compare]
    parts = (part for name, value in pairs for part in (_encode_str(name), value))
    return b"D" + _join([_encode_str(reference(kind)), *parts])


def _is_stable(kind: type) -> bool:
    """Say whether `@dataclass` wrote equality and hash, and the fields that are not compared can be filled again."""
    return (
        has_generated_eq(kind)
        and has_generated_hash(kind)
        and fielded.field_names(kind) is not None
        and all(map(_can_be_filled, dataclasses.fields(kind)))
        and compared_fields(kind) == tuple(field.name for field in dataclasses.fields(kind) if field.compare)
    )


def _can_be_filled(field: dataclasses.Field[Any]) -> bool:
    return field.compare or has_default(field)


def _join(parts: Iterable[bytes]) -> bytes:
    # With lengths no two tuples have the same bytes: ("a", "bc") is not ("ab", "c").
    return b"".join([piece for part in parts for piece in (len(part).to_bytes(4, "big"), part)])


def _split(data: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        yield data[start:position]


def _decode_parts(data: bytes, classes: Classes) -> list[Any]:
    return [decode_key(part, classes) for part in _split(data)]


def _decode_range(data: bytes, classes: Classes) -> range:
    parts = _decode_parts(data, classes)
    if any(type(part) is not int for part in parts):
        raise ValueError("a range is stored as ints")
    length, start, step = (*parts, 0, 1)[:3] if data else (0, 0, 1)
    step = step or 1
    return range(start, start + length * step, step)


def _decode_path(data: bytes, classes: Classes) -> PurePath:
    text = decode_key(data[1:], classes)
    if type(text) is not str:
        raise ValueError("a path is stored as a string")
    return PureWindowsPath(text) if data[:1] == b"w" else PurePosixPath(text)


def _decode_member(data: bytes, classes: Classes) -> enum.Enum:
    name, member = _decode_parts(data, classes)
    kind = classes.resolve(name)
    if not issubclass(kind, enum.Enum):
        raise ClassRefusedError(f"the class {name} is no enum any more")
    if isinstance(member, int):
        return kind(member)
    if member not in kind.__members__:
        raise ClassRefusedError(f"the enum {name} has no member {member!r} any more")
    return kind[member]


def _decode_dataclass(data: bytes, classes: Classes) -> Any:
    name, *pairs = _decode_parts(data, classes)
    values = dict(zip(pairs[::2], pairs[1::2], strict=True))
    kind = classes.resolve(name)
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    # A class with other fields would make a key that equals none of those that were stored.
    if [field.name for field in fields if field.compare] != list(values) or not _is_stable(kind):
        raise ClassRefusedError(
            f"the class {name} has other compared fields than ({', '.join(values)}), which are stored"
        )
    return fielded.build(kind, [values[f.name] if f.name in values else _default_of(f) for f in fields])


def _default_of(field: dataclasses.Field[Any]) -> Any:
    make: Any = field.default_factory
    return field.default if is_missing(make) else make()


# The methods are those of the base types, since a subclass may have its own. A datetime is a date, so it comes first.
_ENCODERS: tuple[tuple[type, Callable[[Any], bytes]], ...] = (
    (str, _encode_str),
    (int, lambda key: scalar_keys.encode_int(int.__index__(key))),
    (bytes, lambda key: b"b" + bytes.__getitem__(key, slice(None))),
    (float, lambda key: scalar_keys.encode_number(key) or refuse_key(key)),
    (tuple, _encode_tuple),
    (datetime, scalar_keys.encode_datetime),
    (date, scalar_keys.encode_date),
    (UUID, lambda key: b"u" + key.bytes),
    (frozenset, _encode_frozenset),
    (timedelta, scalar_keys.encode_timedelta),
    (time, scalar_keys.encode_time),
    (range, _encode_range),
)

_DECODERS: dict[bytes, Callable[[bytes, Classes], Any]] = {
    b"s": lambda data, _: data.decode("utf-8", "surrogatepass"),
    b"b": lambda data, _: data,
    b"i": lambda data, _: scalar_keys.decode_int(data),
    b"f": lambda data, _: scalar_keys.decode_float(data),
    b"q": lambda data, _: scalar_keys.decode_rational(data),
    b"c": lambda data, _: scalar_keys.decode_complex(data),
    b"n": lambda data, _: None,
    b"d": lambda data, _: scalar_keys.decode_date(data),
    b"t": lambda data, _: scalar_keys.decode_datetime(data),
    b"z": lambda data, _: scalar_keys.decode_aware_datetime(data),
    b"m": lambda data, _: scalar_keys.decode_time(data),
    b"w": lambda data, _: scalar_keys.decode_aware_time(data),
    b"l": lambda data, _: scalar_keys.decode_timedelta(data),
    b"u": lambda data, _: UUID(bytes=data),
    b"T": lambda data, classes: tuple(_decode_parts(data, classes)),
    b"F": lambda data, classes: frozenset(_decode_parts(data, classes)),
    b"R": _decode_range,
    b"p": _decode_path,
    b"E": _decode_member,
    b"D": _decode_dataclass,
}
