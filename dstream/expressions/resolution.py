"""Resolution of names and calls in a function to objects and expressions."""

from __future__ import annotations

import ast
import builtins
import contextlib
import datetime
import enum
import functools
import re
import sys
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass, field
from decimal import Decimal
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

from dstream.base.copies import is_known_zone, is_zone_info
from dstream.expressions.source import ALL_GLOBALS, assigned_once, globals_stored, typed
from dstream.expressions.tree import Constant

__all__ = [
    "NameLookup",
    "Names",
    "Namespaces",
    "UnreadableName",
    "constant_of",
    "container_of",
    "is_as_imported",
    "is_by_reference",
    "is_constant_of_module",
    "is_plain_enumeration",
    "is_same_constant_everywhere",
    "member_of_module",
    "part_of_member",
    "value_of_name",
]


def is_constant_of_module(fn: FunctionType, name: str, value: object) -> bool:
    """Return whether the source of a function's module assigns this value to a global in every import.

    One statement alone binds the name, outside of all blocks, to an expression that contains nothing but literals. A
    value that was put into the module of this process in its place is another one.
    """
    return _is_constant_of_file(fn.__globals__, fn.__code__.co_filename, name, value)


def _is_constant_of_file(names: dict[str, Any], file: str | None, name: str, value: object) -> bool:
    if file is None or names.get("__file__") != file:
        return False
    expression = assigned_once(file).get(name)
    if expression is None:
        return False
    is_pattern = type(value) is re.Pattern and names.get("re") is re and _compiles_a_pattern(expression)
    if not is_pattern and not all(isinstance(each, _OF_LITERALS) for each in ast.walk(expression)):
        return False
    try:
        # Only literals and operators have passed the check: they can call nothing but `re.compile`.
        written = eval(compile(ast.Expression(expression), file, "eval"), {"__builtins__": {}, "re": re})
    except Exception:  # The file has changed since it was imported.
        return False
    return value == written if is_pattern else typed(value) == typed(written)


_OF_LITERALS = (
    *(ast.Constant, ast.Dict, ast.List, ast.Set, ast.Tuple),
    *(ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.Load),
)


def _compiles_a_pattern(expression: ast.expr) -> bool:
    """Return whether an expression is `re.compile` of literals and flags."""
    match expression:
        case ast.Call(ast.Attribute(ast.Name("re"), "compile"), arguments, []):
            parts = [part for each in arguments for part in ast.walk(each)]
            flags = [each for each in parts if isinstance(each, ast.Attribute) and _is_flag(each)]
            modules = [each.value for each in flags]
            return all(isinstance(each, _OF_LITERALS) or each in flags or each in modules for each in parts)
    return False


def _is_flag(syntax: ast.Attribute) -> bool:
    is_of_re = isinstance(syntax.value, ast.Name) and syntax.value.id == "re"
    return is_of_re and isinstance(vars(re).get(syntax.attr), re.RegexFlag)


class UnreadableName(Exception):
    """A function is no expression.

    Args:
        reason: the unsupported action, as a predicate of "it": `"calls json.loads"`.
        advice: the code to write instead, where that is easy.
        line: where in its file.
    """

    def __init__(self, reason: str, advice: str = "", line: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.advice, self.line = reason, advice, line


class NameLookup(NamedTuple):
    """A name that was looked up, and its value.

    Attributes:
        of: the function, the module, the class or the member of an enumeration in which it was looked up; None: the
            function that is read.
        value: of a class the function of its method or property of that name, None if it has none; of a member its name
            or value, as `part_of_member` returns it.
        is_property: whether a property of a class was looked up, and no method.
    """

    of: Any  # basedpyright takes a function in a field for a method.
    name: str
    value: object
    is_property: bool = False


class Namespaces:
    """The globals to which the functions of a module assign, and the containers that functions of a plan may change.

    Args:
        changing: finds the ids of the lists, dicts and sets that other functions of the plan may change; None: any.

    Attributes:
        classes: those that items of the plan are known to have, whose methods are looked up; more may be added.
    """

    def __init__(self, changing: Callable[[], Set[int] | None] = frozenset) -> None:
        self.classes: dict[type, None] = {}
        # An entry refers to the dict of its id, so that no other object can get that id.
        self._stored: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}
        self._changing = functools.cache(changing)

    def has_member(self, name: str) -> bool:
        """Return whether one of the classes defines an attribute."""
        return any(hasattr(kind, name) for kind in self.classes)

    def may_change(self, container: object) -> bool:
        """Return whether a function of the plan may change a list, a dict or a set while others look into it."""
        changing = self._changing()
        return changing is None or id(container) in changing

    def stored(self, names: dict[str, Any]) -> frozenset[str]:
        """Return those that functions with the globals `names` may assign; `ALL_GLOBALS` may be in it."""
        if id(names) not in self._stored:
            stored = frozenset[str]().union(*(globals_stored(each.__code__) for each in _functions(names)))
            self._stored[id(names)] = names, stored
        return self._stored[id(names)][1]


