"""Column types of files: scalars, lists, structs, and the types inferred from values.

Nothing is converted on the way: a column of floats takes no int, and one of ints no bool. The types are values without
an object of Arrow, which is slow to import. A type that is not known yet becomes that of its first values;
`dstream.schema.columns` makes types of annotations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Protocol, TypeAlias

from dstream.base.showing import shown
from dstream.values.fields import field_names

__all__ = [
    "SCALARS",
    "UNKNOWN",
    "ColumnType",
    "ColumnTypeError",
    "ColumnTypes",
    "InferredColumn",
    "ListColumn",
    "ScalarColumn",
    "StructColumn",
    "TimestampColumn",
    "Valued",
    "is_of",
]


class ColumnTypeError(TypeError):
    """A value does not fit its column."""


class ColumnType(Protocol):
    """What stands in a column. None stands in every one."""

    @property
    def words(self) -> str:
        """The type, in words; empty if it is not known."""
        ...

    @property
    def arrow(self) -> Any:
        """The type in Arrow."""
        ...

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Return the form that takes these values too.

        Raises:
            Misfit: one of them is of another kind.
        """
        ...

    def array(self, values: Sequence[Any]) -> Any:
        """Return them as an array of Arrow.

        Raises:
            Misfit: one of them is too large.
        """
        ...

    def avro(self, name: str) -> Any:
        """Return the type in a schema of Avro; a record in it is called `name`."""
        ...


@dataclass(frozen=True)
class ScalarColumn:
    """Values of one type.

    Attributes:
        kind: the type.
    """

    kind: type

    @property
    def words(self) -> str:
        """The type."""
        return self.kind.__name__

    @property
    def arrow(self) -> Any:
        """The type in Arrow."""
        import pyarrow as pa

        if self.kind is Decimal:
            return pa.decimal128(*DECIMAL)
        return {
            str: pa.string(),
            int: pa.int64(),
            float: pa.float64(),
            bool: pa.bool_(),
            bytes: pa.binary(),
            date: pa.date32(),
            time: pa.time64("us"),
            timedelta: pa.duration("us"),
        }[self.kind]

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Look at the types of the values."""
        if self.kind is str and _are_texts(values):
            return self
        types = list(map(type, values))
        if types.count(self.kind) == len(types) and self.kind is not time:  # The usual case, and twice as fast.
            return self
        kinds = set(types)
        if not kinds <= {self.kind, type(None)}:
            for kind in kinds - {type(None)}:
                if not is_of(kind, self.kind):
                    raise ColumnTypeError(
                        f"it holds {self.words}, and this is {kind.__qualname__}: nothing is converted"
                    )
        if self.kind is time and any(value is not None and value.tzinfo is not None for value in values):
            raise ColumnTypeError("no column holds times with a zone")
        return self

    def array(self, values: Sequence[Any]) -> Any:
        """Return them as they are."""
        return _array(values, self.arrow)

    def avro(self, name: str) -> Any:
        """Return the type with its meaning."""
        if self.kind not in _AVRO:
            raise TypeError(
                f"the column {name!r} holds timedeltas, for which Avro has no type: make numbers of them before, or "
                "write format='parquet'"
            )
        return _AVRO[self.kind]


def _are_texts(values: Sequence[Any]) -> bool:
    """Say whether all values are texts, in half the time that it takes to look at their types."""
    try:
        "".join(values)
    except TypeError:
        return False
    return True


SCALARS = (bool, int, float, str, bytes, Decimal, date, time, timedelta)
DECIMAL = 38, 18
"""Digits of a Decimal, and those behind its point, of which SQL tells as decimal(38, 18)."""

_AVRO: dict[type, Any] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    Decimal: {"type": "bytes", "logicalType": "decimal", "precision": DECIMAL[0], "scale": DECIMAL[1]},
    date: {"type": "int", "logicalType": "date"},
    time: {"type": "long", "logicalType": "time-micros"},
}
_WITH_SUBCLASSES = (int, float, str, bytes)


def is_of(kind: type, scalar: type) -> bool:
    """Say whether values of a class are those of a type, and lose nothing but their class."""
    return kind is scalar or (scalar in _WITH_SUBCLASSES and kind is not bool and issubclass(kind, scalar))


def _array(values: Sequence[Any], kind: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        reason = "it has more than 64 bits" if isinstance(error, OverflowError) else str(error)
        raise ColumnTypeError(f"this is no {kind}: {reason}") from None


@dataclass(frozen=True)
class TimestampColumn:
    """Values of type datetime, all with a zone or all without; with one, they are the same moments in UTC.

    Attributes:
        zoned: whether they have one; None until there is a value.
    """

    zoned: bool | None

    @property
    def words(self) -> str:
        """The type; without values it is written as one without a zone."""
        return f"datetime with{'' if self.zoned else 'out'} a zone"

    @property
    def arrow(self) -> Any:
        """Microseconds."""
        import pyarrow as pa

        return pa.timestamp("us", tz="UTC" if self.zoned else None)

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Look at the zones."""
        zones = set()
        for value in values:
            if value is not None:
                if type(value) is not datetime:
                    raise ColumnTypeError(
                        f"it holds datetime, and this is {type(value).__qualname__}: nothing is converted"
                    )
                zones.add(value.tzinfo is not None)
        if len(zones | ({self.zoned} - {None})) > 1:
            raise ColumnTypeError("some moments have a zone, and others have none")
        return TimestampColumn(zones.pop()) if zones and self.zoned is None else self

    def array(self, values: Sequence[Any]) -> Any:
        """Return them in UTC, or as they are."""
        return _array(values, self.arrow)

    def avro(self, name: str) -> Any:
        """Return the type with its meaning."""
        return {"type": "long", "logicalType": "timestamp-micros" if self.zoned else "local-timestamp-micros"}


