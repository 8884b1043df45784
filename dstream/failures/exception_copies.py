"""Exceptions made again: on the way between processes, and where one object is raised again and again.

Classes of exceptions may refuse what Python itself asks of them: an `__init__` with other arguments than `args`,
attributes that cannot be set (a frozen dataclass, a property, a `__setattr__` that raises), slots. So nothing
here calls a method of such a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MemberDescriptorType
from typing import Any, TypeVar

__all__ = ["arguments_of", "copied", "rebuilt", "state_of"]

E = TypeVar("E", bound=BaseException)

_OF_A_PROGRAM = 1 << 9
"""`Py_TPFLAGS_HEAPTYPE`: the class was defined by a program. The slots of Python's own hold what `__init__` sets."""


def arguments_of(error: BaseException) -> tuple[Any, ...]:
    """Return what the built-in `__init__` wants to make `error` again."""
    if isinstance(error, BaseExceptionGroup):
        return (error.message, error.exceptions)
    if isinstance(error, OSError):
        return OSError.__reduce__(error)[1]  # type: ignore[return-value]  # `args` leaves the file out.
    return error.args


def state_of(error: BaseException) -> dict[str, Any]:
    """Return the attributes of `error`, those in slots too, but for what Python and dstream keep there."""
    state = {name: value for name, value in error.__dict__.copy().items() if not name.startswith("__")}
    for name, slot in _slots(type(error)):
        try:
            state[name] = slot.__get__(error)
        except AttributeError:
            continue  # It was never set.
    return state


def rebuilt(kind: type[E], args: tuple[Any, ...], state: dict[str, Any]) -> E:
    """Make an exception of these arguments and attributes, without a method of its class."""
    built_in: Any = next(base for base in kind.__mro__ if not base.__flags__ & _OF_A_PROGRAM)
    error: E = built_in.__new__(kind, *args)
    built_in.__init__(error, *args)
    if not isinstance(error, OSError | BaseExceptionGroup):
        BaseException.__setattr__(error, "args", args)
    slots = dict(_slots(kind))
    for name, value in state.items():
        if name in slots:
            slots[name].__set__(error, value)
        else:
            error.__dict__[name] = value
    return error


def _slots(kind: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    for base in kind.__mro__:
        if base.__flags__ & _OF_A_PROGRAM:
            yield from ((f"{base.__name__}.{name}", slot) for name, slot in vars(base).items() if _is_slot(slot))


def _is_slot(value: object) -> bool:
    return isinstance(value, MemberDescriptorType)


def copied(error: E, without: Iterable[str]) -> E:
    """Return another exception that says the same, without some of its notes."""
    left = [note for note in error.__dict__.get("__notes__", ()) if note not in set(without)]
    try:
        copy = rebuilt(type(error), arguments_of(error), state_of(error))
    except TypeError:  # A class in C without a constructor, as that of pydantic: nobody raises one object of it twice.
        return error
    if left:
        copy.__dict__["__notes__"] = left
    for name in ("__cause__", "__context__", "__suppress_context__", "__traceback__"):
        BaseException.__setattr__(copy, name, getattr(error, name))
    return copy
