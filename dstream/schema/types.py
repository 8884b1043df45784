"""Types of columns: values of Python as arrays of Arrow, and arrays as values again.

One family serves files, tables of Arrow and collections. `dstream.schema.type_inference` makes types of annotations and
of values, by the `Layout` in which they are stored. Types of files and tables accept lossless conversions, such as a
tuple for a list; types of collections are exact, so that a column returns each value unchanged, and other values are
stored as bytes in an additional column. Types contain no object of Arrow, which is slow to import.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from dstream.base.records import record
from dstream.schema.text_forms import refusal

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NOTHING",
    "ColumnTooLargeError",
    "ColumnType",
    "ColumnTypeError",
    "ColumnTypes",
    "Decode",
    "Encode",
    "ForeignType",
    "Nothing",
    "TimestampType",
    "array_of",
    "named_zone",
    "plain_offset",
    "scalar_of",
    "zone_name",
]


class ColumnTypeError(TypeError):
    """A value does not fit its column."""


class ColumnTooLargeError(ValueError):
    """The values of one column are more than 2 GiB; they must be written in parts, unless it is one value."""


class Nothing(enum.Enum):
    """Marker of a value that is absent, where None may be one."""

    NOTHING = "NOTHING"


NOTHING: Final = Nothing.NOTHING

ColumnTypes: TypeAlias = dict[str, str]
"""The columns of a file: the name of each, and the name of its type; empty if no value has shown it."""

Encode: TypeAlias = Callable[[Any], bytes]
Decode: TypeAlias = Callable[[bytes], Any]


class ColumnType(ABC):
    """Type of a column; immutable, picklable, and equal to another type of the same structure. Each accepts None."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The type as a user writes it: `int`, `list[float]`, `shop:Order`; empty if it is not known."""

    @property
    def hint(self) -> Any:
        """The Python type; None if its class cannot be found in this process."""
        return None

    @property
    @abstractmethod
    def arrow(self) -> pa.DataType | None:
        """The type in Arrow; None if there is no column, and values are stored as bytes."""

    @property
    def is_immutable(self) -> bool:
        """Return whether a value that fits may be handed out without copying."""
        return False

    @property
    def is_open(self) -> bool:
        """Return whether a part of it is not known yet, such as a field that is annotated with Any."""
        return False

    def refined(self, values: Sequence[Any]) -> ColumnType:
        """Return this type with its open parts inferred from values.

        Raises:
            ColumnTypeError: a value is of another type, or of a type that is not supported by columns.
        """
        return self

    def closed(self) -> ColumnType:
        """Return this type without open parts: an unknown one may be anything."""
        return self

    def fits(self, value: Any) -> bool:
        """Return whether a column returns a value unchanged."""
        return value is not None and self.to_array([value]) is not None

    def shaped(self, key: Any) -> Any:
        """Return the equal of a key in normal form that fits this type, or NOTHING."""
        return key if self.fits(key) else NOTHING

    @abstractmethod
    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        """Return values as an array.

        Args:
            values: values of this type, or None.
            encode: encodes the fields without a column as bytes.

        Raises:
            ColumnTypeError: one of them does not fit.
        """

    def to_array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array | None:
        """Return values as an array; None if one of them does not fit."""
        try:
            return self.array(values, encode)
        except ColumnTypeError:
            return None

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        """Return the values of an array of type `arrow`, None where it is null."""
        found: list[Any] = array.to_pylist()
        return found

    def avro(self, name: str) -> Any:
        """Return the type in a schema of Avro; a record in it is called `name`.

        Raises:
            TypeError: Avro has no such type.
        """
        raise TypeError(refusal("Avro", self.name, "map() it to a str or a number before", name))

    def to_json(self) -> Any:
        """Return a description of the type in JSON, for collections.

        Raises:
            TypeError: collections have no such type; they store its values as bytes.
        """
        raise TypeError(refusal("collections", self.name, "map() it to plain values before"))


