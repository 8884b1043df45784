"""Scalar types of columns: the classes without parts, their types in Arrow and Avro, and large values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dstream.base.records import record
from dstream.base.validation import is_unicode
from dstream.schema.text_forms import TEXT_FORMS
from dstream.schema.types import NOTHING, ColumnTooLargeError, ColumnType, ColumnTypeError, Decode, Encode, array_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LARGE_VALUE", "ScalarType", "is_instance", "is_large", "one_chunk", "scalars"]


def is_instance(kind: type, scalar: type) -> bool:
    """Return whether values of a class can be stored as a scalar type, losing only their class."""
    return kind is scalar or (scalar in _WITH_SUBCLASSES and kind is not bool and issubclass(kind, scalar))


_WITH_SUBCLASSES = (int, float, str, bytes)


@record
class _Trait:
    """Properties of one scalar type.

    Attributes:
        python: the class.
        arrow: the name of the function of pyarrow that makes the type of the column, and its arguments.
        avro: the type in Avro; None if there is none.
        accepts: other classes whose values are converted losslessly, or refused.
        fits: the condition on an instance beyond its type, for exact columns; unset, all fit.
        is_checked_by_arrow: pyarrow raises an error for values that do not fit.
        write: makes the input of pyarrow; unset, the values.
        read: makes values of an array; unset, `to_pylist`.
        shaped: converts a key of another type, or returns NOTHING.
    """

    python: type
    arrow: tuple[Any, ...]
    avro: Any = None
    accepts: tuple[type, ...] = ()
    fits: Callable[[Any], bool] | None = None
    is_checked_by_arrow: bool = False
    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], list[Any]] | None = None
    shaped: Callable[[Any], Any] | None = None

    @property
    def of_values(self) -> type:
        """The class of the values: `Path()` makes an object of a subclass."""
        return type(self.python()) if self.python in (Path, PurePath) else self.python


@record
class ScalarType(ColumnType):
    """A type without parts.

    Attributes:
        plain: the name of its properties, by which it is stored.
        is_exact: accepts no instance of a subclass.
    """

    plain: str
    is_exact: bool = False

    @property
    def name(self) -> str:
        return self._trait.python.__name__ if self.plain in _VARIANTS else self.plain

    @property
    def hint(self) -> Any:
        return self._trait.python

    @property
    def _trait(self) -> _Trait:
        return _TRAITS[self.plain]

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow

        function, *arguments = self._trait.arrow
        return getattr(pyarrow, function)(*arguments)

    @property
    def is_immutable(self) -> bool:
        return True

    def fits(self, value: Any) -> bool:
        trait = self._trait
        return type(value) is trait.of_values and (trait.fits is None or trait.fits(value))

    def shaped(self, key: Any) -> Any:
        if self.fits(key):
            return key
        shaped = self._trait.shaped
        return NOTHING if shaped is None else shaped(key)

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        trait = self._trait
        # pyarrow would convert 1.0 and True to 1, so the types are compared first.
        if not {trait.of_values, type(None)}.issuperset(map(type, values)):
            self._check_classes(values)
        if trait.fits and not (self.is_exact and trait.is_checked_by_arrow):
            self._check_values(values)
        write = trait.write
        plain: Sequence[Any] = (
            values if write is None else [None if value is None else write(value) for value in values]
        )
        if len(plain) == 1 and is_large(plain[0]):
            return _array_of_one(plain[0], self.arrow)
        return one_chunk(array_of(plain, self.arrow))

    def _check_classes(self, values: Sequence[Any]) -> None:
        trait = self._trait
        for kind in set(map(type, values)) - {trait.of_values, type(None), *trait.accepts}:
            if self.is_exact or not is_instance(kind, trait.python):
                raise ColumnTypeError(f"it holds {self.name}, and this is {kind.__qualname__}: nothing is converted")

    def _check_values(self, values: Sequence[Any]) -> None:
        fits = self._trait.fits
        if self.is_exact:
            if fits is not None and not all(value is None or fits(value) for value in values):
                raise ColumnTypeError(f"a column of {self.name} would change it")
        elif self._trait.python is time and any(value is not None and value.tzinfo is not None for value in values):
            raise ColumnTypeError("no column holds times with a zone")

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        read = self._trait.read
        return array.to_pylist() if read is None else read(array)

    def avro(self, name: str) -> Any:
        found = self._trait.avro
        # A class with slots is created twice, and a plain `super()` refers to the first class (CPython 3.11).
        return super(ScalarType, self).avro(name) if found is None else found  # noqa: UP008

    def to_json(self) -> Any:
        return self.plain


LARGE_VALUE = 1 << 20
"""Bytes, or characters, above which each copy of a value counts."""
_LARGEST_VALUE = 2**31 - (1 << 20)
"""The maximal bytes of one value: Arrow and a page of Parquet are limited to 2 GiB, including overhead."""


def is_large(value: Any) -> bool:
    """Return whether each copy of a value counts."""
    return type(value) in (str, bytes) and len(value) > LARGE_VALUE


def one_chunk(array: Any) -> Any:
    """Return an array that pyarrow made of values.

    Raises:
        ColumnTooLargeError: it has several chunks, since one is limited to 2 GiB.
    """
    if hasattr(array, "chunks"):
        raise ColumnTooLargeError(f"{len(array)} values are more than 2 GiB and cannot be kept in one column")
    return array


def _array_of_one(value: str | bytes, kind: pa.DataType) -> pa.Array:
    """Return a column of one large value, whose bytes are not copied; pyarrow would copy them twice (26.0).

    Raises:
        ColumnTooLargeError: the value is too large for a column.
        ColumnTypeError: it has a lone surrogate.
    """
    import pyarrow

    try:
        data = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise ColumnTypeError(f"this is no {kind}: {error}") from None
    if len(data) > _LARGEST_VALUE:
        raise ColumnTooLargeError(
            f"a value has {len(data):,} bytes, and a storage takes {_LARGEST_VALUE:,} (nearly 2 GiB): divide it, "
            "or write it into a file of its own and keep the path"
        )
    ends = b"".join(end.to_bytes(4, sys.byteorder) for end in (0, len(data)))
    return pyarrow.Array.from_buffers(kind, 1, [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(data)])


def _is_long(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_naive(value: datetime | time) -> bool:
    # Arrow stores neither a zone nor `fold` of a time of day.
    return value.tzinfo is None and not value.fold


def _is_short(value: timedelta) -> bool:
    return -106_751_991 <= value.days < 106_751_991  # range of 64 bits of microseconds


def _read_as(unit: str) -> Callable[[Any], list[Any]]:
    """Return a reader of temporal columns 40 times as fast as `to_pylist` (pyarrow 26)."""
    return lambda array: array.to_numpy(zero_copy_only=False).astype(unit).tolist()


def _reader(make: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda array: [None if stored is None else make(stored) for stored in array.to_pylist()]


def _uuid(data: bytes) -> UUID:
    return UUID(int=int.from_bytes(data, "big"))


def _bytes_of_uuid(value: UUID) -> bytes:
    return value.bytes


def _shaped_bool(key: Any) -> Any:
    return key == 1 if type(key) is int and key in (0, 1) else NOTHING


def _shaped_float(key: Any) -> Any:
    if type(key) is not int:
        return NOTHING
    try:
        nearest = float(key)
    except OverflowError:
        return NOTHING
    return nearest if nearest == key else NOTHING


def _shaped_decimal(key: Any) -> Any:
    """Return the canonical decimal of a number; NOTHING if it is no finite decimal fraction."""
    if type(key) is int:
        return Decimal(key)
    if type(key) is float and not math.isfinite(key):
        return Decimal(str(key).replace("nan", "NaN"))
    if type(key) not in (float, Fraction):
        return NOTHING
    numerator, denominator = key.as_integer_ratio()
    places = _decimal_places(denominator)
    if places is None:
        return NOTHING
    digits = abs(numerator) * 10**places // denominator
    # A division would round to the digits of the context.
    return Decimal((int(numerator < 0), tuple(map(int, str(digits))), -places))


def _decimal_places(denominator: int) -> int | None:
    """Return the number of decimal places of a fraction in lowest terms, or None if it is infinite."""
    places = 0
    for prime in (2, 5):
        power = 0
        while denominator % prime == 0:
            denominator //= prime
            power += 1
        places = max(places, power)
    return places if denominator == 1 else None


DECIMAL = 38, 18
"""Digits of a Decimal in a file, and its decimal places, as in decimal(38, 18) of SQL."""
_TIMES: Any = {"type": "long", "logicalType": "time-micros"}
_DECIMALS: Any = {"type": "bytes", "logicalType": "decimal", "precision": DECIMAL[0], "scale": DECIMAL[1]}
_DAYS: Any = {"type": "int", "logicalType": "date"}


_TRAITS: dict[str, _Trait] = {
    "bool": _Trait(bool, ("bool_",), "boolean", shaped=_shaped_bool),
    "int": _Trait(int, ("int64",), "long", fits=_is_long, is_checked_by_arrow=True),
    "float": _Trait(float, ("float64",), "double", shaped=_shaped_float),
    "number": _Trait(float, ("float64",), "double", accepts=(int,)),
    "str": _Trait(str, ("string",), "string", fits=is_unicode, is_checked_by_arrow=True),
    "bytes": _Trait(bytes, ("binary",), "bytes"),
    "date": _Trait(date, ("date32",), _DAYS, read=_read_as("datetime64[D]")),
    "time": _Trait(time, ("time64", "us"), _TIMES, fits=_is_naive),
    "timedelta": _Trait(timedelta, ("duration", "us"), fits=_is_short, read=_read_as("timedelta64[us]")),
    # A string loses nothing: decimal128 has one scale for the column, so 1.10 and 1.1 would be read back alike.
    "Decimal": _Trait(Decimal, ("string",), write=str, read=_reader(Decimal), shaped=_shaped_decimal),
    "decimal": _Trait(Decimal, ("decimal128", *DECIMAL), _DECIMALS),
    "UUID": _Trait(UUID, ("binary", 16), write=_bytes_of_uuid, read=_reader(_uuid)),
    "uuid": _Trait(UUID, ("uuid",), {"type": "string", "logicalType": "uuid"}),
    **{
        kind.__name__: _Trait(
            kind, ("string",), "string", write=TEXT_FORMS[kind].write, read=_reader(TEXT_FORMS[kind].parse)
        )
        for kind in (Fraction, IPv4Address, IPv6Address, Path, PurePath)
    },
}
_VARIANTS = frozenset({"number", "decimal", "uuid"})


def scalars(*plain: str, is_exact: bool = False) -> dict[type, ScalarType]:
    """Return scalar types by their classes."""
    return {_TRAITS[name].python: ScalarType(name, is_exact) for name in plain}
