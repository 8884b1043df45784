"""Kinds: the classes that records of files become, as forms that are made of their annotations.

A `Vocabulary` says what a format holds: JSON has texts, numbers and more, CSV has texts only, Parquet has dates, too.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import sys
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

from dstream.values.blaming import shown
from dstream.values.fields import field_names, has_default, hints_of, is_required_key, is_typed_dict
from sources.forms import (
    MADE,
    Anything,
    Each,
    Fixed,
    Form,
    FormOfItem,
    Mapped,
    Modelled,
    OneOf,
    OrAbsent,
    Record,
    Scalar,
    Unfit,
    Whole,
)
from sources.keyed_forms import Keyed
from sources.text_forms import PARSED, Spelled

__all__ = ["BINARY", "JSON", "TEXTS", "Vocabulary", "form_of", "kind_behind", "missing_columns"]


@dataclass(frozen=True)
class Vocabulary:
    """What the values of a format may become.

    Attributes:
        scalars: the form of each class that has no parts.
        fixed: the form of a few values.
        is_nested: the format has arrays and objects inside of records.
        has_columns: a record has a value in every column, so that None stands for a key that is absent.
    """

    scalars: Mapping[type, Form]
    fixed: Callable[[Fixed], Form]
    is_nested: bool
    has_columns: bool


def _as_it_is(fixed: Fixed) -> Form:
    return fixed


_PLAIN: dict[type, Form] = {**{kind: Scalar(kind) for kind in (str, int, bool, type(None))}, float: Whole(), **MADE}
JSON = Vocabulary(_PLAIN, _as_it_is, is_nested=True, has_columns=False)
BINARY = Vocabulary(
    {**_PLAIN, **{kind: Scalar(kind) for kind in (bytes, datetime.timedelta, uuid.UUID)}},
    _as_it_is,
    is_nested=True,
    has_columns=True,
)
TEXTS = Vocabulary(PARSED, Spelled.of, is_nested=False, has_columns=True)


def kind_behind(paths: tuple[Any, ...], kind: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the paths and the kind of a call in which the kind may stand behind the paths without its name."""
    if kind is None and len(paths) > 1 and isinstance(paths[-1], type):
        return paths[:-1], paths[-1]
    return paths, kind


def form_of(kind: Any, vocabulary: Vocabulary) -> FormOfItem:
    """Return the form of records that become a `kind`.

    Raises:
        TypeError: it is no dataclass, named tuple, TypedDict or pydantic model, or one of its fields is of a type that
            is not read.
    """
    if _is_model(kind):
        return Modelled(kind)
    if not _is_record(kind):
        raise TypeError(f"kind must be a dataclass, a named tuple, a TypedDict or a pydantic model, not {shown(kind)}")
    return _Forms(vocabulary).record(kind)


def missing_columns(form: FormOfItem | None, names: Sequence[str]) -> list[str]:
    """Return the fields that must have a column and have none; pydantic looks for those of a model itself."""
    if not isinstance(form, Record):
        return []
    return [name for name, _, _, is_required in form.fields if is_required and name not in names]


def _is_model(kind: Any) -> bool:
    pydantic: Any = sys.modules.get("pydantic")  # Who has a model has imported it.
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (is_typed_dict(kind) or dataclasses.is_dataclass(kind) or _is_named(kind))


