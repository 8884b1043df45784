"""What a job failed with: whose fault it is, a text that anybody may read, a pickle for those who may load it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dstream.errors import (
    ColumnsDifferError,
    EngineError,
    RemoteError,
    SinkTakenError,
    SinkUnavailableError,
    SourceUnavailableError,
)
from dstream.failures import known_of, origin_of
from dstream.failures.exception_copies import arguments_of, rebuilt, state_of
from dstream.jobs.job_state import FailureText
from dstream.pickling import dumps

__all__ = ["arrived", "failure_text", "is_no_fault_of_the_user", "pickled_failure"]

_LONGEST = 20_000
_MOST_NOTES = 50


def failure_text(error: BaseException) -> FailureText:
    """Return an exception in words."""
    message = _said(lambda: str(error), "its message")[:_LONGEST]
    shown = _said(lambda: "".join(traceback.format_exception(error)), "its traceback")[-_LONGEST:]
    return FailureText(_named(type(error)), message, tuple(_notes(error)), shown)


def _notes(error: BaseException) -> Iterator[str]:
    notes = BaseException.__getattribute__(error, "__dict__").get("__notes__")
    for note in notes[:_MOST_NOTES] if isinstance(notes, list | tuple) else ():
        yield _said(partial(str, note), "this note")[:_LONGEST]


def _named(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _said(say: Callable[[], str], what: str) -> str:
    try:
        return say()
    except BaseException as problem:  # A class of the user's may raise anything there.
        return f"({what} cannot be shown: {type(problem).__name__})"


def pickled_failure(error: BaseException) -> bytes | None:
    """Return an exception as it can be made again elsewhere; None if it cannot travel."""
    for has_state in (True, False):
        try:
            return dumps((type(error), arguments_of(error), state_of(error) if has_state else {}))
        except BaseException:  # What an attribute holds may raise anything when it is pickled.
            continue
    return None


def arrived(text: FailureText, pickle: bytes | None, load: Callable[[bytes], Any]) -> BaseException:
    """Return the exception of another process, made again; or what tells of it.

    Args:
        text: what is known of it in words.
        pickle: what `pickled_failure` gave.
        load: loads a pickle, if the storage lets it.
    """
    error = None if pickle is None else _made(pickle, load)
    if error is None:
        return RemoteError(text.type_name, text.message, text.notes, text.traceback)
    if text.notes:
        error.__dict__["__notes__"] = list(text.notes)
    return error


def _made(pickle: bytes, load: Callable[[bytes], Any]) -> BaseException | None:
    try:
        kind, arguments, state = load(pickle)
        error = rebuilt(kind, arguments, state)
    except BaseException:  # Its class may be missing, raise anything, or not be allowed: the texts say all.
        return None
    return error if isinstance(error, BaseException) else None


def is_no_fault_of_the_user(error: BaseException, has_run: bool) -> bool:
    """Say whether what a job runs on was lost: workers, Spark, a connection; and no step is to blame.

    A server that has not answered before a job ever ran may not be there at all: its user is told at once.
    """
    if isinstance(error, SourceUnavailableError | SinkUnavailableError):
        return has_run
    known = known_of(error)
    if isinstance(error, ColumnsDifferError):
        return False
    if isinstance(error, EngineError):
        origin = known.origin if known is not None and known.origin is not None else origin_of(error)
        return origin is None or not origin.is_raiser
    if isinstance(error, SinkTakenError):  # By a process that was stopped: it may go on, or end.
        return True
    return isinstance(error, ConnectionError) and (known is None or known.step is None)
