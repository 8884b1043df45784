"""Encoding of values: msgpack with extensions for their types; a pickle for anything else."""

from __future__ import annotations

import enum
import functools
import struct
import threading
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack

from dstream.base.records import record
from dstream.keys import NAN, FieldNan
from dstream.schema import classes
from dstream.schema.classes import ClassRefusedError, reference
from dstream.schema.scalar_types import is_large
from dstream.schema.types import named_zone, plain_offset
from dstream.storage.codec.pickles import Pickles
from dstream.storage.codec.plain_classes import from_parts, is_of_numpy, parts_of_numpy

__all__ = ["ValueEncoding"]


_PICKLED = b"\xc1"
"""The byte before a pickle; msgpack never uses it."""

_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
# msgpack converts these although it is set to be strict (1.2.4), and never passes them to `default`.
_MISTAKEN = frozenset({bytearray, memoryview, msgpack.ExtType, msgpack.Timestamp})

_pack_scalar = msgpack.Packer(strict_types=True, unicode_errors="surrogatepass").pack

_MOST_NESTED = 64
"""Levels of extensions within one another. msgpack uses 40 kB of the C stack to read each (1.2.4), of about 8 MB."""
_SHORT = 128
"""Bytes that cannot contain 64 more levels, each of which takes three: these are not checked."""


class _Nesting(threading.local):
    """Counter of the extensions that the current thread unpacks within one another."""

    levels = 0


_nesting = _Nesting()


class _Unknown(Exception):
    """A value, or a part of it, has no encoding and must be pickled."""


@record
class ValueEncoding:
    """Turns values into bytes and back, with classes and pickles as `pickles` allows."""

    pickles: Pickles

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value; never empty.

        Raises:
            TypeError: the value can only be pickled, and `pickles` does not allow it.
        """
        # Most values are such, and need no search for values that msgpack mistakes.
        if type(value) in _SCALARS:
            if is_large(value):
                return _large(value)
            try:
                return _pack_scalar(value)  # type: ignore[no-any-return]
            except OverflowError:  # an int of more than 64 bits
                return self._pack(value)
        try:
            return self._pack(value)
        except (_Unknown, ValueError, RecursionError):  # too deep or too large for msgpack, or a cycle
            return _PICKLED + self.pickles.dump(value)

    def decode(self, data: bytes) -> Any:
        """Return a fresh value.

        Raises:
            TypeError: its class is not found, or `pickles` does not allow to load it.
        """
        if data[:1] == _PICKLED:
            return self.pickles.load(data[1:])
        return self._unpack(data)

    def _pack(self, value: Any, level: int = 0) -> bytes:
        if level > _MOST_NESTED or not _is_understood(value):
            raise _Unknown
        pack = msgpack.Packer(
            default=functools.partial(self._extension, level + 1),
            strict_types=True,
            unicode_errors="surrogatepass",
            # The default allocates 256 KiB for each value (1.2.4).
            buf_size=1024,
        ).pack
        return pack(value)  # type: ignore[no-any-return]

    def _unpack(self, data: bytes) -> Any:
        # `strict_map_key` would refuse dicts with other keys than strings and bytes.
        return msgpack.unpackb(
            data, ext_hook=self._from_extension, strict_map_key=False, unicode_errors="surrogatepass"
        )

    def _unpack_inside(self, data: bytes) -> Any:
        if len(data) <= _SHORT:
            return self._unpack(data)
        if _nesting.levels >= _MOST_NESTED:
            raise ValueError(f"the value is nested in more than {_MOST_NESTED} tuples, sets, objects or enums")
        _nesting.levels += 1
        try:
            return self._unpack(data)
        finally:
            _nesting.levels -= 1

    def _extension(self, level: int, value: Any) -> msgpack.ExtType | float:
        """Return the msgpack form of a value of a type that msgpack does not support."""
        kind = type(value)
        if kind is FieldNan:
            return NAN
        code = _COLLECTIONS.get(kind)
        if code is not None:
            return msgpack.ExtType(code, self._pack(list(value), level))
        code, encode = _PLAIN.get(kind, (0, None))
        if encode is not None:
            return msgpack.ExtType(code, encode(value))
        if isinstance(value, enum.Enum):
            return self._member(level, value)
        if is_of_numpy(value):
            return self._of_numpy(value)
        named = classes.named_parts(value)
        if named is None or not self.pickles.knows(kind):
            raise _Unknown
        return msgpack.ExtType(_RECORD, self._pack([reference(kind), named], level))

    def _of_numpy(self, value: Any) -> msgpack.ExtType:
        parts = parts_of_numpy(value)
        if parts is not None:
            return msgpack.ExtType(_NUMPY, msgpack.packb(parts, unicode_errors="surrogatepass"))
        if self.pickles.mode == "trusted":
            raise _Unknown
        raise ClassRefusedError(
            f"a {type(value).__qualname__} of NumPy with the dtype {value.dtype} is no plain data, and the storage was "
            f"connected with pickle={self.pickles.mode!r}: store tolist() of it, or arrays of numbers, texts or times; "
            'or, if only you can write the store, use connect(pickle="trusted")'
        )

    def _member(self, level: int, value: enum.Enum) -> msgpack.ExtType:
        kind = type(value)
        # A combination of flags is restored from its pickle.
        if not classes.has_name(value) or not self.pickles.knows(kind):
            raise _Unknown
        return msgpack.ExtType(_MEMBER, self._pack([reference(kind), value.name], level))

    def _from_extension(self, code: int, data: bytes) -> Any:
        make = _MAKE_COLLECTION.get(code)
        if make is not None:
            return make(_exactly(list, self._unpack_inside(data)))
        decode = _DECODE.get(code)
        if decode is not None:
            return decode(data)
        if code == _NUMPY:
            # Its parts have no extensions within them, so they do not count as nested.
            return from_parts(*_exactly(list, self._unpack(data)))
        name, content = _exactly(list, self._unpack_inside(data))
        kind = self.pickles.resolve(name)
        if code == _RECORD:
            return classes.build_named(kind, _exactly(dict, content))
        return classes.member_of(kind, name, _exactly(str, content))


def _large(value: str | bytes) -> bytes:
    """Return the msgpack form of a large string or bytes: its packer copies it twice, and retains a buffer of its size.

    Raises:
        ValueError: it has more bytes than msgpack supports.
    """
    data, code = (value, b"\xc6") if isinstance(value, bytes) else (value.encode(errors="surrogatepass"), b"\xdb")
    if len(data) >= 1 << 32:
        raise ValueError(f"a value has {len(data):,} bytes, and a storage takes 4 GiB of one at most: divide it")
    return b"".join((code, len(data).to_bytes(4, "big"), data))


def _exactly(kind: type, found: Any) -> Any:
    """Return a value if it is exactly of the stored type: others may call methods of the user's."""
    if type(found) is not kind:
        raise ValueError(f"a {kind.__name__} was stored there, not a {type(found).__qualname__}")
    return found


