"""Kinds: the classes that records of files become, as forms that are made of their annotations."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

from dstream.values.blaming import shown
from dstream.values.fields import field_names
from sources.forms import MADE, Anything, Each, Fixed, Form, Mapped, OneOf, Record, Scalar, Whole

__all__ = ["form_of"]


def form_of(kind: Any) -> Record:
    """Return the form of records that become a `kind`.

    Raises:
        TypeError: it is no dataclass, named tuple or TypedDict, or one of its fields is of a type that is not read.
    """
    if not _is_record(kind):
        raise TypeError(f"kind must be a dataclass, a named tuple or a TypedDict, not {shown(kind)}")
    return _record(kind, {})


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (typing.is_typeddict(kind) or dataclasses.is_dataclass(kind) or _is_named(kind))


def _is_named(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _record(kind: Any, known: dict[Any, Record]) -> Record:
    """Return the form of a class, each once: a class may hold itself."""
    if kind in known:
        return known[kind]
    record = known[kind] = Record(kind, kind.__qualname__.rpartition("<locals>.")[2])
    hints = _hints(kind)
    for name, is_required in _fields(kind, hints).items():
        try:
            record.add(name, _form(hints.get(name, Any), known), is_required)
        except TypeError as error:
            raise TypeError(f"the field {name} of {record.expected}: {error}") from None
    return record


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"an annotation of {kind.__qualname__} cannot be looked up ({error}): where annotations are texts, the "
            "classes that they name must stand at the top of a module"
        ) from error


def _fields(kind: Any, hints: dict[str, Any]) -> dict[str, bool]:
    """Return the names of the fields that are read, and whether each has to be there."""
    if typing.is_typeddict(kind):
        return {name: _is_required(kind, name, hint) for name, hint in hints.items()}
    if dataclasses.is_dataclass(kind):
        none = dataclasses.MISSING
        given = [each for each in dataclasses.fields(kind) if each.init]
        return {each.name: each.default is none and each.default_factory is none for each in given}
    return {name: name not in kind._field_defaults for name in field_names(kind)}


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    # Of annotations that are texts, Python 3.11 to 3.13 do not see that a key need not be there.
    marked = get_origin(hint)
    return marked is Required or (marked is not NotRequired and name in kind.__required_keys__)


def _form(hint: Any, known: dict[Any, Record]) -> Form:
    """Return the form of an annotation.

    Raises:
        TypeError: nothing of JSON becomes a value of this type.
    """
    if hint is Any or isinstance(hint, typing.TypeVar):  # `Any` is a class from Python 3.11 on.
        return Anything()
    if isinstance(hint, typing.NewType):
        return _form(hint.__supertype__, known)
    if hint is None or (isinstance(hint, type) and get_origin(hint) is None):
        return _form_of_class(type(None) if hint is None else hint, known)
    return _form_of_generic(hint, get_origin(hint), get_args(hint), known)


def _form_of_class(kind: type, known: dict[Any, Record]) -> Form:
    if kind is object:
        return Anything()
    if kind is float:
        return Whole()
    if kind in (str, int, bool, type(None)):
        return Scalar(kind)
    if kind in MADE:
        return MADE[kind]
    if issubclass(kind, enum.Enum):
        return Fixed.of_enumeration(kind)
    if _is_record(kind):
        return _record(kind, known)
    if kind in _ARRAYS or kind in _OBJECTS:
        return _form_of_generic(kind, kind, (), known)
    raise TypeError(f"nothing that stands in a file becomes a {kind.__qualname__}")


_ARRAYS: dict[Any, Any] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: frozenset,
}
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _form_of_generic(hint: Any, origin: Any, arguments: tuple[Any, ...], known: dict[Any, Record]) -> Form:
    if origin in (typing.Annotated, Required, NotRequired):
        return _form(arguments[0], known)
    if origin in (Union, types.UnionType):
        return OneOf(tuple(_form(each, known) for each in arguments))
    if origin is Literal:
        return Fixed(tuple((each, each) for each in arguments))
    if origin is tuple and arguments and arguments[-1] is not ...:
        return Each(tuple, tuple(_form(each, known) for each in arguments))
    if origin in _ARRAYS:
        return Each(_ARRAYS[origin], _form(arguments[0] if arguments else Any, known))
    if origin in _OBJECTS and (not arguments or arguments[0] in (str, Any)):
        return Mapped(_form(arguments[1] if arguments else Any, known))
    if _is_record(origin):  # A generic class: its type variables are anything.
        return _record(cast(Any, origin), known)
    raise TypeError(f"nothing that stands in a file becomes a {str(hint).removeprefix('typing.')}")
