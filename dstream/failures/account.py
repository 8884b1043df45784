"""`Failure`: the step, item and source location of an exception, attached to it and to its copies.

Classes of exceptions may violate Python's protocol: an `__init__` with other arguments than `args`, attributes that
cannot be set (a frozen dataclass, a property, a `__setattr__` that raises), slots. So this module calls no method of
such a class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from threading import get_ident
from types import MemberDescriptorType
from typing import Any, TypeVar

from dstream.base.showing import shown
from dstream.errors import IllegalStateError
from dstream.failures.attribution import (
    Origin,
    behind,
    forgotten,
    given_to,
    is_full,
    item_of,
    origin_of,
    shorten,
    stopped,
)

__all__ = [
    "MISSING",
    "Failure",
    "FailureMessage",
    "arguments_of",
    "attach",
    "blame",
    "copied",
    "failure",
    "forget",
    "is_told",
    "known_of",
    "naming",
    "rebuilt",
    "refuse_an_end",
    "state_of",
    "told",
]


E = TypeVar("E", bound=BaseException)

_OF_A_PROGRAM = 1 << 9
"""`Py_TPFLAGS_HEAPTYPE`: the class was defined by a program. Slots of built-in classes are set by `__init__`."""


def arguments_of(error: BaseException) -> tuple[Any, ...]:
    """Return the arguments that the built-in `__init__` needs to make `error` again."""
    if isinstance(error, BaseExceptionGroup):
        return (error.message, error.exceptions)
    if isinstance(error, OSError):
        return OSError.__reduce__(error)[1]  # type: ignore[return-value]  # `args` leaves the file out.
    return error.args


def state_of(error: BaseException) -> dict[str, Any]:
    """Return the attributes of `error`, including slots, except for attributes of Python and dstream."""
    # A copy, since other threads that raise the same object add names to it meanwhile.
    state = {name: value for name, value in error.__dict__.copy().items() if not name.startswith("__")}
    for name, slot in _slots(type(error)):
        try:
            state[name] = slot.__get__(error)
        except AttributeError:
            continue  # It was never set.
    return state


def rebuilt(kind: type[E], args: tuple[Any, ...], state: dict[str, Any]) -> E:
    """Create an exception with these arguments and attributes, without calling a method of its class."""
    # The `__init__` of the user's class may take other arguments than `args`, so only the built-in one is called.
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
            # With the class, since two classes of a hierarchy may have slots of one name.
            yield from ((f"{base.__name__}.{name}", slot) for name, slot in vars(base).items() if _is_slot(slot))


def _is_slot(value: object) -> bool:
    return isinstance(value, MemberDescriptorType)


def copied(error: E, without: Iterable[str]) -> E:
    """Return a copy of an exception without the notes `without`."""
    left = [note for note in error.__dict__.get("__notes__", ()) if note not in set(without)]
    try:
        copy = rebuilt(type(error), arguments_of(error), state_of(error))
    except TypeError:  # A class in C without a constructor, as that of pydantic: an object of it is never raised twice.
        return error
    if left:
        copy.__dict__["__notes__"] = left
    for name in ("__cause__", "__context__", "__suppress_context__", "__traceback__"):
        BaseException.__setattr__(copy, name, getattr(error, name))
    return copy


_ATTRIBUTE = "__dstream_failure__"
_ON_THE_WAY = "__dstream_failing__"
"""Followed by a thread number: the facts of an exception that this thread has raised, but not reported yet."""
_TOLD = "__dstream_told__"
"""Followed by a thread number: the last facts that this thread has reported."""


class _Missing:
    """The item that is not known."""

    def __repr__(self) -> str:
        return "<not known>"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """A failure in words, made where the terminal operation ended.

    Attributes:
        notes: what happened, where, and what to do.
        again: runs the step on an item; None where that is not possible.
        instead: why it is not.
        is_inside: whether it was a function of another stream that ran this one.
    """

    notes: tuple[str, ...]
    again: Callable[[Any], Any] | None = field(default=None, repr=False)
    instead: str = ""
    is_inside: bool = False


@dataclass(frozen=True, repr=False)
class Failure:
    """The known facts of a failure inside a pipeline. It prints as the three notes of the exception.

    Attributes:
        step: the step that failed, with `label`, `where`, `position` and `total`; None if no step is to blame.
        item: the item on which it failed, or `MISSING`.
        remote_traceback: the traceback on the worker as text, or Spark's own error with its Java stack;
            None if it failed in this process.
        item_text: the `repr` of the item, if it was too large to be sent, or could not be pickled.
        given: a description of other arguments of the function.
        origin: where the exception was raised.
        advice: what to do, if more is known than the kind of the exception.
        inner: the failure of a stream that the user's function ran itself.
        account: all this in words.
    """

    step: Any
    item: Any = MISSING
    remote_traceback: str | None = None
    item_text: str | None = None
    given: str | None = None
    origin: Origin | None = None
    advice: str | None = None
    inner: Failure | None = None
    account: FailureMessage | None = None

    @property
    def where(self) -> Any:
        """The file and line of the user's call, or None."""
        return None if self.step is None else self.step.where

    @property
    def shown_item(self) -> str | None:
        """The item as it reads, cut at 200 characters; None if it is not known."""
        return shown(self.item) if self.item is not MISSING else self.item_text

    def replay(self) -> Any:
        """Run the step on the item in this process, with the function as the user wrote it; return the result.

        Set a breakpoint in the function, or call this under a debugger. If the function fails in the same way, its
        exception is raised.

        Raises:
            IllegalStateError: no item is known, or the step runs no function on one item.
        """
        if self.account is None:
            raise IllegalStateError("this failure cannot be replayed: it has not come out of a terminal operation yet")
        if self.account.again is None:
            raise IllegalStateError(f"this failure cannot be replayed: {self.account.instead}")
        try:
            return self.account.again(self.item)
        except BaseException as error:
            if not is_full():
                shorten(error)
            raise

    def __repr__(self) -> str:
        if self.account is not None:
            return "\n".join(self.account.notes)
        item = "" if self.shown_item is None else f", on the item {self.shown_item}"
        return f"<failure in {self.step}{item}>"


