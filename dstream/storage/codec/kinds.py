"""The types that are made of others: lists, optional values, records; and what has no column of its own."""

# ruff: noqa: D102 (an override means what `Type` says)

from __future__ import annotations

import enum
import types
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

from dstream.storage.codec import fielded
from dstream.storage.codec.classes import ClassRefusedError, reference
from dstream.storage.codec.types import NOTHING, Type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ListOf", "OptionalOf", "Other", "Record"]


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    """A list whose items are all of one type."""

    item: Type

    @property
    def name(self) -> str:
        return f"list[{self.item.name}]"

    @property
    def hint(self) -> Any:
        item = self.item.hint  # Once: asked for twice, each level of nesting would double the time.
        return None if item is None else types.GenericAlias(list, (item,))

    @property
    def arrow(self) -> pa.DataType | None:
        import pyarrow

        item = self.item.arrow
        return None if item is None else pyarrow.list_(item)

    def fits(self, value: Any) -> bool:
        return type(value) is list and all(map(self.item.fits, value))

    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        import pyarrow

        if not {list, type(None)}.issuperset(map(type, values)):
            return None
        items = list(chain.from_iterable(value for value in values if value))
        if not isinstance(self.item, OptionalOf) and any(item is None for item in items):
            return None
        inner = self.item.to_array(items)
        if inner is None:
            return None
        offsets = accumulate((len(value or ()) for value in values), initial=0)
        absent = pyarrow.array([value is None for value in values], pyarrow.bool_())
        return pyarrow.ListArray.from_arrays(
            pyarrow.array(offsets, pyarrow.int32()), inner, type=self.arrow, mask=absent
        )

    def from_array(self, array: pa.Array) -> list[Any]:
        items = self.item.from_array(array.flatten())
        lengths = array.value_lengths().to_pylist()
        ends = accumulate((length or 0 for length in lengths), initial=0)
        found = [items[start:end] for start, end in pairwise(ends)]
        return found if not array.null_count else _without(found, array)

    def to_json(self) -> Any:
        return {"list": self.item.to_json()}


@dataclass(frozen=True, slots=True)
class OptionalOf(Type):
    """A value of some type, or None."""

    inner: Type

    @property
    def name(self) -> str:
        return f"{self.inner.name} | None"

    @property
    def hint(self) -> Any:
        inner = self.inner.hint
        return None if inner is None else inner | None

    @property
    def arrow(self) -> pa.DataType | None:
        return self.inner.arrow

    @property
    def is_immutable(self) -> bool:
        return self.inner.is_immutable

    def fits(self, value: Any) -> bool:
        return value is None or self.inner.fits(value)

    def shaped(self, key: Any) -> Any:
        return None if key is None else self.inner.shaped(key)

    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        return self.inner.to_array(values)

    def from_array(self, array: pa.Array) -> list[Any]:
        return self.inner.from_array(array)

    def to_json(self) -> Any:
        return {"optional": self.inner.to_json()}


