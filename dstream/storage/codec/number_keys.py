"""Numbers as keys: equal numbers give equal bytes, whatever their types.

An integral number has the form of an int, another one that a float holds exactly that of a float, and the rest stands
as numerator and denominator. All NaN are one number, and -0.0 is 0.
"""

from __future__ import annotations

import math
import numbers
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = ["decode_complex", "decode_float", "decode_int", "decode_rational", "encode_int", "encode_number"]

_FLOAT = struct.Struct(">d")
_PAIR = struct.Struct(">dd")
_NAN = b"f" + _FLOAT.pack(math.nan)
_LONGEST_EXPONENT = 10_000


def encode_int(key: int) -> bytes:
    """Encode an int of any size."""
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
    """Decode what follows the tag of an int."""
    return int.from_bytes(data, "big", signed=True)


def decode_float(data: bytes) -> float:
    """Decode what follows the tag of a float."""
    value: float = _FLOAT.unpack(data)[0]
    return value if value == value else math.nan


def decode_rational(data: bytes) -> Fraction:
    """Decode what follows the tag of a fraction."""
    middle = 4 + int.from_bytes(data[:4], "big")
    return Fraction(decode_int(data[4:middle]), decode_int(data[middle:]))


def decode_complex(data: bytes) -> complex:
    """Decode what follows the tag of a complex number."""
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
    return b"c" + _PAIR.pack(key.real + 0.0, key.imag)
