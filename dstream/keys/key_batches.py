"""Keys by the batch: what `canonical` and `stable_hash` say, found out for many keys at the speed of C.

Most batches hold keys of one class, whose parts are texts and numbers. One pass over the types says so.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from itertools import chain, repeat
from typing import Any

from dstream.keys.canonical import PLAIN, canonical, is_vetted
from dstream.keys.forms import Form, compared_fields, form_of, hashed_fields
from dstream.keys.hashing import HASHED_ALIKE, NONE_STAND_IN, SPREADERS, stand_in
from dstream.values.blaming import each
from dstream.values.fields import columns_of_fields

__all__ = ["are_canonical", "canonical_all", "canonical_keys", "stable_hashes"]

_MOST_KINDS = 4
"""With more types in a batch than these, looking at each key is faster than a pass for each type."""


def canonical_all(keys: list[Any]) -> list[Any]:
    """Return `canonical` of each key; the list itself if they all are."""
    return keys if are_canonical(keys) else list(map(canonical, keys))


def canonical_keys(keys: list[Any], items: Sequence[Any]) -> list[Any]:
    """Return the canonical forms of the keys that items have; a key that is refused is told with its item."""
    try:
        return canonical_all(keys)
    except Exception:
        return each(_canonical, items, keys)


def _canonical(key: Any, item: Any) -> Any:
    return canonical(key)


def are_canonical(keys: list[Any], kinds: Set[type] | None = None) -> bool:
    """Say whether `canonical` leaves all keys as they are; False also where only a look at each key can tell.

    Args:
        keys: any keys.
        kinds: their types, if these are known.
    """
    kinds = set(map(type, keys)) if kinds is None else kinds
    if len(kinds) == 1:
        (kind,) = kinds
        return kind in PLAIN or _are_of_kind_canonical(kind, keys)
    kinds = kinds - PLAIN
    if len(kinds) > _MOST_KINDS:
        return False
    return all(_are_of_kind_canonical(kind, [key for key in keys if type(key) is kind]) for kind in kinds)


def stable_hashes(keys: list[Any]) -> list[int]:
    """Return `stable_hash` of each canonical key."""
    return list(map(hash, zip(_stand_ins(keys), *map(repeat, SPREADERS), strict=False)))


def _are_of_kind_canonical(kind: type, keys: list[Any]) -> bool:
    if kind is float:
        return all(map(operator.eq, keys, keys))
    form = form_of(kind)
    if form is Form.FIELDS:
        return are_canonical(_values(compared_fields(kind), keys))
    if form is not Form.WHOLE:
        return PLAIN.issuperset(map(type, chain.from_iterable(keys))) or are_canonical(list(chain.from_iterable(keys)))
    return is_vetted(kind) and _equal_themselves(keys)


def _equal_themselves(keys: list[Any]) -> bool:
    try:
        return all(map(operator.eq, keys, keys)) and all(map(_has_hash, keys))
    except Exception:  # `canonical` says it in our words
        return False


def _has_hash(key: Any) -> bool:
    hash(key)
    return True


def _values(fields: tuple[str, ...], keys: list[Any]) -> list[Any]:
    """Return the values of the fields of all keys, in any order."""
    return list(chain.from_iterable(columns_of_fields(fields, keys)))


def _stand_ins(keys: list[Any]) -> list[Any]:
    """Return what is hashed for each key; the list itself if the keys are."""
    kinds = set(map(type, keys)) - HASHED_ALIKE
    if not kinds or (kinds == {float} and all(map(operator.eq, keys, keys))):
        return keys
    if kinds == {type(None)}:
        return [NONE_STAND_IN if key is None else key for key in keys]
    (kind,) = kinds if len(set(map(type, keys))) == 1 else (object,)
    form = form_of(kind)
    if form is Form.PARTS and len(set(map(len, keys))) == 1:
        return _of_tuples(keys)
    if form is Form.FIELDS and (fields := hashed_fields(kind)):
        return list(zip(*map(_stand_ins, columns_of_fields(fields, keys)), strict=True))
    return list(map(stand_in, keys))


def _of_tuples(keys: list[Any]) -> list[Any]:
    """Return what is hashed for tuples of one length; the list itself if no part of a tuple is replaced."""
    if HASHED_ALIKE.issuperset(map(type, chain.from_iterable(keys))):
        return keys
    columns = list(map(list, zip(*keys, strict=True)))
    found = list(map(_stand_ins, columns))
    return keys if all(map(operator.is_, columns, found)) else list(zip(*found, strict=True))
