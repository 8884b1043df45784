"""Failures: how an exception of the user's own carries the step, the place and the item.

The exception keeps its type, so `except ZeroDivisionError` works as it does around local code. It
gains notes (`add_note`) and, for programs, the object that `failure()` returns.
"""

from __future__ import annotations

import dis
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

__all__ = ["MISSING", "Failure", "annotate", "attach", "came_from_worker", "failure", "naming", "shown"]

_ATTRIBUTE = "__dstream_failure__"
_LONGEST = 200


class _Missing:
    """The item that is not known."""

    def __repr__(self) -> str:
        return "<not known>"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()


@dataclass(frozen=True)
class Failure:
    """What is known about a failure inside a pipeline.

    Attributes:
        step: the step that failed, with `label`, `where`, `position` and `total`.
        item: the item on which it failed, or `MISSING`.
        remote_traceback: the traceback on the worker as text, None if it failed in this process.
    """

    step: Any
    item: Any = MISSING
    remote_traceback: str | None = None

    @property
    def where(self) -> Any:
        """The file and line of the user's call."""
        return self.step.where


def annotate(error: BaseException, step: Any, item: Any = MISSING) -> None:
    """Note on `error` that it happened in `step`, on `item`; a second note for the same step is left out."""
    known = failure(error)
    if known is not None and known.step == step:
        return
    error.add_note(f"in {step}")
    if item is not MISSING:
        error.add_note(f"on the item {shown(item)}")
    attach(error, Failure(step, item))


def attach(error: BaseException, known: Failure) -> None:
    """Let `failure(error)` return `known`."""
    setattr(error, _ATTRIBUTE, known)


def failure(error: BaseException) -> Failure | None:
    """Return what is known about where in a pipeline `error` arose, or None if nothing is."""
    found: Failure | None = getattr(error, _ATTRIBUTE, None)
    return found


@contextmanager
def naming(step: Any) -> Iterator[None]:
    """Let an exception on the way that names no step yet name this one."""
    try:
        yield
    except Exception as error:
        if failure(error) is None:
            annotate(error, step, item_of(error))
        raise


def item_of(error: BaseException) -> Any:
    """Find the item on which a user's function failed, in the frames of `error`; `MISSING` if it is not certain.

    Either the loop that called the function names it `item`, or it is the only argument of the
    function, which has not given the name to something else since. A function without a frame, such
    as `int`, is called by such a loop too.
    """
    caller: FrameType | None = None
    item: Any = MISSING
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if _is_ours(frame):
            caller = frame
            item = frame.f_locals.get("item", item)
        elif frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            return _item_between(caller, frame)
    return item


_OURS = frozenset({"dstream", "collectors", "reducers", "sources"})
_LIBRARIES = (sys.stdlib_module_names | {"more_itertools"}) - {"__main__"}


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _OURS


def _item_between(caller: FrameType | None, called: FrameType) -> Any:
    if caller is None:
        return MISSING
    if "item" in caller.f_locals:
        return caller.f_locals["item"]
    code = called.f_code
    if code.co_argcount != 1:
        return MISSING
    name = code.co_varnames[0]
    is_rebound = any(
        step.argval == name for step in dis.get_instructions(code) if step.opname.startswith(("STORE_", "DELETE_"))
    )
    argument = called.f_locals.get(name, MISSING)
    return MISSING if is_rebound or isinstance(argument, Iterator) else argument


def came_from_worker(error: BaseException, remote_traceback: str) -> None:
    """Keep the traceback that `error` had on the worker."""
    known = failure(error)
    if known is not None:
        attach(error, replace(known, remote_traceback=remote_traceback))


def shown(item: Any) -> str:
    """Return the `repr` of an item, cut at 200 characters; never raises."""
    try:
        text = repr(item)
    except Exception as error:
        text = f"<{type(item).__name__}, whose repr fails with {type(error).__name__}>"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
