"""Forms of columns that hold something of several parts, or what no value has shown yet.

A form that is not known yet becomes what its first values are. `reducers.annotated_forms` makes forms of annotations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from dstream.values.blaming import shown
from dstream.values.fields import field_names
from reducers.scalar_forms import SCALARS, Form, Misfit, Moment, Scalar, is_of

__all__ = ["UNKNOWN", "Listed", "Struct", "Unknown", "Valued"]


@dataclass(frozen=True)
class Unknown:
    """What no value has shown yet."""

    words = ""

    @property
    def arrow(self) -> Any:
        """The type of None."""
        import pyarrow as pa

        return pa.null()

    def taking(self, values: Sequence[Any]) -> Form:
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


UNKNOWN: Form = Unknown()


def _form_of_value(value: Any) -> Form:
    kind = type(value)
    if isinstance(value, Enum):
        return Valued(kind, UNKNOWN)
    if isinstance(value, dict) or field_names(kind):
        names = _names(value)
        if not names or not all(isinstance(name, str) for name in names):
            raise Misfit(f"no column holds {shown(value)}, which has no fields, or a key that is no str")
        return Struct(names, (UNKNOWN,) * len(names))
    if isinstance(value, list | tuple):
        return Listed(UNKNOWN)
    if kind is datetime:
        return Moment(None)
    for scalar in SCALARS:
        if is_of(kind, scalar):
            return Scalar(scalar)
    raise Misfit(f"no column holds values of type {kind.__qualname__}, such as {shown(value)}: {_BEFORE}")


_BEFORE = "make a str, a number or a list of it before"


@dataclass(frozen=True)
class Valued:
    """Members of an enumeration, by their values.

    Attributes:
        kind: the enumeration.
        form: that of the values.
    """

    kind: type
    form: Form

    @property
    def words(self) -> str:
        """The type of the values."""
        return self.form.words

    @property
    def arrow(self) -> Any:
        """The type of the values."""
        return self.form.arrow

    def taking(self, values: Sequence[Any]) -> Form:
        """Look at the values of the members."""
        for value in values:
            if value is not None and not isinstance(value, self.kind):
                raise Misfit(f"it holds members of {self.kind.__qualname__}, and this is none")
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
class Listed:
    """Lists and tuples.

    Attributes:
        each: the form of what they hold.
    """

    each: Form

    @property
    def words(self) -> str:
        """Of what."""
        return f"list of {self.each.words or '?'}"

    @property
    def arrow(self) -> Any:
        """A list."""
        import pyarrow as pa

        return pa.list_(self.each.arrow)

    def taking(self, values: Sequence[Any]) -> Form:
        """Look at all that they hold."""
        for value in values:
            if not isinstance(value, list | tuple | None) or (value is not None and field_names(type(value))):
                raise Misfit(f"it holds lists, and this is {type(value).__qualname__}: nothing is converted")
        return Listed(self.each.taking(_flat(values)))

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
class Struct:
    """Dataclasses, named tuples and dicts with the same keys.

    Attributes:
        names: of their fields.
        forms: of each.
        may_lack: keys that may be absent, which is None in the column.
    """

    names: tuple[str, ...]
    forms: tuple[Form, ...]
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

    def taking(self, values: Sequence[Any]) -> Form:
        """Look at the fields."""
        for value in values:
            if value is not None and not set(self.names) - self.may_lack <= set(_names(value)) <= set(self.names):
                raise Misfit(f"it holds fields ({', '.join(self.names)}), and this is {shown(value)}")
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
