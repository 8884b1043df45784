"""Canonical keys: one value for all equal keys, one NaN, and the refusal of unstable keys."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import functools
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from dstream.base.functions import refuse_awaitable
from dstream.errors import UnstableKeyError

__all__ = [
    "FIELD_NAN",
    "NAN",
    "PLAIN",
    "FieldNan",
    "KeyForm",
    "canonical",
    "canonical_or_itself",
    "compared_fields",
    "form_of",
    "has_generated_eq",
    "has_generated_hash",
    "hashed_fields",
    "is_vetted",
    "nan_of_fields",
    "shown",
]


NAN = math.nan
"""The NaN that replaces every NaN: dicts, tuples and frozensets find it again by identity."""


class FieldNan(float):
    """NaN in a field of a dataclass whose `__eq__` compares fields only by `==`, as from Python 3.13.

    It equals every NaN, including itself. Otherwise it is a float: `math.isnan(x)` and `x != x` hold, and it is pickled
    as a float.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and other != other

    def __ne__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(NAN)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, ("nan",)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


FIELD_NAN = FieldNan("nan")


class KeyForm(enum.Enum):
    """The comparable form of a key."""

    PARTS = "the parts of a tuple, in order"
    SET = "the parts of a frozenset"
    FIELDS = "the fields of a dataclass"
    WHOLE = "what its class says"


@functools.lru_cache(maxsize=4096)
def form_of(kind: Any) -> KeyForm:
    """Return the comparable form of the keys of a class."""
    if issubclass(kind, tuple) and kind.__hash__ is tuple.__hash__:
        return KeyForm.PARTS
    if issubclass(kind, frozenset) and kind.__hash__ is frozenset.__hash__:
        return KeyForm.SET
    return KeyForm.FIELDS if has_generated_hash(kind) else KeyForm.WHOLE


@functools.lru_cache(maxsize=4096)
def compared_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields that equality or hash of a dataclass depend on."""
    compared = [field.name for field in _fields(kind, "__eq__") if field.compare]
    return tuple(dict.fromkeys([*compared, *hashed_fields(kind)]))


@functools.lru_cache(maxsize=4096)
def hashed_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields that the hash of a dataclass depends on."""
    fields = _fields(kind, "__hash__")
    return tuple(field.name for field in fields if (field.compare if field.hash is None else field.hash))


@functools.lru_cache(maxsize=4096)
def nan_of_fields(kind: Any) -> float:
    """Return the NaN that the equality of a dataclass finds again: up to Python 3.12 it compares tuples of fields."""
    return NAN if sys.version_info < (3, 13) and has_generated_eq(kind) else FIELD_NAN


def has_generated_eq(kind: type) -> bool:
    """Return whether `@dataclass` generated the equality of a class, or equal code was written by hand."""
    return _is_generated(kind, "__eq__")


def has_generated_hash(kind: type) -> bool:
    """Return whether `@dataclass` generated the hash of a class, or equal code was written by hand."""
    return _is_generated(kind, "__hash__")


@functools.lru_cache(maxsize=4096)
def _is_generated(kind: Any, method: str) -> bool:
    if not dataclasses.is_dataclass(_owner(kind, method)):
        return False
    written, like = _code_of(getattr(kind, method)), _like(kind, method)
    return written is not None and written == _code_of(getattr(like, method))


def _owner(kind: Any, method: str) -> Any:
    """Return the class that a method is inherited from: it is over the fields of that class, and of no subclass."""
    return next(base for base in kind.__mro__ if method in vars(base))


def _fields(kind: Any, method: str) -> tuple[dataclasses.Field[Any], ...]:
    owner = _owner(kind, method)
    return dataclasses.fields(owner if dataclasses.is_dataclass(owner) else kind)


def _like(kind: Any, method: str) -> type:
    """Return a class with the generated methods of `@dataclass` over a method's fields, nothing written by hand."""
    fields = [
        (field.name, object, dataclasses.field(compare=field.compare, hash=field.hash))
        for field in _fields(kind, method)
    ]
    return dataclasses.make_dataclass("Like", fields, frozen=True)


def _code_of(method: Any) -> Any:
    """Return the code of a method; the names of the file, the function and its module are no part of it."""
    code = getattr(method, "__code__", None)
    return code and (code.co_code, code.co_names, code.co_consts, code.co_varnames, code.co_freevars)


PLAIN = frozenset({str, int, bytes, bool, type(None)})
"""Types whose instances are their own canonical keys."""
_HASHED_BY_ADDRESS = (types.BuiltinFunctionType, types.MethodType, types.GenericAlias, types.UnionType)
_vetted: set[type] = set()


