"""What an object carries when it is pickled: the variables of a function, the attributes of an object, its size."""

from __future__ import annotations

import copyreg
import dataclasses
import dis
import types
import weakref
from collections.abc import Iterator
from typing import Any

from dstream.by_value import ValuePickler, implementations_of, is_importable

__all__ = [
    "CONTAINERS",
    "PLAIN",
    "SCALARS",
    "SCALAR_BYTES",
    "TEXTS",
    "attributes_of",
    "captures_of",
    "pickled",
    "plain_size",
]

SCALARS = frozenset({int, float, complex, bool, type(None)})
TEXTS = frozenset({str, bytes, bytearray})
PLAIN = SCALARS | TEXTS | {range, slice, type(...), type(NotImplemented)}
SCALAR_BYTES = 9
CONTAINERS = frozenset({list, tuple, set, frozenset, dict})


def plain_size(container: Any) -> int | None:
    """Return the size of a container of numbers and texts, at the speed of C; None if it holds anything else."""
    parts = [container, container.values()] if isinstance(container, dict) else [container]
    size = 0
    for part in parts:
        kinds = set(map(type, part))
        if not kinds <= SCALARS | TEXTS:
            return None
        size += SCALAR_BYTES * len(part)
        if kinds & TEXTS:
            size += sum(len(item) for item in part if type(item) in TEXTS)
    return size


def captures_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Give the variables that a function takes from around it, by name."""
    implementations = implementations_of(function)
    if implementations is not None:
        yield from ((kind.__name__, implementation) for kind, implementation in implementations.items())
        return
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # The function may be defined before its variable is.
            continue
    defaults = function.__defaults__ or ()
    if defaults:
        yield from zip(code.co_varnames[: code.co_argcount][-len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    yield from function.__dict__.items()
    around = function.__globals__
    suspects = {name for name in _names(code) if name in around and not _is_harmless(around[name])}
    if suspects:
        yield from ((name, around[name]) for name in _global_names(code) if name in suspects)


def _is_harmless(value: Any) -> bool:
    kind = type(value)
    if kind in PLAIN:
        return kind not in TEXTS
    if kind is types.ModuleType or kind is types.BuiltinFunctionType:
        return True
    return isinstance(value, type | types.FunctionType) and is_importable(value)


_cached_names: weakref.WeakKeyDictionary[types.CodeType, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _names(code: types.CodeType) -> Iterator[str]:
    """Give all names in a function and those inside it: of globals, and of attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of globals among them; reading the bytecode takes some 50 microseconds, so it is kept."""
    known = _cached_names.get(code)
    if known is None:
        found = dict.fromkeys(step.argval for step in dis.get_instructions(code) if step.opname in _GLOBAL)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                found.update(dict.fromkeys(_global_names(constant)))
        known = _cached_names[code] = tuple(found)
    return known


_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object that pickles as its attributes; None if only pickling it can tell."""
    kind = type(value)
    if kind not in _special:
        _special[kind] = _has_a_way_of_its_own(kind)
    if _special[kind]:
        return None
    try:
        _, _, state, items, pairs = value.__reduce_ex__(4)
    except Exception:
        return None
    if items is not None or pairs is not None:
        return None
    if isinstance(state, list):  # That of a frozen dataclass with slots.
        return dict(zip((each.name for each in dataclasses.fields(value)), state, strict=True))
    return {
        name: held for part in (state if isinstance(state, tuple) else (state,)) for name, held in (part or {}).items()
    }


_special: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()
_REDUCING = ("__getstate__", "__reduce__", "__reduce_ex__")


def _has_a_way_of_its_own(kind: type) -> bool:
    """Say whether instances of a class decide themselves how they are pickled."""
    return (
        any(_is_own(getattr(kind, name), getattr(object, name)) for name in _REDUCING)
        or hasattr(kind, "__getnewargs__")
        or hasattr(kind, "__getnewargs_ex__")
        or kind in copyreg.dispatch_table
    )


def _is_own(method: Any, of_object: Any) -> bool:
    return method is not of_object and getattr(method, "__module__", None) != "dataclasses"


def pickled(value: Any) -> tuple[str | None, int]:
    """Return why `value` cannot be pickled, or None, and how many bytes it takes."""
    sink = _Sink()
    try:
        ValuePickler(sink, 5, sink.count).dump(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}", 0
    return None, sink.size


class _Sink:
    """Counts the bytes of a pickle and keeps none of them; large buffers are not even copied."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: Any) -> int:
        self.size += len(data)
        return len(data)

    def count(self, buffer: Any) -> bool:
        self.size += buffer.raw().nbytes
        return False
