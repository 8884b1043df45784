"""Fusion: a run of element-wise steps as one generated loop.

The loop is Python source made from the actions alone, compiled once for each combination. Against
nested `map` and `filter` objects it is as fast, it does not grow the C stack with the length of the
chain, and when a function raises, the line says which step and the variable says which item, at no
cost while all goes well (`docs/decisions/0003-generated-loops.md` has the figures).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import FrameType, TracebackType
from typing import Any, cast

from dstream.failures import blame
from dstream.plan.steps import Op, unchanged
from dstream.values.numbers import exact_float, exact_int

__all__ = ["converted", "many", "run_chain"]

_MOST_STEPS = 128
_MOST_LOOPS = 12
_MOST_SEGMENTS = 200
_FIRST_STEP_LINE = 5

Loop = Callable[[Iterable[Any], Sequence[Op], Sequence[Callable[[Any], Any]]], Iterator[Any]]


def run_chain(ops: Sequence[Op], items: Iterable[Any]) -> Iterator[Any]:
    """Give what the steps `ops` make of `items`, one item at a time, nothing ahead of time."""
    if ops and type(items) is _INTS and (safe := _safe_on_ints(ops[0])) is not None:
        ops, items = ops[1:], map(safe, items)
    segments = list(_segments(ops))
    if len(segments) > _MOST_SEGMENTS:
        return _interpreted(ops, iter(items))
    for segment in segments:
        loop = _loop(tuple((op.action, op.kind) for op in segment))
        items = loop(items, segment, [op.fn for op in segment])
        if segment[-1].action == "flat_map":
            items = chain.from_iterable(items)
    return iter(items)


_INTS = type(iter(range(0)))
"""Gives ints of 64 bits: `float` and `str` refuse larger ones."""


def _safe_on_ints(op: Op) -> Callable[[Any], Any] | None:
    """Return what a step does to each int of a range if it cannot fail, so that no loop has to name it."""
    if op.action != "map":
        return None
    if op.fn is unchanged:
        return float if op.kind is float else int
    return op.fn if op.kind is None and any(op.fn is fn for fn in (float, int, str, abs)) else None


def _interpreted(ops: Sequence[Op], items: Iterator[Any]) -> Iterator[Any]:
    """Do the same with a stack of iterators: for thousands of `flat_map` steps, which would nest as many loops."""
    stack = [(0, items)]
    while stack:
        index, items = stack[-1]
        try:
            item = next(items, _END)
        except Exception as error:
            if index:
                blame(error, ops[index - 1].step)
            raise
        if item is _END:
            stack.pop()
            continue
        for op in ops[index:]:
            index += 1
            try:
                result = op.fn(item)
                item = _CONVERTERS[op.kind](result) if op.action == "map" else item
                inner = iter(_all_of(result, op.kind)) if op.action == "flat_map" else None
            except Exception as error:
                blame(error, op.step, item)
                raise
            if inner is not None:
                stack.append((index, inner))
                break
            if op.action == "filter" and not result:
                break
        else:
            yield item


_END = object()


def _all_of(result: Any, kind: type | None) -> Iterable[Any]:
    return many(result) if kind is None else map(_CONVERTERS[kind], many(result))


def _unchanged(value: Any) -> Any:
    return value


_CONVERTERS: dict[type | None, Callable[[Any], Any]] = {None: _unchanged, int: exact_int, float: exact_float}


def converted(value: Any, kind: type | None) -> Any:
    """Return `value` as a step of this kind gives it: as it is, or as an exact int or float."""
    return _CONVERTERS[kind](value)


def _segments(ops: Sequence[Op]) -> Iterator[Sequence[Op]]:
    """Cut a very long chain: Python allows 20 nested blocks and compiles long functions slowly."""
    segment: list[Op] = []
    loops = 0
    for op in ops:
        loops += op.action == "flat_map"
        if len(segment) == _MOST_STEPS or loops > _MOST_LOOPS:
            yield segment
            segment, loops = [], int(op.action == "flat_map")
        segment.append(op)
    if segment:
        yield segment


@functools.lru_cache(maxsize=512)
def _loop(shape: tuple[tuple[str, type | None], ...]) -> Loop:
    """Compile the loop for these actions; `exec` sees generated names only, never a user's text."""
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "exact_int": exact_int,
        "exact_float": exact_float,
        "many": many,
        "harmless": _HARMLESS,
        "named": _named,
        "blame": _blame,
    }
    exec(compile(_source(shape), "<dstream fused steps>", "exec"), namespace)
    loop: Loop = namespace["loop"]
    return loop


