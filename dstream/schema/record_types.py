"""Types of columns of records: fields of classes and dictionaries, and the fields that have no column."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from dstream.base.records import record
from dstream.base.showing import shown
from dstream.schema import classes
from dstream.schema.classes import ChangedClassError, ClassRefusedError, reference
from dstream.schema.containers import ListType, MapType, OptionalType, absent_mask, or_null
from dstream.schema.scalar_types import one_chunk
from dstream.schema.types import NOTHING, ColumnType, ColumnTypeError, Decode, Encode
from dstream.values.fields import columns_of_fields, field_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ClassType", "DictType", "PickledType", "RecordType", "has_changed", "without_column"]


@record
class RecordType(ColumnType):
    """Objects and dictionaries with the same fields, in a column of structs.

    Attributes:
        fields: names and types.
        optional: keys that may be absent, which is None in the column.
    """

    fields: tuple[tuple[str, ColumnType], ...]
    optional: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(name for name, _ in self.fields)

    @property
    def name(self) -> str:
        fields = ", ".join(f"{name}: {part.name or '?'}" for name, part in self.fields)
        return f"fields ({fields})"

    @property
    def arrow(self) -> pa.DataType | None:
        import pyarrow

        columns = [(name, part.arrow) for name, part in self.fields]
        return None if any(column is None for _, column in columns) else pyarrow.struct(columns)

    @property
    def is_open(self) -> bool:
        return any(part.is_open for _, part in self.fields)

    def refined(self, values: Sequence[Any]) -> ColumnType:
        if not self.is_open:
            return self
        present = [value for value in values if value is not None]
        parts = zip(self.fields, self._columns(present), strict=True)
        return replace(self, fields=tuple((name, part.refined(column)) for (name, part), column in parts))

    def closed(self) -> ColumnType:
        return replace(self, fields=tuple((name, part.closed()) for name, part in self.fields))

    def _columns(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return the values of each field; None where a value is None, or lacks a key."""
        names = self.names
        needed, known = set(names) - self.optional, set(names)
        for value in values:
            if value is not None and not needed <= set(_keys(value)) <= known:
                raise ColumnTypeError(f"it holds fields ({', '.join(names)}), and this is {shown(value)}")
        if all(isinstance(value, dict | None) for value in values):
            return [[None if value is None else value.get(name) for value in values] for name in names]
        if None not in values and not any(isinstance(value, dict) for value in values):
            return columns_of_fields(names, values)
        return [[_part(value, name) for value in values] for name in names]

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        columns = zip(self.fields, self._columns(values), strict=True)
        return _struct([part.array(column, encode) for (_, part), column in columns], self.arrow, values)

    def avro(self, name: str) -> Any:
        fields = [{"name": each, "type": or_null(part, f"{name}.{each}")} for each, part in self.fields]
        return {"type": "record", "name": name, "fields": fields}


def _struct(arrays: list[Any], kind: Any, values: Sequence[Any]) -> pa.Array:
    import pyarrow

    if not arrays:  # An array of structs without fields cannot be made of its parts.
        return pyarrow.array([None if value is None else {} for value in values], pyarrow.struct([]))
    return pyarrow.StructArray.from_arrays(arrays, fields=list(kind), mask=absent_mask(values))


def _keys(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, dict) else field_names(type(value))


def _part(value: Any, name: str) -> Any:
    if value is None:
        return None
    return value.get(name) if isinstance(value, dict) else getattr(value, name)


