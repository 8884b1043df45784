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
from itertools import chain, count, takewhile
from types import FrameType, TracebackType
from typing import Any, TypeAlias, cast

from dstream.failures import blame
from dstream.plan.steps import Op, unchanged
from dstream.values.flattened import many
from dstream.values.numbers import exact_float, exact_int
from dstream.values.pairs import PairsOfOneValue
from dstream.values.plain_functions import plain

__all__ = ["converted", "many", "run_branches", "run_chain"]

_MOST_STEPS = 128
_MOST_LOOPS = 12
_MOST_SEGMENTS = 200
_FIRST_STEP_LINE = 6

Loop = Callable[[Iterable[Any], Sequence[Op], Sequence[Callable[[Any], Any]]], Iterator[Any]]


def run_chain(ops: Sequence[Op], items: Iterable[Any]) -> Iterator[Any]:
    """Give what the steps `ops` make of `items`, one item at a time, nothing ahead of time."""
    if ops and (known := _known_pair(ops[-1])) is not None:
        return PairsOfOneValue(run_chain(ops[:-1], items), *known)
    if ops and type(items) is _INTS and (safe := _safe_on_ints(ops[0])) is not None:
        ops, items = ops[1:], map(safe, items)
    segments = list(_segments(ops))
    if len(segments) > _MOST_SEGMENTS:
        return _interpreted(ops, iter(items))
    for segment in segments:
        loop = _loop(_shape(segment))
        items = loop(items, segment, [op.fn for op in segment])
        if segment[-1].action == "flat_map":
            items = chain.from_iterable(items)
    return iter(items)


def _known_pair(op: Op) -> tuple[Any] | None:
    """Return the constant that a step puts beside each item, if its code says that it does nothing else."""
    if op.action != "map" or op.kind is not None:
        return None
    known = plain(op.fn)
    return (known[1],) if known is not None and known[0] == "pair" else None


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
    item: Any
    stack: list[tuple[int, Iterator[Any], Any]] = [(0, items, None)]
    while stack:
        index, items, timestamp = stack[-1]
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
            if op.action in _AROUND_TIMES:
                timestamp, item = item if op.action == "unpair" else (None, (timestamp, item))
                continue
            try:
                result = op.fn(item)
                item = _CONVERTERS[op.kind](result) if op.action == "map" else item
                inner = iter(_all_of(result, op.kind)) if op.action == "flat_map" else None
            except Exception as error:
                blame(error, op.step, item)
                raise
            if inner is not None:
                stack.append((index, inner, timestamp))
                break
            if op.action == "filter" and not result:
                break
        else:
            yield item


_END = object()
_AROUND_TIMES = ("unpair", "pair")


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
    loops, is_apart = 0, False
    for op in ops:
        loops += op.action == "flat_map"
        if len(segment) >= _MOST_STEPS or loops > _MOST_LOOPS:
            # A timestamp that is kept aside goes from loop to loop with its item.
            yield [*segment, _around(op, "pair")] if is_apart else segment
            segment, loops = [_around(op, "unpair")] if is_apart else [], int(op.action == "flat_map")
        is_apart = op.action == "unpair" or (is_apart and op.action != "pair")
        segment.append(op)
    if segment:
        yield segment


def _around(op: Op, action: str) -> Op:
    return Op(action, unchanged, None, op.step)


Shape: TypeAlias = tuple[tuple[str, type | None], ...]


def _shape(ops: Sequence[Op]) -> Shape:
    return tuple((op.action, op.kind) for op in ops)


@functools.lru_cache(maxsize=512)
def _loop(shape: Shape) -> Loop:
    return cast(Loop, _compiled(_source(shape)))


def _compiled(source: str) -> Callable[..., Iterator[Any]]:
    """Compile a loop; `exec` sees generated names only, never a user's text."""
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "exact_int": exact_int,
        "exact_float": exact_float,
        "many": many,
        "harmless": _HARMLESS,
        "named": _named,
        "blame": _blame,
    }
    exec(compile(source, "<dstream fused steps>", "exec"), namespace)
    loop: Callable[..., Iterator[Any]] = namespace["loop"]
    return loop