def array_of(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return values as an array of a type of Arrow, or of the type that Arrow infers.

    Raises:
        ColumnTypeError: one of them does not fit.
    """
    import pyarrow

    # `pyarrow.array` loads pandas (26), which takes 0.3 to 0.5 s: more than the rest of a small program.
    if kind is not None and "pandas" not in sys.modules and len(values) <= _FEW:
        plain = _array_of_plain(values, kind)
        if plain is not None:
            return plain
    try:
        found: pa.Array = pyarrow.array(values, kind)
    except (pyarrow.ArrowException, OverflowError, ValueError) as error:
        # Others, such as errors of a time zone of the user's, have other messages.
        is_of_int = isinstance(error, OverflowError) and str(error).startswith("Python int too large")
        reason = "it has more than 64 bits" if is_of_int else str(error)
        raise ColumnTypeError(reason if kind is None else f"this is no {kind}: {reason}") from None
    return found


def scalar_of(value: Any, kind: pa.DataType) -> Any:
    """Return a value as a scalar of Arrow, for its functions: they would load pandas to convert a Python object.

    Raises:
        ColumnTypeError: it does not fit.
    """
    return array_of([value], kind)[0]


_FEW = 100_000
"""The maximal number of values of an array that Python converts itself: they take 20 ms."""


def _array_of_plain(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Return numbers, strings or bytes, and None among them, as `pyarrow.array` does; None for other values."""
    import pyarrow

    plain = _PLAIN.get(str(kind))
    classes = set(map(type, values)) - {type(None)}
    if plain is None or not classes <= {type(plain)}:
        return None
    if not classes:
        return pyarrow.nulls(len(values), kind)
    nulls = sum(value is None for value in values)
    validity = None if nulls == 0 else _bits([value is not None for value in values])
    try:
        buffers = _buffers([plain if value is None else value for value in values] if nulls else values)
    except (OverflowError, UnicodeEncodeError):
        return None  # Its error names the value.
    return pyarrow.Array.from_buffers(
        kind, len(values), [each if each is None else pyarrow.py_buffer(each) for each in (validity, *buffers)], nulls
    )


_PLAIN = {"int64": 0, "double": 0.0, "bool": False, "string": "", "binary": b""}
"""A value of each type of Arrow whose arrays are created here."""


def _buffers(values: Sequence[Any]) -> list[Any]:
    """Return the contents of an array of values of one class.

    Raises:
        OverflowError: a number has more than 64 bits, or all bytes together have no borders of 32 bits.
        UnicodeEncodeError: a string has no UTF-8.
    """
    match values[0]:
        case bool():
            return [_bits(values)]
        case int():
            return [array("q", values)]
        case float():
            return [array("d", values)]
        case str():
            values = [value.encode() for value in values]
    return [array("i", accumulate(map(len, values), initial=0)), b"".join(values)]


def _bits(values: Sequence[bool]) -> bytes:
    """Return one bit for each value, the first one lowest."""
    digits = "".join("1" if value else "0" for value in reversed(values))
    return int(digits, 2).to_bytes((len(values) + 7) // 8, "little")


@record
class TimestampType(ColumnType):
    """Values of type datetime, all in one zone or all without.

    Attributes:
        zone: "UTC", an offset such as "+02:00", or a name of the IANA; empty for none, None before the first value.
        is_exact: accepts only values of this zone; otherwise others are converted to it.
        is_utc: every zone is UTC, for uniform columns of files.
    """

    zone: str | None
    is_exact: bool = False
    is_utc: bool = False

    @property
    def name(self) -> str:
        if not self.zone:
            return "datetime"
        return f"datetime[{self.zone}]" if self.is_exact else "datetime with a zone"

    @property
    def hint(self) -> Any:
        return datetime

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow

        return pyarrow.timestamp("us", tz=self.zone or None)

    @property
    def is_immutable(self) -> bool:
        return True

    @property
    def is_open(self) -> bool:
        return self.zone is None

    def refined(self, values: Sequence[Any]) -> ColumnType:
        first = next((value for value in values if value is not None), None)
        if self.zone is not None or not isinstance(first, datetime):
            return self
        if self.is_exact:
            return dataclasses.replace(self, zone=zone_name(first) or "")
        return dataclasses.replace(
            self, zone="" if first.tzinfo is None else "UTC" if self.is_utc else _in_arrow(first)
        )

    def closed(self) -> ColumnType:
        return self if self.zone is not None else dataclasses.replace(self, zone="")

    def fits(self, value: Any) -> bool:
        if type(value) is not datetime:
            return False
        return not value.fold if zone_name(value) == (self.zone or "") == "" else self._is_restored(value)

    def _is_restored(self, value: datetime) -> bool:
        """Return whether the value can be restored from its moment in UTC, with its zone and its fold."""
        if not self.zone or zone_name(value) != self.zone:
            return False
        if self.zone == "UTC":
            return not value.fold
        try:
            back = value.astimezone(UTC).astimezone(value.tzinfo)
        except OverflowError:
            return False
        return back.replace(tzinfo=None) == value.replace(tzinfo=None) and back.fold == value.fold

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        for kind in set(map(type, values)) - {datetime, type(None)}:
            raise ColumnTypeError(f"it holds datetime, and this is {kind.__qualname__}: nothing is converted")
        if self.is_exact and not all(value is None or self.fits(value) for value in values):
            raise ColumnTypeError(f"a column of {self.name} would change it")
        if not self.is_exact and {value.tzinfo is not None for value in values if value is not None} - {
            bool(self.zone)
        }:
            raise ColumnTypeError("some moments have a zone, and others have none")
        return array_of(values, self.arrow)

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        # About 40 times as fast as `to_pylist` (pyarrow 26).
        found: list[Any] = array.to_numpy(zero_copy_only=False).astype("datetime64[us]").tolist()
        if not self.zone:
            return found
        zone = _zone(self.zone)
        moments = [None if value is None else value.replace(tzinfo=UTC) for value in found]
        return moments if zone is UTC else [None if value is None else value.astimezone(zone) for value in moments]

    def avro(self, name: str) -> Any:
        return {"type": "long", "logicalType": "timestamp-micros" if self.zone else "local-timestamp-micros"}

    def to_json(self) -> Any:
        return {"datetime": self.zone}


def zone_name(value: datetime) -> str | None:
    """Return the name that Arrow has for the zone of a moment: empty for none, None if it has no name for it."""
    zone = value.tzinfo
    if zone is None:
        return ""
    if (name := named_zone(zone)) is not None:
        return None if name == "UTC" else name  # The name of timezone.utc is "UTC" as well.
    offset = plain_offset(zone)
    # Arrow has offsets of hours and minutes: seconds would be lost.
    if offset is None or offset % timedelta(minutes=1):
        return None
    if not offset:
        return "UTC"
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"


def named_zone(zone: tzinfo) -> str | None:
    """Return the name of the IANA that restores a zone; None if there is none."""
    # A zone that was read from a file, or created without the cache, may have other rules than its name.
    return zone.key if type(zone) is ZoneInfo and zone.key and ZoneInfo(zone.key) is zone else None


def plain_offset(zone: tzinfo) -> timedelta | None:
    """Return the offset that restores a zone; None if there is none, as for a `timezone` with a custom name."""
    offset = zone.utcoffset(None) if type(zone) is timezone else None
    return offset if offset is not None and repr(timezone(offset)) == repr(zone) else None


def _in_arrow(value: datetime) -> str:
    """Return the name of the zone of a moment, of any library."""
    try:
        # Arrow has its own names for the zones of other libraries.
        return str(array_of([value]).type.tz)
    except ColumnTypeError as error:
        raise ColumnTypeError(f"no column holds times of {value.tzinfo}: {error}") from None


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    if name[0] not in "+-":
        return ZoneInfo(name)
    offset = timedelta(hours=int(name[1:3]), minutes=int(name[4:]))
    return timezone(-offset if name[0] == "-" else offset)


@record
class ForeignType(ColumnType):
    """A type that Arrow infers itself, of values such as scalars and arrays of NumPy.

    Attributes:
        text: the type in Arrow, in words.
        found: the type in Arrow.
    """

    text: str
    found: Any = field(compare=False)

    @property
    def name(self) -> str:
        return self.text

    @property
    def arrow(self) -> pa.DataType:
        found: pa.DataType = self.found
        return found

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        return array_of(values, self.found)
