"""Captured lists, dicts and sets that a function of a plan may change while others look into them."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable
from typing import Any

from dstream.base.by_value import is_importable
from dstream.expressions.reader import Unreadable, read
from dstream.expressions.tree import Built
from dstream.plan.captures import PLAIN, captures_of
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.streams import Read
from dstream.plan.walk import topological

__all__ = ["containers_changed"]


def containers_changed(root: End | Several) -> frozenset[int] | None:
    """Return the ids of the lists, dicts and sets that functions of a plan reach which may do more than to look.

    A function that is read changes nothing, except by operators of objects that it makes. Any other one may change
    what it captures, and what that refers to: in its task the functions before and behind it see the change, since
    they are pickled together. What a source refers to travels in its splits, apart from them.

    Returns:
        The ids; None if there are too many objects to look at, so that any container may change.
    """
    waiting: list[Any] = [
        value
        for each in topological(root)
        for _, value in each.shipped()
        if not (isinstance(each, Read) and value is each.source)
    ]
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        if type(value) in PLAIN or id(value) in seen:
            continue
        seen[id(value)] = value  # It keeps the object, whose id it has.
        if len(seen) > _MOST:
            return None
        waiting.extend(_reached(value))
    return frozenset(number for number, value in seen.items() if isinstance(value, dict | list | set))


_MOST = 20_000


def _reached(value: Any) -> Iterable[Any]:
    """Return the objects that an object may change."""
    match value:
        case types.ModuleType():
            return ()
        case types.FunctionType():
            return () if is_importable(value) else _captured(value)
        case type():
            # A metaclass has the code of calls, and bases have methods and attributes.
            return () if is_importable(value) else (*vars(value).values(), *value.__mro__[1:], type(value))
    # The class of an object has its methods.
    return [*gc.get_referents(value), type(value)]


def _captured(function: types.FunctionType) -> Iterable[Any]:
    """Return what a function may change: one that is read runs the operators of its defaults and its classes alone."""
    found = read(function, function.__code__.co_argcount)
    if isinstance(found, Unreadable):
        return (held for _, held in captures_of(function))
    kinds = (each.kind for each in found.walk() if isinstance(each, Built))
    return (*kinds, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *vars(function).values())
