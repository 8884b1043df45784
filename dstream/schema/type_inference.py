"""Types of columns by annotations and by values, for files, tables of Arrow and collections."""

from __future__ import annotations

import enum
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, Literal, get_args, get_origin

from dstream.base.records import record
from dstream.base.showing import shown
from dstream.keys import FieldNan
from dstream.schema import classes
from dstream.schema.classes import reference
from dstream.schema.containers import ListType, MapType, MemberType, OptionalType
from dstream.schema.record_types import ClassType, DictType, PickledType, RecordType
from dstream.schema.scalar_types import ScalarType, is_instance, scalars
from dstream.schema.text_forms import refusal
from dstream.schema.types import ColumnType, ColumnTypeError, Encode, ForeignType, TimestampType, array_of, zone_name
from dstream.values.fields import (
    CONTAINERS,
    MAPPINGS,
    UNIONS,
    field_names,
    hints_of_kind,
    in_words,
    is_required_key,
    is_typed_dict,
    plain_hint,
)

__all__ = [
    "STORED_SCALARS",
    "Layout",
    "OpenType",
    "infer_stored",
    "stored_type",
    "type_of",
    "types_of_fields",
]


class Layout(enum.Enum):
    """The purpose of columns, which decides how their values are stored."""

    FILES = "files"
    """Parquet, Avro and Delta: each file of a table has the same types."""
    TABLES = "tables"
    """Tables of Arrow and DataFrames: values decide where they contradict their annotations."""
    STORED = "stored"
    """Collections: columns return each value unchanged, and what has no column is stored as bytes."""


_COMMON = ("bool", "int", "str", "bytes", "date", "time", "timedelta")
_AS_STRINGS = ("Fraction", "IPv4Address", "IPv6Address", "Path", "PurePath")
STORED_SCALARS = scalars(*_COMMON, "float", "Decimal", "UUID", *_AS_STRINGS, is_exact=True)
"""The scalar types of collections by their classes."""
# `Path()` creates an object of a subclass, such as `PosixPath`.
_INFERRED = STORED_SCALARS | {type(kind()): STORED_SCALARS[kind] for kind in (PurePath, Path)}
_SCALARS: Mapping[Layout, Mapping[type, ScalarType]] = {
    Layout.FILES: scalars(*_COMMON, "float", "decimal", "uuid", *_AS_STRINGS),
    Layout.TABLES: scalars(*_COMMON, "number", "uuid", *_AS_STRINGS),
    Layout.STORED: STORED_SCALARS,
}
_BY_VALUE = frozenset({*scalars(*_COMMON, "float", "decimal", "uuid")})
"""Classes whose values are stored natively. Without an annotation, no value becomes a string."""
_TIMESTAMPS = {
    Layout.FILES: TimestampType(None, is_utc=True),
    Layout.TABLES: TimestampType(None),
    Layout.STORED: TimestampType("", is_exact=True),
}


@record
class OpenType(ColumnType):
    """A type that no value has shown yet.

    Attributes:
        layout: of the column.
        union: the annotation, if that is a union: its values are of one type, and none is converted.
    """

    layout: Layout
    union: str = ""

    @property
    def name(self) -> str:
        return ""

    @property
    def arrow(self) -> Any:
        """The type of None; collections have no column before its type is known."""
        import pyarrow

        return None if self.layout is Layout.STORED else pyarrow.null()

    @property
    def is_open(self) -> bool:
        return True

    def refined(self, values: Sequence[Any]) -> ColumnType:
        if self.layout is Layout.STORED:
            return infer_stored(values[0]) if values else self
        present = [value for value in values if value is not None]
        if not present:
            return self
        if self.layout is Layout.FILES:
            return _of_values(present[:1], self.layout).refined(present)
        found = _of_values(present, self.layout)
        if self.union and found == ScalarType("number") and int in set(map(type, present)):
            raise ColumnTypeError(refusal("a column", self.union, _BEFORE))
        return found.refined(present)

    def fits(self, value: Any) -> bool:
        return True

    def closed(self) -> ColumnType:
        return _ANYTHING if self.layout is Layout.STORED else self

    def array(self, values: Sequence[Any], encode: Encode | None = None) -> Any:
        import pyarrow

        if any(value is not None for value in values):
            return self.refined(values).array(values)
        return pyarrow.nulls(len(values))

    def avro(self, name: str) -> Any:
        return "null"

    def to_json(self) -> Any:
        return "?"


_BEFORE = "map() it to a str, a number or a list of these before"
_ANNOTATE = "annotate the field, such as with set[str], or map() it to a list before"
_ANYTHING = PickledType("object", (), object)


