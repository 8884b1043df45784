"""Resolution of names and calls in a function to objects and expressions."""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import datetime
import functools
import operator
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from dstream.expressions.effects import KNOWN, OPERATORS, PARAMETERS, name_of
from dstream.expressions.source import ALL_GLOBALS, assigned_once, globals_stored, told
from dstream.expressions.tree import (
    Applied,
    Built,
    Called,
    Changed,
    Constant,
    Expression,
    Indexed,
    Method,
    Together,
    is_leaf,
)
from dstream.values.entries import Entry
from dstream.values.fields import defaults_of_constructor, is_of_dataclass, is_of_named_tuple

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
    "is_same_constant_everywhere",
    "known_call",
    "value_of_name",
]


def is_constant_of_module(fn: FunctionType, name: str, value: object) -> bool:
    """Say whether the text of the module that a function stands in gives a global this value, whoever imports it.

    One statement alone binds the name, outside of all blocks, to an expression that holds nothing but literals. A
    value that was put into the module of this process in its place is another one.
    """
    file = fn.__code__.co_filename
    if fn.__globals__.get("__file__") != file:
        return False
    expression = assigned_once(file).get(name)
    if expression is None or not all(isinstance(each, _OF_LITERALS) for each in ast.walk(expression)):
        return False
    try:
        # Literals and operators alone have been let through, and there is nothing that they could call.
        written = eval(compile(ast.Expression(expression), file, "eval"), {"__builtins__": {}})
    except Exception:  # The file has changed since it was imported.
        return False
    return told(value) == told(written)


_OF_LITERALS = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.Load)


class UnreadableName(Exception):
    """A function is no expression.

    Args:
        reason: what it does, to stand behind "it": `"calls json.loads"`.
        advice: what to write instead, where that is easy.
        line: where in its file.
    """

    def __init__(self, reason: str, advice: str = "", line: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.advice, self.line = reason, advice, line


NameLookup = tuple[FunctionType | None, str, object]
"""A name that was looked up in a function, and what it stood for there; None: the function that is read."""


class Namespaces:
    """The globals to which the functions of a module assign, and the containers that functions of a plan may change.

    Args:
        changing: finds the ids of the lists, dicts and sets that other functions of the plan may change; None: any.
    """

    def __init__(self, changing: Callable[[], Set[int] | None] = frozenset) -> None:
        self._stored: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}  # It keeps the dict, whose id it has.
        self._changing = functools.cache(changing)

    def may_change(self, container: object) -> bool:
        """Return whether a function of the plan may change a list, a dict or a set while others look into it."""
        changing = self._changing()
        return changing is None or id(container) in changing

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
    looked_up: list[NameLookup] = field(default_factory=list)

    def found(self, name: str) -> Any:
        """Return the value of a name.

        Raises:
            CannotRead: it may stand for something else when the function runs.
        """
        if name in self.rebound:
            raise UnreadableName(f"looks at {name}, which a global or nonlocal statement changes")
        if name in self.fn.__globals__ and ALL_GLOBALS in self.rebound:
            raise _may_change(name)
        value = value_of_name(self.fn, name, self.namespaces)
        if value is _MISSING:
            raise UnreadableName(f"looks at {name}, which has no value")
        self.looked_up.append((self.caller, name, value))
        return value


