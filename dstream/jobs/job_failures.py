"""What a job failed with: kept as texts that anybody may read, and as a pickle for those who may load it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from dstream.errors import RemoteError
from dstream.failures.exception_copies import arguments_of, rebuilt, state_of
from dstream.jobs.job_state import FailureText
from dstream.pickling import dumps

__all__ = ["arrived", "failure_text", "pickled_failure"]

_LONGEST = 20_000
_MOST_NOTES = 50


def failure_text(error: BaseException) -> FailureText:
    """Return an exception in words."""
    notes = tuple(str(note)[:_LONGEST] for note in error.__dict__.get("__notes__", ())[:_MOST_NOTES])
    shown = "".join(traceback.format_exception(error))[-_LONGEST:]
    return FailureText(_named(type(error)), _message(error)[:_LONGEST], notes, shown)


def _named(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as problem:  # A class of the user's may fail there as anywhere else.
        return f"(its message cannot be shown: {type(problem).__name__})"


def pickled_failure(error: BaseException) -> bytes | None:
    """Return an exception as it can be made again elsewhere; None if it cannot travel."""
    arguments = arguments_of(error)
    for state in (state_of(error), {}):
        try:
            return dumps((type(error), arguments, state))
        except Exception:  # What an attribute holds may raise anything when it is pickled.
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
    except Exception:  # Its class may be missing, be another one here, or not be allowed: the texts say all.
        return None
    return error if isinstance(error, BaseException) else None
