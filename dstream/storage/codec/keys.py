"""Encoding of keys: equal keys have equal bytes in every process, and the bytes contain the type.

Equality is defined by `dstream.keys`. A tag byte names the type of what follows: `s` str, `b` bytes, `i` int, `f`
float, `q` fraction, `c` complex, `n` None, `d` date, `t` datetime, `z` aware datetime, `m` time, `w` aware time, `l`
timedelta, `u` UUID, `T` tuple, `F` frozenset, `R` range, `p` path, `E` enum member, `D` dataclass. The parts of a key
carry their lengths.

An integral number is encoded as an int, another number that a float represents exactly as a float, and any other as
numerator and denominator. All NaN are one number, and -0.0 is 0. An aware datetime or time is its instant with
`fold=0`, as for Python's hash. It is read back in UTC.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

from dstream.base.showing import shown
from dstream.errors import NullElementError, UnstableKeyError
from dstream.keys import NAN, FieldNan, compared_fields, has_generated_eq, has_generated_hash
from dstream.schema import classes as fielded
from dstream.schema.classes import Classes, ClassRefusedError, reference
from dstream.schema.type_inference import STORED_SCALARS, infer_stored
from dstream.schema.types import ColumnType, TimestampType
from dstream.values.fields import has_default, is_missing

__all__ = ["bucket_of", "decode_key", "encode_key", "identity", "type_of_key"]


def encode_key(key: Any) -> bytes:
    """Return the encoding of `key`, the same for every key that is equal to it; never empty.

    Raises:
        NullElementError: the key is None.
        UnstableKeyError: the type of the key has no stable encoding; the message names it.
    """
    kind = type(key)
    if kind is str:
        try:
            return b"s" + key.encode()  # type: ignore[no-any-return]
        except UnicodeEncodeError:
            # Only here, since a call with arguments takes twice as long.
            return b"s" + key.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is int:
        return _encode_int(key)
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

    The encoding is wrapped in a tuple. Keys of a redefined class, as in a notebook, do not equal keys of the old class;
    their encodings do.

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
"""The tags of types that are encoded as themselves: a `numpy.str_` becomes a plain string again."""
_NO_CLASSES: Any = None


def type_of_key(key: Any) -> ColumnType:
    """Return the type of a key: for a scalar of NumPy or an instance of a subclass, the plain type that it equals."""
    key = _without_numpy(key)
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
    # Members that compare as other values, such as members of an IntEnum, are encoded as these values.
    if isinstance(key, enum.Enum) and type(key).__eq__ is object.__eq__:
        return _encode_member(key)
    # `FieldNan` replaces NaN in fields of dataclasses from Python 3.13 on, and is the same key.
    key = NAN if type(key) is FieldNan else _without_numpy(key)
    for base, encode in _ENCODERS:
        if isinstance(key, base):
            return encode(key) if _compares_as(type(key), base) else _refuse_key(key)
    if isinstance(key, PurePath):
        return _encode_path(key)
    if dataclasses.is_dataclass(key):
        return _encode_dataclass(key)
    return _encode_number(key) or _refuse_key(key)


def _compares_as(kind: type, base: type) -> bool:
    """Return whether a subclass has left equality and hash as they are."""
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
    # Ranges are equal if they contain the same numbers.
    shape = (len(key), key.start, key.step)[: min(len(key), 2) + 1] if key else (0,)
    return b"R" + _join(map(_encode_int, shape))


def _encode_path(key: PurePath) -> bytes:
    if not isinstance(key, PurePosixPath | PureWindowsPath):
        return _refuse_key(key)
    if isinstance(key, PureWindowsPath):
        # Windows paths that differ in upper and lower case alone are equal.
        return b"pw" + _encode_str(str(key).lower())
    return b"pp" + _encode_str(str(key))


def _encode_member(key: enum.Enum) -> bytes:
    kind = type(key)
    if isinstance(key, enum.Flag):  # a combination has no name
        return b"E" + _join([_encode_str(reference(kind)), _encode_int(key.value)])
    return b"E" + _join([_encode_str(reference(kind)), _encode_str(key.name)])


def _encode_dataclass(key: Any) -> bytes:
    kind = type(key)
    if isinstance(key, type | enum.Enum) or not _is_stable(kind):
        return _refuse_key(key)
    pairs = [(field.name, _encode(getattr(key, field.name))) for field in dataclasses.fields(kind) if field.compare]
    parts = (part for name, value in pairs for part in (_encode_str(name), value))
    return b"D" + _join([_encode_str(reference(kind)), *parts])


def _is_stable(kind: type) -> bool:
    """Return whether `@dataclass` wrote equality and hash, and the fields that are not compared can be filled again."""
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
    # A range of one number is stored without its step, which makes no difference to it.
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
    # Flags are stored by their value, since a combination of them has no name.
    if isinstance(member, int):
        return kind(member)
    found: enum.Enum = fielded.member_of(kind, name, member)
    return found


def _decode_dataclass(data: bytes, classes: Classes) -> Any:
    name, *pairs = _decode_parts(data, classes)
    values = dict(zip(pairs[::2], pairs[1::2], strict=True))
    kind = classes.resolve(name)
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    # A class with other fields would make a key that equals no stored key.
    if [field.name for field in fields if field.compare] != list(values) or not _is_stable(kind):
        raise ClassRefusedError(
            f"the class {name} has other compared fields than ({', '.join(values)}), which are stored"
        )
    return fielded.build(kind, [values[f.name] if f.name in values else _default_of(f) for f in fields])


def _default_of(field: dataclasses.Field[Any]) -> Any:
    make: Any = field.default_factory
    return field.default if is_missing(make) else make()


_FLOAT = struct.Struct(">d")
_PAIR = struct.Struct(">dd")
_NAN = b"f" + _FLOAT.pack(math.nan)
_LONGEST_EXPONENT = 10_000


def _encode_int(key: int) -> bytes:
    """Encode an int of any size."""
    # One bit more than the number has, for its sign.
    return b"i" + key.to_bytes((key.bit_length() + 8) // 8, "big", signed=True)


def _encode_number(key: Any) -> bytes | None:
    """Encode a number by its value; None if `key` is no number with an exact value."""
    if isinstance(key, numbers.Integral):
        return _encode_int(int(key))
    if isinstance(key, float):
        return _encode_float(float(key))
    if isinstance(key, Decimal):
        return _encode_decimal(key)
    if isinstance(key, numbers.Rational):
        return _encode_ratio(int(key.numerator), int(key.denominator))
    if isinstance(key, numbers.Real):
        return _encode_real(key)
    if isinstance(key, numbers.Complex):
        return _encode_complex(complex(key))
    return None


def _decode_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _decode_float(data: bytes) -> float:
    value: float = _FLOAT.unpack(data)[0]
    # A dict finds a NaN by its identity alone, so all of them are this object.
    return value if value == value else math.nan


def _decode_rational(data: bytes) -> Fraction:
    middle = 4 + int.from_bytes(data[:4], "big")
    return Fraction(_decode_int(data[4:middle]), _decode_int(data[middle:]))


def _encode_float(key: float) -> bytes:
    if key.is_integer():
        return _encode_int(int(key))
    return b"f" + _FLOAT.pack(key) if key == key else _NAN


def _encode_decimal(key: Decimal) -> bytes | None:
    if key.is_snan():
        return None  # it has no hash
    if not key.is_finite():
        return _encode_float(float(key))
    if abs(key.adjusted()) > _LONGEST_EXPONENT:
        return None  # as an int, Decimal("1e999999999") would fill the memory
    return _encode_ratio(*key.as_integer_ratio())


def _encode_ratio(numerator: int, denominator: int) -> bytes:
    if denominator == 1:
        return _encode_int(numerator)
    try:
        nearest = numerator / denominator
    except OverflowError:
        nearest = math.inf
    if math.isfinite(nearest) and nearest.as_integer_ratio() == (numerator, denominator):
        return b"f" + _FLOAT.pack(nearest)
    above, below = _encode_int(numerator)[1:], _encode_int(denominator)[1:]
    return b"q" + len(above).to_bytes(4, "big") + above + below


def _encode_real(key: Any) -> bytes | None:
    if key != key or key in (math.inf, -math.inf):
        return _encode_float(float(key))
    ratio = getattr(key, "as_integer_ratio", None)
    return None if ratio is None else _encode_ratio(*map(int, ratio()))


def _encode_complex(key: complex) -> bytes:
    if key != key:
        return _NAN
    if not key.imag:
        return _encode_float(key.real)
    # -0.0 + 0.0 is 0.0: two equal keys have equal bytes.
    return b"c" + _PAIR.pack(key.real + 0.0, key.imag)


_LONG = struct.Struct(">q")
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MICROSECOND = timedelta(microseconds=1)
_FIRST = datetime(1, 1, 1)
_LAST = (datetime.max - _FIRST) // _MICROSECOND
_EAST, _WEST = timedelta(hours=23, minutes=59, seconds=59), -timedelta(hours=23, minutes=59, seconds=59)


def _encode_datetime(key: datetime) -> bytes:
    """Encode a naive datetime by its fields, an aware one by its instant."""
    offset = key.replace(fold=0).utcoffset() if key.tzinfo is not None else None
    local = (key.toordinal() - 1) * _DAY + _micros_of_day(key)
    if offset is None:
        return b"t" + _LONG.pack(local)
    return b"z" + _LONG.pack(local - offset // _MICROSECOND)


def _decode_datetime(data: bytes) -> datetime:
    return _FIRST + timedelta(microseconds=_LONG.unpack(data)[0])


def _decode_aware_datetime(data: bytes) -> datetime:
    """Decode an aware datetime, as UTC unless its year would not exist there."""
    instant = _LONG.unpack(data)[0]
    # Such an instant is before the year 1, or behind 9999, in UTC, where no `datetime` represents it.
    offset = _EAST if instant < 0 else _WEST if instant > _LAST else timedelta(0)
    local = _FIRST + timedelta(microseconds=instant + offset // _MICROSECOND)
    return local.replace(tzinfo=timezone(offset) if offset else UTC)


def _encode_time(key: time) -> bytes:
    """Encode a time of day; an aware one less its offset, which may lead out of the day."""
    offset = key.replace(fold=0).utcoffset()
    if offset is None:
        return b"m" + _LONG.pack(_micros_of_day(key))
    # Python compares whole seconds of the offset only (3.11).
    return b"w" + _LONG.pack(_micros_of_day(key) - (offset.days * 86_400 + offset.seconds) * _SECOND)


def _decode_time(data: bytes) -> time:
    return (_FIRST + timedelta(microseconds=_LONG.unpack(data)[0])).time()


def _decode_aware_time(data: bytes) -> time:
    """Decode an aware time, as UTC unless it lies outside the day there."""
    instant = _LONG.unpack(data)[0]
    offset = _EAST if instant < 0 else _WEST if instant >= _DAY else timedelta(0)
    local = _FIRST + timedelta(microseconds=instant + offset // _MICROSECOND)
    return local.time().replace(tzinfo=timezone(offset) if offset else UTC)


def _encode_timedelta(key: timedelta) -> bytes:
    """Encode a duration in microseconds."""
    # The longest timedelta has more microseconds than 8 bytes hold.
    return b"l" + (key // _MICROSECOND).to_bytes(9, "big", signed=True)


def _micros_of_day(key: datetime | time) -> int:
    return ((key.hour * 60 + key.minute) * 60 + key.second) * _SECOND + key.microsecond


def _refuse_key(key: Any) -> bytes:
    """Raise that a key has no stable encoding."""
    raise UnstableKeyError(
        f"a key of type {type(key).__qualname__} has no stable encoding: {shown(key)}; use a str, bytes, a number, "
        "a date or time, a UUID, an enum member, or a tuple, frozenset or frozen dataclass of these"
    )


def _without_numpy(key: Any) -> Any:
    """Return the Python equivalent of a scalar of NumPy, and any other key unchanged.

    Raises:
        UnstableKeyError: the value that the scalar equals depends on its unit.
    """
    kind = type(key)
    # By names, so that NumPy need not be imported to find out that a key is none of it.
    if kind.__module__ != "numpy" or all(base.__name__ != "generic" for base in kind.__mro__):
        return key
    return _refuse_key(key) if kind.__name__ in ("datetime64", "timedelta64", "void") else key.item()


# The methods are those of the base types, since a subclass may have its own. A datetime is a date, so datetimes are
# first.
_ENCODERS: tuple[tuple[type, Callable[[Any], bytes]], ...] = (
    (str, _encode_str),
    (int, lambda key: _encode_int(int.__index__(key))),
    (bytes, lambda key: b"b" + bytes.__getitem__(key, slice(None))),
    (float, lambda key: _encode_number(key) or _refuse_key(key)),
    (tuple, _encode_tuple),
    (datetime, _encode_datetime),
    (date, lambda key: b"d" + key.toordinal().to_bytes(4, "big")),
    (UUID, lambda key: b"u" + key.bytes),
    (frozenset, _encode_frozenset),
    (timedelta, _encode_timedelta),
    (time, _encode_time),
    (range, _encode_range),
)

# Each takes the bytes after its tag.
_DECODERS: dict[bytes, Callable[[bytes, Classes], Any]] = {
    b"s": lambda data, _: data.decode("utf-8", "surrogatepass"),
    b"b": lambda data, _: data,
    b"i": lambda data, _: _decode_int(data),
    b"f": lambda data, _: _decode_float(data),
    b"q": lambda data, _: _decode_rational(data),
    b"c": lambda data, _: complex(*_PAIR.unpack(data)),
    b"n": lambda data, _: None,
    b"d": lambda data, _: date.fromordinal(int.from_bytes(data, "big")),
    b"t": lambda data, _: _decode_datetime(data),
    b"z": lambda data, _: _decode_aware_datetime(data),
    b"m": lambda data, _: _decode_time(data),
    b"w": lambda data, _: _decode_aware_time(data),
    b"l": lambda data, _: timedelta(microseconds=_decode_int(data)),
    b"u": lambda data, _: UUID(bytes=data),
    b"T": lambda data, classes: tuple(_decode_parts(data, classes)),
    b"F": lambda data, classes: frozenset(_decode_parts(data, classes)),
    b"R": _decode_range,
    b"p": _decode_path,
    b"E": _decode_member,
    b"D": _decode_dataclass,
}
