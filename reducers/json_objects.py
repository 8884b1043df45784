"""Lines of JSON, and what stands in them for dataclasses and named tuples."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dstream.values.blaming import each
from dstream.values.fields import field_names
from reducers.line_formats import Unnamed

__all__ = ["JsonLines", "plain"]


@dataclass(frozen=True, slots=True)
class JsonLines(Unnamed):
    """Each item as a line of JSON. Characters that the encoding has not are written as escapes."""

    def lines(self, items: Sequence[Any]) -> str:
        """Return the lines of some items, each with its end.

        Raises:
            TypeError: an item holds what JSON has not.
        """
        return "\n".join([*each(_one_line, items), ""])

    def escaped(self, items: Sequence[Any], encoding: str) -> str:
        """Return the lines in ASCII."""
        return "\n".join([*(json.dumps(_plain_item(item)) for item in items), ""])


def _one_line(item: Any) -> str:
    return _ENCODER.encode(_plain_item(item))


def _plain_item(item: Any) -> Any:
    try:
        return plain(item)
    except _NoFormError as error:
        raise error.complete() from None


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def plain(value: Any) -> Any:
    """Return `value` as JSON has it: dataclasses and named tuples are objects, other tuples are arrays.

    NaN and infinities stay, which `json.loads` reads and some other programs do not.

    Raises:
        TypeError: it holds something that has no such form, or an object with a key that is no text.

    Example:
        >>> from dstream.values import Entry
        >>> plain([Entry("a", (1, None))])
        [{'key': 'a', 'value': [1, None]}]
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return _object(value.items())
    if kind is list or kind is tuple:
        return _array(value)
    return _plain_of_a_subclass(value)


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _object(pairs: Any) -> dict[str, Any]:
    made = {}
    for key, value in pairs:
        if not isinstance(key, str):
            # `json.dumps` makes texts of numbers, so that 1 and "1" would be one key.
            raise TypeError(f"a key of a JSON object is a text, not {type(key).__name__} {key!r}: make a str of it")
        made[str.__str__(key)] = _part(key, value)
    return made


def _array(values: Sequence[Any]) -> list[Any]:
    return [_part(place, part) for place, part in enumerate(values)]


def _part(place: str | int, value: Any) -> Any:
    try:
        return plain(value)
    except _NoFormError as error:
        error.places.insert(0, place)
        raise


def _plain_of_a_subclass(value: Any) -> Any:
    if isinstance(value, type):
        raise _NoFormError(f"the class {value.__qualname__}", "take its name")
    if names := field_names(type(value)):
        return {name: _part(name, getattr(value, name)) for name in names}
    for kind in (str, int, float):  # An Enum of these too.
        if isinstance(value, kind):
            return kind(value) if not isinstance(value, str) else str.__str__(value)
    if isinstance(value, dict):
        return _object(value.items())
    if isinstance(value, list | tuple):
        return _array(value)
    raise _NoFormError(type(value).__name__, _instead_of(value))


def _instead_of(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return "take its .value or its .name"
    if isinstance(value, datetime.date | datetime.time):
        return "take its .isoformat()"
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return "take str(...) of it, or float(...) of a number that may be rounded"
    return "make a str, a number, a list or a dict of it before"


class _NoFormError(TypeError):
    """JSON has no form for a value.

    Attributes:
        places: where it stands in the item, from outside: names and positions.
    """

    def __init__(self, kind: str, instead: str) -> None:
        super().__init__(f"JSON has no form for {kind}: {instead}")
        self.kind = kind
        self.instead = instead
        self.places: list[str | int] = []

    def complete(self) -> TypeError:
        """Return the error as users see it."""
        if not self.places:
            return TypeError(str(self))
        where = "".join(f"[{place!r}]" for place in self.places)
        return TypeError(f"JSON has no form for {self.kind}, which stands at {where} of the item: {self.instead}")
