"""Stable hashes, canonical batches and shards of keys, equal in every process.

Most batches contain keys of one class, whose parts are strings and numbers. One pass over the types detects this.

Python seeds the hashes of strings, bytes, dates and times, but not the hashes of numbers and of tuples of numbers. So
a checksum replaces a string, and numbers a date, also inside tuples and dataclasses. All are spread as
`stable_hash` spreads them.
"""

from __future__ import annotations

import contextlib
import datetime
import enum
import fractions
import operator
import os
import sys
import types
import uuid
from collections.abc import Callable, Iterator, Sequence, Set
from decimal import Decimal
from itertools import chain, count, repeat
from numbers import Number
from typing import Any, TypeAlias, TypeVar
from zlib import crc32

from dstream.base.registry import stored_name
from dstream.errors import EngineError, UnstableKeyError
from dstream.failures.attribution import each
from dstream.keys.canonical import PLAIN, KeyForm, canonical, compared_fields, form_of, hashed_fields, is_vetted, shown
from dstream.values.fields import columns_of_fields

__all__ = [
    "HASHED_ALIKE",
    "NONE_STAND_IN",
    "SHARDING_VERSION",
    "SPREADERS",
    "are_canonical",
    "canonical_all",
    "canonical_keys",
    "check_hash_seed",
    "has_seeded_keys",
    "hash_without_seed",
    "keys_hashed_by_own",
    "keys_of",
    "shard_numbers",
    "stable_hash",
    "stable_hashes",
    "stand_in",
    "with_keys_of_this_process",
]


SPREADERS = (1085565424964045660, 800584610055520120)
"""Numbers that mix the bits of the hash of a key, which is hashed in a tuple with them.

The hash of an int is the int, so the remainders of full hours in milliseconds are all the same. CPython mixes the
hashes of the parts of a tuple as xxHash does, one round for each part; after two rounds consecutive ints are not yet
spread evenly. Of 94,000 pairs of numbers this pair spreads weekdays, months, hours and the like best.
"""
NONE_STAND_IN = None if sys.version_info >= (3, 12) else 0x5EED
"""On Python 3.11 `hash(None)` is an address."""
_NAN_STAND_IN = 0x7FF8
_PLAIN = frozenset({str, int, bytes, bool})
HASHED_ALIKE = _PLAIN if NONE_STAND_IN is not None else _PLAIN | {type(None)}
"""Types whose instances hash alike in all processes of one `PYTHONHASHSEED`."""


def stable_hash(key: Any) -> int:
    """Return a hash of the canonical `key` that agrees with `==` and is the same in every worker.

    Its remainders are spread evenly for any keys and divisor. Strings and bytes rely on a fixed
    `PYTHONHASHSEED` (see `check_hash_seed`).

    Raises:
        UnstableKeyError: the key's class hashes a None in code that cannot be analysed.
    """
    return hash((_stand_in_everywhere(key) if _is_without_seed else stand_in(key), *SPREADERS))


def stand_in(key: Any) -> Any:
    """Return the value to hash for a canonical key: itself, unless its hash or the hash of a part is an address.

    A tuple of stand-ins hashes like the tuple that it replaces if no part is replaced, so a container may be rebuilt.

    Raises:
        UnstableKeyError: the key's class hashes a None in code that cannot be analysed.
    """
    kind: Any = type(key)
    if kind in _PLAIN:
        return key
    if key is None:
        return NONE_STAND_IN
    if isinstance(key, float):
        return _NAN_STAND_IN if key != key else key
    form = form_of(kind)
    if form is KeyForm.PARTS:
        return tuple(map(stand_in, key))
    if form is KeyForm.SET:
        return frozenset(map(stand_in, key))
    if form is KeyForm.FIELDS:
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
        own = stored_name(key)
        return (key.__module__, key.__qualname__) if own is None else ("dstream", own)
    if isinstance(key, range):
        # As CPython hashes a range, without the None of a short one: on Python 3.11 `hash(None)` is an address.
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
    return [*getattr(key, "__dict__", {}).values(), *_values_of_slots(key)]


def _values_of_slots(key: Any) -> Iterator[Any]:
    """Yield the values of the slots that are set.

    They are found by their descriptors, since `__slots__` may be one string, and has no mangled names.
    """
    for base in type(key).__mro__:
        for member in vars(base).values() if "__slots__" in vars(base) else ():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    yield member.__get__(key)


_MOST_KINDS = 4
"""With more types in a batch than these, looking at each key is faster than a pass for each type."""


def canonical_all(keys: list[Any]) -> list[Any]:
    """Return `canonical` of each key; the list itself if they all are."""
    return keys if are_canonical(keys) else list(map(canonical, keys))