def _is_named(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


class _Forms:
    """The forms of one call: those of classes each once, since a class may hold itself."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known: dict[Any, Record] = {}

    def record(self, kind: Any) -> Record:
        if kind in self._known:
            return self._known[kind]
        record = self._known[kind] = Record(kind, kind.__qualname__.rpartition("<locals>.")[2])
        hints = _hints(kind)
        for name, is_required in _fields(kind, hints).items():
            try:
                form = self._form(hints.get(name, Any))
            except TypeError as error:
                raise TypeError(f"the field {name} of {record.expected}: {error}") from None
            may_be_absent = self._vocabulary.has_columns and not is_required and is_typed_dict(kind)
            record.add(name, OrAbsent(form) if may_be_absent and not _takes_none(form) else form, is_required)
        return record

    def _form(self, hint: Any) -> Form:
        """Return the form of an annotation.

        Raises:
            TypeError: nothing of this format becomes a value of this type.
        """
        if hint is Any or isinstance(hint, typing.TypeVar):  # `Any` is a class from Python 3.11 on.
            return Anything()
        if isinstance(hint, typing.NewType):
            return self._form(hint.__supertype__)
        if hint is None or (isinstance(hint, type) and get_origin(hint) is None):
            return self._form_of_class(type(None) if hint is None else hint)
        return self._form_of_generic(hint, get_origin(hint), get_args(hint))

    def _form_of_class(self, kind: type) -> Form:
        if kind is object:
            return Anything()
        if kind in self._vocabulary.scalars:
            return self._vocabulary.scalars[kind]
        if issubclass(kind, enum.Enum):
            return self._vocabulary.fixed(Fixed.of_enumeration(kind))
        if self._vocabulary.is_nested and _is_model(kind):
            return Modelled(kind)
        if self._vocabulary.is_nested and _is_record(kind):
            return self.record(kind)
        if kind in _ARRAYS or kind in _OBJECTS:
            return self._form_of_generic(kind, kind, ())
        raise TypeError(f"nothing that stands in {self._where()} becomes a {kind.__qualname__}")

    def _where(self) -> str:
        return "a file" if self._vocabulary.is_nested else "a field of such a file, which is a text,"

    def _form_of_generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Form:
        if origin in (typing.Annotated, Required, NotRequired):
            return self._form(arguments[0])
        if origin in (Union, types.UnionType):
            return OneOf(tuple(self._form(each) for each in arguments))
        if origin is Literal:
            return self._vocabulary.fixed(Fixed(tuple((each, each) for each in arguments)))
        if self._vocabulary.is_nested and (found := self._form_of_parts(origin, arguments)) is not None:
            return found
        raise TypeError(f"nothing that stands in {self._where()} becomes a {_text_of(hint)}")

    def _form_of_parts(self, origin: Any, arguments: tuple[Any, ...]) -> Form | None:
        if origin is tuple and arguments and arguments[-1] is not ...:
            return Each(tuple, tuple(self._form(each) for each in arguments))
        if origin in _ARRAYS:
            return Each(_ARRAYS[origin], self._form(arguments[0] if arguments else Any))
        if origin in _OBJECTS:
            return self._form_of_objects(*(arguments or (Any, Any)))
        if _is_record(origin):  # A generic class: its type variables are anything.
            return self.record(cast(Any, origin))
        return None

    def _form_of_objects(self, key: Any, value: Any) -> Form | None:
        if key is str:
            return Mapped(self._form(value))
        if self._vocabulary.has_columns:
            return Keyed(self._form(key), self._form(value))
        return Mapped(self._form(value)) if key is Any else None


def _takes_none(form: Form) -> bool:
    try:
        form.made(None)
    except Unfit:
        return False
    return True


def _text_of(hint: Any) -> str:
    return (
        hint.__qualname__ if isinstance(hint, type) and get_origin(hint) is None else str(hint).removeprefix("typing.")
    )


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


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return hints_of(kind, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"an annotation of {kind.__qualname__} cannot be looked up ({error}): where annotations are texts, the "
            "classes that they name must stand at the top of a module"
        ) from error


def _fields(kind: Any, hints: dict[str, Any]) -> dict[str, bool]:
    """Return the names of the fields that are read, and whether each has to be there."""
    if is_typed_dict(kind):
        return {name: is_required_key(kind, name, hint) for name, hint in hints.items()}
    if dataclasses.is_dataclass(kind):
        given = [each for each in dataclasses.fields(kind) if each.init]
        return {each.name: not has_default(each) for each in given}
    return {name: name not in kind._field_defaults for name in field_names(kind)}