def canonical(key: Any) -> Any:
    """Return the value that replaces `key` in a dict, in any process.

    Raises:
        UnstableKeyError: `key` has no hash, or one that depends on its identity.
    """
    kind: Any = type(key)
    if kind in PLAIN:
        return key
    if kind is tuple:
        return _canonical_tuple(key, kind)  # Checking for canonical parts first would double the time.
    if kind is float:
        return key if key == key else NAN
    form = form_of(kind)
    if form is KeyForm.PARTS:
        return _canonical_tuple(key, kind)
    if form is KeyForm.SET:
        parts = frozenset(map(canonical, key))
        return key if parts == key else parts
    if form is KeyForm.FIELDS:
        return _canonical_dataclass(key, kind)
    if kind is FieldNan:
        return NAN
    if kind not in _vetted:
        _vet(key, kind)
    return key if isinstance(key, type) or _equals_itself(key) else NAN


def canonical_or_itself(item: Any) -> Any:
    """Return the value that replaces `item` in a set; an item that cannot be a key is returned itself."""
    try:
        return canonical(item)
    except UnstableKeyError:
        return item


def is_vetted(kind: type) -> bool:
    """Return whether a key of this class is accepted as long as it has a hash and equals itself."""
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
    # Not `kind(*parts)`: a named tuple may take other arguments. A member of an enum cannot be made again.
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
    if clone is key:  # Its `__copy__` returns it, as an immutable object may.
        clone = object.__new__(kind)
        changed = {field.name: getattr(key, field.name) for field in dataclasses.fields(kind)} | changed
    for name, value in changed.items():
        object.__setattr__(clone, name, value)  # A frozen dataclass refuses `setattr`.
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
    if kind.__hash__ is object.__hash__ or kind.__eq__ is object.__eq__ or _is_hashed_by_address(key):
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: {kind.__qualname__} compares and hashes by identity, so equal copies in "
            "two processes would be two keys; give it __eq__ and __hash__ (a frozen dataclass has both)"
        )
    if kind.__module__ != "builtins" and _changes_when_copied(key):
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: a copy of it that went through pickle has another hash or is not equal; "
            f"{kind.__qualname__}.__hash__ must depend on values only"
        )
    if _hashes_its_class(key, kind):
        raise UnstableKeyError(
            f"{shown(key)} cannot be a key: {kind.__qualname__}.__hash__ hashes its class, whose hash differs from "
            "process to process; leave it out, or hash its name, as type(self).__name__"
        )
    _vetted.add(kind)


def _is_hashed_by_address(key: Any) -> bool:
    # Aliases of `typing`, such as `Optional[int]`, have private classes; all of them have an origin.
    is_of_typing = type(key).__module__ == "typing" and hasattr(key, "__origin__")
    return is_of_typing or isinstance(key, _HASHED_BY_ADDRESS)


def _hashes_its_class(key: Any, kind: Any) -> bool:
    """Return whether the hash of a key depends on its class, beyond the name of the class.

    The code of its hash runs with a `hash` and an `id` that check their arguments. Hashes of copies prove nothing: in
    one process they share the class, and deriving another class would run code of the user.
    """
    classes = set(map(id, kind.__mro__))
    by_address: Any = type.__hash__
    found = False

    def looking(call: Callable[[Any], int], value: Any) -> int:
        nonlocal found
        waiting = [value]
        while waiting:
            part = waiting.pop()
            # A metaclass may have a hash that is the same in each process.
            found = found or (id(part) in classes and type(part).__hash__ is by_address)
            waiting += part if type(part) in (tuple, frozenset) else ()
        return call(value)

    names = {call.__name__: functools.partial(looking, call) for call in (hash, id)}
    for base in kind.__mro__:
        function = vars(base).get("__hash__")
        code = getattr(function, "__code__", None)
        if function is None:
            continue
        if code is None:
            break
        if not {"type", "__class__"}.isdisjoint((*code.co_names, *code.co_freevars)):
            around = {**names, **function.__globals__}  # A module may have a `hash` of its own.
            closure = function.__closure__
            with contextlib.suppress(Exception):  # Then it is unknown.
                types.FunctionType(code, around, None, function.__defaults__, closure)(key)
        if "__hash__" not in code.co_names:  # It does not call the hash of its base class.
            break
    return found


def _equals_itself(key: Any) -> bool:
    try:
        hash(key)
        return bool(key == key)
    except Exception as error:
        raise UnstableKeyError(f"{shown(key)} cannot be a key: {error}") from error


def _changes_when_copied(key: Any) -> bool:
    import cloudpickle  # lazily: a tenth of the time of `import dstream`, and few keys need it

    clone = cloudpickle.loads(cloudpickle.dumps(key))
    return _equals_itself(key) and (hash(clone) != hash(key) or not clone == key)
