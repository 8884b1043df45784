"""What a name in a function means: the object that it stands for, if that is the same on every worker."""

from __future__ import annotations

import builtins
import contextlib
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from dstream.expressions.constants_of_module import is_constant_of_module
from dstream.expressions.expression import Constant
from dstream.expressions.source_of_function import ALL_GLOBALS, globals_stored

__all__ = [
    "CannotRead",
    "LookUp",
    "Names",
    "Namespaces",
    "constant_of",
    "is_as_imported",
    "is_by_reference",
    "is_same_constant_everywhere",
    "value_of_name",
]


class CannotRead(Exception):
    """A function is no expression.

    Args:
        reason: what it does, to stand behind "it": `"calls json.loads"`.
        advice: what to write instead, where that is easy.
        line: where in its file.
    """

    def __init__(self, reason: str, advice: str = "", line: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.advice, self.line = reason, advice, line


LookUp = tuple[FunctionType | None, str, object]
"""A name that was looked up in a function, and what it stood for there; None: the function that is read."""


class Namespaces:
    """Which globals the functions of a module give other values: looked up once for each module, for one plan."""

    def __init__(self) -> None:
        self._stored: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}  # It keeps the dict, whose id it has.

    def stored(self, names: dict[str, Any]) -> frozenset[str]:
        """Return those that functions with the globals `names` may give another value; `ALL_GLOBALS` may be in it."""
        if id(names) not in self._stored:
            stored = frozenset[str]().union(*(globals_stored(each.__code__) for each in _functions(names)))
            self._stored[id(names)] = names, stored
        return self._stored[id(names)][1]


@dataclass
class Names:
    """The names of one function that are no variables of its own.

    What is pickled by reference finds its module on the worker: of its globals only those count that every import of
    the module brings in, or gives a value that its text alone tells. All others travel with the function, so that they
    are what they are now.

    Attributes:
        fn: the function.
        rebound: names that some statement of its file may give another value.
        caller: None for the function that is read, else `fn`.
        namespaces: what is known of globals.
        looked_up: takes what was looked up.
    """

    fn: Any  # basedpyright takes a function in a field for a method.
    rebound: frozenset[str]
    caller: Any
    namespaces: Namespaces
    looked_up: list[LookUp] = field(default_factory=list)

    def found(self, name: str) -> Any:
        """Return what a name stands for.

        Raises:
            CannotRead: it may stand for something else when the function runs.
        """
        if name in self.rebound:
            raise CannotRead(f"looks at {name}, which a global or nonlocal statement changes")
        if name in self.fn.__globals__ and ALL_GLOBALS in self.rebound:
            raise _may_change(name)
        value = value_of_name(self.fn, name, self.namespaces)
        if value is _MISSING:
            raise CannotRead(f"looks at {name}, which has no value")
        self.looked_up.append((self.caller, name, value))
        return value


def value_of_name(fn: FunctionType, name: str, namespaces: Namespaces) -> Any:
    """Return what a name stands for in a function, or a value that nothing else is.

    Raises:
        CannotRead: it may stand for something else when the function runs.
    """
    code = fn.__code__
    if name in code.co_freevars:
        if is_by_reference(fn):  # A function that was wrapped where it was defined.
            return _elsewhere(name)
        try:
            return (fn.__closure__ or ())[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return _MISSING
    if name in fn.__globals__:
        value = fn.__globals__[name]
        if is_by_reference(fn):
            if _is_of_module(fn, name, value):
                return value
            if not is_constant_of_module(fn, name, value):
                return _elsewhere(name)
        stored = namespaces.stored(fn.__globals__)
        if name in stored:
            raise CannotRead(f"looks at {name}, which a global statement changes")
        if ALL_GLOBALS in stored:
            raise _may_change(name)
        return value
    value = vars(builtins).get(name, _MISSING)
    if value is not _MISSING and not _is_original(value, name):
        raise CannotRead(f"looks at {name}, which was put among the builtins of this process")
    return value


_MISSING = object()


def _may_change(name: str) -> CannotRead:
    return CannotRead(
        f"looks at {name}, which globals(), exec or eval may change",
        f"give it to the function: lambda item, {name}={name}: ...",
    )


def _is_original(value: object, name: str) -> bool:
    """Say whether a builtin is the one that has this name in every process."""
    if value is None or type(value) in (bool, type(NotImplemented), type(...)):
        return True
    return (getattr(value, "__module__", None), getattr(value, "__name__", None)) == ("builtins", name)


def _elsewhere(name: str) -> Any:
    raise CannotRead(
        f"looks at {name} of its module, which every worker imports anew",
        f"give it to the function: lambda item, {name}={name}: ...",
    )


def _is_of_module(fn: FunctionType, name: str, value: object) -> bool:
    """Say whether every import of the function's module gives a global this value, as far as its own name tells."""
    if isinstance(value, ModuleType):
        return value.__name__ in _KNOWN_MODULES
    if getattr(value, "__qualname__", None) != name:
        return False
    return isinstance(value, BuiltinFunctionType) or getattr(value, "__module__", None) in (fn.__module__, *_OURS)


_KNOWN_MODULES = ("dstream", "math", "operator", "re")
_OURS = ("re", "dstream.values.entry")


def is_by_reference(fn: FunctionType) -> bool:
    """Say whether a function is pickled as the name of something in a module."""
    found: Any = sys.modules.get(fn.__module__ or "")
    if found is None or fn.__module__ == "__main__":
        return False
    for part in fn.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is fn


def is_as_imported(fn: FunctionType) -> bool:
    """Say whether a function that is pickled by reference is what the text of its module defines under its name.

    What was put into the module later, such as a stand-in in a test, or has the code of another function, is not what
    a worker finds there.
    """
    module = sys.modules[fn.__module__]
    return fn.__globals__ is vars(module) and fn.__code__.co_qualname == fn.__qualname__


def _functions(names: dict[str, Any]) -> Iterator[FunctionType]:
    """Give the functions that have these globals, also those in classes, in closures and in what wraps them."""
    module = names.get("__name__")
    waiting: list[object] = list(names.values())
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind in _PLAIN or kind is ModuleType or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, FunctionType):
            if each.__globals__ is names:
                yield each
            waiting.extend(_enclosed(each))
        elif isinstance(each, type):
            waiting.extend(vars(each).values() if each.__module__ == module else ())
        elif kind in _WRAPPERS:
            waiting.extend(getattr(each, held, None) for held in ("__wrapped__", "func", "fget", "fset"))
        else:
            waiting.append(kind)


_WRAPPERS = (
    staticmethod,
    classmethod,
    property,
    functools.partial,
    functools.cached_property,
    type(functools.cache(len)),
)


def _enclosed(fn: FunctionType) -> Iterator[object]:
    for cell in fn.__closure__ or ():
        with contextlib.suppress(ValueError):  # It is empty.
            yield cell.cell_contents


def constant_of(value: object) -> Constant | None:
    """Return an immutable value of a plain type as a constant, None if it is of another type."""
    return Constant(value) if is_same_constant_everywhere(value) else None


def is_same_constant_everywhere(value: object) -> bool:
    """Say whether a copy of `value` on a worker cannot be told from it; NaN can, in a tuple that has it."""
    if type(value) is float:
        return value == value
    if type(value) is tuple or type(value) is frozenset:
        return all(map(is_same_constant_everywhere, value))
    return type(value) in _PLAIN


_PLAIN = frozenset({int, bool, str, bytes, type(None), re.Pattern})
