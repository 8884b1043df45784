"""Attribution of an exception to an item, and to a line of the user's code.

Collectors call functions for complete batches, at the speed of C, and detect only afterwards that a call failed. So
attribution costs nothing without a failure. Its data is retained only until the exception reaches the failing step: the
same exception may be raised again later, on another item. Several threads may even raise one object at the same time,
so each thread stores its own facts.

Names of folders are not used: a user's folder may be called `sources`, and so may a parent folder.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any

from dstream.base.functions import PlainForm, plain, refuse_awaitable
from dstream.base.showing import shown, source_line

__all__ = [
    "MISSING_ITEM",
    "Origin",
    "behind",
    "chosen",
    "each",
    "failed_on",
    "forgotten",
    "given",
    "given_to",
    "in_group",
    "is_full",
    "is_installed",
    "is_of_spark",
    "is_our_name",
    "is_ours",
    "item_failed_on",
    "item_of",
    "origin_of",
    "satisfied",
    "shorten",
    "stopped",
    "traced",
]


_ITEM = "__dstream_item__"
_GIVEN = "__dstream_given__"
MISSING_ITEM: Any = object()


def failed_on(error: BaseException, item: Any) -> None:
    """Attach `item` to `error`, in place of the item of an inner function."""
    _keep(error, _ITEM, item)


def item_failed_on(error: BaseException) -> Any:
    """Return the item that is attached to `error`, or `MISSING_ITEM`."""
    return _attached(error, _ITEM, MISSING_ITEM)


def given(error: BaseException, words: str) -> None:
    """Attach the arguments of the function that raised `error`, in words, where they are no single item."""
    _keep(error, _GIVEN, words)


def given_to(error: BaseException) -> str | None:
    """Return the description of arguments that is attached to `error`."""
    words: str | None = _attached(error, _GIVEN, None)
    return words


def in_group(error: BaseException, key: Any) -> None:
    """Attach the group of `key`, whose result failed, to `error`, unless its item is known."""
    if item_failed_on(error) is MISSING_ITEM:
        inner = given_to(error)
        given(error, f"in the group of the key {shown(key)}" + (f", {inner}" if inner else ""))


def forgotten(error: BaseException) -> None:
    """Remove all facts that are attached to `error`."""
    for each in behind(error):
        for name in (_ITEM, _GIVEN):
            each.__dict__.pop(_of_this_thread(name), None)


def _keep(error: BaseException, name: str, value: Any) -> None:
    # An exception may refuse attributes: one that is a frozen dataclass does.
    error.__dict__[_of_this_thread(name)] = value


def _attached(error: BaseException, name: str, missing: Any) -> Any:
    name = _of_this_thread(name)
    return next((each.__dict__[name] for each in behind(error) if name in each.__dict__), missing)


def _of_this_thread(name: str) -> str:
    return f"{name}{get_ident()}"


def behind(error: BaseException) -> tuple[BaseException, ...]:
    """Return `error`, and the StopIteration that Python, or we, made this RuntimeError of."""
    cause = error.__cause__
    return (error, cause) if isinstance(error, RuntimeError) and isinstance(cause, StopIteration) else (error,)


def stopped(function: str) -> RuntimeError:
    """Return the error that replaces a StopIteration, which passes for the end of an iteration."""
    return RuntimeError(f"{function} raised StopIteration")


def each(fn: Callable[..., Any], items: Sequence[Any], values: Sequence[Any] | None = None) -> list[Any]:
    """Return the results of `fn` for each item, in a list.

    Args:
        fn: takes an item; with `values`, a value and the item that it was made from.
        items: no iterator, since the failing item is looked up.
        values: one for each item.

    Raises:
        RuntimeError: `fn` raised StopIteration, which would pass for the end of the items.
    """
    if values is None and (known := plain(fn)) is not None:
        return _given_without_calls(*known, items)
    # An iterator counts the consumed items, so the loop runs at the speed of a comprehension.
    left = iter(items)
    try:
        if values is None:
            results = [fn(item) for item in left]
        else:
            results = [fn(value, item) for item, value in zip(left, values, strict=False)]
    except StopIteration as error:
        raise _stopped_on(_before(left, items), fn) from error
    except Exception as error:
        failed_on(error, _before(left, items))
        raise
    # An async function returns an awaitable for every item, so one check is enough for all.
    if results:
        _refuse_awaitable(results[0], items[0])
    return results


def _refuse_awaitable(result: Any, item: Any) -> None:
    try:
        refuse_awaitable(result)
    except TypeError as error:
        failed_on(error, item)
        raise


def _given_without_calls(form: PlainForm, constant: Any, items: Sequence[Any]) -> list[Any]:
    if form == "item":
        return list(items)
    return [constant] * len(items) if form == "constant" else [(item, constant) for item in items]


def chosen(predicate: Callable[[Any], object], items: Sequence[Any]) -> list[Any]:
    """Return the items that satisfy `predicate`; otherwise as `each`."""
    return list(compress(items, satisfied(predicate, items)))


def satisfied(predicate: Callable[[Any], object], items: Sequence[Any]) -> list[bool]:
    """Return for each item whether it satisfies `predicate`, evaluated before the next item; otherwise as `each`."""
    left = iter(items)
    try:
        for first in left:
            result = predicate(first)
            refuse_awaitable(result)
            return [bool(result), *[bool(predicate(item)) for item in left]]
        return []
    except StopIteration as error:
        raise _stopped_on(_before(left, items), predicate) from error
    except Exception as error:
        failed_on(error, _before(left, items))
        raise


def _before(left: Iterator[Any], items: Sequence[Any]) -> Any:
    """Return the item before those that are left."""
    return items[len(items) - sum(1 for _ in left) - 1]


def _stopped_on(item: Any, fn: Callable[..., Any]) -> RuntimeError:
    error = stopped(getattr(fn, "__qualname__", type(fn).__qualname__))
    failed_on(error, item)
    return error


def traced(error: BaseException, derived: Sequence[Any], items: Sequence[Any]) -> None:
    """Attribute an `error` on one of `derived` to the item that this was made from."""
    failed = item_failed_on(error)
    for value, item in zip(derived, items, strict=False):
        # By identity: the `==` of an item is the user's, or NumPy's, which returns an array.
        if value is failed:
            failed_on(error, item)
            return


_HOME = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of dstream."""
    return _are_ours(frame.f_globals.get("__name__", ""), frame.f_globals.get("__file__"))