def _source(shape: Shape) -> str:
    """Write the loop: step k stands alone on the line `_FIRST_STEP_LINE + k`.

    A `flat_map` at the end gives one iterable for each item, which C code chains.
    """
    functions = ", ".join(f"f{index}" for index in range(len(shape)))
    lines = ["def loop(items, ops, functions):", f" {functions}, = functions"]
    lines += [" t = None", " try:", "  for v0 in items:"]
    depth, level = 3, 0
    for index, (action, kind) in enumerate(shape):
        item, call, indent = f"v{level}", f"f{index}(v{level})", " " * depth
        if action == "filter":
            lines.append(f"{indent}if not {call}: continue")
        elif action == "flat_map" and index == len(shape) - 1:
            lines.append(f"{indent}{item} = {_opened(call, index, item, kind)}")
        else:
            lines.append(indent + _statement(action, kind, call, level))
            level, depth = (level + 1, depth + 1) if action == "flat_map" else (level, depth)
    lines.append(f"{' ' * depth}yield v{level}")
    lines += [" except Exception as error:", f"  blame(error, ops, locals(), {_FIRST_STEP_LINE})", "  raise"]
    return "\n".join(lines)


def _statement(action: str, kind: type | None, call: str, level: int) -> str:
    """Write what a step does with the variable of its level; a `flat_map` opens the loop of the next one."""
    if action == "map":
        return f"v{level} = {_converted(call, kind)}"
    if action in _TIMES:
        return _TIMES[action].format(level)
    return call if action == "peek" else f"for v{level + 1} in {_all_converted(f'many({call})', kind)}:"


_TIMES = {"unpair": "t, v{0} = v{0}", "pair": "v{0} = t, v{0}"}
"""What keeps the timestamp of an item aside, and brings it back; one that never came is None."""


def run_branches(
    branches: Sequence[Sequence[Op]], items: Iterable[Any], takers: Sequence[Callable[[Any], object]]
) -> Iterator[Any]:
    """Give what the first of several chains makes of each item, after `takers` had what the others make of it."""
    first, *others = map(_short, branches)
    chains = [*others, first]
    # Each branch has a line of its own before its steps and one behind them.
    ops = list(chain.from_iterable((None, *each, None) for each in chains))
    loop = _dividing_loop(tuple(map(_shape, chains)))
    return loop(items, ops, [op.fn for op in ops if op is not None], takers)


def _short(ops: Sequence[Op]) -> Sequence[Op]:
    """Return a chain that fits into a loop with others: one that does not becomes a call for each item."""
    if len(ops) <= _MOST_STEPS_OF_BRANCH and sum(op.action == "flat_map" for op in ops) <= _MOST_LOOPS_OF_BRANCH:
        return ops
    return [Op("flat_map", functools.partial(_run_alone, ops), None, ops[0].step)]


_MOST_STEPS_OF_BRANCH = 48
_MOST_LOOPS_OF_BRANCH = 8


def _run_alone(ops: Sequence[Op], item: Any) -> Iterator[Any]:
    return run_chain(ops, (item,))


@functools.lru_cache(maxsize=128)
def _dividing_loop(shapes: tuple[Shape, ...]) -> Callable[..., Iterator[Any]]:
    return _compiled(_dividing_source(shapes))


def _dividing_source(shapes: tuple[Shape, ...]) -> str:
    """Write the loop of several branches, of which the last one gives its items; each step stands alone on a line."""
    functions = "".join(f"f{index}, " for index in range(sum(map(len, shapes))))
    takers = "".join(f"t{branch}, " for branch in range(len(shapes) - 1))
    lines = ["def loop(items, ops, functions, takers):", f" ({functions}) = functions", f" ({takers}) = takers"]
    lines += [" t = None", " try:", "  for item in items:"]
    first_line, number = len(lines) + 1, count()
    for branch, shape in enumerate(shapes):
        lines.append("   v0 = item")
        depth, level = 3, 0
        for action, kind in shape:
            call = f"f{next(number)}(v{level})"
            lines.append(" " * depth + (f"if {call}:" if action == "filter" else _statement(action, kind, call, level)))
            depth += action in ("filter", "flat_map")
            level += action == "flat_map"
        is_last = branch == len(shapes) - 1
        lines.append(f"{' ' * depth}yield v{level}" if is_last else f"{' ' * depth}t{branch}(v{level})")
    lines += [" except Exception as error:", f"  blame(error, ops, locals(), {first_line})", "  raise"]
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


def _blame(error: Exception, ops: Sequence[Op | None], variables: Mapping[str, Any], first_line: int) -> None:
    """Note the failing step and its item on `error`; the line for the source of the items is no step."""
    index = _line(error.__traceback__, sys._getframe(1)) - first_line
    op = ops[index] if 0 <= index < len(ops) else None
    if op is not None:
        of_branch = takewhile(lambda each: each is not None, reversed(ops[:index]))
        level = sum(each is not None and each.action == "flat_map" for each in of_branch)
        blame(error, op.step, variables[f"v{level}"])


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


_HARMLESS = frozenset({list, tuple, str, range})
"""Types that can be iterated over whatever happens meanwhile; a dict or a set may change."""