def value_of_name(fn: FunctionType, name: str, namespaces: Namespaces) -> Any:
    """Return the value of a name in a function, or a unique value if it has none.

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
    """Say whether a builtin is the one that has this name in every process."""
    if value is None or type(value) in (bool, type(NotImplemented), type(...)):
        return True
    return (getattr(value, "__module__", None), getattr(value, "__name__", None)) == ("builtins", name)


def _elsewhere(name: str) -> Any:
    raise UnreadableName(
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


_KNOWN_MODULES = ("dataclasses", "datetime", "decimal", "dstream", "math", "operator", "re")
_OURS = ("dataclasses", "datetime", "decimal", "re", "dstream.values.entries")


def is_by_reference(fn: FunctionType) -> bool:
    """Say whether a function is pickled as the name of something in a module."""
    found: Any = sys.modules.get(fn.__module__ or "")
    if found is None or fn.__module__ == "__main__":
        return False
    for part in fn.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is fn


def is_as_imported(fn: FunctionType) -> bool:
    """Return whether a function that is pickled by reference is the definition of its name in its module's text.

    What was put into the module later, such as a stand-in in a test, or has the code of another function, is not what
    a worker finds there.
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
    """Say whether a copy of `value` on a worker cannot be told from it; NaN can, in a tuple that has it."""
    if type(value) is float:
        return value == value
    if type(value) is tuple or type(value) is frozenset:
        return all(map(is_same_constant_everywhere, value))
    if isinstance(value, datetime.datetime | datetime.time) and type(value) in (datetime.datetime, datetime.time):
        return type(value.tzinfo) in (type(None), datetime.timezone)
    return type(value) in _PLAIN or type(value) in _OF_TIMES or (type(value) is Decimal and not value.is_nan())


_OF_TIMES = (datetime.date, datetime.timedelta, datetime.timezone)
_PLAIN = frozenset({int, bool, str, bytes, type(None), re.Pattern})


def known_call(fn: Any, written: str, arguments: Sequence[Expression], keywords: Sequence[str]) -> Expression | None:
    """Return the result of a function of the standard library, or a class, for arguments; None if it is neither.

    Raises:
        CannotRead: the class does more than to keep its arguments.
    """
    if fn is Entry and len(arguments) == 2 and not keywords:
        return Called("dstream.Entry", (Together(tuple(arguments)),))
    if isinstance(fn, type) and name_of(fn) is None:
        return _built(fn, written, tuple(arguments), tuple(keywords))
    if fn is dict and keywords and len(keywords) == len(arguments):
        return Built(dict, tuple(keywords), tuple(arguments))
    if fn is dataclasses.replace and len(arguments) == 1 + len(keywords):
        return Changed(arguments[0], "dataclass", tuple(keywords), tuple(arguments[1:]))
    if keywords:
        return _by_place(name_of(fn), tuple(arguments), tuple(keywords))
    return _operated(fn, tuple(arguments)) or _named(fn, tuple(arguments))


def _by_place(name: str | None, arguments: tuple[Expression, ...], keywords: tuple[str, ...]) -> Expression | None:
    """Return a call with keywords as one without; None if the function is unknown, or the order would change."""
    parameters = PARAMETERS.get(name or "", {})
    places = [
        *range(len(arguments) - len(keywords)),
        *(list(parameters).index(each) for each in keywords if each in parameters),
    ]
    if name is None or len(places) < len(arguments) or any(one >= other for one, other in pairwise(places)):
        return None
    given: dict[int, Expression] = dict(zip(places, arguments, strict=True))
    defaults = list(parameters.values())
    return _called(name, tuple(given.get(place) or Constant(defaults[place]) for place in range(places[-1] + 1)))


