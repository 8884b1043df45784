"""Values that are handed out: shared where nobody can change them, copied otherwise."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

from dstream.storage.codec.codec import Codec

__all__ = ["SHARED", "own_copy", "same_value"]

SHARED = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        str,
        bytes,
        datetime.date,
        datetime.datetime,
        datetime.timedelta,
        decimal.Decimal,
        uuid.UUID,
    }
)
"""Types whose values nobody can change."""

_COMPARED = frozenset({bool, int, str, bytes})


def own_copy(codec: Codec, value: Any) -> Any:
    """Return a value that its receiver may change without changing `value`."""
    if type(value) in SHARED:
        return value
    if codec.value is not None and codec.value.is_immutable and codec.value.fits(value):
        return value
    return codec.decode_value(codec.encode_value(value))


def same_value(codec: Codec, left: Any, right: Any) -> bool:
    """Say whether nobody could tell two values apart; False if that is not certain."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) in _COMPARED:
        return bool(left == right)
    return codec.encode_value(left) == codec.encode_value(right)
