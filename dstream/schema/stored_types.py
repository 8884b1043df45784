"""`Type`: the type of stored keys and values, and the scalar types with columns of their own.

Equality is that of `dstream.keys`. A tag byte says what follows: `s` str, `b` bytes, `i` int, `f` float, `q` fraction,
`c` complex, `n` None, `d` date, `t` datetime, `z` aware datetime, `m` time, `w` aware time, `l` timedelta, `u` UUID,
`T` tuple, `F` frozenset, `R` range, `p` path, `E` enum member, `D` dataclass. The parts of a key carry their lengths.
"""

from __future__ import annotations

import enum
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from dstream.errors import UnstableKeyError
from dstream.schema.classes import Classes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "LARGE_VALUE",
    "NOTHING",
    "SCALARS",
    "ColumnTooLargeError",
    "Nothing",
    "ScalarType",
    "Type",
    "is_large",
    "one_chunk",
    "without_numpy",
]


class Nothing(enum.Enum):
    """Says that there is no such value, where None may be one."""

    NOTHING = "NOTHING"


NOTHING: Final = Nothing.NOTHING


class Type(ABC):
    """What values are; immutable, picklable, and equal to another one of the same structure."""

    @staticmethod
    def of(hint: Any) -> Type:
        """Return the type that a hint such as `list[float]` or a dataclass means.

        Raises:
            TypeError: `hint` is no type.
        """
        from dstream.schema import hints  # it makes subclasses of this class, so it cannot come first

        return hints.type_of(hint)

    @staticmethod
    def infer(value: Any) -> Type:
        """Return the type of a value."""
        from dstream.schema import hints

        return hints.infer(value)

    @staticmethod
    def from_json(data: Any, classes: Classes, hint: Any = None) -> Type:
        """Return the type that `to_json` has described; a class that is not found leaves it without a hint."""
        from dstream.schema import hints

        return hints.from_json(data, classes, hint)

    @property
    @abstractmethod
    def name(self) -> str:
        """What a user would write: `int`, `list[float]`, `shop:Order`."""

    @property
    @abstractmethod
    def hint(self) -> Any:
        """The Python type; None if its class cannot be found here."""

    @property
    def arrow(self) -> pa.DataType | None:
        """The type of a column of such values; None if there is none, and values are kept as bytes."""
        return None

    @property
    def is_immutable(self) -> bool:
        """Whether a value that fits may be handed out without copying."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether a part of it is not known yet, such as a field that is annotated with Any."""
        return False

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """Say whether a value is exactly of this type, so that a column gives it back unchanged."""

    def refined(self, value: Any) -> Type:
        """Return this type with its open parts inferred from a value, and closed where the value says nothing."""
        return self

    def shaped(self, key: Any) -> Any:
        """Return the equal of a key in normal form that fits this type, or NOTHING."""
        return key if self.fits(key) else NOTHING

    @abstractmethod
    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        """Return the column of values that fit or are None; None if one of them does not fit."""

    @abstractmethod
    def from_array(self, array: pa.Array) -> list[Any]:
        """Return the values of a column of type `arrow`, None where it is null."""

    @abstractmethod
    def to_json(self) -> Any:
        """Return what describes it in JSON."""


class ColumnTooLargeError(ValueError):
    """The values of one column are more than 2 GiB; they must be written in parts, unless it is one value."""


LARGE_VALUE = 1 << 20
"""Bytes, or characters, above which each copy of a value counts."""
_LARGEST_VALUE = 2**31 - (1 << 20)
"""The most bytes of one value: Arrow and a page of Parquet take 2 GiB, with what belongs to it."""


def one_chunk(array: Any) -> Any:
    """Return an array that pyarrow made of values.

    Raises:
        ColumnTooLargeError: it made several, since one holds no more than 2 GiB.
    """
    if hasattr(array, "chunks"):
        raise ColumnTooLargeError(f"{len(array)} values are more than 2 GiB and cannot be kept in one column")
    return array


@dataclass(frozen=True, slots=True)
class _Trait:
    """What is peculiar to one plain type.

    Attributes:
        python: the type.
        arrow: the name of the function of pyarrow that makes the type of the column, and its arguments.
        fits: what an instance must hold beyond its type; unset, all fit.
        is_checked_by_arrow: pyarrow refuses by an error what does not fit.
        write: what pyarrow takes; unset, the values themselves.
        read: makes values of an array; unset, `to_pylist` does.
        shaped: makes a key of another type fit, or gives NOTHING.
    """

    python: type
    arrow: tuple[Any, ...]
    fits: Callable[[Any], bool] | None = None
    is_checked_by_arrow: bool = False
    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], list[Any]] | None = None
    shaped: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class ScalarType(Type):
    """A plain type, known by its name."""

    plain: str

    @property
    def name(self) -> str:
        return self.plain

    @property
    def hint(self) -> Any:
        return _TRAITS[self.plain].python

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow

        function, *arguments = _TRAITS[self.plain].arrow
        return getattr(pyarrow, function)(*arguments)

    @property
    def is_immutable(self) -> bool:
        return True

    def fits(self, value: Any) -> bool:
        trait = _TRAITS[self.plain]
        return type(value) is trait.python and (trait.fits is None or trait.fits(value))

    def shaped(self, key: Any) -> Any:
        if self.fits(key):
            return key
        shaped = _TRAITS[self.plain].shaped
        return NOTHING if shaped is None else shaped(key)

    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        import pyarrow

        trait = _TRAITS[self.plain]
        # pyarrow would make 1 of 1.0 and of True, so the types are compared first.
        if not {trait.python, type(None)}.issuperset(map(type, values)):
            return None
        if trait.fits and not trait.is_checked_by_arrow and not all(v is None or trait.fits(v) for v in values):
            return None
        write = trait.write
        plain: Sequence[Any] = (
            values if write is None else [None if value is None else write(value) for value in values]
        )
        try:
            if len(plain) == 1 and is_large(plain[0]):
                return _array_of_one(plain[0], self.arrow)
            return one_chunk(pyarrow.array(plain, self.arrow))
        except (OverflowError, UnicodeEncodeError):
            return None

    def from_array(self, array: pa.Array) -> list[Any]:
        read = _TRAITS[self.plain].read
        return array.to_pylist() if read is None else read(array)

    def to_json(self) -> Any:
        return self.plain


