"""How the user's exception travels from a worker to the driver with its own type.

Spark carries the text of an exception only. So the worker raises one whose text holds the pickled
original, and the driver finds it there.
"""

from __future__ import annotations

import base64
import re
import traceback
from typing import Any, NoReturn

import cloudpickle

from dstream.errors import EngineError
from dstream.failures import MISSING, Failure, attach, came_from_worker, failure, shown

__all__ = ["WorkerFailure", "from_worker", "raise_to_driver"]

_MARK = "dstream-failure:"
_PATTERN = re.compile(_MARK + r"([A-Za-z0-9+/=]+)")
_LONGEST_TRACEBACK = 20_000
_LARGEST_ITEM = 100_000


class WorkerFailure(Exception):
    """Carries a pickled exception in its text."""


def raise_to_driver(error: Exception) -> NoReturn:
    """Raise, on a worker, what the driver turns into `error` again."""
    text = "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]
    data = base64.b64encode(_pickled(error, text)).decode("ascii")
    raise WorkerFailure(f"{_MARK}{data}") from None


def from_worker(text: str) -> BaseException | None:
    """Return the exception that a worker raised, found in the text of Spark's, or None."""
    found = _PATTERN.search(text)
    if found is None:
        return None
    kind, args, state, notes, known, remote = cloudpickle.loads(base64.b64decode(found.group(1)))
    error = _rebuilt(kind, args, state)
    for note in notes:
        error.add_note(note)
    if known is not None:
        attach(error, known)
        came_from_worker(error, remote)
    return error


def _pickled(error: Exception, text: str) -> bytes:
    notes = list(getattr(error, "__notes__", ()))
    state = {name: value for name, value in vars(error).items() if not name.startswith("__")}
    known = _light(failure(error))
    args = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args  # `args` leaves the file out.
    candidates: tuple[tuple[Any, ...], ...] = (
        (type(error), args, state, notes, known, text),
        (type(error), args, {}, notes, _without_item(known), text),
        (type(error), tuple(map(shown, args)), {}, notes, _without_item(known), text),
    )
    for candidate in candidates:
        try:
            data = cloudpickle.dumps(candidate)
            cloudpickle.loads(data)
        except Exception:
            continue
        return bytes(data)
    described = f"{type(error).__qualname__}: {error} (this exception cannot be pickled)"
    return bytes(cloudpickle.dumps((EngineError, (described,), {}, notes, _without_item(known), text)))


def _light(known: Failure | None) -> Failure | None:
    """Leave an item out that is too large to travel in an exception's text."""
    if known is None:
        return None
    try:
        large = len(cloudpickle.dumps(known.item)) > _LARGEST_ITEM
    except Exception:
        large = True
    return _without_item(known) if large else known


def _without_item(known: Failure | None) -> Failure | None:
    return None if known is None else Failure(known.step, MISSING)


def _rebuilt(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    """Make the exception again without its own `__init__`, which may want other arguments than `args`."""
    error = kind.__new__(kind, *args)
    built_in: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    built_in.__init__(error, *args)
    if not isinstance(error, OSError):
        error.args = args
    vars(error).update(state)
    return error
