"""Captured variables of functions: their search, size, and obstacles to pickling.

The search follows what cloudpickle would pickle, and judges by type: a str travels, a lock does not, a list
travels if its items do. Only what no type answers for is pickled, into a sink that counts the bytes.
"""

from __future__ import annotations

import copyreg
import dataclasses
import datetime
import decimal
import dis
import enum
import fractions
import functools
import itertools
import pathlib
import re
import types
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dstream.base.by_value import ValuePickler, implementations_of, is_importable
from dstream.base.records import record
from dstream.failures import is_our_name, near, shown
from dstream.values.user_functions import shown_function

__all__ = [
    "CONTAINERS",
    "PLAIN",
    "SCALARS",
    "SCALAR_BYTES",
    "SMALL",
    "TEXTS",
    "Large",
    "Obstacle",
    "attributes_of",
    "captures_of",
    "global_names",
    "look",
    "pickled",
    "plain_size",
]


SCALARS = frozenset({int, float, complex, bool, type(None)})
TEXTS = frozenset({str, bytes, bytearray})
PLAIN = SCALARS | TEXTS | {range, slice, type(...), type(NotImplemented)}
SCALAR_BYTES = 9
SMALL = (
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
CONTAINERS = frozenset({list, tuple, set, frozenset, dict})


def plain_size(container: Any) -> int | None:
    """Return the size of a container of numbers and strings, at the speed of C; None if it contains other objects."""
    parts = [container, container.values()] if isinstance(container, dict) else [container]
    size = 0
    for part in parts:
        kinds = set(map(type, part))
        if not kinds <= SCALARS | TEXTS:
            return None
        size += SCALAR_BYTES * len(part)
        if kinds & TEXTS:
            size += sum(len(item) for item in part if type(item) in TEXTS)
    return size


def captures_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables that a function takes from around it, by name."""
    implementations = implementations_of(function)
    if implementations is not None:
        yield from ((kind.__name__, implementation) for kind, implementation in implementations.items())
        return
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # The function may be defined before its variable is.
            continue
    defaults = function.__defaults__ or ()
    if defaults:
        yield from zip(code.co_varnames[: code.co_argcount][-len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    # cloudpickle takes the attributes of a function along.
    yield from function.__dict__.items()
    around = function.__globals__
    # Names of attributes are among these too, but only a suspect is worth the time to read the bytecode.
    suspects = {name for name in _names(code) if name in around and not _is_harmless(around[name])}
    if suspects:
        yield from ((name, around[name]) for name in global_names(code) if name in suspects)


def _is_harmless(value: Any) -> bool:
    kind = type(value)
    if kind in PLAIN:
        # A global string may be large, which counts; a number never is.
        return kind not in TEXTS
    if kind is types.BuiltinFunctionType:  # The method of an object has the object.
        return value.__self__ is None or type(value.__self__) is types.ModuleType
    if kind is types.ModuleType:
        return True
    return isinstance(value, type | types.FunctionType) and is_importable(value)


_cached_names: weakref.WeakKeyDictionary[types.CodeType, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield all names in a function and those inside it: of globals, and of attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of globals among them; cached, since reading the bytecode takes about 50 microseconds."""
    known = _cached_names.get(code)
    if known is None:
        found = dict.fromkeys(step.argval for step in dis.get_instructions(code) if step.opname in _GLOBAL)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                found.update(dict.fromkeys(global_names(constant)))
        known = _cached_names[code] = tuple(found)
    return known


_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object that pickles as its attributes; None if only pickling it shows them."""
    kind = type(value)
    if kind not in _special:
        _special[kind] = _customizes_pickling(kind)
    if _special[kind]:
        return None
    try:
        _, _, state, items, pairs = value.__reduce_ex__(4)
    except Exception:
        return None
    if items is not None or pairs is not None:
        return None
    if isinstance(state, list):  # The state of a frozen dataclass with slots.
        return dict(zip((each.name for each in dataclasses.fields(value)), state, strict=True))
    return {
        name: attribute
        for part in (state if isinstance(state, tuple) else (state,))
        for name, attribute in (part or {}).items()
    }


_special: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
_REDUCING = ("__getstate__", "__reduce__", "__reduce_ex__")


def _customizes_pickling(kind: type) -> bool:
    """Return whether instances of a class decide themselves how they are pickled."""
    return (
        any(_is_own(getattr(kind, name), getattr(object, name)) for name in _REDUCING)
        or hasattr(kind, "__getnewargs__")
        or hasattr(kind, "__getnewargs_ex__")
        or kind in copyreg.dispatch_table
    )


def _is_own(method: Any, of_object: Any) -> bool:
    # `record` adds a `__getstate__` that pickles the fields, as a frozen dataclass with slots has (Python 3.11).
    return method is not of_object and getattr(method, "__module__", None) not in ("dataclasses", record.__module__)


def pickled(value: Any) -> tuple[str | None, int]:
    """Return why `value` cannot be pickled, or None, and how many bytes it takes."""
    sink = _Sink()
    try:
        ValuePickler(sink, 5, sink.count).dump(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}", 0
    return None, sink.size


class _Sink:
    """A file that counts the bytes of a pickle and discards them; large buffers are not even copied."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: Any) -> int:
        self.size += len(data)
        return len(data)

    def count(self, buffer: Any) -> bool:
        self.size += buffer.raw().nbytes
        # False excludes the buffer from the pickle, so that it is not copied.
        return False


@record
class Obstacle:
    """A captured value that cannot be sent.

    Attributes:
        holder: the function that takes it along, which is named only when this is shown.
        path: the path to the variable: `("lock",)`, or `("self", ".client")`.
        value: its value.
        reason: why it cannot be pickled, and an alternative.
    """

    holder: Any
    path: tuple[str, ...]
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{_name_of_function(self.holder)} captures {_variable(self.path)}{_kind(self.value)}, {self.reason}"


@record
class Large:
    """A captured value that is sent, and is large."""

    holder: Any
    path: tuple[str, ...]
    size: int

    def __str__(self) -> str:
        name = f"the variable {self.path[0]!r}" if self.path else "an object"
        return f"{_name_of_function(self.holder)} captures {name}, of {self.size / 2**20:,.0f} MB"


def look(function: Any, seen: dict[int, Any], large: int) -> Iterator[Obstacle | Large]:
    """Yield the captured values of `function` that cannot be pickled, or are large.

    Args:
        function: what will be pickled.
        seen: what was looked at already, by identity; shared between calls, so that nothing is reported twice.
        large: from how many bytes on.
    """
    walk = _Walk(seen, large)
    walk.enter(function, function, ())
    yield from walk.found


def _name_of_function(function: Any) -> str:
    """Write which function it is: by its line, or by its name if it has none."""
    if isinstance(function, functools.partial):
        return _name_of_function(function.func)
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
"""The attributes in which class methods, properties and cached properties have their function."""
_FEW = 16
_DEEPEST = 60


class _Walk:
    """One walk over the captures of a function, which counts their bytes."""

    def __init__(self, seen: dict[int, Any], large: int) -> None:
        self.found: list[Obstacle | Large] = []
        self._seen = seen
        self._searched: dict[int, Any] = {}
        self._large = large

    def enter(self, value: Any, holder: Any, path: tuple[str, ...]) -> int:
        """Examine `value`; return about how many bytes it takes."""
        kind = type(value)
        if kind in SCALARS:
            return SCALAR_BYTES
        if kind in TEXTS:
            return len(value)
        if kind in PLAIN or isinstance(value, SMALL) or id(value) in self._seen or len(path) > _DEEPEST:
            return 0
        # The value itself, so that no other object gets its `id` during the walk.
        self._seen[id(value)] = value
        reason = _stays(value)
        if reason is not None:
            self.found.append(Obstacle(holder, path, value, reason))
            return 0
        return self._size(value, holder, path)

    def _size(self, value: Any, holder: Any, path: tuple[str, ...]) -> int:
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

    def _captured(self, value: Any, holder: Any, path: tuple[str, ...]) -> int:
        """Examine a variable, add it to what was found if it is large, and return its size."""
        size = self.enter(value, holder, path)
        if size >= self._large:
            self.found.append(Large(holder, path, size))
            return 0
        return size

    def _function(self, function: types.FunctionType, path: tuple[str, ...]) -> int:
        for name, value in captures_of(function):
            self._captured(value, function, (name,))
        return 0

    def _class(self, kind: type, path: tuple[str, ...]) -> int:
        for value in vars(kind).values():
            function = next((found for name in _WRAPPING if (found := getattr(value, name, None)) is not None), value)
            if isinstance(function, types.FunctionType | _Cached):
                self.enter(function, function, ())
        return 0

    def _partial(self, value: functools.partial[Any], holder: Any, path: tuple[str, ...]) -> int:
        self.enter(value.func, holder, path)
        if is_our_name(getattr(value.func, "__module__", None) or ""):
            self._functions_in((*value.args, *value.keywords.values()))
        named = dict(zip(_parameters(value.func), value.args, strict=False)) | value.keywords
        for name, argument in named.items():
            if callable(argument):
                self.enter(argument, argument, ())
            else:
                self._captured(argument, holder, path or (name,))
        return 0

    def _container(self, value: Any, holder: Any, path: tuple[str, ...]) -> int:
        size = plain_size(value)
        if size is not None:
            return size
        # Pickling many items at the speed of C is cheaper than a walk, which is needed only to name the obstacle.
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

    def _object(self, value: Any, attributes: Mapping[str, Any], holder: Any, path: tuple[str, ...]) -> int:
        if is_our_name(type(value).__module__):
            self._functions_in(attributes.values())
        if path:
            size = sum(self.enter(held, holder, (*path, f".{name}")) for name, held in attributes.items())
        else:
            size = sum(self._captured(held, holder, ("self", f".{name}")) for name, held in attributes.items())
        # A class of a script or a notebook is pickled by value, with its methods and what these capture.
        self.enter(type(value), holder, path)
        return size

    def _functions_in(self, values: Iterable[Any]) -> None:
        """Examine the functions in one of dstream's objects first, each with its own captured values."""
        pending = [*values][::-1]
        while pending:
            value = pending.pop()
            if callable(value):
                self.enter(value, value, ())
            elif type(value) in CONTAINERS and id(value) not in self._searched:
                # Not `_seen`, since `enter` visits the container later. One may contain itself, or a thousand others.
                self._searched[id(value)] = value
                pending += [*(value.values() if isinstance(value, dict) else value)][::-1]

    def _pickled(self, value: Any, holder: Any, path: tuple[str, ...]) -> int:
        problem, size = pickled(value)
        if problem is not None:
            self.found.append(Obstacle(holder, path, value, f"which cannot be pickled: {problem}"))
        return size


def _parameters(function: Any) -> Iterator[str]:
    """Yield the names of the parameters of a function, and then numbers."""
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from code.co_varnames[: code.co_argcount]
    yield from (f"argument {number}" for number in itertools.count(1))


def _short(key: Any) -> str:
    text = shown(key)
    return text if len(text) <= _LONGEST_KEY else text[:_LONGEST_KEY] + "..."


_LONGEST_KEY = 30


def _stays(value: Any) -> str | None:
    """Return why an object is for the caller's process alone, and the alternative; None if it is not."""
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