def _is_understood(value: Any) -> bool:
    """Return whether the lists and dicts that msgpack packs itself contain nothing that it converts."""
    kind = type(value)
    if kind is dict:
        return _are_understood(value.keys()) and _are_understood(value.values())
    return _are_understood(value) if kind is list else kind not in _MISTAKEN


def _are_understood(values: Iterable[Any]) -> bool:
    kinds = set(map(type, values))
    if kinds <= _SCALARS:
        return True
    if not _MISTAKEN.isdisjoint(kinds):
        return False
    return not kinds & {list, dict} or all(_is_understood(value) for value in values if type(value) in (list, dict))


_MOMENT = struct.Struct(">HBBBBBIB")
_DURATION = struct.Struct(">iII")
_COMPLEX = struct.Struct(">dd")


def _encode_datetime(value: datetime) -> bytes:
    clock = (value.hour, value.minute, value.second, value.microsecond, value.fold)
    return _MOMENT.pack(value.year, value.month, value.day, *clock) + _encode_zone(value.tzinfo)


def _decode_datetime(data: bytes) -> datetime:
    year, month, day, *clock, fold = _MOMENT.unpack(data[: _MOMENT.size])
    hour, minute, second, micro = clock
    return datetime(year, month, day, hour, minute, second, micro, _decode_zone(data[_MOMENT.size :]), fold=fold)


def _encode_time(value: time) -> bytes:
    clock = (value.hour, value.minute, value.second, value.microsecond, value.fold)
    return _MOMENT.pack(0, 0, 0, *clock) + _encode_zone(value.tzinfo)


def _decode_time(data: bytes) -> time:
    hour, minute, second, micro, fold = _MOMENT.unpack(data[: _MOMENT.size])[3:]
    return time(hour, minute, second, micro, _decode_zone(data[_MOMENT.size :]), fold=fold)


def _encode_zone(zone: tzinfo | None) -> bytes:
    if zone is None:
        return b""
    if (name := named_zone(zone)) is not None:
        return b"z" + name.encode()
    if (offset := plain_offset(zone)) is None:
        raise _Unknown
    # By its offset alone: the name is made of it again.
    return b"o" + _encode_timedelta(offset)


def _decode_zone(data: bytes) -> tzinfo | None:
    if not data:
        return None
    return ZoneInfo(data[1:].decode()) if data[:1] == b"z" else timezone(_decode_timedelta(data[1:]))


def _encode_timedelta(value: timedelta) -> bytes:
    return _DURATION.pack(value.days, value.seconds, value.microseconds)


def _decode_timedelta(data: bytes) -> timedelta:
    return timedelta(*_DURATION.unpack(data))


def _encode_int(value: int) -> bytes:
    # One bit more, for the sign.
    return value.to_bytes((value.bit_length() + 8) // 8, "big", signed=True)


# The codes are stored: a new one gets a new number, and no number is reused.
_COLLECTIONS: dict[type, int] = {tuple: 1, set: 2, frozenset: 3}
_MAKE_COLLECTION: dict[int, Callable[[Any], Any]] = {code: kind for kind, code in _COLLECTIONS.items()}
_RECORD, _MEMBER, _NUMPY = 20, 21, 22
_SINGLE: tuple[tuple[int, type, Callable[[Any], bytes], Callable[[bytes], Any]], ...] = (
    (4, int, _encode_int, lambda data: int.from_bytes(data, "big", signed=True)),
    (
        5,
        date,
        lambda value: value.toordinal().to_bytes(4, "big"),
        lambda data: date.fromordinal(int.from_bytes(data, "big")),
    ),
    (6, datetime, _encode_datetime, _decode_datetime),
    (7, time, _encode_time, _decode_time),
    (8, timedelta, _encode_timedelta, _decode_timedelta),
    (9, Decimal, lambda value: str(value).encode(), lambda data: Decimal(data.decode())),
    (10, UUID, lambda value: value.bytes, lambda data: UUID(bytes=data)),
    (11, complex, lambda value: _COMPLEX.pack(value.real, value.imag), lambda data: complex(*_COMPLEX.unpack(data))),
)
"""The code of each class without parts, and the functions that encode and decode its values."""
_PLAIN = {kind: (code, encode) for code, kind, encode, _ in _SINGLE}
_DECODE = {code: decode for code, _, _, decode in _SINGLE}
