"""Functions known by their code: `lambda word: word`, `lambda word: 1`, `lambda word: (word, 1)`.

Word counts and their like call such functions for each item, which costs as much as half of the counting. Whoever knows
what one gives need not call it: its instructions are those of a function written here, which reads nothing but its
argument and a constant, and cannot fail (`docs/decisions/0055-functions-that-need-no-call.md`).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Literal, TypeAlias

__all__ = ["Form", "Plain", "is_watched", "plain"]

Form: TypeAlias = Literal["item", "constant", "pair"]
Plain: TypeAlias = tuple[Form, Any]
"""What a function gives: its item, a constant, or the pair of its item and a constant; and the constant."""


def plain(fn: Callable[..., Any]) -> Plain | None:
    """Say what `fn` gives for any item, if its code alone tells.

    Where a debugger, a profiler or a measurement of coverage wants to see calls, nothing is told.

    Example:
        >>> plain(lambda word: (word, 1)), plain(lambda word: word.lower())
        (('pair', 1), None)
    """
    if type(fn) is not FunctionType or fn.__code__.co_names or is_watched():
        return None
    return _plain(fn.__code__)


@functools.lru_cache(maxsize=512)
def _plain(code: CodeType) -> Plain | None:
    form = _FORMS.get(_essence(code))
    if form is None:
        return None
    given = FunctionType(code, {})(None)
    return form, None if form == "item" else given if form == "constant" else given[1]


def _essence(code: CodeType) -> tuple[object, ...]:
    """Return all of a function's code but the values of its constants."""
    arguments = code.co_argcount, code.co_kwonlyargcount, code.co_nlocals
    return code.co_code, *arguments, code.co_flags & _CALLED_OTHERWISE, code.co_freevars, code.co_cellvars


_CALLED_OTHERWISE = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
"""`*args`, `**kwargs`, generators, coroutines, coroutines of decorated generators, asynchronous generators."""


def is_watched() -> bool:
    """Say whether somebody wants to see calls: a debugger, a profiler, a measurement of coverage."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    return _MONITORING is not None and any(map(_MONITORING.get_tool, range(_TOOLS)))


_MONITORING: Any = getattr(sys, "monitoring", None)  # Python 3.12
_TOOLS = 6


def _item(item: Any) -> Any:
    return item


def _one(item: Any) -> Any:
    return 1


def _text(item: Any) -> Any:
    return "text"


def _none(item: Any) -> Any:
    return None


def _with_one(item: Any) -> Any:
    return item, 1


def _with_text(item: Any) -> Any:
    return item, "text"


def _with_none(item: Any) -> Any:
    return item, None


# Which instruction loads a constant, and from where, differs with the interpreter and with the constant.
_EXAMPLES: dict[Form, tuple[Callable[[Any], Any], ...]] = {
    "item": (_item, lambda item: item),
    "constant": (_one, _text, _none, lambda item: 1, lambda item: "text", lambda item: None),
    "pair": (
        *(_with_one, _with_text, _with_none),
        *(lambda item: (item, 1), lambda item: (item, "text"), lambda item: (item, None)),
    ),
}
_FORMS: dict[tuple[object, ...], Form] = {
    _essence(example.__code__): form for form, examples in _EXAMPLES.items() for example in examples
}
