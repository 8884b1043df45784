"""`watch`: a function that remembers what it was called with, in whichever process that was."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from dstream.by_value import dumps_by_value
from dstream.errors import SerializationError
from dstream.failures import shown
from dstream.testing.notes import folder_for, note, notes, task_name

__all__ = ["Watched", "watch"]

P = ParamSpec("P")
R = TypeVar("R")


def watch(fn: Callable[P, R]) -> Watched[P, R]:
    """Return `fn` so that it remembers its calls, also those in worker processes.

    Use it as the function of a step, and look afterwards. Works on one machine: each process writes
    its calls into a temporary folder. The calls in this process come first, then those of the
    workers, partition by partition, in order inside each. Of a task that Spark ran more than once,
    the last attempt counts.

    Example:
        >>> spy = watch(str.upper)
        >>> Stream.of("a", "b").map(spy).to_list()
        ['A', 'B']
        >>> spy.saw, spy.returned, spy.calls
        (['a', 'b'], ['A', 'B'], 2)
    """
    return Watched(fn, None)


class Watched(Generic[P, R]):
    """A function that remembers its calls; `watch` makes it."""

    def __init__(self, fn: Callable[P, R], folder: str | None) -> None:
        functools.update_wrapper(self, fn, updated=())
        self._fn = fn
        self._folder = folder_for(self) if folder is None else folder

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function and remember what it was called with and what it returned."""
        seen = _kept(_argument(args, kwargs))
        try:
            returned = self._fn(*args, **kwargs)
        except Exception:
            note(self._folder, task_name(), (seen, ()))
            raise
        note(self._folder, task_name(), (seen, (_kept(returned),)))
        return returned

    @property
    def saw(self) -> list[Any]:
        """What it was called with: the argument, or a tuple of several; as it was before the call."""
        return [_restored(seen) for seen, _ in self._calls()]

    @property
    def returned(self) -> list[Any]:
        """What it returned; a call that raised is left out."""
        return [_restored(result) for _, results in self._calls() for result in results]

    @property
    def calls(self) -> int:
        """How often it was called."""
        return len(self._calls())

    def _calls(self) -> list[tuple[bytes, tuple[bytes, ...]]]:
        """Return the calls of the last attempt of each task; attempts are named in the order of their numbers."""
        by_task: dict[str, dict[str, list[Any]]] = {}
        for name, call in notes(self._folder):
            by_task.setdefault(name.rpartition("-")[0], {}).setdefault(name, []).append(call)
        return [call for attempts in by_task.values() for call in attempts[max(attempts)]]

    def __reduce__(self) -> tuple[Any, ...]:
        return Watched, (self._fn, self._folder)

    def __repr__(self) -> str:
        return f"watch({shown(self._fn)})"


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the one argument, or a tuple of several."""
    return args[0] if len(args) == 1 and not kwargs else (*args, *kwargs.values())


def _kept(value: Any) -> bytes:
    """Pickle a value now, since it may change later."""
    try:
        return dumps_by_value(value)
    except Exception as error:
        raise SerializationError(f"watch() cannot remember {shown(value)}, which cannot be pickled: {error}") from error


def _restored(data: bytes) -> Any:
    return pickle.loads(data)