@dataclass(frozen=True)
class InferredColumn:
    """What no value has shown yet."""

    words = ""

    @property
    def arrow(self) -> Any:
        """The type of None."""
        import pyarrow as pa

        return pa.null()

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Become what the first value is."""
        first = next((value for value in values if value is not None), None)
        return self if first is None else _form_of_value(first).taking(values)

    def array(self, values: Sequence[Any]) -> Any:
        """Return None as often as there are values."""
        import pyarrow as pa

        return pa.nulls(len(values))

    def avro(self, name: str) -> Any:
        """Return the type of None."""
        return "null"


UNKNOWN: ColumnType = InferredColumn()


def _form_of_value(value: Any) -> ColumnType:
    kind = type(value)
    if isinstance(value, Enum):
        return Valued(kind, UNKNOWN)
    if isinstance(value, dict) or field_names(kind):
        names = _names(value)
        if not names or not all(isinstance(name, str) for name in names):
            raise ColumnTypeError(f"no column holds {shown(value)}, which has no fields, or a key that is no str")
        return StructColumn(names, (UNKNOWN,) * len(names))
    if isinstance(value, list | tuple):
        return ListColumn(UNKNOWN)
    if kind is datetime:
        return TimestampColumn(None)
    for scalar in SCALARS:
        if is_of(kind, scalar):
            return ScalarColumn(scalar)
    raise ColumnTypeError(f"no column holds values of type {kind.__qualname__}, such as {shown(value)}: {_BEFORE}")


_BEFORE = "make a str, a number or a list of it before"


@dataclass(frozen=True)
class Valued:
    """Members of an enumeration, by their values.

    Attributes:
        kind: the enumeration.
        form: that of the values.
    """

    kind: type
    form: ColumnType

    @property
    def words(self) -> str:
        """The type of the values."""
        return self.form.words

    @property
    def arrow(self) -> Any:
        """The type of the values."""
        return self.form.arrow

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Look at the values of the members."""
        for value in values:
            if value is not None and not isinstance(value, self.kind):
                raise ColumnTypeError(f"it holds members of {self.kind.__qualname__}, and this is none")
        return Valued(self.kind, self.form.taking(self._values(values)))

    def _values(self, values: Sequence[Any]) -> list[Any]:
        return [None if value is None else value.value for value in values]

    def array(self, values: Sequence[Any]) -> Any:
        """Return the values of the members."""
        return self.form.array(self._values(values))

    def avro(self, name: str) -> Any:
        """Return the type of the values."""
        return self.form.avro(name)


