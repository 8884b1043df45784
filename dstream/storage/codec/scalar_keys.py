"""Numbers, dates and times as keys: equal ones have equal bytes, whatever their types.

An integral number has the form of an int, another one that a float holds exactly that of a float, and the rest stands
as numerator and denominator. All NaN are one number, and -0.0 is 0.

An aware datetime or time is its instant: that of `fold=0`, as for Python's hash. It comes back in UTC.
"""

from __future__ import annotations

import math
import numbers
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dstream.errors import UnstableKeyError

__all__ = [
    "decode_aware_datetime",
    "decode_aware_time",
    "decode_complex",
    "decode_date",
    "decode_datetime",
    "decode_float",
    "decode_int",
    "decode_rational",
    "decode_time",
    "decode_timedelta",
    "encode_date",
    "encode_datetime",
    "encode_int",
    "encode_number",
    "encode_time",
    "encode_timedelta",
    "refuse_key",
    "without_numpy",
]


_FLOAT = struct.Struct(">d")
_PAIR = struct.Struct(">dd")
_NAN = b"f" + _FLOAT.pack(math.nan)
_LONGEST_EXPONENT = 10_000


def encode_int(key: int) -> bytes:
    """Encode an int of any size."""
    # One bit more than the number has, for its sign.
    return b"i" + key.to_bytes((key.bit_length() + 8) // 8, "big", signed=True)


def encode_number(key: Any) -> bytes | None:
    """Encode a number by its value; None if `key` is no number whose value can be told exactly."""
    if isinstance(key, numbers.Integral):
        return encode_int(int(key))
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


def decode_int(data: bytes) -> int:
    """Decode the bytes behind the tag of an int."""
    return int.from_bytes(data, "big", signed=True)


def decode_float(data: bytes) -> float:
    """Decode the bytes behind the tag of a float."""
    value: float = _FLOAT.unpack(data)[0]
    # A dict finds a NaN by its identity alone, so all of them are this object.
    return value if value == value else math.nan


def decode_rational(data: bytes) -> Fraction:
    """Decode the bytes behind the tag of a fraction."""
    middle = 4 + int.from_bytes(data[:4], "big")
    return Fraction(decode_int(data[4:middle]), decode_int(data[middle:]))


def decode_complex(data: bytes) -> complex:
    """Decode the bytes behind the tag of a complex number."""
    return complex(*_PAIR.unpack(data))


def _encode_float(key: float) -> bytes:
    if key.is_integer():
        return encode_int(int(key))
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
        return encode_int(numerator)
    try:
        nearest = numerator / denominator
    except OverflowError:
        nearest = math.inf
    if math.isfinite(nearest) and nearest.as_integer_ratio() == (numerator, denominator):
        return b"f" + _FLOAT.pack(nearest)
    above, below = encode_int(numerator)[1:], encode_int(denominator)[1:]
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


def encode_date(key: date) -> bytes:
    """Encode a date by its number."""
    return b"d" + key.toordinal().to_bytes(4, "big")


def decode_date(data: bytes) -> date:
    """Decode the bytes behind the tag of a date."""
    return date.fromordinal(int.from_bytes(data, "big"))


def encode_datetime(key: datetime) -> bytes:
    """Encode a naive datetime by its fields, an aware one by its instant."""
    offset = key.replace(fold=0).utcoffset() if key.tzinfo is not None else None
    local = (key.toordinal() - 1) * _DAY + _micros_of_day(key)
    if offset is None:
        return b"t" + _LONG.pack(local)
    return b"z" + _LONG.pack(local - offset // _MICROSECOND)


def decode_datetime(data: bytes) -> datetime:
    """Decode the bytes behind the tag of a naive datetime."""
    return _FIRST + timedelta(microseconds=_LONG.unpack(data)[0])


def decode_aware_datetime(data: bytes) -> datetime:
    """Decode the bytes behind the tag of an aware datetime, as UTC unless its year would not exist there."""
    instant = _LONG.unpack(data)[0]
    # Such an instant is before the year 1, or behind 9999, in UTC, and there is no `datetime` for it there.
    offset = _EAST if instant < 0 else _WEST if instant > _LAST else timedelta(0)
    local = _FIRST + timedelta(microseconds=instant + offset // _MICROSECOND)
    return local.replace(tzinfo=timezone(offset) if offset else UTC)


def encode_time(key: time) -> bytes:
    """Encode a time of day; an aware one less its offset, which may lead out of the day."""
    offset = key.replace(fold=0).utcoffset()
    if offset is None:
        return b"m" + _LONG.pack(_micros_of_day(key))
    # Python compares whole seconds of the offset only (3.11).
    return b"w" + _LONG.pack(_micros_of_day(key) - (offset.days * 86_400 + offset.seconds) * _SECOND)


def decode_time(data: bytes) -> time:
    """Decode the bytes behind the tag of a naive time."""
    return (_FIRST + timedelta(microseconds=_LONG.unpack(data)[0])).time()


def decode_aware_time(data: bytes) -> time:
    """Decode the bytes behind the tag of an aware time, as UTC unless it lies outside the day there."""
    instant = _LONG.unpack(data)[0]
    offset = _EAST if instant < 0 else _WEST if instant >= _DAY else timedelta(0)
    local = _FIRST + timedelta(microseconds=instant + offset // _MICROSECOND)
    return local.time().replace(tzinfo=timezone(offset) if offset else UTC)


def encode_timedelta(key: timedelta) -> bytes:
    """Encode a duration in microseconds."""
    # The longest timedelta has more microseconds than 8 bytes hold.
    return b"l" + (key // _MICROSECOND).to_bytes(9, "big", signed=True)


def decode_timedelta(data: bytes) -> timedelta:
    """Decode the bytes behind the tag of a duration."""
    return timedelta(microseconds=int.from_bytes(data, "big", signed=True))


def _micros_of_day(key: datetime | time) -> int:
    return ((key.hour * 60 + key.minute) * 60 + key.second) * _SECOND + key.microsecond


def refuse_key(key: Any) -> bytes:
    """Raise that a key has no stable encoding."""
    raise UnstableKeyError(
        f"a key of type {type(key).__qualname__} has no stable encoding: {_shown(key)}; use a str, bytes, a number, "
        "a date or time, a UUID, an enum member, or a tuple, frozenset or frozen dataclass of these"
    )


def _shown(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 200 else text[:200] + "..."


def without_numpy(key: Any) -> Any:
    """Return the Python equivalent of a scalar of NumPy, and any other key as it is.

    Raises:
        UnstableKeyError: what the scalar equals depends on its unit.
    """
    kind = type(key)
    # By names, so that NumPy need not be imported to find out that a key is none of it.
    if kind.__module__ != "numpy" or all(base.__name__ != "generic" for base in kind.__mro__):
        return key
    return refuse_key(key) if kind.__name__ in ("datetime64", "timedelta64", "void") else key.item()
