"""Shipping: pickling what goes to the workers, and naming what cannot go."""

from __future__ import annotations

import copyreg
import dis
import functools
import gc
import types
from collections.abc import Iterator
from typing import Any

import cloudpickle

from dstream.engine.batches import dumps_items
from dstream.engine.spark.stage import FrameInput, Piece, SplitInput, Stage
from dstream.errors import SerializationError
from dstream.failures import shown
from dstream.pickling import dumps
from dstream.plan.rewrite import Op

__all__ = ["packed", "packed_split"]


# A key of `cmp_to_key` holds its comparator and its value, and PySpark's workers need both. It cannot say
# which is which; its referents come in the order of its fields (Python 3.11 to 3.13).
copyreg.pickle(
    type(functools.cmp_to_key(max)),
    lambda key: (functools.cmp_to_key, tuple(part for part in gc.get_referents(key) if part is not type(key))),
)


def packed(stage: Stage | Piece) -> bytes:
    """Pickle a stage, or a piece of a source with its operations.

    Raises:
        SerializationError: a function captures what cannot travel; the message names the variable.
    """
    try:
        return bytes(cloudpickle.dumps(stage, protocol=5))
    except Exception as error:
        raise SerializationError(_explained(stage, error)) from error


def packed_split(split: Any, step: Any) -> bytes:
    """Pickle a split of a source.

    Raises:
        SerializationError: it holds what cannot travel; the message names the item or the variable.
    """
    try:
        return dumps(split)
    except Exception as error:
        for part in _parts(split):
            if isinstance(part, list | tuple):
                dumps_items(list(part))
            reason = _reason(part) if callable(part) else None
            if reason is not None:
                raise SerializationError(f"{step} cannot be sent to the workers: {reason}") from error
        raise SerializationError(f"{step} cannot be sent to the workers: {error}") from error


def _explained(stage: Stage | Piece, error: Exception) -> str:
    for place, value in _functions(stage):
        reason = _reason(value)
        if reason is not None:
            return f"{place} cannot be sent to the workers: {reason}"
    return f"this pipeline cannot be sent to the workers: {error}"


def _functions(stage: Stage | Piece) -> Iterator[tuple[str, Any]]:
    """Give the user's functions, with how their step names itself."""
    for operation in _operations(stage):
        yield from _inside(operation, "this operation")


def _operations(stage: Stage | Piece) -> Iterator[Any]:
    if isinstance(stage, Piece):
        for piece in _all_pieces((stage,)):
            yield from piece.operations
        return
    yield stage.sink
    if isinstance(stage.input, FrameInput):
        yield from stage.input.operations
    elif isinstance(stage.input, SplitInput):
        for piece in stage.input.pieces:
            yield from _operations(piece)


def _all_pieces(pieces: tuple[Piece, ...]) -> Iterator[Piece]:
    for piece in pieces:
        yield piece
        yield from _all_pieces(piece.parts)


def _inside(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Look for functions in partials, steps and sinks."""
    if isinstance(value, Op):
        yield str(value.step), value.fn
        return
    step = getattr(value, "step", None)
    place = str(step) if step is not None else place
    if isinstance(value, types.FunctionType):
        yield place, value
    for part in _parts(value):
        yield from _inside(part, place)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        yield from value
    if hasattr(value, "func") and hasattr(value, "args"):
        yield from value.args
        yield from value.keywords.values()
    for name in getattr(type(value), "__dataclass_fields__", ()):
        if name != "step":
            yield getattr(value, name)


def _reason(fn: Any) -> str | None:
    """Say what `fn` captures that cannot be pickled, or None if `fn` can be."""
    problem = _problem(fn)
    if problem is None:
        return None
    for name, value in _captured(fn):
        cause = _problem(value)
        if cause is not None:
            where = f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}"
            return (
                f"the function at {where} captures the variable {name!r}, a {type(value).__name__} "
                f"({shown(value)}), which cannot be pickled: {cause}"
            )
    return f"{shown(fn)}: {problem}"


def _captured(fn: Any) -> Iterator[tuple[str, Any]]:
    """Give the variables that a function takes from around it."""
    code = getattr(fn, "__code__", None)
    if code is None:
        yield from vars(fn).items() if hasattr(fn, "__dict__") else ()
        return
    for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for name in _global_names(code):
        if name in fn.__globals__:
            yield name, fn.__globals__[name]


def _global_names(code: types.CodeType) -> list[str]:
    names = {step.argval: None for step in dis.get_instructions(code) if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_global_names(constant)))
    return list(names)


def _problem(value: Any) -> str | None:
    try:
        cloudpickle.dumps(value, protocol=5)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
