"""Hashes of keys that are the same in every worker."""

from __future__ import annotations

import enum
import os
import sys
from typing import Any

from dstream.errors import EngineError, UnstableKeyError
from dstream.keys.canonical import shown
from dstream.keys.forms import Form, form_of, hashed_fields

__all__ = ["HASHED_ALIKE", "NONE_STAND_IN", "SPREADERS", "check_hash_seed", "stable_hash", "stand_in"]

SPREADERS = (1085565424964045660, 800584610055520120)
"""Mix the bits of the hash of a key, which is hashed in a tuple with them.

The hash of an int is the int, so the remainders of full hours in milliseconds are all the same. CPython mixes the
hashes of the parts of a tuple as xxHash does, one round for each part; after two rounds ints in a row are not even yet.
Of 94,000 pairs of numbers this one spreads weekdays, months, hours and the like best.
"""
NONE_STAND_IN = None if sys.version_info >= (3, 12) else 0x5EED
"""On Python 3.11 `hash(None)` is an address."""
_NAN_STAND_IN = 0x7FF8
_PLAIN = frozenset({str, int, bytes, bool})
HASHED_ALIKE = _PLAIN if NONE_STAND_IN is not None else _PLAIN | {type(None)}
"""Types whose instances hash alike in all processes of one `PYTHONHASHSEED`."""


def stable_hash(key: Any) -> int:
    """Return a hash of the canonical `key` that agrees with `==` and is the same in every worker.

    Its remainders are spread evenly, whatever the keys and the divisor. Strings and bytes rely on a fixed
    `PYTHONHASHSEED` (see `check_hash_seed`).

    Raises:
        UnstableKeyError: the key's class hashes a None in a way that cannot be seen from outside.
    """
    return hash((stand_in(key), *SPREADERS))


def stand_in(key: Any) -> Any:
    """Return what is hashed for a canonical key: itself, unless its hash or that of a part is an address.

    A tuple of stand-ins hashes like the tuple that it stands for if no part is replaced, so it does not matter whether
    a container is built anew.

    Raises:
        UnstableKeyError: the key's class hashes a None in a way that cannot be seen from outside.
    """
    kind: Any = type(key)
    if kind in _PLAIN:
        return key
    if key is None:
        return NONE_STAND_IN
    if isinstance(key, float):
        return _NAN_STAND_IN if key != key else key
    form = form_of(kind)
    if form is Form.PARTS:
        return tuple(map(stand_in, key))
    if form is Form.SET:
        return frozenset(map(stand_in, key))
    if form is Form.FIELDS:
        return tuple(stand_in(getattr(key, name)) for name in hashed_fields(kind))
    return _stand_in_of_whole(key, kind)


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


def _stand_in_of_whole(key: Any, kind: Any) -> Any:
    if isinstance(key, type):
        return key.__module__, key.__qualname__
    if isinstance(key, range):
        shape = (len(key), key.start, key.step) if key else (0,)
        return shape[:2] if len(key) == 1 else shape
    if isinstance(key, enum.Enum) and kind.__hash__ is enum.Enum.__hash__:
        return key.name
    if sys.version_info < (3, 12) and _may_hash_none(key, kind):
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: it holds a None and {kind.__qualname__} has a __hash__ of its own; on "
            "Python 3.11 hash(None) differs from process to process. Key by a tuple or a frozen dataclass, "
            "or use Python 3.12 or later"
        )
    return key


def _may_hash_none(key: Any, kind: Any) -> bool:
    own_hash = getattr(kind.__hash__, "__code__", None) is not None
    return own_hash and any(value is None for value in _state(key))


def _state(key: Any) -> list[Any]:
    slots = [name for base in type(key).__mro__ for name in getattr(base, "__slots__", ())]
    values = (getattr(key, name, 0) for name in slots if name != "__weakref__")
    return [*getattr(key, "__dict__", {}).values(), *values]