def is_large(value: Any) -> bool:
    """Say whether each copy of a value counts."""
    return type(value) in (str, bytes) and len(value) > LARGE_VALUE


def _array_of_one(value: str | bytes, kind: pa.DataType) -> pa.Array:
    """Return a column of one large value, whose bytes are not copied; pyarrow would copy them twice (26.0).

    Raises:
        ColumnTooLargeError: no column holds the value.
    """
    import pyarrow

    data = value.encode() if isinstance(value, str) else value
    if len(data) > _LARGEST_VALUE:
        raise ColumnTooLargeError(
            f"a value has {len(data):,} bytes, and a storage takes {_LARGEST_VALUE:,} (nearly 2 GiB): divide it, "
            "or write it into a file of its own and keep the path"
        )
    ends = b"".join(end.to_bytes(4, sys.byteorder) for end in (0, len(data)))
    return pyarrow.Array.from_buffers(kind, 1, [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(data)])


def _is_long(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_unicode(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _is_naive(value: datetime) -> bool:
    return value.tzinfo is None and not value.fold


def _is_short(value: timedelta) -> bool:
    return -106_751_991 <= value.days < 106_751_991  # what 64 bits of microseconds hold


def _read_as(unit: str) -> Callable[[Any], list[Any]]:
    """Return a reader of temporal columns 40 times as fast as `to_pylist` (pyarrow 26)."""
    return lambda array: array.to_numpy(zero_copy_only=False).astype(unit).tolist()


def _read_decimals(array: Any) -> list[Any]:
    return [None if text is None else Decimal(text) for text in array.to_pylist()]


def _read_uuids(array: Any) -> list[Any]:
    return [None if data is None else UUID(int=int.from_bytes(data, "big")) for data in array.to_pylist()]


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
    """Return the one decimal that stands for a number; what is no finite decimal fraction has none."""
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
    return Decimal((int(numerator < 0), tuple(map(int, str(digits))), -places))


def _decimal_places(denominator: int) -> int | None:
    """Return how many decimal places a fraction in lowest terms has, or None if it never ends."""
    places = 0
    for prime in (2, 5):
        power = 0
        while denominator % prime == 0:
            denominator //= prime
            power += 1
        places = max(places, power)
    return places if denominator == 1 else None


_TRAITS = {
    "bool": _Trait(bool, ("bool_",), shaped=_shaped_bool),
    "int": _Trait(int, ("int64",), _is_long, is_checked_by_arrow=True),
    "float": _Trait(float, ("float64",), shaped=_shaped_float),
    "str": _Trait(str, ("string",), _is_unicode, is_checked_by_arrow=True),
    "bytes": _Trait(bytes, ("binary",)),
    "date": _Trait(date, ("date32",), read=_read_as("datetime64[D]")),
    "datetime": _Trait(datetime, ("timestamp", "us"), _is_naive, read=_read_as("datetime64[us]")),
    "timedelta": _Trait(timedelta, ("duration", "us"), _is_short, read=_read_as("timedelta64[us]")),
    # A string loses nothing: decimal128 has one scale for the column, so 1.10 and 1.1 would come back alike.
    "Decimal": _Trait(Decimal, ("string",), write=str, read=_read_decimals, shaped=_shaped_decimal),
    "UUID": _Trait(UUID, ("binary", 16), write=lambda value: value.bytes, read=_read_uuids),
}

SCALARS: dict[type, ScalarType] = {trait.python: ScalarType(name) for name, trait in _TRAITS.items()}
"""The plain types by their Python types."""


def refuse_key(key: Any) -> bytes:
    raise UnstableKeyError(
        f"a key of type {type(key).__qualname__} has no stable encoding: {shown_key(key)}; use a str, bytes, a number, "
        "a date or time, a UUID, an enum member, or a tuple, frozenset or frozen dataclass of these"
    )


def shown_key(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 200 else text[:200] + "..."


def without_numpy(key: Any) -> Any:
    """Return what stands for a scalar of numpy in Python, and any other key as it is.

    Raises:
        UnstableKeyError: what the scalar equals depends on its unit.
    """
    kind = type(key)
    if kind.__module__ != "numpy" or all(base.__name__ != "generic" for base in kind.__mro__):
        return key
    return refuse_key(key) if kind.__name__ in ("datetime64", "timedelta64", "void") else key.item()