@record
class ClassType(RecordType):
    """A dataclass or named tuple: a column of structs, and a reference to the class.

    A field whose type has no column is one of bytes, unless no field has a column.

    Attributes:
        reference: the name of the class.
        kind: the class; None if it cannot be found in this process.
        problem: why it cannot be found.
        has_changed: the fields of it, or of a class within it, or their order have changed: its instances do not fit.
    """

    reference: str = ""
    kind: Any = field(default=None, compare=False)
    problem: str = field(default="", compare=False)
    has_changed: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        arguments = self._arguments()
        return f"{self.reference}[{', '.join(part.name for part in arguments)}]" if arguments else self.reference

    @property
    def hint(self) -> Any:
        arguments = tuple(part.hint for part in self._arguments())
        generic: Any = self.kind
        return generic[arguments] if arguments and None not in arguments else self.kind

    def _arguments(self) -> list[ColumnType]:
        """Return the arguments of a generic class; nothing while one of them is open."""
        parameters = getattr(self.kind, "__parameters__", ())
        hints = classes.hints_of_fields(self.kind) if self.kind is not None and parameters else {}
        found = {hints[name]: part for name, part in self.fields if hints.get(name) in parameters and not part.is_open}
        return [found[parameter] for parameter in parameters] if len(found) == len(parameters) else []

    @property
    def arrow(self) -> pa.DataType | None:
        import pyarrow

        columns = [(name, part.arrow) for name, part in self.fields]
        # Parquet has no structs without fields.
        if self.is_open and any(column is None for _, column in columns):
            return None
        if all(column is None for _, column in columns):
            return None
        return pyarrow.struct([(name, column or pyarrow.binary()) for name, column in columns])

    @property
    def is_immutable(self) -> bool:
        frozen = self.kind is not None and classes.is_frozen(self.kind)
        return frozen and all(part.is_immutable for _, part in self.fields)

    @property
    def _class(self) -> Any:
        """The class of the values that fit."""
        return None if self.has_changed else self.kind

    def _parts(self, value: Any) -> Sequence[Any] | None:
        return classes.parts_of(value)

    def _maker(self) -> Callable[[Iterable[Any]], Any]:
        return classes.builder(self.checked_kind(), self.names)

    def fits(self, value: Any) -> bool:
        if type(value) is not self._class:
            return False
        parts = self._parts(value)
        return parts is not None and all(part.fits(item) for (_, part), item in zip(self.fields, parts, strict=True))

    def refined(self, values: Sequence[Any]) -> ColumnType:
        rows = [self._parts(value) for value in values if type(value) is self._class]
        columns = list(zip(*(row for row in rows if row is not None), strict=True)) or [()] * len(self.fields)
        refined = ((name, part.refined(column)) for (name, part), column in zip(self.fields, columns, strict=True))
        return replace(self, fields=tuple(refined))

    def shaped(self, key: Any) -> Any:
        if self._class is None or not (type(key) is tuple if issubclass(self.kind, tuple) else type(key) is self.kind):
            return NOTHING
        parts = key if type(key) is tuple else classes.parts_of(key)
        if parts is None or len(parts) != len(self.fields):
            return NOTHING
        shaped = [part.shaped(item) for (_, part), item in zip(self.fields, parts, strict=True)]
        return NOTHING if any(item is NOTHING for item in shaped) else classes.build(self.kind, shaped)

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        # Without the class, its column accepts only absent items.
        if not {self._class, type(None)}.issuperset(map(type, values)):
            raise ColumnTypeError(f"it holds {self.name}")
        empty, parts_of = (None,) * len(self.fields), self._parts
        rows = [empty if value is None else parts_of(value) for value in values]
        if any(row is None for row in rows):
            raise ColumnTypeError(f"a {self.name} holds more than its fields")
        if (kind := self.arrow) is None:
            raise ColumnTypeError(f"{self.name} has no column")
        arrays = []
        for position, (_, part) in enumerate(self.fields):
            items = [row[position] for row in rows]  # type: ignore[index]
            if _is_stored_as_bytes(part):
                # By identity, since an item may have None in all of its fields as well.
                stored = [NOTHING if row is empty else item for row, item in zip(rows, items, strict=True)]
                arrays.append(_array_of_bytes(part, stored, encode))
                continue
            if not isinstance(part, OptionalType) and any(
                item is None and row is not empty for item, row in zip(items, rows, strict=True)
            ):
                raise ColumnTypeError(f"a field of {part.name} holds no None")
            arrays.append(part.array(items, encode))
        return _struct(arrays, kind, values)

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        # If no item is present, the class is not needed.
        if array.null_count == len(array):
            return [None] * len(array)
        make = self._maker()
        columns = [
            _from_bytes(column, decode) if _is_stored_as_bytes(part) else part.from_array(column, decode)
            for (_, part), column in zip(self.fields, array.flatten(), strict=True)
        ]
        if not array.null_count:
            return list(map(make, zip(*columns, strict=True)))
        present = array.is_valid().to_pylist()
        return [make(row) if there else None for there, row in zip(present, zip(*columns, strict=True), strict=True)]

    def checked_as_key(self) -> None:
        """Raise if equal keys of the current and of the stored version of the class would not match.

        Raises:
            ChangedClassError: its compared fields have changed.
        """
        for inner in (each for _, part in self.fields for each in _classes_within(part)):
            inner.checked_as_key()
        if self.has_changed and classes.compared_names(self.kind, self.names) != classes.compared_names(self.kind):
            raise ChangedClassError(
                f"the class {self.reference} has other compared fields than ({', '.join(self.names)}), which are "
                "stored: read the keys as a class that has these, and write them into another collection"
            )

    def checked_kind(self) -> type:
        """Return the class, if it is still compatible with the stored fields.

        Raises:
            ClassRefusedError: it is not found, or has changed too much.
        """
        if self.kind is None:
            raise ClassRefusedError(self.problem or f"the class {self.reference} cannot be found here")
        classes.check_fields(self.kind, self.names)
        kind: type = self.kind
        return kind

    def to_json(self) -> Any:
        return {"record": self.reference, "fields": [[name, part.to_json()] for name, part in self.fields]}