def _called(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """Return a call, or its result if it makes a constant of constants."""
    values = [each.value for each in arguments if isinstance(each, Constant)]
    if name.startswith(("datetime.", "decimal.")) and len(values) == len(arguments):
        with contextlib.suppress(Exception):  # It raises for each item that is reached.
            return constant_of(KNOWN[name](*values)) or Called(name, arguments)
    return Called(name, arguments)


def _operated(fn: Any, arguments: tuple[Expression, ...]) -> Expression | None:
    if type(fn) is not BuiltinFunctionType:
        return None
    symbol = OPERATORS.get(fn)
    if symbol is not None:
        wanted = 1 if symbol in ("neg", "pos", "invert") else 2
        return Applied(symbol, arguments) if len(arguments) == wanted else None
    if fn is operator.getitem and len(arguments) == 2:
        return Indexed(*arguments)
    # The operands change places: of leaves, the order of evaluation cannot be observed.
    if fn is operator.contains and len(arguments) == 2 and all(map(is_leaf, arguments)):
        return Applied("in", arguments[::-1])
    return None


def _named(fn: Any, arguments: tuple[Expression, ...]) -> Expression | None:
    name = name_of(fn)
    return None if name is None else _of_pattern(name, arguments) or _called(name, arguments)


def _of_pattern(name: str, arguments: tuple[Expression, ...]) -> Expression | None:
    """Return a function of `re` as the method of its constant pattern; None if it is no such function."""
    match arguments:
        case (Constant(str() as pattern), *others) if name in _OF_PATTERNS and len(others) == _OF_PATTERNS[name]:
            with contextlib.suppress(Exception):  # Python says what is wrong with a pattern when it is used.
                return Method(Constant(re.compile(pattern)), name.removeprefix("re."), tuple(others))
    return None


_OF_PATTERNS = {"re.findall": 1, "re.fullmatch": 1, "re.match": 1, "re.search": 1, "re.sub": 2}
"""Functions of `re`, with the number of their arguments behind the pattern; further ones are flags and bounds."""


def _built(kind: type, written: str, arguments: tuple[Expression, ...], keywords: tuple[str, ...]) -> Expression:
    defaults = _fields(kind)
    if defaults is None:
        raise UnreadableName(f"calls {written}", "a dataclass without a __post_init__, or a named tuple, can be read")
    by_place = tuple(defaults)[: len(arguments) - len(keywords)]
    names = (*by_place, *keywords)
    if len(names) != len(arguments) or len(set(names)) < len(names) or not set(names) <= set(defaults):
        raise UnreadableName(f"calls {written} with other arguments than it has fields")
    left = (name for name, default in defaults.items() if name not in names and constant_of(default) is None)
    if (missing := next(left, None)) is not None:
        raise UnreadableName(f"calls {written} without {missing}")
    return Built(kind, names, arguments)


def _fields(kind: type) -> dict[str, Any] | None:
    """Return the fields of a class that stores its arguments and does nothing else, with their defaults."""
    # A metaclass may do anything when its class is called.
    if type(kind) is not type:
        return None
    if _is_named_tuple(kind):
        names = kind._fields  # type: ignore[attr-defined]
    elif _is_dataclass(kind):
        names = tuple(each.name for each in dataclasses.fields(kind))
    else:
        return None
    defaults = defaults_of_constructor(kind)
    return {name: defaults.get(name, _NONE_GIVEN) for name in names}


_NONE_GIVEN = object()


def _is_named_tuple(kind: type) -> bool:
    new, init = _makers(kind)
    return (
        issubclass(kind, tuple)
        and isinstance(getattr(kind, "_fields", None), tuple)
        and is_of_named_tuple(new)
        and init is object.__init__
    )


def _is_dataclass(kind: type) -> bool:
    new, init = _makers(kind)
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return (
        "__dataclass_fields__" in vars(kind)
        and all(
            each.init and not each.kw_only and not _is_computed(kind, each.name) for each in dataclasses.fields(kind)
        )
        # Pseudo-fields, such as an `InitVar`, are in this dictionary and not among `fields()`.
        and len(vars(kind)["__dataclass_fields__"]) == len(dataclasses.fields(kind))
        and is_of_dataclass(init)
        and "__init__" in vars(kind)
        and not hasattr(kind, "__post_init__")
        and new is object.__new__
        and (getattr(kind, "__setattr__", None) is object.__setattr__ or parameters.frozen)
    )


def _makers(kind: type) -> tuple[object, object]:
    """Return the functions that make and initialize objects of a class."""
    return getattr(kind, "__new__", None), getattr(kind, "__init__", None)


def _is_computed(kind: type, name: str) -> bool:
    """Return whether a descriptor, such as a property, takes the values assigned to a field."""
    held = getattr(kind, name, None)
    return hasattr(type(held), "__set__") and not isinstance(held, MemberDescriptorType)
