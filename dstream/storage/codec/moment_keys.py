"""Dates and times as keys.

An aware datetime or time is its instant: that of `fold=0`, as for Python's hash. It comes back in UTC.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time, timedelta, timezone

__all__ = [
    "decode_aware_datetime",
    "decode_aware_time",
    "decode_date",
    "decode_datetime",
    "decode_time",
    "decode_timedelta",
    "encode_date",
    "encode_datetime",
    "encode_time",
    "encode_timedelta",
]

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
    """Decode what follows the tag of a date."""
    return date.fromordinal(int.from_bytes(data, "big"))


def encode_datetime(key: datetime) -> bytes:
    """Encode a naive datetime by its fields, an aware one by its instant."""
    offset = key.replace(fold=0).utcoffset() if key.tzinfo is not None else None
    local = (key.toordinal() - 1) * _DAY + _micros_of_day(key)
    if offset is None:
        return b"t" + _LONG.pack(local)
    return b"z" + _LONG.pack(local - offset // _MICROSECOND)


def decode_datetime(data: bytes) -> datetime:
    """Decode what follows the tag of a naive datetime."""
    return _FIRST + timedelta(microseconds=_LONG.unpack(data)[0])


def decode_aware_datetime(data: bytes) -> datetime:
    """Decode what follows the tag of an aware datetime, as UTC unless its year would not exist there."""
    instant = _LONG.unpack(data)[0]
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
    """Decode what follows the tag of a naive time."""
    return (_FIRST + timedelta(microseconds=_LONG.unpack(data)[0])).time()


def decode_aware_time(data: bytes) -> time:
    """Decode what follows the tag of an aware time, as UTC unless it lies outside the day there."""
    instant = _LONG.unpack(data)[0]
    offset = _EAST if instant < 0 else _WEST if instant >= _DAY else timedelta(0)
    local = _FIRST + timedelta(microseconds=instant + offset // _MICROSECOND)
    return local.time().replace(tzinfo=timezone(offset) if offset else UTC)


def encode_timedelta(key: timedelta) -> bytes:
    """Encode a duration in microseconds."""
    return b"l" + (key // _MICROSECOND).to_bytes(9, "big", signed=True)


def decode_timedelta(data: bytes) -> timedelta:
    """Decode what follows the tag of a duration."""
    return timedelta(microseconds=int.from_bytes(data, "big", signed=True))


def _micros_of_day(key: datetime | time) -> int:
    return ((key.hour * 60 + key.minute) * 60 + key.second) * _SECOND + key.microsecond
