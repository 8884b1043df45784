"""Functions that are known to change nothing and to look at nothing but their arguments."""

from __future__ import annotations

import builtins
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from dstream.expressions.expression import Operator
from dstream.values.entry import as_entry

__all__ = ["CHANGING_NOTHING", "KNOWN", "OPERATORS", "name_of"]

_BUILTINS = (
    *("abs", "all", "any", "ascii", "bin", "bool", "bytes", "chr", "dict", "divmod", "float", "format", "frozenset"),
    *("hex", "int", "len", "list", "max", "min", "oct", "ord", "pow", "range", "repr", "round", "set", "slice"),
    *("sorted", "str", "sum", "tuple"),
)
_OF_RE = ("escape", "findall", "fullmatch", "match", "search", "split", "sub")
_OF_STR = tuple(name for name in vars(str) if not name.startswith("_") and name != "maketrans")

KNOWN: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in _BUILTINS},
    **{f"math.{name}": fn for name, fn in vars(math).items() if callable(fn) and not name.startswith("_")},
    "operator.not_": operator.not_,  # No `not`: where only truth is asked, that asks `a and b` once.
    **{f"re.{name}": getattr(re, name) for name in _OF_RE},
    **{f"str.{name}": getattr(str, name) for name in _OF_STR},
    "dstream.Entry": as_entry,
}
"""Functions by the names that a `Called` has for them."""

CHANGING_NOTHING = frozenset(
    {
        *_OF_STR,
        *("get", "items", "keys", "values"),  # of dict
        *("as_integer_ratio", "bit_count", "bit_length", "conjugate", "hex", "is_integer"),  # of numbers
        *(
            "date",
            "isocalendar",
            "isoformat",
            "isoweekday",
            "strftime",
            "time",
            "timestamp",
            "total_seconds",
            "weekday",
        ),
        *("findall", "fullmatch", "match", "search", "sub"),  # of patterns
        *("group", "groupdict", "groups"),  # of matches
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

_NAMES = {id(fn): name for name, fn in KNOWN.items()} | {
    id(operator.abs): "abs",
    id(operator.truth): "bool",
    id(operator.getitem): "operator.getitem",
}
_HELD = (operator.abs, operator.truth, operator.getitem)  # An id is that of an object as long as this lives.


def name_of(fn: object) -> str | None:
    """Return the name of a function that is known; None of any other."""
    return _NAMES.get(id(fn))