def blame(error: BaseException, step: Any, item: Any = MISSING) -> None:
    """Attach `step` and `item` to `error`; it is attributed to the first step that it passes.

    An exception that a stream raised inside of a function of the user's is the
    failure of the step that called this function; the facts of the inner stream are retained.

    Threads may raise one object at the same time, so each thread stores its own facts until they are reported.
    """
    known = known_of(error)
    if known is None or known.account is not None:
        inner = known if known is not None and known.account is not None and known.account.is_inside else None
        forget(error)
        error.__dict__[_name(_ON_THE_WAY)] = Failure(step, item, given=given_to(error), inner=inner)
    forgotten(error)


def blame_copy(error: BaseException, copy: Callable[[Any], Any]) -> None:
    """Attach a copy of the item to an exception in flight."""
    known = known_of(error)
    if known is None or known.account is not None or known.item is MISSING:
        return
    try:
        changed = replace(known, item=copy(known.item))
    except Exception:
        changed = replace(known, item=MISSING, item_text=shown(known.item))
    error.__dict__[_name(_ON_THE_WAY)] = changed


def attach(error: BaseException, known: Failure) -> None:
    """Set the result of `failure(error)` to `known`."""
    error.__dict__[_ATTRIBUTE] = known  # An exception may refuse attributes: one that is a frozen dataclass does.


def told(error: Exception, known: Failure) -> Exception:
    """Return the exception whose `failure` is `known`: `error`, or a copy if it has been raised before.

    An exception may be an object of a module that is raised repeatedly, by several threads at the same time. Each time
    it has another item, and an earlier handler must still find its own item.
    """
    forget(error)
    held: Failure = error.__dict__.setdefault(_ATTRIBUTE, known)  # Atomic: only one thread finds no other.
    if held.account is not None and held is not known and held is not known.inner:
        error = copied(error, without=held.account.notes)
    attach(error, known)
    error.__dict__[_name(_TOLD)] = known
    return error


def is_told(error: BaseException) -> bool:
    """Return whether this thread has attached the facts of `error`, and nothing new has happened to it."""
    return any(_name(_TOLD) in each.__dict__ for each in behind(error))


def known_of(error: BaseException) -> Failure | None:
    """Return the facts attached to `error` itself, or to the StopIteration that Python made a RuntimeError of."""
    for each in behind(error):
        found: Failure | None = each.__dict__.get(_name(_ON_THE_WAY)) or each.__dict__.get(_ATTRIBUTE)
        if found is not None:
            return found
    return None


def forget(error: BaseException) -> None:
    """Forget the facts of `error` in this thread but for those attached to it."""
    for each in behind(error):
        for name in (_ON_THE_WAY, _TOLD):
            each.__dict__.pop(_name(name), None)


class TransportedError:
    """An exception in flight to another thread, with the facts that this thread has stored."""

    def __init__(self, error: BaseException) -> None:
        self._error = error
        name = _name(_ON_THE_WAY)
        self._known = next((each.__dict__[name] for each in behind(error) if name in each.__dict__), None)

    def arrived(self) -> BaseException:
        """Return the exception, with the same facts stored for this thread."""
        if self._known is not None:
            self._error.__dict__[_name(_ON_THE_WAY)] = self._known
        return self._error


def _name(what: str) -> str:
    return f"{what}{get_ident()}"


def refuse_an_end(error: BaseException) -> None:
    """Raise a RuntimeError in place of a StopIteration, which a loop would mistake for the end of the items."""
    if isinstance(error, StopIteration):
        origin = origin_of(error)
        raise stopped("a function" if origin is None else origin.function) from error


class naming:
    """Attribute exceptions without a step to this one."""

    __slots__ = ("_step",)

    def __init__(self, step: Any) -> None:
        self._step = step

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # Not by `contextlib`, which sets attributes of the exception: one that is a frozen dataclass refuses them.
        if isinstance(error, Exception):
            blame(error, self._step, item_of(error, sys._getframe(1), MISSING))
            refuse_an_end(error)


def failure(error: BaseException | None = None) -> Failure | None:
    """Return the known facts of the origin of `error` in a pipeline, or None if unknown.

    What `error` was raised from counts too, and so do the members of an `ExceptionGroup`.

    Args:
        error: an exception; None means the exception being handled, or the last one that a REPL showed.

    Raises:
        TypeError: `error` is no exception.

    Example:
        >>> try:
        ...     Stream.of("12", "x").map(int).to_list()
        ... except ValueError as error:
        ...     failure(error).item
        'x'
    """
    if error is None:
        # A REPL sets `last_exc` since Python 3.12, and `last_value` alone before.
        error = sys.exc_info()[1] or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    elif not isinstance(error, BaseException):
        raise TypeError(f"error must be an exception, not {type(error).__name__}")
    seen: set[int] = set()
    left = [] if error is None else [error]
    while left:
        looked_at = left.pop()
        found = known_of(looked_at)
        if found is not None:
            return found
        # Causes may form a cycle.
        if id(looked_at) not in seen:
            seen.add(id(looked_at))
            members = looked_at.exceptions if isinstance(looked_at, BaseExceptionGroup) else ()
            behind = (looked_at.__context__, looked_at.__cause__)
            # Popped from the end: the members first, then the cause, and the context last.
            left += [*(other for other in behind if other is not None), *reversed(members)]
    return None
