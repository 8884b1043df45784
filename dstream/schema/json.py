"""Values as JSON: what `to_files(format="json")` writes, and what a column of JSON holds.

Numbers, strings, truth values and None are their own; classes without parts are strings (`dstream.schema.scalars`);
lists, tuples and sets are arrays; whatever has fields, and dicts, are objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from dstream.base.showing import shown
from dstream.schema.decoders import dumped
from dstream.schema.records import JSON, unions_of
from dstream.schema.scalars import TEXT_FORMS, refusal, text_form
from dstream.values.fields import field_names, is_model, name_of

__all__ = ["NotJsonError", "plain"]


class NotJsonError(TypeError):
    """JSON has no form for a value.

    Attributes:
        type_name: its type, or the value in words.
        instead: what to write.
        field: the innermost field of a class around it, or the key of a dict; None if it is the item.
        owner: that class.
    """

    def __init__(self, type_name: str, instead: str, field: str | None = None, owner: str | None = None) -> None:
        super().__init__(refusal("JSON", type_name, instead, field, owner))
        self.type_name = type_name
        self.instead = instead
        self.field = field
        self.owner = owner

    def within(self, field: object, owner: str) -> NotJsonError:
        """Return the error as an object around the value sees it."""
        is_named = self.field is not None and (self.owner != _DICT or owner == _DICT)
        return self if is_named else NotJsonError(self.type_name, self.instead, str(field), owner)


_DICT = dict.__name__


def plain(value: Any) -> Any:
    """Return `value` as JSON has it: dataclasses and named tuples are objects, other tuples are arrays.

    NaN and infinities stay, which `json.loads` reads and some other programs do not.

    Raises:
        NotJsonError: it holds something that has no such form, or would be read as another value by its annotation.

    Example:
        >>> from dstream.schema.json import plain
        >>> from dstream.values import Entry
        >>> plain([Entry("a", (1, None))])
        [{'key': 'a', 'value': [1, None]}]
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return _object(value)
    if kind is list or kind is tuple:
        return list(map(plain, value))
    write = _WRITERS.get(kind)
    return _plain_of_a_subclass(value) if write is None else write(value)


def _array(values: Iterable[Any]) -> list[Any]:
    return list(map(plain, values))


_SCALARS = frozenset({str, int, float, bool, type(None)})
_WRITERS: dict[type, Any] = {
    **{kind: form.write for kind, form in TEXT_FORMS.items() if kind not in _SCALARS},
    set: _array,
    frozenset: _array,
}


def _object(pairs: Mapping[Any, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs.items():
        name = key if type(key) is str else _key(key)
        try:
            made[name] = plain(value)
        except NotJsonError as error:
            raise error.within(name, _DICT) from None
    if len(made) < len(pairs):
        raise NotJsonError(f"a dict with two keys of one text, {shown(pairs)},", _BEFORE)
    return made


def _key(key: Any) -> str:
    form = text_form(key)
    if form is None:
        raise NotJsonError(f"a key of type {type(key).__qualname__}, {shown(key)},", "map() it to a str before")
    return form.write(key)


_BEFORE = "map() it to a str, a number, a list or a dict before"


def _plain_of_a_subclass(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, type):
        raise NotJsonError(f"the class {value.__qualname__}", "write its name")
    if is_model(kind):
        return _model(value)
    if names := field_names(kind):
        return _record(value, names)
    for scalar in (str, int, float):  # An Enum of these too.
        if isinstance(value, scalar):
            return scalar(value) if not isinstance(value, str) else str.__str__(value)
    if isinstance(value, Enum) and (type(value.value) in _SCALARS or text_form(value.value) is not None):
        return plain(value.value)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list | tuple | set | frozenset):
        return _array(value)
    raise NotJsonError(kind.__qualname__, "take its .value or its .name" if isinstance(value, Enum) else _BEFORE)


def _model(value: Any) -> Any:
    try:
        return dumped(value)
    except Exception as error:  # A serializer of the user's may raise anything.
        name = type(value).__qualname__
        raise NotJsonError(f"{name} {shown(value)}, of which pydantic says: {error},", _BEFORE) from error


def _record(value: Any, names: Iterable[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in names:
        try:
            made[name] = plain(getattr(value, name))
        except NotJsonError as error:
            raise error.within(name, name_of(type(value))) from None
    kind: Any = type(value)
    for union in unions_of(kind, JSON):
        union.check("JSON", getattr(value, union.name), made[union.name])
    return made
