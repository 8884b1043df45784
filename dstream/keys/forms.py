"""Forms: what of a key decides equality and hash, found out once for each class."""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
from typing import Any

from dstream.keys.nan import FIELD_NAN, NAN

__all__ = [
    "Form",
    "compared_fields",
    "form_of",
    "has_generated_eq",
    "has_generated_hash",
    "hashed_fields",
    "nan_of_fields",
]


class Form(enum.Enum):
    """What a key is compared by."""

    PARTS = "the parts of a tuple, in order"
    SET = "the parts of a frozenset"
    FIELDS = "the fields of a dataclass"
    WHOLE = "what its class says"


@functools.lru_cache(maxsize=4096)
def form_of(kind: Any) -> Form:
    """Return what the keys of a class are compared by."""
    if issubclass(kind, tuple) and kind.__hash__ is tuple.__hash__:
        return Form.PARTS
    if issubclass(kind, frozenset) and kind.__hash__ is frozenset.__hash__:
        return Form.SET
    return Form.FIELDS if has_generated_hash(kind) else Form.WHOLE


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
    """Say whether `@dataclass` wrote the equality of a class, or somebody the same by hand."""
    return _is_generated(kind, "__eq__")


def has_generated_hash(kind: type) -> bool:
    """Say whether `@dataclass` wrote the hash of a class, or somebody the same by hand."""
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
    """Return what `@dataclass` makes of the fields that a method is over, nothing written by hand."""
    fields = [
        (field.name, object, dataclasses.field(compare=field.compare, hash=field.hash))
        for field in _fields(kind, method)
    ]
    return dataclasses.make_dataclass("Like", fields, frozen=True)


def _code_of(method: Any) -> Any:
    """Return what a method does; the names of the file, the function and its module are no part of it."""
    code = getattr(method, "__code__", None)
    return code and (code.co_code, code.co_names, code.co_consts, code.co_varnames, code.co_freevars)
