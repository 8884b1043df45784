"""The walk over what a function takes along: closures, globals, defaults, attributes, containers.

It follows what cloudpickle would pickle, and judges by type: a str travels, a lock does not, a list
travels if its items do. Only what no type answers for is pickled, into a sink that counts the bytes.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import itertools
import pathlib
import re
import types
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dstream.by_value import is_importable
from dstream.failures import is_our_name, near, shown
from dstream.plan.carried import (
    CONTAINERS,
    PLAIN,
    SCALAR_BYTES,
    SCALARS,
    TEXTS,
    attributes_of,
    captures_of,
    pickled,
    plain_size,
)
from dstream.plan.steps import shown_function

__all__ = ["Large", "Obstacle", "look"]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that cannot travel.

    Attributes:
        holder: the function that takes it along.
        path: how it is reached: `("lock",)`, or `("self", ".client")`.
        value: what it is.
        reason: why it cannot, and what to do instead.
    """

    holder: str
    path: tuple[str, ...]
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.holder} captures {_variable(self.path)}{_kind(self.value)}, {self.reason}"


@dataclass(frozen=True, slots=True)
class Large:
    """Something that travels, and is large."""

    holder: str
    path: tuple[str, ...]
    size: int

    def __str__(self) -> str:
        name = f"the variable {self.path[0]!r}" if self.path else "an object"
        return f"{self.holder} captures {name}, of {self.size / 2**20:,.0f} MB"


def look(function: Any, seen: dict[int, Any], large: int) -> Iterator[Obstacle | Large]:
    """Give what `function` takes along that cannot travel, or is large.

    Args:
        function: what will be pickled.
        seen: what was looked at already, by identity; shared between calls, so that nothing is told twice.
        large: from how many bytes on.
    """
    walk = _Walk(seen, large)
    walk.enter(function, _place(function), ())
    yield from walk.found


def _place(function: Any) -> str:
    """Write which function it is: by its line, or by its name if it has none."""
    if isinstance(function, functools.partial):
        return _place(function.func)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return shown_function(function)
    return f"the function at {near(code.co_filename, code.co_firstlineno)}"


def _variable(path: tuple[str, ...]) -> str:
    if not path:
        return ""
    first, *others = path
    whole = f", whose {''.join(path)} is " if others else ", "
    return f"the variable {first!r}{whole}"


def _kind(value: Any) -> str:
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    return f"{article} {name}" if _stays(value) is not None else f"{article} {name} ({shown(value)})"


_Cached = type(functools.cache(len))
_WRAPPING = ("__func__", "fget", "func")
"""Where class methods, properties and cached properties have their function."""
_SMALL = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    decimal.Decimal,
    fractions.Fraction,
    enum.Enum,
    pathlib.PurePath,
    re.Pattern,
    uuid.UUID,
)
_FEW = 16
_DEEPEST = 60


