"""Functions without side effects, and results that may share an object."""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import functools
import json
import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, filterfalse
from typing import Any

from dstream.base.setters import IMMUTABLE
from dstream.expressions.tree import (
    Applied,
    Argument,
    Attribute,
    Built,
    Called,
    Changed,
    Choice,
    Comprehension,
    Constant,
    Expression,
    Formatted,
    Function,
    Indexed,
    Let,
    Local,
    Method,
    Operator,
    Routine,
    Text,
    Together,
    Tried,
    is_leaf,
)
from dstream.values.entries import as_entry
from dstream.values.fields import has_fields_alone

__all__ = [
    "CHANGING_NOTHING",
    "IN_PLACE",
    "KEYWORDS",
    "KNOWN",
    "LAZY",
    "OPERATORS",
    "PARAMETERS",
    "USING_UP",
    "ChangedInPlace",
    "asks_for_truth",
    "is_evaluated_first",
    "may_keep",
    "may_share",
    "name_of",
]


_BUILTINS = (
    *("abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "dict", "divmod", "float", "format", "frozenset"),
    *("hex", "int", "len", "list", "max", "min", "oct", "ord", "pow", "range", "repr", "round", "set", "slice"),
    *("sorted", "str", "sum", "tuple"),
)
_OF_DATETIME: dict[type, tuple[str, ...]] = {
    datetime.date: ("fromisoformat", "fromordinal"),
    datetime.datetime: ("combine", "fromisoformat", "fromtimestamp", "strptime"),
    datetime.time: ("fromisoformat",),
    datetime.timedelta: (),
}
"""Classes whose objects cannot be changed, with functions whose results depend on their arguments alone."""
_OF_RE = ("escape", "findall", "fullmatch", "match", "search", "split", "sub")
# `maketrans` is static: it does not take the string of which it seems to be a method.
_OF_STR = tuple(name for name in vars(str) if not name.startswith("_") and name != "maketrans")


def unpacked(value: Any, size: int) -> tuple[Any, ...]:
    """Return the members of a value that a statement assigns to as many variables.

    Raises:
        Exception: the exception of that statement.
    """
    return _unpacking(size)(value)


def tried(
    value: Callable[[], Any],
    within: Callable[[Any], Any],
    *handlers: tuple[tuple[type[Exception], ...], Callable[[], Any]],
) -> Any:
    """Return the result of a `try` statement with an expression inside.

    Raises:
        Exception: that of `value`, if no handler takes it, or that of a handler or of `within`.
    """
    try:
        found = value()
    except Exception as error:
        otherwise = next((each for kinds, each in handlers if isinstance(error, kinds)), None)
        if otherwise is None:
            raise
    else:
        return within(found)
    return otherwise()


def folded(fold: Callable[[Any, Any], Any], values: Iterable[Any], start: Any) -> Any:
    """Return the value of a variable after a loop that adds each value to it, or the like."""
    return functools.reduce(fold, values, start)


def raised(kind: type[Exception], *arguments: Any) -> None:
    """Raise an exception, as a `raise` statement does.

    Raises:
        Exception: always.
    """
    raise kind(*arguments)


class ChangedInPlace(BaseException):
    """A value that an operator would change is one of an item; no `except Exception` of the function's takes it."""


def changed_value(fold: Callable[[Any, Any], Any], value: Any, by: Any) -> Any:
    """Return the value of a variable after `value += by`, or the like, where the value is immutable.

    Raises:
        ChangedInPlace: it can be, or it is not known.
    """
    if type(value) not in _UNCHANGEABLE:
        raise ChangedInPlace
    return fold(value, by)


_UNCHANGEABLE = IMMUTABLE | {tuple}


def failed() -> None:
    """Raise an exception in the place of one of a user's, with which the function fails when it is called again.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("an exception of the user's")


@functools.cache
def _unpacking(size: int) -> Callable[[Any], tuple[Any, ...]]:
    names, namespace = "".join(f"v{number}, " for number in range(size)), dict[str, Any]()
    exec(f"def unpacking(value):\n {names}= value\n return {names}", namespace)
    unpacking: Callable[[Any], tuple[Any, ...]] = namespace["unpacking"]
    return unpacking


IN_PLACE: dict[Operator, str] = {"+": "iadd", "-": "isub", "*": "imul", "/": "itruediv", "//": "ifloordiv"}

KNOWN: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in _BUILTINS},
    **{f"math.{name}": fn for name, fn in vars(math).items() if callable(fn) and not name.startswith("_")},
    "operator.not_": operator.not_,  # No `not`: where only truth is asked, that asks `a and b` once.
    **{f"re.{name}": getattr(re, name) for name in _OF_RE},
    **{f"str.{name}": getattr(str, name) for name in _OF_STR},
    "collections.Counter": Counter,
    "collections.defaultdict": defaultdict,  # Where a routine assigns it alone: a lookup may change it.
    "dataclasses.asdict": dataclasses.asdict,
    "dataclasses.replace": dataclasses.replace,
    "decimal.Decimal": Decimal,
    **{f"datetime.{kind.__name__}": kind for kind in _OF_DATETIME},
    **{
        f"datetime.{kind.__name__}.{name}": getattr(kind, name)
        for kind, names in _OF_DATETIME.items()
        for name in names
    },
    "dstream.Entry": as_entry,
    "dstream.failed": failed,
    "dstream.raised": raised,
    "dstream.first": lambda generator, default: next(generator, default),
    "dstream.is_of": has_fields_alone,
    "dstream.member": lambda kind, value: kind(value),
    "dstream.member_named": lambda kind, name: kind[name],
    "dstream.tried": tried,
    "dstream.unpacked": unpacked,
    "json.dumps": json.dumps,
    "json.loads": json.loads,
    **{f"operator.{name}": getattr(operator, name) for name in IN_PLACE.values()},
    **{
        f"dstream.value_{name}": functools.partial(changed_value, getattr(operator, name)) for name in IN_PLACE.values()
    },
    **{f"dstream.folded_{name}": functools.partial(folded, getattr(operator, name)) for name in IN_PLACE.values()},
    "isinstance": isinstance,  # Of builtin types: a class of a user's may have its own check.
}
"""Functions by the names that a `Called` has for them."""

USING_UP = frozenset(
    {
        *("all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"),
        "collections.Counter",
    }
)
"""Functions that read each member of their first argument, and store no iterator."""

LAZY: dict[str, Any] = {each.__name__: each for each in (enumerate, filter, map, reversed, zip)}
"""Functions whose result can be iterated once: they replace such an argument, or a loop."""

KEYWORDS: dict[str, frozenset[str]] = {
    "enumerate": frozenset({"start"}),
    "int": frozenset({"base"}),
    "json.dumps": frozenset({"ensure_ascii", "indent", "separators", "sort_keys"}),
    "math.isclose": frozenset({"abs_tol", "rel_tol"}),
    "max": frozenset({"default", "key"}),
    "min": frozenset({"default", "key"}),
    "round": frozenset({"ndigits"}),
    "sorted": frozenset({"key", "reverse"}),
    "sum": frozenset({"start"}),
    "zip": frozenset({"strict"}),
}
"""Arguments by name, which stay such."""

CHANGING_NOTHING = frozenset(
    {
        *_OF_STR,
        *("copy", "get", "items", "keys", "values"),  # of dict
        *("most_common", "total"),  # of Counter
        *("_asdict", "_replace"),  # of named tuples
        *("as_integer_ratio", "bit_count", "bit_length", "conjugate", "hex", "is_integer"),  # of numbers
        *(
            "astimezone",
            "date",
            "isocalendar",
            "isoformat",
            "isoweekday",
            "normalize",
            "quantize",
            "strftime",
            "time",
            "timestamp",
            "total_seconds",
            "toordinal",
            "weekday",
        ),
        *("findall", "fullmatch", "match", "search", "split", "sub"),  # of patterns
        *("group", "groupdict", "groups", "span"),  # of matches
    }
)
"""Methods of builtin types."""

OPERATORS: dict[Callable[..., Any], Operator] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.neg: "neg",
    operator.pos: "pos",
    operator.invert: "invert",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}

# A class of the user's may check its instances itself, and `iadd` may change its argument.
_HIDDEN = frozenset({"collections.defaultdict", "isinstance", *(f"operator.{name}" for name in IN_PLACE.values())})
# By their ids, since an object that is called need not have a hash.
_NAMES = {id(fn): name for name, fn in KNOWN.items() if name not in _HIDDEN} | {
    id(operator.abs): "abs",
    id(operator.truth): "bool",
    id(operator.getitem): "operator.getitem",
}
_HELD = (operator.abs, operator.truth, operator.getitem)  # An id identifies an object only while that exists.


PARAMETERS: dict[str, dict[str, Any]] = {
    "datetime.date": dict.fromkeys(("year", "month", "day")),
    "datetime.datetime": {
        **dict.fromkeys(("year", "month", "day")),
        **dict.fromkeys(("hour", "minute", "second", "microsecond"), 0),
        "tzinfo": None,
    },
    "datetime.datetime.fromtimestamp": {"timestamp": None, "tz": None},
    "datetime.time": {**dict.fromkeys(("hour", "minute", "second", "microsecond"), 0), "tzinfo": None},
    "datetime.timedelta": dict.fromkeys(
        ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks"), 0
    ),
}
"""Parameters of functions that are often called with keywords, in order, with the defaults of those that have some."""


def name_of(fn: object) -> str | None:
    """Return the name of a function that is known; None of any other."""
    return _NAMES.get(id(fn))


def asks_for_truth(expression: Expression) -> bool:
    """Return whether there is an `and` or an `or` inside, or a comparison of three.

    Where the truth of its result is asked, Python would ask its operands once: a variable that has the result, or a
    function that returns it, lets it ask once more.
    """
    return any(isinstance(each, Applied) and each.operator in ("and", "or") for each in expression.walk())


def is_evaluated_first(local: Local, expression: Expression) -> bool:
    """Return whether `local` is read in any case, and before anything else is evaluated."""
    while expression != local:
        inner = next((each for each in _evaluated_first(expression) if each == local or not is_leaf(each)), None)
        if inner is None:
            return False
        expression = inner
    return True


def _evaluated_first(expression: Expression) -> tuple[Expression, ...]:
    """Return parts that are evaluated in any case, one after another, before anything is done with them."""
    is_shortened = isinstance(expression, Applied) and expression.operator in ("and", "or")
    # Of these only the first part is evaluated in any case; a method is looked up before its arguments are.
    if is_shortened or isinstance(expression, Choice | Method | Let):
        return expression.parts()[:1]
    # These evaluate again and again, later, or where an exception is caught.
    if isinstance(expression, Comprehension | Function | Routine | Tried):
        return ()
    return expression.parts()


_Known = Mapping[tuple[int, bool], Sequence[Expression]]
"""The expressions that the value of each variable may contain as they are, and those of members read out of it."""


@functools.lru_cache(maxsize=512)
def may_share(expression: Expression) -> bool:
    """Return whether an object, or one that is a part of it, may occur twice in the results of an expression.

    The results of operators on numbers are new, as are strings, bools and lists of these; other functions may return
    their arguments, or containers of them. `+` of two items may be a list of their members, too (`may_keep`).

    Example:
        >>> item, price = Argument(0), Attribute(Argument(0), "price")
        >>> may_share(Together((price, item))), may_share(Together((price, Applied("*", (price, price)))))
        (True, False)
    """
    return _has_equal(_held(expression, {}, False))


@functools.lru_cache(maxsize=512)
def may_keep(expression: Expression) -> bool:
    """Return the same as `may_share`, where operators may return containers with members of items."""
    return _has_equal(_held(expression, {}, True))


def _has_equal(held: Iterator[Expression]) -> bool:
    """Return whether one of the expressions is another one, or a part of it."""
    seen: set[Expression] = set()
    seen_with_wholes: set[Expression] = set()
    ways: dict[Expression, object] = {}
    for each in held:
        wholes = set(_wholes(each))
        if each in seen_with_wholes or not seen.isdisjoint(wholes):
            return True
        for part in wholes:
            if isinstance(part, Attribute | Indexed) and ways.setdefault(part.of, _way(part)) != _way(part):
                return True
        seen.add(each)
        seen_with_wholes |= wholes
    return False


def _held(each: Expression, known: _Known, is_read: bool) -> Iterator[Expression]:
    """Yield the arguments and variables, and the parts of these, that a result may contain as they are.

    Args:
        each: the expression of the result.
        known: the same for variables.
        is_read: members of the result are asked for, so that it is a container, which may have those of operands.
    """
    match each:
        case Argument():
            yield each
        case Constant(dict() | frozenset() | list() | set() | tuple()):
            yield each
        case Local(number):
            yield each
            yield from known.get((number, is_read), ())
        case Attribute(of, _) | Indexed(of, _):
            yield each
            match _root(of):
                case Local(number):
                    yield from known.get((number, True), ())
                case root if not isinstance(root, Argument):
                    yield from _held(root, known, True)
        case Together(held) | Built(_, _, held) | Called("dstream.Entry", held):
            yield from _held_in(held, known, is_read)
        case Changed(of, _, _, held):
            yield from _held_in((of, *held), known, is_read)
        # `+x` of an exact number is `x` itself (CPython 3.11).
        case Applied("and" | "or" | "pos", held):
            yield from _held_in(held, known, is_read)
        case Applied(sign, held) if sign in _JOINING:
            if not any(_is_number(one, sign) for one in held):
                yield from _held_in(held if is_read else filterfalse(_is_of_item, held), known, is_read)
        case Choice(_, chosen, otherwise):
            yield from _held_in((chosen, otherwise), known, is_read)
        case Comprehension() | Function() | Routine():  # They are evaluated any number of times.
            yield from _held_in((*each.parts(), *each.parts()), known, True)
        case Let(value, number, within):
            of_value = {(number, way): _twice_at_most(_held(value, known, way)) for way in (False, True)}
            yield from _held(within, {**known, **of_value}, is_read)
        # Of exact floats `float` and `conjugate` are the same float (CPython 3.11).
        case _ if not _is_new(each):
            yield from _held_in(each.parts(), known, True)


def _held_in(members: Iterable[Expression], known: _Known, is_read: bool) -> Iterator[Expression]:
    for one in members:
        yield from _held(one, known, is_read)


def _twice_at_most(held: Iterator[Expression]) -> tuple[Expression, ...]:
    # More than two show no more: without an end, they were twice as many for each variable that is added to itself.
    counts = Counter(held)
    return tuple(chain(counts, (each for each, times in counts.items() if times > 1)))


def _is_number(operand: Expression, sign: str) -> bool:
    """Return whether an operand is one with which an operator joins or repeats no container."""
    kind = type(operand.value) if isinstance(operand, Constant) else None
    return kind in (float, str) or (kind is int and sign != "*")


def _is_of_item(operand: Expression) -> bool:
    return isinstance(_root(operand), Argument)


_JOINING = frozenset({"+", "-", "*", "|", "&", "^"})
"""Operators on containers whose result is a container with members of these."""


def _is_new(each: Expression) -> bool:
    """Return whether a result, and each object in it that is distinguishable from an equal one, is new."""
    match each:
        case Applied() | Constant() | Text() | Formatted():
            return True
        case Called(function, _):
            return function in _MAKING_NEW or function.startswith(("re.", "str."))
        case Method(_, name, _):
            return name in _METHODS_MAKING_NEW
    return False


_MAKING_NEW = frozenset(
    {
        *("abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "divmod", "format", "hex", "int", "isinstance"),
        *("json.dumps", "json.loads", "len", "oct", "operator.not_", "ord", "pow", "range", "repr", "round", "str"),
        *(f"math.{name}" for name, fn in vars(math).items() if callable(fn) and name != "prod"),
    }
)

_METHODS_MAKING_NEW = CHANGING_NOTHING - {
    *("_asdict", "_replace"),
    *("copy", "get", "items", "keys", "most_common", "values"),
    *("conjugate", "normalize", "quantize"),
    *("group", "groupdict", "groups"),
}


def _way(part: Attribute | Indexed) -> object:
    """Return the way a part is reached: in one way, another name is another part; `x.key` may be `x[0]`."""
    if isinstance(part, Attribute):
        return Attribute
    if not isinstance(part.index, Constant):
        return part.index
    return type(part.index.value) is int and part.index.value < 0


def _wholes(each: Expression) -> Iterator[Expression]:
    """Yield an expression, and those that it is a part of."""
    yield each
    while isinstance(each, Attribute | Indexed):
        each = each.of
        yield each


def _root(each: Expression) -> Expression:
    *_, root = _wholes(each)
    return root