@dataclass(frozen=True, slots=True)
class Record(Type):
    """A dataclass or named tuple: a column of structs, and a reference to the class.

    Attributes:
        reference: the name of the class.
        fields: names and types of its fields.
        kind: the class; None if it cannot be found here.
        problem: why it cannot.
    """

    reference: str
    fields: tuple[tuple[str, Type], ...]
    kind: type | None = field(compare=False)
    problem: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        arguments = self._arguments()
        return f"{self.reference}[{', '.join(part.name for part in arguments)}]" if arguments else self.reference

    @property
    def hint(self) -> Any:
        arguments = tuple(part.hint for part in self._arguments())
        generic: Any = self.kind
        return generic[arguments] if arguments and None not in arguments else self.kind

    def _arguments(self) -> list[Type]:
        """Return what the type variables of a generic class stand for; nothing while one of them is open."""
        parameters = getattr(self.kind, "__parameters__", ())
        hints = fielded.hints_of_fields(self.kind) if self.kind is not None and parameters else {}
        found = {hints[name]: part for name, part in self.fields if hints.get(name) in parameters and not part.is_open}
        return [found[parameter] for parameter in parameters] if len(found) == len(parameters) else []

    @property
    def arrow(self) -> pa.DataType | None:
        import pyarrow

        columns = [(name, part.arrow) for name, part in self.fields]
        # Parquet has no structs without fields.
        return None if not columns or any(column is None for _, column in columns) else pyarrow.struct(columns)

    @property
    def is_immutable(self) -> bool:
        frozen = self.kind is not None and fielded.is_frozen(self.kind)
        return frozen and all(part.is_immutable for _, part in self.fields)

    @property
    def is_open(self) -> bool:
        return any(part.is_open for _, part in self.fields)

    def fits(self, value: Any) -> bool:
        if type(value) is not self.kind:
            return False
        parts = fielded.parts_of(value)
        return parts is not None and all(part.fits(item) for (_, part), item in zip(self.fields, parts, strict=True))

    def refined(self, value: Any) -> Type:
        parts = fielded.parts_of(value) if type(value) is self.kind else None
        if parts is None:
            parts = [NOTHING] * len(self.fields)
        fields = tuple((name, part.refined(item)) for (name, part), item in zip(self.fields, parts, strict=True))
        return replace(self, fields=fields)

    def shaped(self, key: Any) -> Any:
        if self.kind is None or not (type(key) is tuple if issubclass(self.kind, tuple) else type(key) is self.kind):
            return NOTHING
        parts = key if type(key) is tuple else fielded.parts_of(key)
        if parts is None or len(parts) != len(self.fields):
            return NOTHING
        shaped = [part.shaped(item) for (_, part), item in zip(self.fields, parts, strict=True)]
        return NOTHING if any(item is NOTHING for item in shaped) else fielded.build(self.kind, shaped)

    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        import pyarrow

        if self.kind is None or not {self.kind, type(None)}.issuperset(map(type, values)):
            return None
        empty = (None,) * len(self.fields)
        rows = [empty if value is None else fielded.parts_of(value) for value in values]
        if any(row is None for row in rows):
            return None
        columns = []
        for position, (_, part) in enumerate(self.fields):
            items = [row[position] for row in rows]  # type: ignore[index]
            is_torn = not isinstance(part, OptionalOf) and any(
                item is None and value is not None for item, value in zip(items, values, strict=True)
            )
            column = None if is_torn else part.to_array(items)
            if column is None:
                return None
            columns.append(column)
        absent = pyarrow.array([value is None for value in values], pyarrow.bool_())
        return pyarrow.StructArray.from_arrays(columns, fields=list(self.arrow or ()), mask=absent)

    def from_array(self, array: pa.Array) -> list[Any]:
        if array.null_count == len(array):
            return [None] * len(array)
        make = fielded.builder(self.checked_kind())
        columns = [part.from_array(column) for (_, part), column in zip(self.fields, array.flatten(), strict=True)]
        if not array.null_count:
            return list(map(make, zip(*columns, strict=True)))
        present = array.is_valid().to_pylist()
        return [make(row) if there else None for there, row in zip(present, zip(*columns, strict=True), strict=True)]

    def checked_kind(self) -> type:
        """Return the class, if it still has the fields that were stored.

        Raises:
            ClassRefusedError: it is not found, or has other fields.
        """
        if self.kind is None:
            raise ClassRefusedError(self.problem or f"the class {self.reference} cannot be found here")
        fielded.check_fields(self.kind, [name for name, _ in self.fields])
        return self.kind

    def to_json(self) -> Any:
        return {"record": self.reference, "fields": [[name, part.to_json()] for name, part in self.fields]}


@dataclass(frozen=True, slots=True)
class Other(Type):
    """A type without a column: values are kept as bytes.

    Attributes:
        text: its name.
        references: the classes of which one must be exactly that of the value; empty for any value.
        kind: the Python type; None if it cannot be found here.
        is_inferable: stands for what the first value decides, inside a record.
    """

    text: str
    references: tuple[str, ...]
    kind: Any = field(compare=False)
    is_inferable: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        return self.text

    @property
    def hint(self) -> Any:
        return self.kind

    @property
    def is_open(self) -> bool:
        return self.is_inferable

    def fits(self, value: Any) -> bool:
        return not self.references or reference(type(value)) in self.references

    def refined(self, value: Any) -> Type:
        if not self.is_inferable:
            return self
        return replace(self, is_inferable=False) if value is NOTHING else Type.infer(value)

    def shaped(self, key: Any) -> Any:
        if not self.fits(key) and isinstance(self.kind, type) and issubclass(self.kind, enum.Enum):
            try:
                member = self.kind(key)  # a member that is a str or an int stands there by its value
            except ValueError:
                return NOTHING
            return member if member == key else NOTHING
        return key if self.fits(key) else NOTHING

    def to_array(self, values: Sequence[Any]) -> pa.Array | None:
        return None

    def from_array(self, array: pa.Array) -> list[Any]:
        return [None] * len(array)

    def to_json(self) -> Any:
        return {"other": self.text, "classes": list(self.references), "open": self.is_inferable}


def _without(values: list[Any], array: pa.Array) -> list[Any]:
    return [value if there else None for value, there in zip(values, array.is_valid().to_pylist(), strict=True)]