def is_our_name(module: str) -> bool:
    """Return whether the module of this name belongs to dstream."""
    return _are_ours(module, getattr(sys.modules.get(module), "__file__", None))


@functools.lru_cache(maxsize=4096)
def _are_ours(name: str, file: str | None) -> bool:
    """Return whether a module belongs to the library; cached, since frames of few modules are checked often."""
    if name.partition(".")[0] != "dstream":
        return False
    # pytest names a user's `dstream/tests/test_orders.py` like a module of ours. Generated code has no file.
    return file is None or file.startswith(_HOME)


def is_installed(file: str) -> bool:
    """Return whether a file belongs to Python, or to a package that was installed for it.

    A folder called `site-packages` counts if Python searches it for modules, not if it is above the user's own.
    """
    return os.path.abspath(file).startswith(_folders(tuple(sys.path)))


_INSTALLED = frozenset({"site-packages", "dist-packages"})


@functools.lru_cache(maxsize=8)
def _folders(search_path: tuple[str, ...]) -> tuple[str, ...]:
    import sysconfig  # Imported on use: it takes a millisecond, and only a failure needs it.

    of_python = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    searched = (entry for entry in map(os.path.abspath, search_path) if os.path.basename(entry) in _INSTALLED)
    return tuple({os.path.join(os.path.abspath(folder), "") for folder in (*of_python, *searched)})


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of an exception: the innermost line of the user's own code.

    Attributes:
        function: the function that contains this line.
        kind: the name of the exception's type.
        text: the line; empty if its source is not available.
        cause: the origin of the exception that this one was raised from.
        is_raiser: this line raised it, rather than a function that it calls.
    """

    function: str
    kind: str
    file: str
    line: int
    text: str
    cause: Origin | None = None
    is_raiser: bool = False


def origin_of(error: BaseException, depth: int = 0) -> Origin | None:
    """Return the location in the user's code that raised `error`, or its cause; None if it was raised elsewhere."""
    cause = error.__cause__
    # Causes may form a cycle, so the depth has a bound.
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


_SPARK = frozenset({"pyspark", "py4j", "grpc"})


def _is_of_the_user(frame: FrameType) -> bool:
    file = _file(frame)
    if is_ours(frame) or _is_of(frame, _SPARK) or file.startswith("<frozen "):
        return False
    return file.startswith("<") or not is_installed(file)


