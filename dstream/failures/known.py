"""`Failure`: what is known about an exception that arose inside a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dstream.errors import IllegalStateError
from dstream.failures.frames import Origin, is_full, item_of, shorten
from dstream.failures.showing import shown
from dstream.values.blaming import forgotten

__all__ = ["MISSING", "Account", "Failure", "attach", "blame", "failure", "known_of", "naming"]

_ATTRIBUTE = "__dstream_failure__"
_GIVEN = "__dstream_given__"
"""A plug-in whose function takes more than an item says in this attribute of an exception what was given to it."""


class _Missing:
    """The item that is not known."""

    def __repr__(self) -> str:
        return "<not known>"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Account:
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
    """What is known about a failure inside a pipeline. It prints as the three notes of the exception.

    Attributes:
        step: the step that failed, with `label`, `where`, `position` and `total`; None if no step is to blame.
        item: the item on which it failed, or `MISSING`.
        remote_traceback: the traceback on the worker as text, or Spark's own error with its Java stack;
            None if it failed in this process.
        item_text: how the item reads, where it was too large to travel, or could not.
        given: what else the function was given, in words.
        origin: where the exception was raised.
        advice: what to do, from those who know more than the kind of the exception says.
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
    account: Account | None = None

    @property
    def where(self) -> Any:
        """The file and line of the user's call, or None."""
        return None if self.step is None else self.step.where

    @property
    def shown_item(self) -> str | None:
        """The item as it reads, cut at 200 characters; None if it is not known."""
        return shown(self.item) if self.item is not MISSING else self.item_text

    def replay(self) -> Any:
        """Run the step on the item in this process, with the function as the user wrote it; return what it gives.

        Set a breakpoint in the function, or call this under a debugger. If the function fails here as it did
        there, its exception is raised.

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
    """Keep with `error` that it happened in `step`, on `item`; the first step that it passes is to blame.

    An exception that already came out of a stream, inside of a function of the user's, is the
    failure of the step that called this function; what is known of the inner stream is kept.
    """
    known = known_of(error)
    if known is None or known.account is not None:
        attach(error, Failure(step, item, given=getattr(error, _GIVEN, None), inner=_inside(error, known)))
    forgotten(error)


def _inside(error: BaseException, known: Failure | None) -> Failure | None:
    """Return what is known of a stream inside of the function that failed.

    An exception may be raised again long after it came out of a stream: what was known then goes, with its notes.
    """
    if known is None or known.account is None or known.account.is_inside:
        return known
    error.__dict__["__notes__"] = [note for note in getattr(error, "__notes__", ()) if note not in known.account.notes]
    return None


def attach(error: BaseException, known: Failure) -> None:
    """Let `failure(error)` return `known`."""
    error.__dict__[_ATTRIBUTE] = known  # An exception may refuse attributes: one that is a frozen dataclass does.


def known_of(error: BaseException) -> Failure | None:
    """Return what is attached to `error` itself, or to the StopIteration that Python made a RuntimeError of."""
    found: Failure | None = getattr(error, _ATTRIBUTE, None)
    if found is None and isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        return known_of(error.__cause__)
    return found


class naming:
    """Let an exception on the way that names no step yet name this one."""

    __slots__ = ("_step",)

    def __init__(self, step: Any) -> None:
        self._step = step

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # Not by `contextlib`, which sets attributes of the exception: one that is a frozen dataclass refuses them.
        if isinstance(error, Exception):
            blame(error, self._step, item_of(error, MISSING))


def failure(error: BaseException | None = None) -> Failure | None:
    """Return what is known about where in a pipeline `error` arose, or None if nothing is.

    What `error` was raised from counts too, and so do the members of an `ExceptionGroup`.

    Args:
        error: an exception; None means the one that is being handled, or the last one that a REPL showed.

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
        if id(looked_at) not in seen:
            seen.add(id(looked_at))
            members = looked_at.exceptions if isinstance(looked_at, BaseExceptionGroup) else ()
            behind = (looked_at.__context__, looked_at.__cause__)
            left += [*(other for other in behind if other is not None), *reversed(members)]
    return None
