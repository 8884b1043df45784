"""Functions under test: recorded calls, and changes of captured variables."""

from __future__ import annotations

import dataclasses
import dis
import functools
import pickle
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, ParamSpec, TypeVar

import cloudpickle

from dstream.base.by_value import dumps_by_value
from dstream.errors import SerializationError
from dstream.failures import is_our_name, shown
from dstream.plan import Node, Step, topological
from dstream.plan.operations.ends import Write
from dstream.plan.operations.streams import Read
from dstream.spi import Engine, Running
from dstream.testing.comparison import exact
from dstream.testing.partitions import Parts, folder_for, note, notes, task_name

__all__ = ["CapturedState", "Observed", "Watched", "watch"]


P = ParamSpec("P")
R = TypeVar("R")


def watch(fn: Callable[P, R]) -> Watched[P, R]:
    """Return `fn` so that it remembers its calls, also those in worker processes.

    Use it as the function of a step, and check the calls afterwards. Works on one machine: each process writes its
    calls into a temporary folder. The calls in this process are first, then the calls in the workers, partition by
    partition, in order inside each. Of a task that Spark ran more than once, the last attempt counts.

    Example:
        >>> spy = watch(str.upper)
        >>> Stream.of("a", "b").map(spy).to_list()
        ['A', 'B']
        >>> spy.saw, spy.returned, spy.calls
        (['a', 'b'], ['A', 'B'], 2)
    """
    return Watched(fn, None)


class Watched(Generic[P, R]):
    """A function that records its calls, created by `watch`."""

    def __init__(self, fn: Callable[P, R], folder: str | None) -> None:
        # Without its `__dict__`, whose names could shadow attributes of this class.
        functools.update_wrapper(self, fn, updated=())
        self._fn = fn
        self._folder = folder_for(self) if folder is None else folder

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function and record its arguments and its result."""
        seen = _pickled(_argument(args, kwargs))
        try:
            returned = self._fn(*args, **kwargs)
        except Exception:
            note(self._folder, task_name(), (seen, ()))
            raise
        note(self._folder, task_name(), (seen, (_pickled(returned),)))
        return returned

    @property
    def saw(self) -> list[Any]:
        """The arguments of the calls: the argument, or a tuple of several; as it was before the call."""
        return [_restored(seen) for seen, _ in self._calls()]

    @property
    def returned(self) -> list[Any]:
        """The results of the calls; a call that raised is left out."""
        return [_restored(result) for _, results in self._calls() for result in results]

    @property
    def calls(self) -> int:
        """The number of calls."""
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
    """Return the only argument, or a tuple of several."""
    return args[0] if len(args) == 1 and not kwargs else (*args, *kwargs.values())


def _pickled(value: Any) -> bytes:
    """Pickle a value now, since it may change later."""
    try:
        return dumps_by_value(value)
    except Exception as error:
        raise SerializationError(f"watch() cannot remember {shown(value)}, which cannot be pickled: {error}") from error


def _restored(data: bytes) -> Any:
    return pickle.loads(data)


_CONTAINERS = (list, dict, set, deque, bytearray)
_STANDARD = sys.stdlib_module_names - {"__main__"}


def _traveling(root: Node) -> Iterator[tuple[Step, Any]]:
    """Yield the parts of a plan that are sent to workers, such as functions and collectors, with their calls."""
    for each in topological(root):
        match each:
            case Read(source=source):
                if not (source.in_caller or isinstance(source, Parts)):
                    yield each.step, source
            case Write(collector=collector):
                yield each.step, collector
            case _:
                yield from each.shipped()


def _captured(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables that a function or a collector captures, also through the functions that it calls."""
    seen: set[int] = set()
    rest = [("it", value)]
    while rest:
        name, found = rest.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        inside = _inside(found)
        if inside is None:
            yield name, found
        else:
            rest.extend(inside)


def _inside(value: Any) -> list[tuple[str, Any]] | None:
    """Return the parts of a function, a partial, a method or a collector; None for anything else."""
    if isinstance(value, Watched):
        return [("it", value._fn)]
    if isinstance(value, functools.partial):
        return [
            ("it", value.func),
            *(("an argument of partial()", each) for each in value.args),
            *value.keywords.items(),
        ]
    if isinstance(value, types.FunctionType):
        return [] if _is_library(value) else list(_variables(value))
    if isinstance(value, types.MethodType | types.BuiltinMethodType):
        return [(f"the object of .{value.__name__}", value.__self__)]
    if isinstance(value, type | types.ModuleType):
        return []
    if dataclasses.is_dataclass(value) and is_our_name(type(value).__module__):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None


def _is_library(fn: types.FunctionType) -> bool:
    """Return whether a function belongs to a library, whose state is private."""
    module = fn.__module__ or ""
    return is_our_name(module) or (module.partition(".")[0] in _STANDARD)


def _variables(fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # A variable that has no value yet.
            continue
    for name in _global_names(fn.__code__):
        value = fn.__globals__.get(name)
        if not isinstance(value, types.FunctionType) or value.__module__ == fn.__module__:
            yield name, value
    yield from ((f"a default of {fn.__name__}", default) for default in fn.__defaults__ or ())


def _global_names(code: types.CodeType) -> Iterator[str]:
    # `co_names` contains the names of attributes, too.
    for step in dis.get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


class CapturedState:
    """The captured variables of the plans that ran, each as it was before."""

    def __init__(self) -> None:
        self._captures: dict[int, tuple[Step, str, Any, bytes]] = {}

    def keep(self, root: Node) -> None:
        """Record the captured variables of the functions of a plan that is about to run."""
        for step, value in _traveling(root):
            for name, found in _captured(value):
                if id(found) not in self._captures and _can_change(found):
                    # With the object itself, so that no other one gets its `id`.
                    self._captures[id(found)] = (step, name, found, cloudpickle.dumps(found, protocol=5))

    def changes(self, allowed: Collection[str]) -> Iterator[str]:
        """Yield one sentence for each variable that has changed."""
        for step, name, found, before in self._captures.values():
            old = pickle.loads(before)
            if name not in allowed and exact(old) != exact(found):
                place = f" at {step.where}" if step.where else ""
                yield f"{step.label}{place} changed {name!r} from {shown(old)} to {shown(found)}"


def _can_change(value: Any) -> bool:
    """Return whether `value` is data that a function could change: a container, or an object of a user's class."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    is_object = hasattr(value, "__dict__") and not is_our_name(kind.__module__) and package not in _STANDARD
    return (isinstance(value, _CONTAINERS) or is_object) and _is_picklable(value)


def _is_picklable(value: Any) -> bool:
    try:
        cloudpickle.dumps(value, protocol=5)
    except Exception:
        return False
    return True


class Observed:
    """An engine that passes each plan to an observer before it runs it."""

    def __init__(self, engine: Engine, look: Callable[[Node], None]) -> None:
        self._engine = engine
        self._look = look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, end: Node) -> Running:
        """Show the plan to the observer, and submit it."""
        self._look(end)
        return self._engine.submit(end)
