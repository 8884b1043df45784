"""The one value that stands for a key and for all that equal it, and what is refused."""

from __future__ import annotations

import copy
import enum
import operator
import types
from typing import Any

from dstream.errors import UnstableKeyError
from dstream.keys.forms import Form, compared_fields, form_of, nan_of_fields
from dstream.keys.nan import NAN, FieldNan
from dstream.values.flattened import refuse_awaitable

__all__ = ["PLAIN", "canonical", "is_vetted", "shown"]

PLAIN = frozenset({str, int, bytes, bool, type(None)})
"""Types whose instances are their own canonical keys."""
_HASHED_BY_ADDRESS = (types.BuiltinFunctionType, types.MethodType, types.GenericAlias, types.UnionType)
_vetted: set[type] = set()


def canonical(key: Any) -> Any:
    """Return the value that stands for `key` in a dict, in any process.

    Raises:
        UnstableKeyError: `key` has no hash, or one that comes from its identity.
    """
    kind: Any = type(key)
    if kind in PLAIN:
        return key
    if kind is tuple:
        return _canonical_tuple(key, kind)  # Asking for its form takes as long again.
    if kind is float:
        return key if key == key else NAN
    form = form_of(kind)
    if form is Form.PARTS:
        return _canonical_tuple(key, kind)
    if form is Form.SET:
        parts = frozenset(map(canonical, key))
        return key if parts == key else parts
    if form is Form.FIELDS:
        return _canonical_dataclass(key, kind)
    if kind is FieldNan:
        return NAN
    if kind not in _vetted:
        _vet(key, kind)
    return key if isinstance(key, type) or _equals_itself(key) else NAN


def is_vetted(kind: type) -> bool:
    """Say whether a key of this class is accepted as long as it has a hash and equals itself."""
    return kind in _vetted or issubclass(kind, enum.Enum)


def shown(key: Any) -> str:
    """Return a key as messages show it."""
    text = repr(key)
    return text if len(text) <= 200 else text[:200] + "..."


def _canonical_tuple(key: Any, kind: type) -> Any:
    for part in key:
        if type(part) not in PLAIN:
            break
    else:  # A loop, since most tuples are short: `issuperset` over a `map` of them takes twice as long (CPython 3.11).
        return key
    parts = tuple(map(canonical, key))
    if all(map(operator.is_, key, parts)):
        return key
    return parts if issubclass(kind, enum.Enum) else tuple.__new__(kind, parts)  # type: ignore[type-var]


def _canonical_dataclass(key: Any, kind: type) -> Any:
    changed = {}
    for name in compared_fields(kind):
        value = getattr(key, name)
        standard = canonical(value)
        if standard is NAN:
            standard = nan_of_fields(kind)
        if standard is not value:
            changed[name] = standard
    if not changed:
        return key
    clone = copy.copy(key)
    for name, value in changed.items():
        object.__setattr__(clone, name, value)
    return clone


def _vet(key: Any, kind: Any) -> None:
    """Accept the class of `key` once and for all, or refuse it."""
    if isinstance(key, type | enum.Enum):
        return
    refuse_awaitable(key)
    if kind.__hash__ is None:
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: {kind.__qualname__} has no hash; use an immutable value, such as a tuple"
        )
    if kind.__hash__ is object.__hash__ or kind.__eq__ is object.__eq__ or isinstance(key, _HASHED_BY_ADDRESS):
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: {kind.__qualname__} compares and hashes by identity, so equal copies in "
            "two processes would be two keys; give it __eq__ and __hash__ (a frozen dataclass has both)"
        )
    if kind.__module__ != "builtins" and _changes_when_copied(key):
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: a copy of it that went through pickle has another hash or is not equal; "
            f"{kind.__qualname__}.__hash__ must depend on values only"
        )
    _vetted.add(kind)


def _equals_itself(key: Any) -> bool:
    try:
        hash(key)
        return bool(key == key)
    except Exception as error:
        raise UnstableKeyError(f"{shown(key)} cannot be a key: {error}") from error


def _changes_when_copied(key: Any) -> bool:
    import cloudpickle  # here, since it takes a tenth of the time of `import dstream` and few keys come this far

    clone = cloudpickle.loads(cloudpickle.dumps(key))
    return _equals_itself(key) and (hash(clone) != hash(key) or not clone == key)