def _of_values(values: Sequence[Any], layout: Layout) -> ColumnType:
    """Return the type of values without annotations, at least one, of which none is None.

    Raises:
        ColumnTypeError: their types do not fit into one column.
    """
    kinds = set(map(type, values))
    found = {scalar.__name__ for kind in kinds if (scalar := _family(kind)) is not None}
    if "set" in found:
        raise ColumnTypeError(refusal("a column", "set", _ANNOTATE))
    if len(found) > 1 and found != {"float", "int"}:
        raise ColumnTypeError(f"it holds {' and '.join(sorted(found))}")
    if found == {"float", "int"}:
        return ScalarType("number")
    first = values[0]
    if len(kinds) == 1 and isinstance(first, enum.Enum):
        return MemberType(reference(type(first)), OpenType(layout), type(first))
    if all(map(_is_record, kinds)):
        return _of_records(values, layout)
    if all(issubclass(kind, list | tuple) for kind in kinds):
        return ListType(OpenType(layout))
    if kinds == {datetime}:
        return _TIMESTAMPS[layout]
    for scalar in _BY_VALUE:
        if all(is_instance(kind, scalar) for kind in kinds) and scalar in _SCALARS[layout]:
            return _SCALARS[layout][scalar]
    return _foreign(values, layout)


_FAMILIES = (bool, int, float, str, bytes, Decimal, datetime, date, time, timedelta, set)


def _family(kind: type) -> type | None:
    """Return the base type of a class whose values need separate columns.

    Arrow would convert bools and durations to numbers, moments to dates, and strings to bytes in one column.
    """
    if issubclass(kind, enum.Enum) and not issubclass(kind, int | str):
        return None
    return set if issubclass(kind, frozenset) else next((each for each in _FAMILIES if issubclass(kind, each)), None)


def _is_record(kind: type) -> bool:
    return issubclass(kind, dict) or bool(field_names(kind))


def _of_records(values: Sequence[Any], layout: Layout) -> ColumnType:
    names = dict.fromkeys(
        name for value in values for name in (value if isinstance(value, dict) else field_names(type(value)))
    )
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise ColumnTypeError(f"the keys of a dict become names of fields and must be str, not {shown(wrong[0])}")
    if not names and layout is Layout.FILES:
        raise ColumnTypeError(refusal("a column", f"{type(values[0]).__qualname__} without fields", _BEFORE))
    optional = frozenset(names) if layout is Layout.TABLES else frozenset[str]()
    return RecordType(tuple((name, OpenType(layout)) for name in names), optional)


def _foreign(values: Sequence[Any], layout: Layout) -> ColumnType:
    if layout is Layout.FILES:
        raise ColumnTypeError(refusal("a column", type(values[0]).__qualname__, _BEFORE))
    found = array_of(values).type
    return ForeignType(str(found), found)


def types_of_fields(kind: Any, layout: Layout, *, strict: bool = True) -> dict[str, ColumnType]:
    """Return the type of each field of a class; none for a class without fields.

    Args:
        kind: the class.
        layout: the layout of the columns.
        strict: refuse a field whose annotation is not supported by columns. Otherwise its values decide.

    Raises:
        TypeError: the type of a field is not supported by columns.
    """
    return _fields(kind, layout, strict, ())


def _fields(kind: Any, layout: Layout, strict: bool, around: tuple[Any, ...]) -> dict[str, ColumnType]:
    hints = _hints(kind, strict)
    names = tuple(hints) if is_typed_dict(kind) else field_names(kind)
    found: dict[str, ColumnType] = {}
    for name in names:
        hint = hints.get(name, Any)
        try:
            found[name] = type_of(hint, layout, (*around, kind))
        except TypeError as error:
            if strict:
                raise TypeError(f"field {name!r} of {kind.__qualname__}: {error}") from None
            plain = plain_hint(hint)
            found[name] = OpenType(layout, in_words(plain) if get_origin(plain) in UNIONS else "")
    return found


def _hints(kind: Any, strict: bool) -> dict[str, Any]:
    try:
        return hints_of_kind(kind)
    except TypeError:
        if strict:
            raise
        return {}  # The module of a class may be missing where its items are.


