"""Captured lists, dicts and sets that a function of a plan may change while others look into them."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable
from typing import Any

from dstream.base.by_value import is_importable
from dstream.expressions.reader import Unreadable, read
from dstream.plan.captures import PLAIN, captures_of
from dstream.plan.operations.ends import End, Several
from dstream.plan.operations.streams import Read
from dstream.plan.walk import topological

__all__ = ["containers_changed"]


def containers_changed(root: End | Several) -> frozenset[int] | None:
    """Return the ids of the lists, dicts and sets that functions of a plan reach which may do more than to look.

    A function that is read changes nothing. Any other one may change what it captures, and what that refers to: in its
    task the functions before and behind it see the change, since they are pickled together. What a source refers to
    travels in its splits, apart from them.

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
            is_pure = not isinstance(read(value, value.__code__.co_argcount), Unreadable)
            return () if is_pure or is_importable(value) else (held for _, held in captures_of(value))
        case type():
            return () if is_importable(value) else vars(value).values()
    # The class of an object has its methods.
    return [*gc.get_referents(value), type(value)]
