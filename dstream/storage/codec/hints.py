"""Makes a `Type` of a type hint, of a value, or of what was stored."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from dstream.keys import FieldNan
from dstream.storage.checking import text
from dstream.storage.codec import fielded
from dstream.storage.codec.classes import Classes, ClassRefusedError, reference
from dstream.storage.codec.codec_keys import without_numpy
from dstream.storage.codec.kinds import ListOf, OptionalOf, Other, Record
from dstream.storage.codec.scalars import SCALARS
from dstream.storage.codec.types import Type

__all__ = ["classes_in", "from_json", "infer", "infer_key", "type_of"]

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
        kind = hint or _found(text(data["other"]), classes)
        return Other(text(data["other"]), tuple(map(text, data["classes"])), kind, bool(data["open"]))
    fields = tuple((text(name), from_json(part, classes)) for name, part in data["fields"])
    if len(dict(fields)) < len(fields):
        raise ValueError("two fields have one name")
    try:
        return Record(text(data["record"]), fields, classes.resolve(data["record"]))
    except ClassRefusedError as error:
        return Record(data["record"], fields, None, str(error))


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


def _record(kind: type, around: tuple[type, ...], arguments: Mapping[Any, Any]) -> Record:
    """Return the type of a dataclass or named tuple whose type variables stand for `arguments`."""
    found = fielded.hints_of_fields(kind)
    hints = {
        name: arguments.get(hint, hint) if isinstance(hint, typing.TypeVar) else hint for name, hint in found.items()
    }
    names = fielded.field_names(kind) or ()
    fields = tuple((name, _type_of_field(hints.get(name, Any), (*around, kind))) for name in names)
    return Record(reference(kind), fields, kind)


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