def canonical_keys(keys: list[Any], items: Sequence[Any]) -> list[Any]:
    """Return the canonical forms of the keys that items have; a key that is refused is reported with its item."""
    try:
        return canonical_all(keys)
    except Exception:
        return each(_canonical, items, keys)


def _canonical(key: Any, item: Any) -> Any:
    return canonical(key)


def are_canonical(keys: list[Any], kinds: Set[type] | None = None) -> bool:
    """Return whether `canonical` returns all keys unchanged; False also if each key would have to be checked.

    Args:
        keys: any keys.
        kinds: their types, if they are known.
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
    found = _all_everywhere(keys) if _is_without_seed else _stand_ins(keys)
    # Not strict, since the spreaders repeat without an end.
    return list(map(hash, zip(found, *map(repeat, SPREADERS), strict=False)))


_is_without_seed = False
_own_hashes = count(1)
_last_own_hash = 0


def hash_without_seed(is_wanted: bool) -> None:
    """Choose for this process whether `stable_hash` avoids Python's seed, which costs more for a string.

    Processes with different seeds then send a key to the same target, except keys of classes with their own hash.
    """
    global _is_without_seed
    _is_without_seed = is_wanted


def keys_hashed_by_own() -> int:
    """Return a number that grows with the keys whose classes have a hash of their own, which may differ elsewhere."""
    return _last_own_hash


def _all_everywhere(keys: list[Any]) -> Sequence[Any]:
    return _all_unseeded(keys if set(map(type, keys)) <= _PLAIN else _stand_ins(keys), _note_own_hash)


def _stand_in_everywhere(key: Any) -> Any:
    # Uses the stand-in, in which equal keys of several classes are alike.
    return _unseeded(stand_in(key), _note_own_hash)


def _note_own_hash(key: Any) -> Any:
    global _last_own_hash
    if type(key).__module__ == "numpy":
        if isinstance(key, str | bytes):
            return _unseeded(str(key) if isinstance(key, str) else bytes(key), _note_own_hash)
        if isinstance(key, Number):
            return key  # As the numbers of Python, which have no seed.
    _last_own_hash = next(_own_hashes)
    return key


def _are_of_kind_canonical(kind: type, keys: list[Any]) -> bool:
    if kind is float:
        return all(map(operator.eq, keys, keys))
    form = form_of(kind)
    if form is KeyForm.FIELDS:
        return are_canonical(_values(compared_fields(kind), keys))
    if form is not KeyForm.WHOLE:
        return PLAIN.issuperset(map(type, chain.from_iterable(keys))) or are_canonical(list(chain.from_iterable(keys)))
    return is_vetted(kind) and _equal_themselves(keys)


def _equal_themselves(keys: list[Any]) -> bool:
    try:
        return all(map(operator.eq, keys, keys)) and all(map(_has_hash, keys))
    except Exception:  # `canonical` raises the documented error
        return False


def _has_hash(key: Any) -> bool:
    hash(key)
    return True


def _values(fields: tuple[str, ...], keys: list[Any]) -> list[Any]:
    """Return the values of the fields of all keys, in any order."""
    return list(chain.from_iterable(columns_of_fields(fields, keys)))


def _stand_ins(keys: list[Any]) -> list[Any]:
    """Return the value to hash for each key; the list itself if these are the keys."""
    kinds = set(map(type, keys)) - HASHED_ALIKE
    if not kinds or (kinds == {float} and all(map(operator.eq, keys, keys))):
        return keys
    if kinds == {type(None)}:
        return [NONE_STAND_IN if key is None else key for key in keys]
    (kind,) = kinds if len(set(map(type, keys))) == 1 else (object,)
    form = form_of(kind)
    if form is KeyForm.PARTS and len(set(map(len, keys))) == 1:
        return _of_tuples(keys)
    if form is KeyForm.FIELDS and (fields := hashed_fields(kind)):
        return list(zip(*map(_stand_ins, columns_of_fields(fields, keys)), strict=True))
    return list(map(stand_in, keys))


def _of_tuples(keys: list[Any]) -> list[Any]:
    """Return the values to hash for tuples of one length; the list itself if no part of a tuple is replaced."""
    if HASHED_ALIKE.issuperset(map(type, chain.from_iterable(keys))):
        return keys
    columns = list(map(list, zip(*keys, strict=True)))
    found = list(map(_stand_ins, columns))
    return keys if all(map(operator.is_, columns, found)) else list(zip(*found, strict=True))


SHARDING_VERSION = 3
"""The version of the function from keys to shards. A change of it, or of `SPREADERS`, needs a new version."""


def shard_numbers(keys: Sequence[Any], shards: int) -> list[int]:
    """Return the shard of each canonical key, from 0; equal keys have the same shard.

    Costs 0.2 us for a string, up to several us for a dataclass (CPython 3.11).

    Raises:
        UnstableKeyError: a key's class has its own hash, which differs between processes.
    """
    spread = zip(_all_unseeded(keys, _check_fixed_seed), *map(repeat, SPREADERS), strict=False)
    return [number % shards for number in map(hash, spread)]


OwnHash: TypeAlias = Callable[[Any], Any]
"""Function that returns the value to hash for a key whose class has its own hash; it may refuse the key."""


def _all_unseeded(keys: Sequence[Any], own: OwnHash) -> Sequence[Any]:
    kinds = set(map(type, keys))
    if kinds == {str}:
        # A string may contain half of a surrogate pair, such as one decoded with `surrogateescape`.
        return [crc32(key.encode("utf-8", "surrogatepass")) for key in keys]
    return keys if kinds == {int} else list(map(_unseeded, keys, repeat(own)))


def _unseeded(key: Any, own: OwnHash) -> Any:
    """Return the value to hash for a key; it has the same hash in all processes."""
    kind = type(key)
    numbers = _NUMBERS.get(kind)
    if numbers is not None:
        return numbers(key)
    if kind is tuple:
        return tuple(map(_unseeded, key, repeat(own)))
    return _of_another_class(key, own)


def _of_another_class(key: Any, own: OwnHash) -> Any:
    """Return the unseeded form of a container, or of an instance of a class that is not Python's own."""
    other = stand_in(key)
    hashes: Any = type(other).__hash__
    if hashes is tuple.__hash__:
        return tuple(map(_unseeded, other, repeat(own)))
    if hashes is frozenset.__hash__:
        return frozenset(map(_unseeded, other, repeat(own)))
    if other is not key:
        return _unseeded(other, own)
    for kind, numbers in _NUMBERS.items():
        if isinstance(key, kind) and hashes is kind.__hash__:
            return numbers(key)
    return own(key)


