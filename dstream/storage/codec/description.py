"""Codecs of existing collections, rebuilt from stored descriptions and from the receipts of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dstream.base.validation import NOT_UNDERSTOOD
from dstream.schema.descriptions import classes_in, type_from_json
from dstream.schema.types import ColumnType
from dstream.spi.store import Kind, Options
from dstream.storage.codec.collection import Codec
from dstream.storage.codec.pickles import Pickles

__all__ = ["codec_by", "described_codec", "settled"]


def described_codec(data: Any, kind: Kind, name: str, options: Options, pickles: Pickles) -> Codec:
    """Return the codec that `Codec.to_json` has described.

    Raises:
        IllegalStateError: what is stored describes no types.
        ValueError: the options contradict what is stored; the message names both.
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
    """Give the classes that pickles may make: those of an allowed class's fields too, and none that data alone name."""
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


def codec_by(types: Any, known: Codec) -> Codec:
    """Return the codec of the same collection by the types of a receipt, in the form that `to_json` gives them.

    Raises:
        IllegalStateError: they are none.
    """
    # Almost all receipts have the types of the collection; a codec of its own for each would be made from JSON.
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
    # A strict collection takes what was declared; what a task has found must not narrow it.
    return found if known is None or (known.is_open and not is_strict) else known
