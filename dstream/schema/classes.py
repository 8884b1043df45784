"""Lookup of the classes that stored data name, as far as they may be loaded."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

from dstream.base.registry import by_name, stored_name
from dstream.values import fields
from dstream.values.fields import default_of, hints_of, is_attrs, is_model

__all__ = [
    "ChangedClassError",
    "ClassRefusedError",
    "Classes",
    "NotStorableError",
    "build",
    "build_named",
    "builder",
    "check_fields",
    "compared_names",
    "field_names",
    "find",
    "has_name",
    "hints_of_fields",
    "is_frozen",
    "member_of",
    "named_parts",
    "own_name",
    "parts_of",
    "reference",
]


class ClassRefusedError(TypeError):
    """Stored data name a class that cannot be found, has changed, or may not be loaded."""


class ChangedClassError(ClassRefusedError):
    """A class is not compatible with its stored fields."""


class NotStorableError(ClassRefusedError):
    """A value cannot be pickled, regardless of the settings."""


class Classes(Protocol):
    """Decides which classes may be loaded by name; `Pickles` is one."""

    def resolve(self, reference: str) -> type:
        """Return the class that `reference` ("module:qualname") names.

        Raises:
            ClassRefusedError: there is none, or it may not be loaded; a `TypeError` whose message contains what to do.
        """
        ...


def reference(kind: type) -> str:
    """Return the name of a class in stored data: for the library's classes a registry name, as "dstream:name"."""
    name = stored_name(kind)
    return f"{kind.__module__}:{kind.__qualname__}" if name is None else f"{_OURS}{name}"


_OURS = "dstream:"


def own_name(reference: str) -> str | None:
    """Return the registered name that a reference has if it is one of ours, and None for others."""
    return reference.removeprefix(_OURS) if reference.startswith(_OURS) else None


def find(name: str) -> type:
    """Import the class that a reference names.

    Raises:
        ClassRefusedError: there is no such class in this process.
    """
    own = own_name(name)
    try:
        found = _imported(name) if own is None else by_name(own)
    # The module of a class is the user's, and may raise anything when it is imported.
    except Exception as error:
        raise ClassRefusedError(f"the class {name} cannot be found here: {error}") from error
    if not isinstance(found, type):
        raise ClassRefusedError(f"{name} is no class")
    return found