def _of_datetime(key: datetime.datetime) -> Any:
    if key.fold:
        key = key.replace(fold=0)  # Python's equality and hash ignore it.
    if key.utcoffset() is not None:
        return key - _EPOCH  # Equal instants in two time zones are equal keys.
    return key.toordinal(), key.hour, key.minute, key.second, key.microsecond


def _of_time(key: datetime.time) -> Any:
    offset = key.utcoffset() or datetime.timedelta()
    moment = datetime.timedelta(hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond)
    return moment - offset


def _itself(key: Any) -> Any:
    return key


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NUMBERS: dict[Any, Callable[[Any], Any]] = {
    str: lambda key: crc32(key.encode("utf-8", "surrogatepass")),
    int: _itself,
    bool: _itself,
    float: stand_in,
    bytes: crc32,
    complex: _itself,
    Decimal: _itself,
    fractions.Fraction: _itself,
    uuid.UUID: _itself,
    datetime.datetime: _of_datetime,
    datetime.date: datetime.date.toordinal,
    datetime.time: _of_time,
    datetime.timedelta: _itself,
    type(None): lambda key: 0,
}


_seeds: set[str] = set()


def has_seeded_keys() -> bool:
    """Return whether this process has routed keys by hashes of a `PYTHONHASHSEED` that workers may not have."""
    return bool(_seeds)


def _check_fixed_seed(key: Any) -> Any:
    """Return a key; refuse a user's own hash, which may include strings, unless their seed is fixed."""
    if not sys.flags.hash_randomization:
        return key
    if os.environ.get("PYTHONHASHSEED", "random").isdigit():
        _seeds.add(os.environ["PYTHONHASHSEED"])
        return key
    raise UnstableKeyError(
        f"{shown(key)} cannot be a key of a state that outlives this process: {type(key).__qualname__} has a __hash__ "
        "of its own, which Python seeds anew in each process; key by a tuple or a frozen dataclass, or set "
        "PYTHONHASHSEED"
    )


def keys_of(key: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the canonical keys of items; a function that fails is reported with its item."""
    return canonical_keys(each(key, items), items)


V = TypeVar("V")


def with_keys_of_this_process(groups: dict[Any, V]) -> dict[Any, V]:
    """Return the values of canonical keys of another process; the dict itself if no key has to be replaced."""
    keys = list(groups)
    here = canonical_all(keys)
    return groups if here is keys else dict(zip(here, groups.values(), strict=True))
