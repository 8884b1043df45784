"""Plain functions recognized by their code, and checks of the results of user functions.

Word counts and similar programs call plain functions for each item, which takes as long as half of the counting. A loop
that inlines the result avoids the call: it recognizes functions by their instructions, which equal those of a function
in this module that reads only its argument and a constant, and cannot fail (decision 55).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, cast

__all__ = [
    "Plain",
    "PlainForm",
    "checked_result",
    "closed_at_end",
    "is_watched",
    "many",
    "plain",
    "refuse_awaitable",
    "refuse_awaitables_in",
]


T = TypeVar("T")


def many(result: Any) -> Iterable[Any]:
    """Return the result of a function of `flat_map` as an iterable: None as empty, a stream closed at its end."""
    if type(result) in _COMMON:
        return cast(Iterable[Any], result)
    if result is None:
        return ()
    result = closed_at_end(result)
    refuse_awaitable(result)
    # `iter` also accepts objects that only have `__getitem__`, which are no `Iterable`.
    if not isinstance(result, Iterable) and not hasattr(type(result), "__getitem__"):
        raise TypeError(f"flat_map() needs a function that gives an iterable or None, not {type(result).__name__}")
    return cast(Iterable[Any], result)


_COMMON = frozenset({list, tuple, str, dict, set, range})


def closed_at_end(result: Any) -> Any:
    """Return the items of a stream, which is closed at its end; anything else unchanged."""
    # Found by its name, since streams are above this package; on the class, since an item may have any attribute.
    traverse = getattr(type(result), "_traverse_and_close", None)
    return result if traverse is None else traverse(result)


def refuse_awaitable(result: Any) -> None:
    """Refuse a result that has to be awaited, such as a coroutine that a plain wrapper of an async function returns.

    Raises:
        TypeError: it is an awaitable or an async generator, or a tuple that contains one.
    """
    for part in _parts(result) if isinstance(result, tuple) else (result,):
        if hasattr(type(part), "__await__") or type(part) is AsyncGeneratorType:
            _refuse(part)


def _parts(result: tuple[Any, ...]) -> Iterable[Any]:
    """Return the parts of a tuple; for a long tuple one part of each type, which takes a tenth of the time."""
    # Not `iter` nor `len`, which a subclass may override.
    parts = tuple.__iter__(result)
    if tuple.__len__(result) <= _FIRST_PARTS:
        return parts
    # By their `id`, since a metaclass may make its classes unhashable.
    return dict(zip(map(id, map(type, parts)), tuple.__iter__(result), strict=True)).values()


def refuse_awaitables_in(result: Any, levels: int = 3) -> None:
    """Refuse a result that has to be awaited, also inside of lists, dicts, tuples and sets: among their first parts.

    It takes microseconds, so that only the first results of a function are checked.

    Raises:
        TypeError: something in it has.
    """
    refuse_awaitable(result)
    if levels and isinstance(result, tuple):
        parts: Iterable[Any] = tuple.__iter__(result)
    elif levels and type(result) in _COMMON:
        parts = result.values() if type(result) is dict else () if type(result) in (str, range) else result
    else:
        return
    for part in islice(parts, _FIRST_PARTS):
        refuse_awaitables_in(part, levels - 1)


_FIRST_PARTS = 8


def checked_result(result: T) -> T:
    """Return a result of a function, unless it has to be awaited.

    Raises:
        TypeError: it has.
    """
    refuse_awaitable(result)
    return result


def _refuse(result: Any) -> NoReturn:
    kind = type(result)
    if kind is CoroutineType:
        result.close()  # Python would warn that it was never awaited.
    advice = (
        "gather its items in a list in an async function, and use gather(map_concurrent(n, fn)).flatten()"
        if kind is AsyncGeneratorType
        else "use gather(map_concurrent(n, fn)) with the async function itself, which awaits the results"
    )
    raise TypeError(f"the function gave a result that has to be awaited ({kind.__name__}): {advice}")


PlainForm: TypeAlias = Literal["item", "constant", "pair"]
Plain: TypeAlias = tuple[PlainForm, Any]
"""The result of a plain function: its item, a constant, or the pair of its item and a constant; and the constant."""


def plain(fn: Callable[..., Any]) -> Plain | None:
    """Return the plain form of `fn`, if its code alone determines its result for every item.

    None where a debugger, a profiler or a measurement of coverage observes calls.

    Example:
        >>> plain(lambda word: (word, 1)), plain(lambda word: word.lower())
        (('pair', 1), None)
    """
    # `co_names` are globals and attributes, whose values the code does not contain.
    if type(fn) is not FunctionType or fn.__code__.co_names or is_watched():
        return None
    return _plain(fn.__code__)


@functools.lru_cache(maxsize=512)
def _plain(code: CodeType) -> Plain | None:
    form = _FORMS.get(_essence(code))
    if form is None:
        return None
    # The call has no effect: such code reads its argument and its constants alone.
    given = FunctionType(code, {})(None)
    return form, None if form == "item" else given if form == "constant" else given[1]


def _essence(code: CodeType) -> tuple[object, ...]:
    """Return all of a function's code but the values of its constants."""
    arguments = code.co_argcount, code.co_kwonlyargcount, code.co_nlocals
    return code.co_code, *arguments, code.co_flags & _CALLED_OTHERWISE, code.co_freevars, code.co_cellvars


_CALLED_OTHERWISE = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
"""`*args`, `**kwargs`, generators, coroutines, coroutines of decorated generators, asynchronous generators."""


def is_watched() -> bool:
    """Return whether calls are observed: by a debugger, a profiler, a measurement of coverage."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    return _MONITORING is not None and any(map(_MONITORING.get_tool, range(_TOOLS)))


_MONITORING: Any = getattr(sys, "monitoring", None)  # Python 3.12
_TOOLS = 6  # The tool ids of `sys.monitoring` are 0 to 5.


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
_EXAMPLES: dict[PlainForm, tuple[Callable[[Any], Any], ...]] = {
    "item": (_item, lambda item: item),
    "constant": (_one, _text, _none, lambda item: 1, lambda item: "text", lambda item: None),
    "pair": (
        *(_with_one, _with_text, _with_none),
        *(lambda item: (item, 1), lambda item: (item, "text"), lambda item: (item, None)),
    ),
}
_FORMS: dict[tuple[object, ...], PlainForm] = {
    _essence(example.__code__): form for form, examples in _EXAMPLES.items() for example in examples
}
