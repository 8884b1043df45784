"""Types of hints and of values: lists, optional values, records, and values without a column."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

from dstream.base.validation import checked_text
from dstream.keys import FieldNan
from dstream.schema import classes as fielded
from dstream.schema.classes import Classes, ClassRefusedError, reference
from dstream.schema.stored_types import NOTHING, SCALARS, Type, without_numpy

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ListOf", "OptionalOf", "Other", "RecordType", "classes_in", "from_json", "infer", "infer_key", "type_of"]


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
class RecordType(Type):
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


_ANYTHING = Other("object", (), object)
_OPEN = Other("object", (), object, is_inferable=True)
_UNIONS = (typing.Union, types.UnionType)
_SCALARS = {scalar.name: scalar for scalar in SCALARS.values()}
_BASES = sorted(SCALARS.items(), key=lambda found: -len(found[0].__mro__))
"""The plain types, subclasses first: a bool is an int, and a datetime is a date."""


def type_of(hint: Any, around: tuple[type, ...] = ()) -> Type:
    """Return the type that a hint means; `around` are the classes whose fields are being looked at.

    Raises:
        TypeError: `hint` is no type.
    """
    hint = _plain(hint)
    if hint is Any or hint is object:
        return _ANYTHING
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        return SCALARS.get(hint) or _type_of_class(hint, around)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        item = type_of(arguments[0], around)
        return Other(f"list[{item.name}]", (reference(list),), hint) if item.arrow is None else ListOf(item)
    if origin in _UNIONS:
        return _type_of_union(hint, arguments, around)
    if isinstance(origin, type) and fielded.field_names(origin) and origin not in around:
        return _record(origin, around, dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False)))
    if isinstance(origin, type):
        return Other(_shown(hint), (reference(origin),), hint)
    raise TypeError(f"{hint!r} is no type; give a class or a hint such as list[float]")


def infer(value: Any) -> Type:
    """Return the type of a value."""
    if type(value) is FieldNan:
        return SCALARS[float]
    kind = type(value)
    if kind in SCALARS:
        return SCALARS[kind]
    if kind is list:
        return _infer_list(value)
    return type_of(kind).refined(value)


def infer_key(key: Any) -> Type:
    """Return the type in which a key comes back: for a scalar of numpy or a subclass, the plain type that it equals."""
    key = without_numpy(key)
    if isinstance(key, enum.Enum):
        return infer(key)
    return next((scalar for base, scalar in _BASES if isinstance(key, base)), None) or infer(key)


def from_json(data: Any, classes: Classes, hint: Any = None) -> Type:
    """Return the type that was stored; `hint` is what the user says it is, where a description is not enough.

    Raises:
        ValueError: the data describe no type; so say LookupErrors, TypeErrors and RecursionErrors.
    """
    if isinstance(data, str):
        return _SCALARS[data]
    if "list" in data:
        return ListOf(from_json(data["list"], classes))
    if "optional" in data:
        return OptionalOf(from_json(data["optional"], classes))
    if "other" in data:
        kind = hint or _found(checked_text(data["other"]), classes)
        return Other(checked_text(data["other"]), tuple(map(checked_text, data["classes"])), kind, bool(data["open"]))
    fields = tuple((checked_text(name), from_json(part, classes)) for name, part in data["fields"])
    if len(dict(fields)) < len(fields):
        raise ValueError("two fields have one name")
    try:
        return RecordType(checked_text(data["record"]), fields, classes.resolve(data["record"]))
    except ClassRefusedError as error:
        return RecordType(data["record"], fields, None, str(error))


def classes_in(hint: Any) -> Iterator[type]:
    """Give the classes that a hint names, also those inside the fields of dataclasses and named tuples."""
    seen: set[type] = set()
    pending = [hint]
    while pending:
        found = _plain(pending.pop())
        pending += typing.get_args(found)
        found = typing.get_origin(found) or found
        if isinstance(found, type) and found not in seen and _is_loaded_by_name(found):
            seen.add(found)
            yield found
            if fielded.field_names(found):
                pending += fielded.hints_of_fields(found).values()


def _is_loaded_by_name(kind: type) -> bool:
    return kind not in SCALARS and kind.__module__ not in ("builtins", "types", "typing")


def _plain(hint: Any) -> Any:
    """Return what a `NewType` or an `Annotated` stands for."""
    while True:
        if isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        else:
            return hint


def _type_of_class(kind: type, around: tuple[type, ...]) -> Type:
    if fielded.field_names(kind) is None or kind in around:
        return Other(_shown(kind), (reference(kind),), kind)
    return _record(kind, around, {})


def _record(kind: type, around: tuple[type, ...], arguments: Mapping[Any, Any]) -> RecordType:
    """Return the type of a dataclass or named tuple whose type variables stand for `arguments`."""
    found = fielded.hints_of_fields(kind)
    hints = {
        name: arguments.get(hint, hint) if isinstance(hint, typing.TypeVar) else hint for name, hint in found.items()
    }
    names = fielded.field_names(kind) or ()
    fields = tuple((name, _type_of_field(hints.get(name, Any), (*around, kind))) for name in names)
    return RecordType(reference(kind), fields, kind)


def _type_of_field(hint: Any, around: tuple[type, ...]) -> Type:
    hint = _plain(hint)
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar | str):
        return _OPEN
    try:
        return type_of(hint, around)
    except TypeError:
        return _ANYTHING


def _type_of_union(hint: Any, arguments: tuple[Any, ...], around: tuple[type, ...]) -> Type:
    others = [argument for argument in arguments if argument is not type(None)]
    parts = [type_of(argument, around) for argument in others]
    if len(parts) == 1 and parts[0].arrow is not None:
        return OptionalOf(parts[0])
    wanted = [type(None)] * (len(others) < len(arguments)) + [typing.get_origin(other) or other for other in others]
    if not all(isinstance(kind, type) for kind in wanted) or object in wanted:
        return Other(_shown(hint), (), hint)
    return Other(_shown(hint), tuple(map(reference, wanted)), hint)


def _infer_list(items: list[Any]) -> Type:
    kinds = set(map(type, items)) - {type(None)}
    if len(kinds) != 1 or _is_too_deep(items):
        return type_of(list)
    item = infer(next(item for item in items if item is not None))
    if item.arrow is None:
        return type_of(list)
    return ListOf(OptionalOf(item) if any(found is None for found in items) else item)


def _is_too_deep(items: list[Any]) -> bool:
    """Say whether lists are nested so deep that no column is made of them: Parquet refuses to read 50 levels."""
    found: Any = items
    for _ in range(_MOST_LEVELS):
        found = next((item for item in found if item is not None), None)
        if type(found) is not list:
            return False
    return True


_MOST_LEVELS = 16


def _found(name: str, classes: Classes) -> Any:
    try:
        return classes.resolve(name) if ":" in name and "[" not in name and "|" not in name else None
    except ClassRefusedError:
        return None


def _shown(hint: Any) -> str:
    hint = _plain(hint)
    if hint is None or hint is type(None):
        return "None"
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return " | ".join(map(_shown, arguments))
    if arguments and isinstance(origin, type):
        return f"{_shown(origin)}[{', '.join(map(_shown, arguments))}]"
    if not isinstance(hint, type):
        return repr(hint)
    if hint in SCALARS:
        return SCALARS[hint].name
    return hint.__qualname__ if hint.__module__ == "builtins" else reference(hint)