@dataclass
class Names:
    """The names of one function that are no variables of its own.

    A function that is pickled by reference finds its module on the worker: of its globals only those count that every
    import of the module imports, or to which it assigns a value that follows from its source alone. Other functions are
    sent with their globals, which have their values of now.

    Attributes:
        fn: the function.
        rebound: names to which a statement of its file may assign another value.
        caller: None for the function that is read, else `fn`.
        namespaces: the known globals.
        looked_up: receives the names that were looked up.
    """

    fn: Any  # As that of `NameLookup`.
    rebound: frozenset[str]
    caller: Any
    namespaces: Namespaces
    looked_up: list[NameLookup] = field(default_factory=list)

    def found(self, name: str) -> Any:
        """Return the value of a name.

        Raises:
            UnreadableName: it may have another value when the function runs.
        """
        if name in self.rebound:
            raise UnreadableName(f"looks at {name}, which a global or nonlocal statement changes")
        if name in self.fn.__globals__ and ALL_GLOBALS in self.rebound:
            raise _may_change(name)
        value = self.recorded(self.caller, name, value_of_name(self.fn, name, self.namespaces))
        if value is _MISSING:
            raise UnreadableName(f"looks at {name}, which has no value")
        return value

    def recorded(self, of: object, name: str, value: Any) -> Any:
        """Record a name that was looked up, as in `NameLookup`, and return its value."""
        self.looked_up.append(NameLookup(of, name, value))
        return value


def member_of_module(module: ModuleType, name: str, names: Names) -> Any:
    """Return a function, a class, a constant or a module inside of a module that every worker imports.

    Raises:
        UnreadableName: a worker may find something else under the name.
    """
    value = vars(module).get(name, _MISSING)
    stored = names.namespaces.stored(vars(module))
    if sys.modules.get(module.__name__) is not module or name in stored or ALL_GLOBALS in stored:
        raise UnreadableName(f"looks at {name} of the module {module.__name__}, which may change")
    is_defined = isinstance(value, FunctionType | type) and (value.__module__, value.__qualname__) == (
        module.__name__,
        name,
    )
    is_module = isinstance(value, ModuleType) and value is sys.modules.get(f"{module.__name__}.{name}")
    if not is_defined and not is_module and not _is_constant_of_file(vars(module), module.__file__, name, value):
        raise UnreadableName(f"looks at {name} of the module {module.__name__}, which every worker imports anew")
    return names.recorded(module, name, value)


def value_of_name(fn: FunctionType | ModuleType | enum.Enum, name: str, namespaces: Namespaces) -> Any:
    """Return the value of a name in a function, a module or a member, or a unique value if it has none.

    Raises:
        UnreadableName: it may have another value when the function runs.
    """
    if isinstance(fn, ModuleType):
        return vars(fn).get(name, _MISSING)
    if isinstance(fn, enum.Enum):
        return part_of_member(fn, name)
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
            raise UnreadableName(f"looks at {name}, which a global statement changes")
        if ALL_GLOBALS in stored:
            raise _may_change(name)
        return value
    value = vars(builtins).get(name, _MISSING)
    if value is not _MISSING and not _is_original(value, name):
        raise UnreadableName(f"looks at {name}, which was put among the builtins of this process")
    return value


_MISSING = object()


def _may_change(name: str) -> UnreadableName:
    return UnreadableName(
        f"looks at {name}, which globals(), exec or eval may change",
        f"give it to the function: lambda item, {name}={name}: ...",
    )


def _is_original(value: object, name: str) -> bool:
    """Return whether a builtin is the one that has this name in every process."""
    if value is None or type(value) in (bool, type(NotImplemented), type(...)):
        return True
    return (getattr(value, "__module__", None), getattr(value, "__name__", None)) == ("builtins", name)


def _elsewhere(name: str) -> Any:
    raise UnreadableName(
        f"looks at {name} of its module, which every worker imports anew",
        f"give it to the function: lambda item, {name}={name}: ...",
    )


def _is_of_module(fn: FunctionType, name: str, value: object) -> bool:
    """Return whether every import of the function's module assigns this value to a global, judged by its own name."""
    if isinstance(value, ModuleType):
        return value.__name__ in _KNOWN_MODULES
    if getattr(value, "__qualname__", None) != name:
        return False
    return isinstance(value, BuiltinFunctionType) or getattr(value, "__module__", None) in (fn.__module__, *_OURS)


