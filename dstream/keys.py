"""Keys: which values may be grouped by, which of them are one key, and where each one is routed.

Equality follows a Python dict (`1`, `1.0` and `True` are one key), with one difference: every NaN
is the same key, since a dict's identity rule cannot survive a process border. A key whose hash
comes from its identity, or that has no hash, is refused on every engine.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import math
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from dstream.errors import EngineError, UnstableKeyError

__all__ = ["canonical", "canonical_all", "check_hash_seed", "stable_hash", "stable_hashes"]

NAN = math.nan
"""The one NaN that stands for all of them: dicts find it again by identity."""

_NONE_HASH = 0x5EED
_NAN_HASH = 0x7FF8
_PLAIN = frozenset({str, int, bytes, bool, type(None)})
_HASHED_ALIKE = _PLAIN - {type(None)}
_HASHED_BY_ADDRESS = (types.BuiltinFunctionType, types.MethodType, types.GenericAlias, types.UnionType)
_vetted: set[type] = set()


def canonical(key: Any) -> Any:
    """Return the value that stands for `key` in a dict, in any process.

    Raises:
        UnstableKeyError: `key` has no hash, or one that comes from its identity.
    """
    kind = type(key)
    if kind in _PLAIN:
        return key
    if kind is float:
        return key if key == key else NAN
    return _canonical_other(key, kind)


def canonical_all(keys: list[Any]) -> list[Any]:
    """Return `canonical` of each key; of texts and ints, the list itself."""
    return keys if _PLAIN.issuperset(map(type, keys)) else list(map(canonical, keys))


def stable_hash(key: Any) -> int:
    """Return a hash of the canonical `key` that agrees with `==` and is the same in every worker.

    Strings and bytes rely on a fixed `PYTHONHASHSEED` (see `check_hash_seed`). On Python 3.11,
    `hash(None)` is an address, so None is hashed apart, also inside tuples and dataclasses.

    Raises:
        UnstableKeyError: the key's class hashes a None in a way that cannot be seen from outside.
    """
    kind = type(key)
    if kind is float and key != key:
        return _NAN_HASH
    if key is None:
        return _NONE_HASH
    if kind in _PLAIN or kind is float:
        return hash(key)
    if isinstance(key, tuple) and _hash_of(kind) is tuple.__hash__:
        return hash(tuple(map(stable_hash, key)))
    if isinstance(key, frozenset):
        return hash(frozenset(map(stable_hash, key)))
    if _has_generated_hash(kind):
        return hash(tuple(stable_hash(getattr(key, name)) for name in _compared_fields(kind)))
    return _hash_other(key, kind)


def stable_hashes(keys: list[Any]) -> list[int]:
    """Return `stable_hash` of each canonical key."""
    return list(map(hash if _HASHED_ALIKE.issuperset(map(type, keys)) else stable_hash, keys))


def check_hash_seed() -> None:
    """Refuse to route keys in a worker whose string hashes are random.

    Raises:
        EngineError: `PYTHONHASHSEED` is not a number in this process.
    """
    seed = os.environ.get("PYTHONHASHSEED", "random")
    if not seed.isdigit():
        raise EngineError(
            f"keys cannot be routed: PYTHONHASHSEED is {seed!r} on this worker, so equal strings hash apart in "
            "different processes; start Spark with spark.executorEnv.PYTHONHASHSEED=0"
        )


def _canonical_other(key: Any, kind: type) -> Any:
    if isinstance(key, tuple) and _hash_of(kind) is tuple.__hash__:
        return _rebuilt(key, tuple(map(canonical, key)), lambda parts: tuple.__new__(kind, parts))
    if isinstance(key, frozenset):
        return _rebuilt(key, frozenset(map(canonical, key)), frozenset)
    if _has_generated_hash(kind):
        return _canonical_dataclass(key, kind)
    if kind not in _vetted:
        _vet(key, kind)
    return key if isinstance(key, type) or _equals_itself(key) else NAN


def _rebuilt(key: Any, parts: Any, rebuild: Callable[[Any], Any]) -> Any:
    """Return `key` itself unless one of its parts became another object."""
    unchanged = all(map(_same, key, parts)) if isinstance(key, tuple) else parts == key
    return key if unchanged else rebuild(parts)


def _same(left: object, right: object) -> bool:
    return left is right


def _canonical_dataclass(key: Any, kind: type) -> Any:
    changed = {}
    for name in _compared_fields(kind):
        value = getattr(key, name)
        standard = canonical(value)
        if standard is not value:
            changed[name] = standard
    if not changed:
        return key
    clone = copy.copy(key)
    for name, value in changed.items():
        object.__setattr__(clone, name, value)
    return clone


def _vet(key: Any, kind: type) -> None:
    """Accept the class of `key` once and for all, or refuse it."""
    if isinstance(key, type | enum.Enum):
        return
    if _hash_of(kind) is None:
        raise UnstableKeyError(
            f"{_shown(key)} cannot be a key: {kind.__qualname__} has no hash; use an immutable value, such as a tuple"
        )
    if _hash_of(kind) is object.__hash__ or _eq_of(kind) is object.__eq__ or isinstance(key, _HASHED_BY_ADDRESS):
        raise UnstableKeyError(
            f"{_shown(key)} cannot be a key: {kind.__qualname__} compares and hashes by identity, so equal copies in "
            "two processes would be two keys; give it __eq__ and __hash__ (a frozen dataclass has both)"
        )
    if kind.__module__ != "builtins" and _changes_when_copied(key):
        raise UnstableKeyError(
            f"{_shown(key)} cannot be a key: a copy of it that went through pickle has another hash or is not equal; "
            f"{kind.__qualname__}.__hash__ must depend on values only"
        )
    _vetted.add(kind)


def _equals_itself(key: Any) -> bool:
    try:
        hash(key)
        return bool(key == key)
    except Exception as error:
        raise UnstableKeyError(f"{_shown(key)} cannot be a key: {error}") from error


def _changes_when_copied(key: Any) -> bool:
    import cloudpickle  # here, since it takes a tenth of the time of `import dstream` and few keys come this far

    clone = cloudpickle.loads(cloudpickle.dumps(key))
    return _equals_itself(key) and (hash(clone) != hash(key) or not clone == key)


def _hash_other(key: Any, kind: type) -> int:
    if isinstance(key, type):
        return hash((key.__module__, key.__qualname__))
    if isinstance(key, range):
        shape = (len(key), key.start, key.step) if key else (0,)
        return hash(shape[:2] if len(key) == 1 else shape)
    if isinstance(key, enum.Enum) and _hash_of(kind) is enum.Enum.__hash__:
        return hash(key.name)
    if sys.version_info < (3, 12) and _may_hash_none(key, kind):
        raise UnstableKeyError(
            f"{_shown(key)} cannot be a key: it holds a None and {kind.__qualname__} has a __hash__ of its own; on "
            "Python 3.11 hash(None) differs from process to process. Key by a tuple or a frozen dataclass, "
            "or use Python 3.12 or later"
        )
    return hash(key)


def _may_hash_none(key: Any, kind: type) -> bool:
    own_hash = getattr(_hash_of(kind), "__code__", None) is not None
    return own_hash and any(value is None for value in _state(key))


def _state(key: Any) -> list[Any]:
    slots = [name for base in type(key).__mro__ for name in getattr(base, "__slots__", ())]
    values = (getattr(key, name, 0) for name in slots if name != "__weakref__")
    return [*getattr(key, "__dict__", {}).values(), *values]


def _has_generated_hash(kind: type) -> bool:
    """Say whether `@dataclass` wrote the hash of `kind` (its code has no file)."""
    code = getattr(_hash_of(kind), "__code__", None)
    return dataclasses.is_dataclass(kind) and code is not None and code.co_filename == "<string>"


def _compared_fields(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if (field.compare if field.hash is None else field.hash)]


def _hash_of(kind: type) -> Any:
    return kind.__hash__


def _eq_of(kind: type) -> Any:
    return kind.__eq__


def _shown(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 200 else text[:200] + "..."
