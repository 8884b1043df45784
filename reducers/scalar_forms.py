"""What a form of a column is, and those of single values: which of them a column of Parquet or Avro takes, and as what.

Nothing is converted on the way: a column of floats takes no int, and one of ints no bool. Forms are values without
anything of Arrow's, which is slow to import. `reducers.column_forms` has the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Protocol

__all__ = ["SCALARS", "Form", "Misfit", "Moment", "Scalar", "is_of"]


class Misfit(TypeError):
    """A value does not fit its column."""


class Form(Protocol):
    """What stands in a column. None stands in every one."""

    @property
    def words(self) -> str:
        """The type, in words; empty if it is not known."""
        ...

    @property
    def arrow(self) -> Any:
        """The type in Arrow."""
        ...

    def taking(self, values: Sequence[Any]) -> Form:
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
class Scalar:
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

    def taking(self, values: Sequence[Any]) -> Form:
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
                    raise Misfit(f"it holds {self.words}, and this is {kind.__qualname__}: nothing is converted")
        if self.kind is time and any(value is not None and value.tzinfo is not None for value in values):
            raise Misfit("no column holds times with a zone")
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
        raise Misfit(f"this is no {kind}: {reason}") from None


@dataclass(frozen=True)
class Moment:
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

    def taking(self, values: Sequence[Any]) -> Form:
        """Look at the zones."""
        zones = set()
        for value in values:
            if value is not None:
                if type(value) is not datetime:
                    raise Misfit(f"it holds datetime, and this is {type(value).__qualname__}: nothing is converted")
                zones.add(value.tzinfo is not None)
        if len(zones | ({self.zoned} - {None})) > 1:
            raise Misfit("some moments have a zone, and others have none")
        return Moment(zones.pop()) if zones and self.zoned is None else self

    def array(self, values: Sequence[Any]) -> Any:
        """Return them in UTC, or as they are."""
        return _array(values, self.arrow)

    def avro(self, name: str) -> Any:
        """Return the type with its meaning."""
        return {"type": "long", "logicalType": "timestamp-micros" if self.zoned else "local-timestamp-micros"}