class _Walk:
    """One walk from a function, which counts bytes on its way."""

    def __init__(self, seen: dict[int, Any], large: int) -> None:
        self.found: list[Obstacle | Large] = []
        self._seen = seen
        self._large = large

    def enter(self, value: Any, holder: str, path: tuple[str, ...]) -> int:
        """Look at `value`; return about how many bytes it takes."""
        kind = type(value)
        if kind in SCALARS:
            return SCALAR_BYTES
        if kind in TEXTS:
            return len(value)
        if kind in PLAIN or isinstance(value, _SMALL) or id(value) in self._seen or len(path) > _DEEPEST:
            return 0
        self._seen[id(value)] = value
        reason = _stays(value)
        if reason is not None:
            self.found.append(Obstacle(holder, path, value, reason))
            return 0
        return self._size(value, holder, path)

    def _size(self, value: Any, holder: str, path: tuple[str, ...]) -> int:
        match value:
            case types.FunctionType():
                return 0 if is_importable(value) else self._function(value, path)
            case _Cached():
                return 0 if is_importable(value) else self.enter(value.__wrapped__, holder, path)
            case type():
                return 0 if is_importable(value) else self._class(value, path)
            case types.ModuleType():
                return 0
            case functools.partial():
                return self._partial(value, holder, path)
            case types.MethodType():
                if path:
                    return self.enter(value.__self__, holder, (*path, ".__self__"))
                self._captured(value.__self__, holder, ("self",))
                return self.enter(value.__func__, holder, path)
            case types.BuiltinFunctionType() | types.MethodWrapperType():
                owner = value.__self__
                return 0 if isinstance(owner, types.ModuleType | type) else self.enter(owner, holder, path or ("self",))
            case list() | tuple() | set() | frozenset() | dict() if type(value) in CONTAINERS:
                return self._container(value, holder, path)
        attributes = attributes_of(value)
        return (
            self._pickled(value, holder, path) if attributes is None else self._object(value, attributes, holder, path)
        )

    def _captured(self, value: Any, holder: str, path: tuple[str, ...]) -> int:
        """Look at a variable; tell if it is large."""
        size = self.enter(value, holder, path)
        if size >= self._large:
            self.found.append(Large(holder, path, size))
            return 0
        return size

    def _function(self, function: types.FunctionType, path: tuple[str, ...]) -> int:
        holder = _place(function)
        for name, value in captures_of(function):
            self._captured(value, holder, (name,))
        return 0

    def _class(self, kind: type, path: tuple[str, ...]) -> int:
        for value in vars(kind).values():
            function = next((found for name in _WRAPPING if (found := getattr(value, name, None)) is not None), value)
            if isinstance(function, types.FunctionType | _Cached):
                self.enter(function, _place(function), ())
        return 0

    def _partial(self, value: functools.partial[Any], holder: str, path: tuple[str, ...]) -> int:
        self.enter(value.func, holder, path)
        if is_our_name(getattr(value.func, "__module__", None) or ""):
            self._functions_in((*value.args, *value.keywords.values()))
        named = dict(zip(_parameters(value.func), value.args, strict=False)) | value.keywords
        for name, argument in named.items():
            if callable(argument):
                self.enter(argument, _place(argument), ())
            else:
                self._captured(argument, holder, path or (name,))
        return 0

    def _container(self, value: Any, holder: str, path: tuple[str, ...]) -> int:
        size = plain_size(value)
        if size is not None:
            return size
        if len(value) > _FEW:
            problem, size = pickled(value)
            if problem is None:
                return size
        pairs: Iterable[tuple[Any, Any]] = enumerate(value)
        if isinstance(value, dict):
            pairs = value.items()
            for key in value:
                self.enter(key, holder, (*path, " key"))
        return sum(self.enter(item, holder, (*path, f"[{_short(key)}]")) for key, item in pairs)

    def _object(self, value: Any, attributes: Mapping[str, Any], holder: str, path: tuple[str, ...]) -> int:
        if is_our_name(type(value).__module__):
            self._functions_in(attributes.values())
        if path:
            size = sum(self.enter(held, holder, (*path, f".{name}")) for name, held in attributes.items())
        else:
            size = sum(self._captured(held, holder, ("self", f".{name}")) for name, held in attributes.items())
        self.enter(type(value), holder, path)
        return size

    def _functions_in(self, values: Iterable[Any]) -> None:
        """Look at functions in an object of ours first, each as the holder of what it takes along itself."""
        for value in values:
            if callable(value):
                self.enter(value, _place(value), ())
            elif type(value) in CONTAINERS:
                self._functions_in(value.values() if isinstance(value, dict) else value)

    def _pickled(self, value: Any, holder: str, path: tuple[str, ...]) -> int:
        problem, size = pickled(value)
        if problem is not None:
            self.found.append(Obstacle(holder, path, value, f"which cannot be pickled: {problem}"))
        return size


def _parameters(function: Any) -> Iterator[str]:
    """Give the names of the parameters of a function, and then numbers."""
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from code.co_varnames[: code.co_argcount]
    yield from (f"argument {number}" for number in itertools.count(1))


def _short(key: Any) -> str:
    text = shown(key)
    return text if len(text) <= _LONGEST_KEY else text[:_LONGEST_KEY] + "..."


_LONGEST_KEY = 30


def _stays(value: Any) -> str | None:
    """Say why an object can only be used in the caller's process, and what to do instead; None if it can elsewhere."""
    kind = type(value)
    of_ours = getattr(kind, "_stays_in_the_driver", None)
    if of_ours is not None:
        return f"which {of_ours(value)}"
    if kind.__module__.startswith("pyspark.") and kind.__name__ in _OF_SPARK:
        return (
            "which cannot be used inside a function that runs on the workers; "
            "take the plain values out of it that the function needs, before"
        )
    return None


_OF_SPARK = frozenset({"SparkSession", "SparkContext", "DataFrame", "RDD", "SQLContext", "StreamingContext"})