def _imported(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def field_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a class whose instances consist of their fields only; None for other classes."""
    found: tuple[str, ...] | None = _field_names(cast(Any, kind))
    return found


@functools.lru_cache(maxsize=1024)
def _field_names(kind: Any) -> tuple[str, ...] | None:
    if issubclass(kind, tuple):
        names = getattr(kind, "_fields", None)
        return names if isinstance(names, tuple) and _is_copied_as(kind, tuple) else None
    if not (is_model(kind) or is_attrs(kind) or dataclasses.is_dataclass(kind)):
        return None
    # A process that has a model has imported pydantic, which others should not pay for.
    base = sys.modules["pydantic"].BaseModel if is_model(kind) else object
    return (
        fields.field_names(cast(type, kind)) if kind.__new__ is object.__new__ and _is_copied_as(kind, base) else None
    )


def compared_names(kind: type, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return those `names`, by default of all fields, that the equality of the class compares."""
    fields_of_kind = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    left_out = {field.name for field in fields_of_kind if not field.compare}
    return tuple(name for name in (field_names(kind) or () if names is None else names) if name not in left_out)


def parts_of(value: Any) -> Sequence[Any] | None:
    """Return the values of the fields, or None if `value` has other attributes than its fields."""
    kind: Any = type(value)
    names = field_names(kind)
    if names is None:
        return None
    attributes = getattr(value, "__dict__", None)
    if is_model(kind):
        return _parts_of_model(value, names)
    if issubclass(kind, tuple):
        return None if attributes or len(value) != len(names) else tuple(value)
    if attributes is not None and not _has_slots(kind):
        parts = list(map(attributes.get, names, [_UNSET] * len(names)))
        return None if len(attributes) != len(names) or any(part is _UNSET for part in parts) else parts
    if attributes or any(slot not in names for slot in _slots(kind)):
        return None
    parts = [getattr(value, name, _UNSET) for name in names]
    return None if any(part is _UNSET for part in parts) else parts


def named_parts(value: Any) -> dict[str, Any] | None:
    """Return the fields by their names, or None if `value` has other attributes than its fields."""
    parts = parts_of(value)
    return None if parts is None else dict(zip(field_names(type(value)) or (), parts, strict=True))


def _parts_of_model(value: Any, names: tuple[str, ...]) -> Sequence[Any] | None:
    state = value.__getstate__()
    others = {**state, "__dict__": None, "__pydantic_fields_set__": None}
    # A model stores which fields were set explicitly; one that is built from stored fields counts all as set.
    is_whole = tuple(state["__dict__"]) == names and state["__pydantic_fields_set__"] == set(names)
    return None if not is_whole or any(others.values()) else list(state["__dict__"].values())


def hints_of_fields(kind: type) -> dict[str, Any]:
    """Return the annotations of the fields, as far as they can be resolved in this process."""
    try:
        return hints_of(kind)
    except Exception:  # an annotation names what exists only for type checkers
        raw = {
            name: hint
            for base in reversed(kind.__mro__)
            for name, hint in vars(base).get("__annotations__", {}).items()
        }
        return {name: hint for name, hint in raw.items() if not isinstance(hint, str | typing.ForwardRef)}


def builder(kind: type, stored: Sequence[str] | None = None) -> Callable[[Iterable[Any]], Any]:
    """Return a function that makes an instance of its fields' values, without running `__init__`, as pickle does.

    Args:
        kind: the class.
        stored: the names of the values; None: the names of the fields. Other fields get their defaults.

    Raises:
        ChangedClassError: the class lacks a field that was stored, or a default for one that was not.
    """
    names = field_names(kind) or ()
    fill = _filling(kind, names)
    if stored is None or tuple(stored) == names:
        return fill
    check_fields(kind, stored)
    places = {name: place for place, name in enumerate(stored)}
    arranged = [(places.get(name), default_of(kind, name)) for name in names]

    def build_arranged(parts: Iterable[Any]) -> Any:
        row = tuple(parts)
        return fill([default() if place is None else row[place] for place, default in arranged])  # type: ignore[misc]

    return build_arranged


def _filling(kind: type, names: tuple[str, ...]) -> Callable[[Iterable[Any]], Any]:
    if issubclass(kind, tuple):
        return functools.partial(tuple.__new__, kind)
    if is_model(kind):
        return functools.partial(_fill_model, kind, names)
    if not _has_slots(kind):
        return functools.partial(_fill_attributes, kind, names)
    return functools.partial(_fill_slots, kind, names)


def build(kind: type, parts: Iterable[Any]) -> Any:
    """Return an instance of the values of its fields."""
    return builder(kind)(parts)


def check_fields(kind: type, stored: Sequence[str]) -> None:
    """Raise if instances cannot be made of the fields that were stored, in any order, and of defaults for others.

    Raises:
        ChangedClassError: they cannot; the message names both and contains what to do.
    """
    names = field_names(kind)
    if names is None:
        raise ChangedClassError(f"the class {reference(kind)} is no dataclass or named tuple of its fields any more")
    lost = [name for name in stored if name not in names]
    new = [name for name in names if name not in stored and default_of(kind, name) is None]
    if lost or new:
        raise ChangedClassError(
            f"the class {reference(kind)} has the fields ({', '.join(names)}), but ({', '.join(stored)}) are stored; "
            + (
                f"keep {', '.join(lost)} in the class"
                if lost
                else f"give {', '.join(new)} a default in the class{_DEFAULTS}"
            )
        )


_DEFAULTS = ", a value or a factory such as list; only dataclasses and named tuples have known defaults"


def build_named(kind: type, named: dict[str, Any]) -> Any:
    """Return an instance of its fields by their names; missing fields get their defaults.

    Raises:
        ChangedClassError: the class is not compatible with these fields.
    """
    stored = tuple(named)
    check_fields(kind, stored)
    return builder(kind, stored)(named.values())


def has_name(member: enum.Enum) -> bool:
    """Return whether a member can be looked up by its name; a combination of flags has no name."""
    return type(member).__members__.get(member.name) is member


def member_of(kind: type, reference: str, name: Any) -> Any:
    """Return the member of an enumeration that stored data name.

    Args:
        kind: the enumeration.
        reference: its name in the stored data.
        name: of the member.

    Raises:
        ClassRefusedError: it has no such member.
    """
    member = getattr(kind, "__members__", {}).get(name) if type(name) is str else None
    if member is None:
        raise ClassRefusedError(f"the enum {reference} has no member {name!r} any more")
    return member


def is_frozen(kind: type) -> bool:
    """Return whether the fields of an instance cannot be assigned."""
    parameters = getattr(kind, "__dataclass_params__", None)
    return issubclass(kind, tuple) or bool(parameters and parameters.frozen)


_UNSET = object()
_COPYING = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")


def _is_copied_as(kind: Any, base: type) -> bool:
    """Return whether the class leaves it to Python how instances are copied and pickled."""
    return all(
        getattr(kind, name, None) is getattr(base, name, None) or _is_generated(getattr(kind, name), kind)
        for name in _COPYING
    )


def _is_generated(method: Any, kind: type) -> bool:
    # `dataclass(frozen=True, slots=True)` writes state methods, `NamedTuple` `__getnewargs__`; both add nothing.
    if issubclass(kind, tuple):
        return getattr(method, "__qualname__", "").endswith("__getnewargs__") and (
            getattr(method, "__module__", "") in ("collections", f"namedtuple_{kind.__name__}")
        )
    code = getattr(method, "__code__", None)
    is_of_attrs = is_attrs(kind) and code is not None and code.co_filename == sys.modules["attr._make"].__file__
    return is_of_attrs or getattr(method, "__module__", "") == "dataclasses"


@functools.lru_cache(maxsize=1024)
def _slots(kind: type) -> tuple[str, ...]:
    declared = [base.__dict__.get("__slots__", ()) for base in kind.__mro__]
    names = [name for slots in declared for name in ((slots,) if isinstance(slots, str) else slots)]
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _has_slots(kind: type) -> bool:
    return bool(_slots(kind)) or not getattr(kind, "__dictoffset__", 0)


def _fill_attributes(kind: type, names: tuple[str, ...], parts: Iterable[Any]) -> Any:
    made: Any = object.__new__(kind)
    made.__dict__.update(zip(names, parts, strict=True))
    return made


def _fill_slots(kind: type, names: tuple[str, ...], parts: Iterable[Any]) -> Any:
    made: Any = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        # A frozen class refuses an assignment.
        object.__setattr__(made, name, part)
    return made


def _fill_model(kind: Any, names: tuple[str, ...], parts: Iterable[Any]) -> Any:
    made = object.__new__(kind)
    others = {"__pydantic_extra__": None, "__pydantic_private__": None}
    made.__setstate__(
        {"__dict__": dict(zip(names, parts, strict=True)), "__pydantic_fields_set__": set(names), **others}
    )
    return made
