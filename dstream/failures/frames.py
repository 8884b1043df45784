"""Whose code a traceback shows: the user's, a library's, or that of dstream and what it runs on."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from dstream.failures.showing import source_line
from dstream.failures.whose_code import is_installed, is_ours
from dstream.values.blaming import MISSING_ITEM, behind, given_to, item_failed_on

__all__ = ["Origin", "is_full", "is_of_spark", "item_of", "origin_of", "shorten"]

_MACHINERY = frozenset(
    {"pyspark", "py4j", "contextlib", "functools", "more_itertools", "cloudpickle", "pickle", "copyreg", "pyarrow",
     "heapq", "grpc", "threading", "socket", "selectors", "socketserver", "concurrent", "dis"}
)  # fmt: skip
"""What dstream runs on: its frames say nothing to a user, unless the user's own function called it."""
_SPARK = frozenset({"pyspark", "py4j", "grpc"})
_STANDARD = (sys.stdlib_module_names | {"more_itertools"}) - {"__main__"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an exception was raised: the innermost line of the user's own code.

    Attributes:
        function: the function that this line stands in.
        kind: the name of the exception's type.
        text: the line itself; empty if its source was not at hand.
        cause: where the exception came from that this one was raised from.
        is_raiser: this line raised it, rather than something that it calls.
    """

    function: str
    kind: str
    file: str
    line: int
    text: str
    cause: Origin | None = None
    is_raiser: bool = False


def origin_of(error: BaseException, depth: int = 0) -> Origin | None:
    """Return where in the user's code `error` was raised, or what it was raised from; None if that was elsewhere."""
    cause = error.__cause__
    before = origin_of(cause, depth + 1) if cause is not None and depth < _DEEPEST else None
    found, last = None, None
    for frame, line in _entries(error.__traceback__):
        last = frame
        if _is_of_the_user(frame):
            found = frame, line
    if found is None:
        return before
    frame, line = found
    file = frame.f_code.co_filename
    text = source_line(file, line)
    return Origin(_function(frame), type(error).__name__, file, line, text, before, is_raiser=frame is last)


_DEEPEST = 5


def _is_of_the_user(frame: FrameType) -> bool:
    file = _file(frame)
    if is_ours(frame) or _is_of(frame, _SPARK) or file.startswith("<frozen "):
        return False
    return file.startswith("<") or not is_installed(file)


def _file(frame: FrameType) -> str:
    """Return the file of a frame; that of its module if its code was generated, or translated by Cython."""
    file = frame.f_code.co_filename
    is_other = file.startswith("<") or file.endswith(_OF_CYTHON) or not os.path.isabs(file)
    return str(frame.f_globals.get("__file__") or file) if is_other else file


_OF_CYTHON = (".pyx", ".pxi", ".pxd")
"""Such a file is named as it was where the module was built, and is not on this machine; so is a .py, by a path from
somewhere there."""


def _is_of(frame: FrameType, modules: Collection[str]) -> bool:
    """Say whether a frame runs code of installed modules: a user's file in a folder `queue` is none of Python's."""
    if _top(frame) not in modules:
        return False
    file = _file(frame)
    return file.startswith("<") or is_installed(file) or ".zip" + os.sep in file  # as Spark ships PySpark


def _top(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _function(frame: FrameType) -> str:
    """Return a function's name as its user would say it: without the comprehension inside that failed."""
    parts = [part for part in frame.f_code.co_qualname.split(".") if part != "<locals>"]
    while len(parts) > 1 and parts[-1] in _COMPREHENSIONS:
        parts.pop()
    if parts[-1] == "<lambda>":
        return "a lambda"
    if parts[-1] == "<module>" or parts[-1] in _COMPREHENSIONS:
        return "your code"
    inner = frame.f_code.co_qualname.rpartition("<locals>.")[2]
    return parts[-1] if inner.startswith("<") else inner


_COMPREHENSIONS = frozenset({"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"})


def item_of(error: BaseException, within: FrameType, missing: Any) -> Any:
    """Find the item on which a user's function failed; `missing` if it is not certain.

    Whoever called the function kept it with `error`, or that no single item belongs to the call. For the functions of
    those who did not, it is looked for in the frames: the loop of ours that called the function names it `item`.

    Args:
        error: what was raised.
        within: the frame in which it is looked at.
        missing: what is returned if nobody knows.
    """
    kept = item_failed_on(error)
    if kept is not MISSING_ITEM:
        return kept
    if given_to(error) is not None:
        return missing
    item: Any = missing
    caller: FrameType | None = None
    for frame in _frames(error, within):
        if is_ours(frame):
            caller, item = frame, frame.f_locals.get("item", item)
        elif not _is_of(frame, _STANDARD):
            return missing if caller is None else caller.f_locals.get("item", missing)
    return item


def _frames(error: BaseException, within: FrameType) -> Iterator[FrameType]:
    """Give the frames of a traceback from `within` on, as far as each is certain to have called the next.

    Threads that raise one object put their frames into one traceback. The frame of a generator may not know its caller.
    """
    before: FrameType | None = None
    for part in behind(error):
        for frame, _ in _entries(part.__traceback__):
            if before is None and frame is not within:
                continue
            if before is not None and not _is_called_by(frame, before):
                return
            before = frame
            yield frame


def _is_called_by(frame: FrameType, before: FrameType) -> bool:
    caller = frame.f_back
    if caller is None or caller is before:
        return True
    # What keeps a failure raises it in a later call of the same method; a generator knows the first one (Python 3.12).
    is_same_method = caller.f_code is before.f_code and is_ours(before) and "self" in caller.f_locals
    return is_same_method and caller.f_locals["self"] is before.f_locals["self"]


def _entries(entry: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """Give the frames and lines of a traceback, the outermost first, without loading `traceback`."""
    while entry is not None:
        yield entry.tb_frame, entry.tb_lineno
        entry = entry.tb_next


def is_full() -> bool:
    """Say whether the user asked for whole tracebacks: `DSTREAM_TRACEBACK=full`."""
    return os.environ.get("DSTREAM_TRACEBACK", "").strip().lower() == "full"


def shorten(error: BaseException) -> None:
    """Leave only the user's own lines in the traceback of `error` and of what it came from.

    The frames of dstream go, and those of what it runs on, unless the user's function called that.
    """
    seen: set[int] = set()
    left = [error]
    while left:
        found = left.pop()
        if id(found) not in seen:
            seen.add(id(found))
            BaseException.with_traceback(found, _without_ours(found.__traceback__))
            _cut_at_spark(found)
            left += [other for other in (found.__cause__, found.__context__) if other is not None]


def _cut_at_spark(error: BaseException) -> None:
    """Cut what `error` came from where PySpark or Java begins."""
    if error.__cause__ is not None and is_of_spark(error.__cause__):
        _set(error, "__cause__", None)
        _set(error, "__suppress_context__", True)
    if error.__context__ is not None and is_of_spark(error.__context__):
        _set(error, "__context__", None)


_set = BaseException.__setattr__
"""Sets an attribute of an exception whose own class refuses that, as a frozen dataclass does."""


def is_of_spark(error: BaseException) -> bool:
    """Say whether an exception comes from Spark: by its type, or since code of Spark's raised it."""
    if type(error).__module__.partition(".")[0] in _SPARK:
        return True
    frames = [frame for frame, _ in _entries(error.__traceback__)]
    return bool(frames) and _is_of(frames[-1], _SPARK)


def _without_ours(whole: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    is_of_the_user = False
    while whole is not None:
        if is_ours(whole.tb_frame):
            is_of_the_user = False
        elif is_of_the_user or not _is_of(whole.tb_frame, _MACHINERY):
            is_of_the_user = True
            kept.append(whole)
        whole = whole.tb_next
    following: TracebackType | None = None
    for part in reversed(kept):
        following = TracebackType(following, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return following