def type_of(hint: Any, layout: Layout, around: tuple[Any, ...] = ()) -> ColumnType:
    """Return the type that an annotation means in a layout.

    Args:
        hint: the annotation.
        layout: the layout of the column; for collections `stored_type` has the types without a column.
        around: the enclosing classes.

    Raises:
        TypeError: the type is not supported by columns.
    """
    if get_origin(hint) is typing.Annotated and get_args(hint)[0] is datetime and layout is not Layout.STORED:
        zones = [each for each in hint.__metadata__ if isinstance(each, tzinfo)]
        # The moment is arbitrary: a type takes its zone from a value.
        return _TIMESTAMPS[layout].refined([datetime(2000, 1, 1, tzinfo=zone) for zone in zones[:1]])
    hint = plain_hint(hint)
    if hint in (Any, object, None, type(None)) or isinstance(hint, typing.TypeVar):
        if layout is Layout.STORED:
            raise _no_column(hint)
        return OpenType(layout)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in UNIONS:
        others = [each for each in arguments if each is not type(None)]
        found = _only(others, hint, layout, around)
        return OptionalType(found) if layout is Layout.STORED and len(others) < len(arguments) else found
    if origin is Literal:
        return _only([type(each) for each in arguments], hint, layout, around)
    if origin is None and isinstance(hint, type):
        return _of_class(hint, layout, around)
    if origin in CONTAINERS:
        return _of_items(hint, origin, arguments, layout, around)
    if origin in MAPPINGS:
        key, value = (_inner(each, layout, around) for each in arguments)
        return MapType(key, value, layout is Layout.STORED)
    if isinstance(origin, type) and (is_typed_dict(origin) or field_names(origin)):
        return _of_class(origin, layout, around)
    raise _no_column(hint)


def _inner(hint: Any, layout: Layout, around: tuple[Any, ...]) -> ColumnType:
    """Return the type of parts.

    Raises:
        TypeError: the type of a part is not supported by columns.
    """
    found = stored_type(hint, around) if layout is Layout.STORED else type_of(hint, layout, around)
    if layout is Layout.STORED and found.arrow is None:
        raise _no_column(hint)
    return found


def _only(hints: Sequence[Any], hint: Any, layout: Layout, around: tuple[Any, ...]) -> ColumnType:
    found = list(dict.fromkeys(hints))
    if len(found) != 1:
        raise _no_column(hint)
    return _inner(found[0], layout, around)


def _of_items(
    hint: Any, origin: Any, arguments: tuple[Any, ...], layout: Layout, around: tuple[Any, ...]
) -> ColumnType:
    kind = CONTAINERS[origin]
    if kind is tuple and arguments[-1] is not ...:
        return ListType(_only(arguments, hint, layout, around), tuple, layout is Layout.STORED)
    return ListType(_inner(arguments[0], layout, around), kind, layout is Layout.STORED)


def _of_class(kind: Any, layout: Layout, around: tuple[Any, ...]) -> ColumnType:
    if kind in _SCALARS[layout]:
        return _SCALARS[layout][kind]
    if kind is datetime:
        return _TIMESTAMPS[layout]
    if issubclass(kind, enum.Enum):
        return _of_enumeration(kind, layout)
    if layout is Layout.STORED:
        if is_typed_dict(kind) and not _optional_keys(kind) and kind not in around:
            hints = _hints(kind, True)
            fields = tuple((name, _stored_field(hint, (*around, kind))) for name, hint in hints.items())
            return DictType(fields, reference=reference(kind), kind=kind)
        raise _no_column(kind)
    if kind in CONTAINERS and not issubclass(kind, set | frozenset):
        return ListType(OpenType(layout))
    if kind is Decimal:
        return OpenType(layout)  # The values decide how many digits the column has.
    if kind in around:
        raise TypeError(refusal("a column", f"{kind.__qualname__} within itself", _BEFORE))
    if found := _fields(kind, layout, True, around) if is_typed_dict(kind) or field_names(kind) else {}:
        return RecordType(tuple(found.items()), _optional_keys(kind))
    raise _no_column(kind)


def _of_enumeration(kind: Any, layout: Layout) -> ColumnType:
    is_exact = layout is Layout.STORED
    values = [member.value for member in kind]
    scalar = STORED_SCALARS.get(type(values[0])) if values else None
    if is_exact and (scalar is None or scalar.to_array(values) is None or issubclass(kind, enum.Flag)):
        raise _no_column(kind)
    each = scalar if is_exact and scalar is not None else OpenType(layout).refined(values)
    return MemberType(reference(kind), each, kind, is_exact)


def _optional_keys(kind: Any) -> frozenset[str]:
    """Return the keys of a TypedDict that may be absent."""
    hints = _hints(kind, True) if is_typed_dict(kind) else {}
    return frozenset(name for name, hint in hints.items() if not is_required_key(kind, name, hint))


def _no_column(hint: Any) -> TypeError:
    return TypeError(refusal("a column", in_words(plain_hint(hint)), _BEFORE))


# ------------------------------------------------------------------------------------------------- collections


