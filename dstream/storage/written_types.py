"""The types that receipts speak of: those by which a task has written, and those that a collection has then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dstream.spi.store import Options
from dstream.storage.codec.codec import Codec
from dstream.storage.codec.described_codec import described_codec
from dstream.storage.codec.types import Type

__all__ = ["codec_by", "settled"]


def codec_by(types: Any, known: Codec) -> Codec:
    """Return the codec of the same collection by the types of a receipt, in the form that `to_json` gives them.

    Raises:
        IllegalStateError: they are none.
    """
    if types == known.to_json():
        return known
    return described_codec(types, known.kind, known.name, Options(), known.pickles)


def settled(known: Codec, written: Codec) -> Codec:
    """Return the codec of a collection with the types that are open settled as a task has found them."""
    if known.is_decided:
        return known
    key, value = _settled(known.key, written.key, known.strict), _settled(known.value, written.value, known.strict)
    return replace(known, key=key, value=value)


def _settled(known: Type | None, found: Type | None, is_strict: bool) -> Type | None:
    # A strict collection takes what was declared; what a task has found must not narrow it.
    return found if known is None or (known.is_open and not is_strict) else known
