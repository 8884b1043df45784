"""Functions of dstream's around those of the user's, as expressions: `map_values`, `key_by`, `starmap`, ..."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from dstream.expressions.expression import (
    Argument,
    Called,
    Choice,
    Constant,
    Expression,
    ForTuples,
    Indexed,
    Let,
    Local,
    Together,
)
from dstream.expressions.function_reading import Unread, read
from dstream.expressions.names_of_function import Namespaces
from dstream.expressions.order_of_evaluation import asks_for_truth, substituted

__all__ = ["entry_read", "read_around"]

_ITEM = Argument(0)
_KEY, _VALUE = Indexed(_ITEM, Constant(0)), Indexed(_ITEM, Constant(1))


def read_around(fn: Any, namespaces: Namespaces | None) -> Expression | Unread:
    """Return what a function of dstream's gives, which says by `around` what it does with one of the user's."""
    around = getattr(type(fn), "around", None)
    if around is None:
        return Unread("stands in a call that does more with each item")
    if around == "swap":
        return entry_read("swap")
    if around == "starred":
        return _starred(fn.fn, namespaces)
    found = read(fn.fn, 1, namespaces)
    if isinstance(found, Unread):
        return found
    if around == "key_by":
        return _entry(found, _ITEM)
    of_value = substituted(found, {0: _VALUE})
    if around == "on_value":
        return ForTuples(2, _entry(_KEY, of_value))
    condition = Let(of_value, 0, Local(0)) if asks_for_truth(of_value) else of_value
    return ForTuples(2, Choice(condition, Together((_entry(_KEY, _VALUE),)), Constant(())))


def entry_read(what: str) -> Expression:
    """Return the `"key"` or the `"value"` of an entry, or an entry of both exchanged: `"swap"`."""
    return ForTuples(2, {"key": _KEY, "value": _VALUE, "swap": _entry(_VALUE, _KEY)}[what])


def _entry(key: Expression, value: Expression) -> Expression:
    return Called("dstream.Entry", (Together((key, value)),))


def _starred(fn: Callable[..., Any], namespaces: Namespaces | None) -> Expression | Unread:
    """Return what `fn(*item)` gives for tuples of as many members as `fn` has parameters."""
    if type(fn) is not FunctionType:
        return Unread("takes an item apart for what is no lambda or def")
    size = fn.__code__.co_argcount
    found = read(fn, size, namespaces)
    if isinstance(found, Unread) or size == 0:
        return found if isinstance(found, Unread) else Unread("takes no arguments")
    return ForTuples(size, substituted(found, {place: Indexed(_ITEM, Constant(place)) for place in range(size)}))
