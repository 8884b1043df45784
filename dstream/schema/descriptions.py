"""Stored types of collections: types from their descriptions in JSON, and the classes that they name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, get_args, get_origin

from dstream.base.validation import checked_text
from dstream.schema import classes
from dstream.schema.classes import Classes, ClassRefusedError
from dstream.schema.containers import ListType, MapType, MemberType, OptionalType
from dstream.schema.record_types import ClassType, DictType, PickledType
from dstream.schema.type_inference import STORED_SCALARS, Layout, OpenType
from dstream.schema.types import ColumnType, TimestampType
from dstream.values.fields import plain_hint

__all__ = ["classes_in", "type_from_json"]


_BY_NAME = {scalar.plain: scalar for scalar in STORED_SCALARS.values()}


def type_from_json(data: Any, known: Classes, hint: Any = None) -> ColumnType:
    """Return the type that `to_json` has described; a class that is not found leaves it without a hint.

    Args:
        data: the description.
        known: finds the classes that it names.
        hint: the type that the user has named, where a description is not enough.

    Raises:
        ValueError: the data describe no type; so do LookupErrors, TypeErrors and RecursionErrors.
    """
    if isinstance(data, str):
        return OpenType(Layout.STORED) if data == "?" else _BY_NAME[data]
    for container in (list, tuple, set, frozenset):
        if container.__name__ in data:
            return ListType(type_from_json(data[container.__name__], known), container, is_exact=True)
    if "datetime" in data:
        zone = data["datetime"]
        return TimestampType(None if zone is None else checked_text(zone), is_exact=True)
    if "map" in data:
        key, value = (type_from_json(part, known) for part in data["map"])
        return MapType(key, value, is_exact=True)
    if "optional" in data:
        return OptionalType(type_from_json(data["optional"], known))
    if "members" in data:
        kind, problem = _resolved(checked_text(data["members"]), known)
        return MemberType(data["members"], type_from_json(data["each"], known), kind, True, problem)
    if "other" in data:
        kind = hint or _found(checked_text(data["other"]), known)
        return PickledType(checked_text(data["other"]), tuple(map(checked_text, data["classes"])), kind)
    fields = tuple((checked_text(name), type_from_json(part, known)) for name, part in data["fields"])
    if len(dict(fields)) < len(fields):
        raise ValueError("two fields have one name")
    if "keys" in data:
        return DictType(fields, reference=checked_text(data["keys"]), kind=_resolved(data["keys"], known)[0])
    kind, problem = _resolved(checked_text(data["record"]), known)
    return ClassType(fields, reference=data["record"], kind=kind, problem=problem)


def _resolved(name: str, known: Classes) -> tuple[type | None, str]:
    try:
        return known.resolve(name), ""
    except ClassRefusedError as error:
        return None, str(error)


def _found(name: str, known: Classes) -> Any:
    return _resolved(name, known)[0] if ":" in name and "[" not in name and "|" not in name else None


def classes_in(hint: Any) -> Iterator[type]:
    """Give the classes that a hint names, also those inside the fields of dataclasses and named tuples."""
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