def stored_type(hint: Any, around: tuple[type, ...] = ()) -> ColumnType:
    """Return the type that a hint such as `list[float]` or a dataclass means in a collection.

    Raises:
        TypeError: `hint` is no type.
    """
    hint = plain_hint(hint)
    if hint is Any or hint is object:
        return _ANYTHING
    origin, arguments = get_origin(hint), get_args(hint)
    record = origin or hint
    # A recursive class would be an infinite type; its inner occurrence is stored as bytes.
    if isinstance(record, type) and classes.field_names(record) is not None and record not in around:
        # A generic class may be named without arguments.
        return _stored_record(record, around, dict(zip(getattr(record, "__parameters__", ()), arguments, strict=False)))
    if hint is not None and not isinstance(hint, typing.TypeVar):
        try:
            return type_of(hint, Layout.STORED, around)
        except TypeError:
            if origin in UNIONS:
                return _stored_union(hint, arguments, around)
            if isinstance(record, type):
                return PickledType(_name_of(hint), (reference(record),), hint)
    raise TypeError(f"{hint!r} is no type; give a class or a hint such as list[float]")


def _stored_record(kind: type, around: tuple[type, ...], arguments: Mapping[Any, Any]) -> ColumnType:
    """Return the type of a dataclass or named tuple whose type variables are bound to `arguments`."""
    hints = {
        name: arguments.get(hint, hint) if isinstance(hint, typing.TypeVar) else hint
        for name, hint in classes.hints_of_fields(kind).items()
    }
    names = classes.field_names(kind) or ()
    fields = tuple((name, _stored_field(hints.get(name, Any), (*around, kind))) for name in names)
    return ClassType(fields, reference=reference(kind), kind=kind)


def _stored_field(hint: Any, around: tuple[type, ...]) -> ColumnType:
    hint = plain_hint(hint)
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar | str):
        return OpenType(Layout.STORED)
    if hint is datetime:
        return TimestampType(None, is_exact=True)
    try:
        return stored_type(hint, around)
    except TypeError:
        return _ANYTHING


def _stored_union(hint: Any, arguments: tuple[Any, ...], around: tuple[type, ...]) -> ColumnType:
    others = [argument for argument in arguments if argument is not type(None)]
    for argument in others:
        stored_type(argument, around)
    wanted = [type(None)] * (len(others) < len(arguments)) + [get_origin(other) or other for other in others]
    if not all(isinstance(kind, type) for kind in wanted) or object in wanted or Any in wanted:
        return PickledType(_name_of(hint), (), hint)
    return PickledType(_name_of(hint), tuple(map(reference, wanted)), hint)


def infer_stored(value: Any) -> ColumnType:
    """Return the type of a value of a collection."""
    if type(value) is FieldNan:
        return STORED_SCALARS[float]
    kind = type(value)
    if kind in _INFERRED:
        return _INFERRED[kind]
    if kind is datetime:
        zone = zone_name(value)
        return TimestampType("" if zone is None else zone, is_exact=True)
    if kind is list:
        return _infer_list(value)
    return stored_type(kind).refined([value]).closed()


def _infer_list(items: list[Any]) -> ColumnType:
    kinds = set(map(type, items)) - {type(None)}
    if len(kinds) != 1 or _is_too_deep(items):
        return stored_type(list)
    item = infer_stored(next(item for item in items if item is not None))
    if item.arrow is None:
        return stored_type(list)
    return ListType(OptionalType(item) if any(found is None for found in items) else item, list, is_exact=True)


def _is_too_deep(items: list[Any]) -> bool:
    """Return whether lists are nested so deep that no column is made of them: Parquet refuses to read 50 levels."""
    found: Any = items
    for _ in range(_MOST_LEVELS):
        found = next((item for item in found if item is not None), None)
        if type(found) is not list:
            return False
    return True


_MOST_LEVELS = 16


def _name_of(hint: Any) -> str:
    hint = plain_hint(hint)
    if hint is None or hint is type(None):
        return "None"
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in UNIONS:
        return " | ".join(map(_name_of, arguments))
    if arguments and isinstance(origin, type):
        return f"{_name_of(origin)}[{', '.join(map(_name_of, arguments))}]"
    if not isinstance(hint, type):
        return repr(hint)
    if hint in STORED_SCALARS:
        return STORED_SCALARS[hint].name
    return hint.__qualname__ if hint.__module__ == "builtins" or hint is datetime else reference(hint)


def classes_in(hint: Any) -> Iterator[type]:
    """Yield the classes that a hint names, also those inside the fields of dataclasses and named tuples."""
    seen: set[type] = set()
    pending = [hint]
    while pending:
        found = plain_hint(pending.pop())
        pending += get_args(found)
        found = get_origin(found) or found
        if isinstance(found, type) and found not in seen and _is_loaded_by_name(found):
            seen.add(found)
            yield found
            if classes.field_names(found):
                pending += classes.hints_of_fields(found).values()


def _is_loaded_by_name(kind: type) -> bool:
    return kind not in _NOT_LOADED and kind.__module__ not in ("builtins", "types", "typing")


_NOT_LOADED = frozenset({*STORED_SCALARS, datetime})