@dataclass(frozen=True)
class ListColumn:
    """Lists and tuples.

    Attributes:
        each: the form of what they hold.
    """

    each: ColumnType

    @property
    def words(self) -> str:
        """Of what."""
        return f"list of {self.each.words or '?'}"

    @property
    def arrow(self) -> Any:
        """A list."""
        import pyarrow as pa

        return pa.list_(self.each.arrow)

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Look at all that they hold."""
        for value in values:
            if not isinstance(value, list | tuple | None) or (value is not None and field_names(type(value))):
                raise ColumnTypeError(f"it holds lists, and this is {type(value).__qualname__}: nothing is converted")
        return ListColumn(self.each.taking(_flat(values)))

    def array(self, values: Sequence[Any]) -> Any:
        """Return them, each with what it holds."""
        import pyarrow as pa

        ends = [0]
        for value in values:
            ends.append(ends[-1] + (0 if value is None else len(value)))
        missing = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), self.each.array(_flat(values)), type=self.arrow, mask=missing
        )

    def avro(self, name: str) -> Any:
        """Return an array."""
        return {"type": "array", "items": ["null", self.each.avro(name)] if self.each.words else ["null"]}


def _flat(values: Sequence[Any]) -> list[Any]:
    return [part for value in values if value is not None for part in value]


@dataclass(frozen=True)
class StructColumn:
    """Dataclasses, named tuples and dicts with the same keys.

    Attributes:
        names: of their fields.
        forms: of each.
        may_lack: keys that may be absent, which is None in the column.
    """

    names: tuple[str, ...]
    forms: tuple[ColumnType, ...]
    may_lack: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """Its fields."""
        fields = [f"{name}: {form.words or '?'}" for name, form in zip(self.names, self.forms, strict=True)]
        return f"fields ({', '.join(fields)})"

    @property
    def arrow(self) -> Any:
        """A struct."""
        import pyarrow as pa

        return pa.struct([(name, form.arrow) for name, form in zip(self.names, self.forms, strict=True)])

    def taking(self, values: Sequence[Any]) -> ColumnType:
        """Look at the fields."""
        for value in values:
            if value is not None and not set(self.names) - self.may_lack <= set(_names(value)) <= set(self.names):
                raise ColumnTypeError(f"it holds fields ({', '.join(self.names)}), and this is {shown(value)}")
        parts = self._parts([value for value in values if value is not None])
        forms = tuple(form.taking(part) for form, part in zip(self.forms, parts, strict=True))
        return dataclasses.replace(self, forms=forms)

    def _parts(self, values: Sequence[Any]) -> list[list[Any]]:
        return [[None if value is None else self._part(value, name) for value in values] for name in self.names]

    def _part(self, value: Any, name: str) -> Any:
        if not isinstance(value, dict):
            return getattr(value, name)
        return value.get(name) if name in self.may_lack else value[name]

    def array(self, values: Sequence[Any]) -> Any:
        """Return an array for each field."""
        import pyarrow as pa

        arrays = [form.array(part) for form, part in zip(self.forms, self._parts(values), strict=True)]
        missing = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(arrays, fields=list(self.arrow), mask=missing)

    def avro(self, name: str) -> Any:
        """Return a record."""
        fields = [
            {"name": each, "type": ["null", form.avro(f"{name}.{each}")] if form.words else ["null"]}
            for each, form in zip(self.names, self.forms, strict=True)
        ]
        return {"type": "record", "name": name, "fields": fields}


def _names(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, dict) else field_names(type(value))


ColumnTypes: TypeAlias = dict[str, str]
"""The columns of a file: of each its name, and its type in words; empty if there is none, or if it is not known."""
