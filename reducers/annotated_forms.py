"""Forms of annotations: what the columns of a dataclass, a named tuple or a TypedDict hold."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin

from dstream.values.fields import field_names, hints_of, is_required_key, is_typed_dict
from reducers.column_forms import UNKNOWN, Listed, Struct, Valued
from reducers.scalar_forms import SCALARS, Form, Moment, Scalar

__all__ = ["forms_of_fields"]


def forms_of_fields(kind: Any, *, strict: bool = True) -> dict[str, Form]:
    """Return the form of each field of a class; none for a class without fields.

    Args:
        kind: the class.
        strict: a field whose annotation no column holds is refused. Otherwise its values decide.

    Raises:
        TypeError: a field is of a type that no column holds.
    """
    return _fields(kind, strict, ())


def _fields(kind: Any, strict: bool, around: tuple[Any, ...]) -> dict[str, Form]:
    hints = _hints(kind, strict)
    names = tuple(hints) if is_typed_dict(kind) else field_names(kind)
    forms = {}
    for name in names:
        try:
            forms[name] = _form(hints.get(name, Any), (*around, kind))
        except TypeError as error:
            if strict:
                raise TypeError(f"the field {name} of {kind.__qualname__}: {error}") from None
            forms[name] = UNKNOWN
    return forms


def _hints(kind: Any, strict: bool) -> dict[str, Any]:
    try:
        return hints_of(kind, include_extras=True)
    except Exception as error:
        if not strict:  # The module of a class may not be there where its items are.
            return {}
        raise TypeError(f"an annotation of {kind.__qualname__} cannot be looked up ({error})") from error


def _form(hint: Any, around: tuple[Any, ...]) -> Form:
    """Return the form of an annotation.

    Raises:
        TypeError: no column holds values of this type.
    """
    if hint in (Any, object, None, type(None)) or isinstance(hint, typing.TypeVar):
        return UNKNOWN
    if isinstance(hint, typing.NewType):
        return _form(hint.__supertype__, around)
    if isinstance(hint, type) and get_origin(hint) is None:
        return _form_of_class(hint, around)
    return _form_of_generic(hint, get_origin(hint), get_args(hint), around)


def _form_of_class(kind: Any, around: tuple[Any, ...]) -> Form:
    if kind in SCALARS:
        return Scalar(kind)
    if kind is datetime:
        return Moment(None)
    if issubclass(kind, enum.Enum):
        return Valued(kind, UNKNOWN).taking(list(kind))
    if kind in _LISTS:
        return Listed(UNKNOWN)
    if kind in around:
        raise TypeError(f"it holds {kind.__qualname__} again, and a column has a last level")
    if forms := _fields(kind, True, around) if is_typed_dict(kind) or field_names(kind) else {}:
        return Struct(tuple(forms), tuple(forms.values()), _absent_keys(kind))
    raise _no_column(kind.__qualname__)


def _absent_keys(kind: Any) -> frozenset[str]:
    """Return the keys of a TypedDict that may be absent."""
    hints = _hints(kind, True) if is_typed_dict(kind) else {}
    return frozenset(name for name, hint in hints.items() if not is_required_key(kind, name, hint))


_LISTS: tuple[Any, ...] = (
    list,
    tuple,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
)


def _form_of_generic(hint: Any, origin: Any, arguments: tuple[Any, ...], around: tuple[Any, ...]) -> Form:
    if origin is typing.Annotated and arguments[0] is datetime:
        zoned = any(isinstance(each, tzinfo) for each in hint.__metadata__)
        return Moment(True) if zoned else Moment(None)
    if origin in (typing.Annotated, Required, NotRequired):
        return _form(arguments[0], around)
    if origin in (Union, types.UnionType):
        return _only((each for each in arguments if each is not type(None)), hint, around)
    if origin is Literal:
        return _only({type(each) for each in arguments}, hint, around)
    if origin in _LISTS and (origin is not tuple or arguments[1:] == (...,)):
        return Listed(_form(arguments[0], around))
    if dataclasses.is_dataclass(origin) or field_names(origin or object):
        return _form_of_class(origin, around)
    raise _no_column(str(hint).removeprefix("typing."))


def _only(hints: Iterable[Any], hint: Any, around: tuple[Any, ...]) -> Form:
    found = list(hints)
    if len(found) != 1:
        raise _no_column(str(hint).removeprefix("typing."))
    return _form(found[0], around)


def _no_column(name: str) -> TypeError:
    return TypeError(
        f"no column holds values of type {name}; str, int, float, bool, bytes, Decimal, date, time, datetime, "
        "timedelta, Enum, lists of these and classes with fields are held"
    )
