"""Codecs and types of existing collections, rebuilt from stored descriptions and from the receipts of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dstream.base.validation import NOT_UNDERSTOOD, checked_text
from dstream.schema.classes import Classes, ClassRefusedError, field_names
from dstream.schema.containers import ListType, MapType, MemberType, OptionalType
from dstream.schema.record_types import ClassType, DictType, PickledType, has_changed
from dstream.schema.type_inference import STORED_SCALARS, Layout, OpenType, classes_in
from dstream.schema.types import ColumnType, TimestampType
from dstream.spi.store import Kind, Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles

__all__ = ["codec_by", "described_codec", "settled", "type_from_json"]


def described_codec(data: Any, kind: Kind, name: str, options: Options, pickles: Pickles) -> Codec:
    """Return the codec that `Codec.to_json` has described.

    Raises:
        IllegalStateError: the stored description has no types.
        ValueError: the options contradict the stored ones; the message names both.
    """
    asked = Codec.of(kind, name, options, pickles)
    try:
        codec = replace(
            asked,
            key=_stored(data["key"], asked.key, asked.pickles, options.key_type),
            value=_stored(data["value"], asked.value, asked.pickles, options.value_type),
            strict=bool(data["strict"]),
        )
    except NOT_UNDERSTOOD as error:
        raise asked.damaged("the description of its types", error) from error
    _agree(codec, "key_type", asked.key and asked.key.name, codec.key and codec.key.name)
    _agree(codec, "value_type", asked.value and asked.value.name, codec.value and codec.value.name)
    _agree(codec, "strict", options.strict, codec.strict)
    found = [part.hint for part in (codec.key, codec.value) if part is not None]
    return replace(codec, pickles=asked.pickles.allowing(*_named(found, asked.pickles)))


def _named(found: Iterable[Any], pickles: Pickles) -> Iterator[type]:
    """Yield the classes that pickles may create, including fields of an allowed class, but none named only by data."""
    classes = (kind for hint in found for kind in classes_in(hint))
    if pickles.mode == "trusted":
        yield from classes
    else:
        yield from (inner for kind in classes if kind in pickles.allowed for inner in classes_in(kind))


def _stored(data: Any, asked: ColumnType | None, pickles: Pickles, hint: Any) -> ColumnType | None:
    return asked if data is None else type_from_json(data, pickles, hint)


def _agree(codec: Codec, option: str, asked: Any, stored: Any) -> None:
    if asked is not None and asked != stored:
        raise ValueError(f"{codec} exists with {option}={stored}; it was asked for with {option}={asked}")


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
    names = tuple(name for name, _ in fields)
    changed = kind is not None and (field_names(kind) != names or any(has_changed(part) for _, part in fields))
    return ClassType(fields, reference=data["record"], kind=kind, problem=problem, has_changed=changed)


def _resolved(name: str, known: Classes) -> tuple[type | None, str]:
    try:
        return known.resolve(name), ""
    except ClassRefusedError as error:
        return None, str(error)


def _found(name: str, known: Classes) -> Any:
    return _resolved(name, known)[0] if ":" in name and "[" not in name and "|" not in name else None


def codec_by(types: Any, known: Codec) -> Codec:
    """Return the codec of the same collection by the types of a receipt, in the form of `to_json`.

    Raises:
        IllegalStateError: they are none.
    """
    # Almost all receipts have the types of the collection; a separate codec for each would be parsed from JSON.
    if types == known.to_json():
        return known
    return described_codec(types, known.kind, known.name, Options(), known.pickles)


def settled(known: Codec, written: Codec) -> Codec:
    """Return the codec of a collection with the types that are open settled as a task has found them."""
    if known.is_decided:
        return known
    key, value = _settled(known.key, written.key, known.strict), _settled(known.value, written.value, known.strict)
    return replace(known, key=key, value=value)


def _settled(known: ColumnType | None, found: ColumnType | None, is_strict: bool) -> ColumnType | None:
    # A strict collection has the declared types; the types that a task has found must not narrow it.
    return found if known is None or (known.is_open and not is_strict) else known