@record
class DictType(ClassType):
    """Dictionaries with all keys of a TypedDict, in its order; the class is not needed to make them."""

    @property
    def _class(self) -> Any:
        return dict

    def _parts(self, value: Any) -> Sequence[Any] | None:
        return list(value.values()) if tuple(value) == self.names else None

    def _maker(self) -> Callable[[Iterable[Any]], Any]:
        return lambda parts: dict(zip(self.names, parts, strict=True))

    @property
    def is_immutable(self) -> bool:
        return False

    def shaped(self, key: Any) -> Any:
        return NOTHING

    def to_json(self) -> Any:
        return {"keys": self.reference, "fields": [[name, part.to_json()] for name, part in self.fields]}


@record
class PickledType(ColumnType):
    """A type without a column: values are stored as bytes.

    Attributes:
        text: its name.
        references: the allowed exact classes of the value; empty for any value.
        kind: the Python type; None if it cannot be found in this process.
    """

    text: str
    references: tuple[str, ...]
    kind: Any = field(compare=False)

    @property
    def name(self) -> str:
        return self.text

    @property
    def hint(self) -> Any:
        return self.kind

    @property
    def arrow(self) -> pa.DataType | None:
        return None

    def fits(self, value: Any) -> bool:
        return not self.references or reference(type(value)) in self.references

    def shaped(self, key: Any) -> Any:
        if not self.fits(key) and isinstance(self.kind, type) and issubclass(self.kind, enum.Enum):
            try:
                member = self.kind(key)  # A member that is a str or an int is stored as what it equals.
            except ValueError:
                return NOTHING
            return member if member == key else NOTHING
        return key if self.fits(key) else NOTHING

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        raise ColumnTypeError(f"{self.name} has no column")

    def to_json(self) -> Any:
        return {"other": self.text, "classes": list(self.references)}


def has_changed(found: ColumnType) -> bool:
    """Return whether a class within a type has other fields than those that are stored."""
    return any(each.has_changed for each in _classes_within(found))


def _classes_within(found: ColumnType) -> Iterator[ClassType]:
    if isinstance(found, ClassType):
        yield found
    elif isinstance(found, OptionalType):
        yield from _classes_within(found.inner)
    elif isinstance(found, ListType | MapType):
        yield from _classes_within(found.each if isinstance(found, ListType) else found.value)


def _is_stored_as_bytes(part: ColumnType) -> bool:
    return isinstance(part, PickledType | ClassType) and part.arrow is None


def _array_of_bytes(part: ColumnType, values: Sequence[Any], encode: Encode | None) -> pa.Array:
    """Return values of a field without a column as bytes, null for NOTHING."""
    import pyarrow

    if encode is None or not all(value is NOTHING or part.fits(value) for value in values):
        raise ColumnTypeError(f"{part.name} has no column")
    return one_chunk(pyarrow.array([None if v is NOTHING else encode(v) for v in values], pyarrow.binary()))


def _from_bytes(array: pa.Array, decode: Decode | None) -> list[Any]:
    return [None if data is None or decode is None else decode(data) for data in array.to_pylist()]


def without_column(found: ColumnType, name: str = "") -> str | None:
    """Return the name of the first field that is stored as bytes; None if each has a column."""
    if found.arrow is None:
        return name
    if isinstance(found, OptionalType):
        return without_column(found.inner, name)
    if isinstance(found, ListType | MapType):
        return without_column(found.each if isinstance(found, ListType) else found.value, name)
    parts = found.fields if isinstance(found, ClassType) else ()
    each = (without_column(part, f"{name}.{field}".removeprefix(".")) for field, part in parts)
    return next((path for path in each if path is not None), None)
