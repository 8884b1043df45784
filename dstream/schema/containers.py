"""Types of columns that contain values of other types: enumerations, optional values, lists and maps."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

from dstream.base.records import record
from dstream.base.showing import shown
from dstream.schema.classes import ClassRefusedError, has_name
from dstream.schema.text_forms import refusal
from dstream.schema.types import NOTHING, ColumnType, ColumnTypeError, Decode, Encode
from dstream.values.fields import field_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ListType", "MapType", "MemberType", "OptionalType", "absent_mask", "or_null"]


@record
class MemberType(ColumnType):
    """Members of an enumeration, by their values.

    Attributes:
        reference: the name of the enumeration.
        each: the type of the values.
        kind: the enumeration; None if it cannot be found in this process.
        is_exact: accepts only members that can be looked up by name and by value.
        problem: why the enumeration cannot be found.
    """

    reference: str
    each: ColumnType
    kind: Any = field(compare=False)
    is_exact: bool = False
    problem: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        return self.reference if self.is_exact else self.each.name

    @property
    def hint(self) -> Any:
        return self.kind

    @property
    def arrow(self) -> pa.DataType | None:
        return self.each.arrow

    @property
    def is_immutable(self) -> bool:
        return True

    def refined(self, values: Sequence[Any]) -> ColumnType:
        inner = [value.value for value in values if isinstance(value, self.kind)]
        return replace(self, each=self.each.refined(inner)) if self.each.is_open else self

    @property
    def is_open(self) -> bool:
        return self.each.is_open

    def fits(self, value: Any) -> bool:
        return type(value) is self.kind and has_name(value)

    def shaped(self, key: Any) -> Any:
        # A member that is a str or an int is stored as what it equals.
        member = key if self.fits(key) else _members_by_value(self.kind).get(key, NOTHING)
        return member if member is not NOTHING and member == key else NOTHING

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        if self.is_exact:
            wrong = any(value is not None and not self.fits(value) for value in values)
        else:
            wrong = any(value is not None and not isinstance(value, self.kind) for value in values)
        if wrong:
            raise ColumnTypeError(
                f"it holds members of {getattr(self.kind, '__qualname__', self.name)}, and this is none"
            )
        return self.each.array([None if value is None else value.value for value in values], encode)

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        members = {} if self.kind is None else _members_by_value(self.kind)
        found = [None if value is None else members.get(value, NOTHING) for value in self.each.from_array(array)]
        if NOTHING in found:
            stored = self.each.from_array(array)[found.index(NOTHING)]
            raise ClassRefusedError(
                self.problem or f"the enum {self.reference} has no member with the value {shown(stored)} any more"
            )
        return found

    def avro(self, name: str) -> Any:
        return self.each.avro(name)

    def to_json(self) -> Any:
        return {"members": self.reference, "each": self.each.to_json()}


def _members_by_value(kind: Any) -> dict[Any, Any]:
    return {} if kind is None else {member.value: member for member in kind.__members__.values()}


@record
class ListType(ColumnType):
    """Lists, tuples and sets whose items are of one type.

    Attributes:
        each: the type of the items.
        kind: the class of the containers.
        is_exact: accepts no other container, such as a tuple for a list, and None as an item only if it is optional.
    """

    each: ColumnType
    kind: Any = list
    is_exact: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind.__name__}[{self.each.name or '?'}{', ...' if self.kind is tuple else ''}]"

    @property
    def hint(self) -> Any:
        item = self.each.hint  # Once: a second call in each level of nesting would double the time.
        arguments = (item, ...) if self.kind is tuple else (item,)
        return None if item is None else types.GenericAlias(self.kind, arguments)

    @property
    def arrow(self) -> pa.DataType | None:
        import pyarrow

        item = self.each.arrow
        return None if item is None else pyarrow.list_(item)

    @property
    def is_immutable(self) -> bool:
        return self.kind in (tuple, frozenset) and self.each.is_immutable

    @property
    def is_open(self) -> bool:
        return self.each.is_open

    def refined(self, values: Sequence[Any]) -> ColumnType:
        if not self.each.is_open:
            return self
        self._check_classes(values)
        return replace(self, each=self.each.refined(_flat(values)))

    def closed(self) -> ColumnType:
        return replace(self, each=self.each.closed())

    def fits(self, value: Any) -> bool:
        return type(value) is self.kind and all(self.each.fits(item) for item in value)

    def _check_classes(self, values: Sequence[Any]) -> None:
        for kind in set(map(type, values)) - {self.kind, type(None)}:
            # A named tuple is a tuple, but has the columns of a record.
            if self.is_exact or not issubclass(kind, _ALIKE[self.kind]) or field_names(kind):
                plural = "lists" if self.kind is list else f"{self.kind.__name__}s"
                raise ColumnTypeError(f"it holds {plural}, and this is {kind.__qualname__}: nothing is converted")

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        import pyarrow

        self._check_classes(values)
        items = _flat(values)
        if self.is_exact and not isinstance(self.each, OptionalType) and any(item is None for item in items):
            raise ColumnTypeError(f"a list of {self.each.name} holds no None")
        inner = self.each.array(items, encode)
        return pyarrow.ListArray.from_arrays(_offsets(values), inner, type=self.arrow, mask=absent_mask(values))

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        # Unlike `values`, `flatten` has no items outside of a slice, or of lists that are null.
        parts = _parts(array, self.each.from_array(array.flatten(), decode))
        found = parts if self.kind is list else list(map(self.kind, parts))
        return found if not array.null_count else _without(found, array)

    def avro(self, name: str) -> Any:
        return {"type": "array", "items": or_null(self.each, name)}

    def to_json(self) -> Any:
        return {self.kind.__name__: self.each.to_json()}


_ALIKE: dict[type, tuple[type, ...]] = {
    list: (list, tuple),
    tuple: (list, tuple),
    set: (set, frozenset),
    frozenset: (set, frozenset),
}


def _flat(values: Iterable[Any]) -> list[Any]:
    return list(chain.from_iterable(value for value in values if value))


def _offsets(values: Sequence[Any]) -> pa.Array:
    import pyarrow

    return pyarrow.array(accumulate((len(value or ()) for value in values), initial=0), pyarrow.int32())


def _values_of(values: Iterable[Any]) -> list[Any]:
    return [each for value in values if value for each in value.values()]


def absent_mask(values: Sequence[Any]) -> pa.Array:
    """Return which of the values are None."""
    import pyarrow

    return pyarrow.array([value is None for value in values], pyarrow.bool_())


def _parts(array: pa.Array, items: list[Any]) -> list[list[Any]]:
    """Return the items of each list; none for a null."""
    lengths = array.value_lengths().to_pylist()
    return [items[start:end] for start, end in pairwise(accumulate((length or 0 for length in lengths), initial=0))]


def _without(values: list[Any], array: pa.Array) -> list[Any]:
    return [value if there else None for value, there in zip(values, array.is_valid().to_pylist(), strict=True)]


def or_null(each: ColumnType, name: str) -> Any:
    """Return the type of a part in a schema of Avro, in which it may be None."""
    return ["null", each.avro(name)] if each.name else ["null"]


@record
class MapType(ColumnType):
    """Dictionaries whose keys are of one type, and whose values are of another one.

    Attributes:
        key: the type of the keys, none of which is None.
        value: the type of the values.
        is_exact: accepts only instances of dict, and None as a value only if it is optional.
    """

    key: ColumnType
    value: ColumnType
    is_exact: bool = False

    @property
    def name(self) -> str:
        return f"dict[{self.key.name or '?'}, {self.value.name or '?'}]"

    @property
    def hint(self) -> Any:
        arguments = self.key.hint, self.value.hint
        return None if None in arguments else types.GenericAlias(dict, arguments)

    @property
    def arrow(self) -> pa.DataType | None:
        import pyarrow

        key, value = self.key.arrow, self.value.arrow
        return None if key is None or value is None else pyarrow.map_(key, value)

    @property
    def is_open(self) -> bool:
        return self.key.is_open or self.value.is_open

    def refined(self, values: Sequence[Any]) -> ColumnType:
        if not self.is_open:
            return self
        self._check_classes(values)
        keys, held = _flat(values), _values_of(values)
        return replace(self, key=self.key.refined(keys), value=self.value.refined(held))

    def closed(self) -> ColumnType:
        return replace(self, key=self.key.closed(), value=self.value.closed())

    def fits(self, value: Any) -> bool:
        return type(value) is dict and all(map(self.key.fits, value)) and all(map(self.value.fits, value.values()))

    def _check_classes(self, values: Sequence[Any]) -> None:
        for kind in set(map(type, values)) - {dict, type(None)}:
            if self.is_exact or not issubclass(kind, dict):
                raise ColumnTypeError(f"it holds dicts, and this is {kind.__qualname__}: nothing is converted")

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        import pyarrow

        self._check_classes(values)
        keys, held = _flat(values), _values_of(values)
        if any(key is None for key in keys):
            raise ColumnTypeError("no column holds dicts with the key None")
        if self.is_exact and not isinstance(self.value, OptionalType) and any(value is None for value in held):
            raise ColumnTypeError(f"a dict of {self.value.name} holds no None")
        arrays = self.key.array(keys), self.value.array(held, encode)
        mask = absent_mask(values) if None in values else None
        return pyarrow.MapArray.from_arrays(_offsets(values), *arrays, type=self.arrow, mask=mask)

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        import pyarrow

        pairs = pyarrow.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        lists = array.cast(pyarrow.list_(pairs))  # No function of Arrow supports maps, and `keys` ignores slices.
        keys, values = lists.flatten().flatten()
        entries = zip(self.key.from_array(keys), self.value.from_array(values, decode), strict=True)
        found: list[Any] = [dict(pairs) for pairs in _parts(lists, list(entries))]
        return found if not array.null_count else _without(found, array)

    def avro(self, name: str) -> Any:
        if self.key.avro(name) != "string":
            raise TypeError(refusal("Avro", self.name, "map() its keys to str before", name))
        return {"type": "map", "values": or_null(self.value, name)}

    def to_json(self) -> Any:
        return {"map": [self.key.to_json(), self.value.to_json()]}


@record
class OptionalType(ColumnType):
    """A value of another type, or None, in a column that is exact.

    Attributes:
        inner: the type of the value.
    """

    inner: ColumnType

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

    @property
    def is_open(self) -> bool:
        return self.inner.is_open

    def refined(self, values: Sequence[Any]) -> ColumnType:
        return OptionalType(self.inner.refined([value for value in values if value is not None]))

    def closed(self) -> ColumnType:
        return OptionalType(self.inner.closed())

    def fits(self, value: Any) -> bool:
        return value is None or self.inner.fits(value)

    def shaped(self, key: Any) -> Any:
        return None if key is None else self.inner.shaped(key)

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> pa.Array:
        return self.inner.array(values, encode)

    def from_array(self, array: pa.Array, decode: Decode | None = None) -> list[Any]:
        return self.inner.from_array(array, decode)

    def to_json(self) -> Any:
        return {"optional": self.inner.to_json()}