def _file(frame: FrameType) -> str:
    """Return the file of a frame; the file of its module if its code was generated, or translated by Cython."""
    file = frame.f_code.co_filename
    is_other = file.startswith("<") or file.endswith(_OF_CYTHON) or not os.path.isabs(file)
    return str(frame.f_globals.get("__file__") or file) if is_other else file


_OF_CYTHON = (".pyx", ".pxi", ".pxd")
"""Such a file exists only on the build machine; a .py file has a relative path of that machine."""


def _is_of(frame: FrameType, modules: Collection[str]) -> bool:
    """Return whether a frame runs code of installed modules: a user's file in a folder `queue` is none of Python's."""
    if _top(frame) not in modules:
        return False
    file = _file(frame)
    return file.startswith("<") or is_installed(file) or ".zip" + os.sep in file  # as Spark ships PySpark


def _top(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _function(frame: FrameType) -> str:
    """Return a function's name as the user wrote it: without the comprehension inside that failed."""
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


_STANDARD = (sys.stdlib_module_names | {"more_itertools"}) - {"__main__"}


def item_of(error: BaseException, within: FrameType, missing: Any) -> Any:
    """Find the item on which a user's function failed; `missing` if it is not certain.

    The caller of the function stored it with `error`, or that no single item belongs to the call. If a caller
    did not, it is looked for in the frames: the loop of ours that called the function names it `item`.

    Args:
        error: what was raised.
        within: the frame in which it is looked at.
        missing: what is returned if it is unknown.
    """
    kept = item_failed_on(error)
    if kept is not MISSING_ITEM:
        return kept
    # The call had several items, so no frame identifies the failing item.
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
    """Yield the frames of a traceback from `within` on, as far as each is certain to have called the next.

    Threads that raise one object put their frames into one traceback. The frame of a generator may have no caller.
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
    # An object that stores a failure raises it in a later call of the same method; a generator has the frame of the
    # first call (Python 3.12).
    is_same_method = caller.f_code is before.f_code and is_ours(before) and "self" in caller.f_locals
    return is_same_method and caller.f_locals["self"] is before.f_locals["self"]


def _entries(entry: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames and lines of a traceback, the outermost first, without loading `traceback`."""
    while entry is not None:
        yield entry.tb_frame, entry.tb_lineno
        entry = entry.tb_next


def is_full() -> bool:
    """Return whether the user requested full tracebacks: `DSTREAM_TRACEBACK=full`."""
    return os.environ.get("DSTREAM_TRACEBACK", "").strip().lower() == "full"


def shorten(error: BaseException) -> None:
    """Leave only the user's own lines in the traceback of `error` and of its causes.

    Frames of dstream and of its dependencies are removed, unless the user's function called them.
    """
    seen: set[int] = set()
    left = [error]
    while left:
        found = left.pop()
        if id(found) not in seen:
            seen.add(id(found))
            # Not by its own method or attribute, which the user's class may refuse.
            BaseException.with_traceback(found, _without_ours(found.__traceback__))
            _cut_at_spark(found)
            left += [other for other in (found.__cause__, found.__context__) if other is not None]


def _cut_at_spark(error: BaseException) -> None:
    """Cut the causes of `error` where PySpark or Java begins."""
    if error.__cause__ is not None and is_of_spark(error.__cause__):
        _set(error, "__cause__", None)
        _set(error, "__suppress_context__", True)
    if error.__context__ is not None and is_of_spark(error.__context__):
        _set(error, "__context__", None)


_set = BaseException.__setattr__
"""Setter of attributes that works for exceptions whose class refuses it, such as a frozen dataclass."""


def is_of_spark(error: BaseException) -> bool:
    """Return whether an exception is one of Spark's: by its type, or since code of Spark's raised it."""
    if type(error).__module__.partition(".")[0] in _SPARK:
        return True
    frames = [frame for frame, _ in _entries(error.__traceback__)]
    return bool(frames) and _is_of(frames[-1], _SPARK)


_MACHINERY = frozenset(
    {"pyspark", "py4j", "contextlib", "functools", "more_itertools", "cloudpickle", "pickle", "copyreg", "pyarrow",
     "heapq", "grpc", "threading", "socket", "selectors", "socketserver", "concurrent", "dis"}
)  # fmt: skip
"""The packages below dstream: their frames are of no use to a user, unless the user's own function called them."""


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