_KNOWN_MODULES = ("collections", "dataclasses", "datetime", "decimal", "dstream", "json", "math", "operator", "re")
_OURS = ("collections", "dataclasses", "datetime", "decimal", "json", "re", "zoneinfo", "dstream.values.entries")


def is_by_reference(fn: FunctionType) -> bool:
    """Return whether a function is pickled as the name of something in a module."""
    found: Any = sys.modules.get(fn.__module__ or "")
    if found is None or fn.__module__ == "__main__":
        return False
    for part in fn.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is fn


def is_as_imported(fn: FunctionType) -> bool:
    """Return whether a function that is pickled by reference is the definition of its name in its module's source.

    A worker does not find a function that was put into the module later, such as a mock of a test, or that has the code
    of another function.
    """
    module = sys.modules[fn.__module__]
    return fn.__globals__ is vars(module) and fn.__code__.co_qualname == fn.__qualname__


def _functions(names: dict[str, Any]) -> Iterator[FunctionType]:
    """Yield the functions that have these globals, also those in classes, in closures and in wrappers."""
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
            # An object of a user's class: its methods may store globals.
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


def container_of(value: object, namespaces: Namespaces) -> Constant | None:
    """Return a list, dict or set of constants that no function of the plan changes; None if it is none."""
    if type(value) not in (dict, list, set) or namespaces.may_change(value):
        return None
    parts: tuple[Any, ...] = (value, value.values()) if isinstance(value, dict) else (value,)
    return Constant(value) if all(map(_are_constants, parts)) else None


def _are_constants(values: Collection[Any]) -> bool:
    """Return whether all values are constants: the types of a million are compared at the speed of C."""
    if set(map(type, values)) <= _PLAIN:
        return True
    return all(is_same_constant_everywhere(each) for each in values if type(each) not in _PLAIN)


def is_same_constant_everywhere(value: object) -> bool:
    """Return whether a copy of `value` on a worker is equivalent to it; NaN in a tuple is not."""
    if type(value) is float:
        return value == value
    if type(value) is tuple or type(value) is frozenset:
        return all(map(is_same_constant_everywhere, value))
    if isinstance(value, datetime.datetime | datetime.time) and type(value) in (datetime.datetime, datetime.time):
        return value.tzinfo is None or is_known_zone(type(value.tzinfo))
    if is_zone_info(type(value)):
        return getattr(value, "key", None) is not None  # A copy is made by its name.
    if type(value) in _PLAIN or type(value) in _OF_TIMES or (type(value) is Decimal and not value.is_nan()):
        return True
    return isinstance(value, enum.Enum) and is_plain_enumeration(type(value))


def is_plain_enumeration(kind: object) -> bool:
    """Return whether a class is an enumeration of constants, so that `kind(value)` only looks up.

    It may have methods and properties, but none that Python calls by itself, or that overrides one of a builtin type.

    Example:
        >>> from enum import Enum
        >>> is_plain_enumeration(Enum("Status", "OPEN PAID")), is_plain_enumeration(Enum)
        (True, False)
    """
    if type(kind) is not enum.EnumMeta or not kind.__members__:
        return False
    members: list[Any] = list(kind)
    classes = [each for each in kind.__mro__ if each.__module__ not in _OF_ENUMS]
    builtin = {name for each in kind.__mro__ if each not in classes for name in vars(each)}
    own = [
        value
        for each in classes
        for name, value in vars(each).items()
        if name in builtin or name.startswith("_") or not isinstance(value, _CALLED_BY_NAME)
    ]
    return all(map(_is_of_enumerations, own)) and all(is_same_constant_everywhere(each.value) for each in members)


def part_of_member(member: enum.Enum, name: str) -> object:
    """Return the `name` or the `value` of a member; a unique value if its class has a property of its own for that."""
    owner = next(each for each in type(member).__mro__ if name in vars(each))
    return getattr(member, name) if owner is enum.Enum else _MISSING


_CALLED_BY_NAME = (FunctionType, classmethod, staticmethod, property)


_OF_ENUMS = ("enum", "builtins")


def _is_of_enumerations(held: object) -> bool:
    """Return whether an attribute of a class is a value, a member, or a function of the standard library's own."""
    functions = [getattr(held, name, None) for name in ("__func__", "fget", "fset", "fdel")]
    own = [each for each in (held, *functions) if isinstance(each, FunctionType)]
    if any(each.__globals__.get("__name__") != "enum" for each in own):
        return False
    is_passive = not hasattr(type(held), "__get__") or isinstance(held, enum.Enum)
    return is_passive or bool(own) or type(held).__module__ == "enum" or isinstance(held, _OF_BUILTINS)


_OF_BUILTINS = (
    *(BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType),
)


_OF_TIMES = (datetime.date, datetime.timedelta, datetime.timezone)
_PLAIN = frozenset({int, bool, str, bytes, type(None), re.Pattern})