def _source(shape: tuple[tuple[str, type | None], ...]) -> str:
    """Write the loop: step k stands alone on the line `_FIRST_STEP_LINE + k`.

    A `flat_map` at the end gives one iterable for each item, which C code chains.
    """
    functions = ", ".join(f"f{index}" for index in range(len(shape)))
    lines = ["def loop(items, ops, functions):", f" {functions}, = functions", " try:", "  for v0 in items:"]
    depth, level = 3, 0
    for index, (action, kind) in enumerate(shape):
        item, call, indent = f"v{level}", f"f{index}(v{level})", " " * depth
        if action == "map":
            lines.append(f"{indent}{item} = {_converted(call, kind)}")
        elif action == "filter":
            lines.append(f"{indent}if not {call}: continue")
        elif action == "peek":
            lines.append(f"{indent}{call}")
        elif index == len(shape) - 1:
            lines.append(f"{indent}{item} = {_opened(call, index, item, kind)}")
        else:
            level, depth = level + 1, depth + 1
            lines.append(f"{indent}for v{level} in {_all_converted(f'many({call})', kind)}:")
    lines.append(f"{' ' * depth}yield v{level}")
    lines += [" except Exception as error:", "  blame(error, ops, locals())", "  raise"]
    return "\n".join(lines)


def _converted(call: str, kind: type | None) -> str:
    if kind is None:
        return call
    return f"r if type(r := {call}) is {kind.__name__} else exact_{kind.__name__}(r)"


def _opened(call: str, index: int, item: str, kind: type | None) -> str:
    """Write what C code may iterate over without us: iterating over anything else may fail, and names the step."""
    if kind is None:
        return f"r if type(r := {call}) in harmless else named(r, ops[{index}], {item})"
    return f"named({call}, ops[{index}], {item})"


def _all_converted(call: str, kind: type | None) -> str:
    return call if kind is None else f"map(exact_{kind.__name__}, {call})"


def _blame(error: Exception, ops: Sequence[Op], variables: Mapping[str, Any]) -> None:
    """Note the failing step and its item on `error`; the line for the source of the items is no step."""
    index = _line(error.__traceback__, sys._getframe(1)) - _FIRST_STEP_LINE
    if 0 <= index < len(ops):
        level = sum(op.action == "flat_map" for op in ops[:index])
        blame(error, ops[index].step, variables[f"v{level}"])


def _line(traceback: TracebackType | None, loop: FrameType) -> int:
    """Return the line of the loop that failed; threads that raise one object put their frames into one traceback."""
    while traceback is not None and traceback.tb_frame is not loop:
        traceback = traceback.tb_next
    return 0 if traceback is None else traceback.tb_lineno


def _named(result: Any, op: Op, item: Any) -> Iterator[Any]:
    """Give what the function of a `flat_map` made of `item`; what fails meanwhile names both."""
    try:
        yield from _all_of(result, op.kind)
    except Exception as error:
        blame(error, op.step, item)
        raise


def many(result: Any) -> Iterable[Any]:
    """Return what a function given to `flat_map` made: None as nothing, a stream so that it is closed at its end."""
    if type(result) in _COMMON:
        return cast(Iterable[Any], result)
    if result is None:
        return ()
    traverse = getattr(type(result), "_traverse_and_close", None)
    if traverse is not None:
        return cast(Iterable[Any], traverse(result))
    if not isinstance(result, Iterable) and not hasattr(type(result), "__getitem__"):
        raise TypeError(f"flat_map() needs a function that gives an iterable or None, not {type(result).__name__}")
    return cast(Iterable[Any], result)


_COMMON = frozenset({list, tuple, str, dict, set, range})
_HARMLESS = frozenset({list, tuple, str, range})
"""Types that can be iterated over whatever happens meanwhile; a dict or a set may change."""
