"""Fusion: a run of element-wise steps as one generated loop.

The loop is Python source made from the actions alone, compiled once for each combination. Against
nested `map` and `filter` objects it is as fast, it does not grow the C stack with the length of the
chain, and when a function raises, the line identifies the step and the variable the item, at no
cost without a failure (`docs/decisions/0003-fuse-element-wise-steps-into-one-generated-loop.md` has the figures).

A step whose expression is known is evaluated in the loop, without a call (`syntax`). If that fails, its function is
called with the same item, so that the traceback has the line in the user's code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, count, islice
from types import BuiltinFunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from dstream.base.functions import is_watched, many, plain, refuse_awaitable, refuse_awaitables_in
from dstream.failures import blame
from dstream.operators.rows.loop_failures import blame_step, call_again
from dstream.plan.steps import Op, unchanged
from dstream.values.entries import PairsOfOneValue
from dstream.values.numbers import exact_float, exact_int

if TYPE_CHECKING:
    from dstream.operators.rows.forms import Form

__all__ = ["converted", "many", "run_branches", "run_chain"]


_MOST_STEPS = 128
_MOST_LOOPS = 12
_MOST_SEGMENTS = 200
# `_source` writes six lines before the first step: a failure is attributed to a step by the number of its line.
_FIRST_STEP_LINE = 7

Rounds: TypeAlias = "Iterator[tuple[Iterator[Any], Sequence[Any]]]"
Loop = Callable[[Rounds, Sequence[Op]], Iterator[Any]]


def run_chain(ops: Sequence[Op], items: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of the steps `ops` for `items`, one item at a time, reading nothing ahead."""
    if ops and (known := _known_pair(ops[-1])) is not None:
        return PairsOfOneValue(run_chain(ops[:-1], items), *known)
    if ops and type(items) is _INTS and (safe := _safe_on_ints(ops[0])) is not None:
        ops, items = ops[1:], map(safe, items)
    segments = list(_segments(ops))
    if len(segments) > _MOST_SEGMENTS:
        return _interpreted(ops, iter(items))
    for segment in segments:
        shape, values = _shaped(segment)
        items = _loop(shape)(_rounds(iter(items), shape, values), segment)
        if segment[-1].action == "flat_map":
            items = chain.from_iterable(items)
    return iter(items)


def _known_pair(op: Op) -> tuple[Any] | None:
    """Return the constant that a step puts beside each item, if its code does nothing else."""
    if op.action != "map" or op.kind is not None:
        return None
    known = plain(op.fn)
    return (known[1],) if known is not None and known[0] == "pair" else None


_INTS = type(iter(range(0)))
"""Iterator over ints of 64 bits: `float` and `str` may refuse larger ints."""


def _safe_on_ints(op: Op) -> Callable[[Any], Any] | None:
    """Return a step's function on ints of a range if it cannot fail, so that no loop has to name it."""
    if op.action != "map":
        return None
    if op.fn is unchanged:
        return float if op.kind is float else int
    return op.fn if op.kind is None and any(op.fn is fn for fn in (float, int, str, abs)) else None


def _interpreted(ops: Sequence[Op], items: Iterator[Any]) -> Iterator[Any]:
    """Run steps with a stack of iterators: for thousands of `flat_map` steps, which would nest as many loops."""
    item: Any
    stack: list[tuple[int, Iterator[Any], Any]] = [(0, items, None)]
    while stack:
        index, items, timestamp = stack[-1]
        try:
            item = next(items, _END)
        except Exception as error:
            # At 0 the source has failed, which names itself.
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
                refuse_awaitable(result)
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
    """Return `value` converted to the result type of a step: unchanged, or as an exact int or float."""
    return _CONVERTERS[kind](value)


def _segments(ops: Sequence[Op]) -> Iterator[Sequence[Op]]:
    """Cut a very long chain: Python allows 20 nested blocks and compiles long functions slowly."""
    segment: list[Op] = []
    loops, is_apart = 0, False
    for op in ops:
        loops += op.action == "flat_map"
        if len(segment) >= _MOST_STEPS or loops > _MOST_LOOPS:
            # A timestamp outside of its item is passed from loop to loop with it.
            yield [*segment, _around(op, "pair")] if is_apart else segment
            segment, loops = [_around(op, "unpair")] if is_apart else [], int(op.action == "flat_map")
        is_apart = op.action == "unpair" or (is_apart and op.action != "pair")
        segment.append(op)
    if segment:
        yield segment


def _around(op: Op, action: str) -> Op:
    return Op(action, unchanged, None, op.step)


Shape: TypeAlias = "tuple[tuple[str, type | None, Form | None], ...]"


def _shaped(ops: Sequence[Op]) -> tuple[Shape, list[Any]]:
    """Return the shape that the source of a loop depends on, and its arguments: functions, then constants by step."""
    inlined = [op.evaluation.expression if op.evaluation.is_inlined else None for op in ops]
    # A debugger or profiler wants to see the calls of functions, which inlining would hide.
    if all(each is None for each in inlined) or is_watched():
        return _without_forms(ops)
    # Imported in the function, since only inlined steps need the syntax and its imports.
    from dstream.operators.rows.syntax import form_of

    formed = [(None, []) if each is None else form_of(each) for each in inlined]
    shape = tuple((op.action, op.kind, form) for op, (form, _) in zip(ops, formed, strict=True))
    return shape, [*(op.fn for op in ops), *chain.from_iterable(constants for _, constants in formed)]


def _without_forms(ops: Sequence[Op]) -> tuple[Shape, list[Any]]:
    return tuple((op.action, op.kind, None) for op in ops), [op.fn for op in ops]


def _rounds(items: Iterator[Any], shape: Shape, values: Sequence[Any]) -> Rounds:
    """Yield the items in rounds, each with the functions and constants of the steps.

    A function whose results may be awaitables is wrapped in the first rounds, until it has been called: the items of
    the last round, nearly all items, have no overhead.
    """
    looks = {
        index: _Looking(fn) for index, (step, fn) in enumerate(zip(shape, values, strict=False)) if _is_open(*step, fn)
    }
    for most in _ROUNDS:
        if looks:
            yield islice(items, most), [looks.get(index, value) for index, value in enumerate(values)]
            looks = {index: look for index, look in looks.items() if not look.was_called}
    yield items, [looks.get(index, value) for index, value in enumerate(values)]


_ROUNDS = (8, 4096)


def _is_open(action: str, kind: type | None, form: Form | None, fn: Any) -> bool:
    """Return whether only its results can show that a step returns awaitables."""
    is_taken_as_it_is = action in ("filter", "peek") or (action in ("map", "flat_map") and kind is None)
    return is_taken_as_it_is and form is None and not isinstance(fn, _NEVER_ASYNC)


# Only functions written in Python can be async: of these types no result needs a check.
_NEVER_ASYNC = (type, BuiltinFunctionType, MethodDescriptorType)


class _Looking:
    """A function that refuses results that have to be awaited."""

    __slots__ = ("fn", "was_called")

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.fn = fn
        self.was_called = False

    def __call__(self, item: Any) -> Any:
        result = self.fn(item)
        refuse_awaitables_in(result)
        self.was_called = True
        return result


@functools.lru_cache(maxsize=512)
def _loop(shape: Shape) -> Loop:
    return cast(Loop, _compiled(_source(shape), shape, _levels(shape)))


def _levels(shape: Shape) -> list[int]:
    """Return in which of the nested loops each step of a chain is."""
    return [0, *accumulate(int(action == "flat_map") for action, _, _ in shape)][:-1]


def _compiled(source: str, shape: Shape, levels: Sequence[int]) -> Callable[..., Iterator[Any]]:
    """Compile a loop; `exec` sees generated names only, never a user's string.

    Args:
        source: the loop, with a call for each step.
        shape: all of its steps.
        levels: the numbers of the variables that contain their items.
    """
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "exact_int": exact_int,
        "exact_float": exact_float,
        "many": many,
        "harmless": _HARMLESS,
        "named": _named,
        "blame": blame_step,
        "again": call_again,
    }
    tree: Any = source
    if any(form is not None for _, _, form in shape):
        from dstream.operators.rows.syntax import FUNCTIONS, syntax_of, with_syntax

        values = {
            f"f{index}": (syntax_of(form, f"f{index}", [f"v{level}", *_constants(index, form)]), action == "filter")
            for index, ((action, _, form), level) in enumerate(zip(shape, levels, strict=True))
            if form is not None
        }
        namespace |= FUNCTIONS
        tree = with_syntax(source, values)
    exec(compile(tree, "<dstream fused steps>", "exec"), namespace)
    loop: Callable[..., Iterator[Any]] = namespace["loop"]
    return loop


def _source(shape: Shape) -> str:
    """Write the loop: step k is alone on the line `_FIRST_STEP_LINE + k`.

    A `flat_map` at the end yields one iterable for each item, which C code chains.
    """
    lines = ["def loop(rounds, ops):", " t = None", " try:", "  for items, values in rounds:"]
    lines += [f"   {_variables(shape)} = values", "   for v0 in items:"]
    depth, level = 4, 0
    for index, (action, kind, _) in enumerate(shape):
        item, call, indent = f"v{level}", f"f{index}(v{level})", " " * depth
        if action == "filter":
            lines.append(f"{indent}if not {call}: continue")
        elif action == "flat_map" and index == len(shape) - 1:
            lines.append(f"{indent}{item} = {_opened(call, index, item, kind)}")
        else:
            lines.append(indent + _statement(action, kind, call, level))
            level, depth = (level + 1, depth + 1) if action == "flat_map" else (level, depth)
    lines.append(f"{' ' * depth}yield v{level}")
    return "\n".join([*lines, *_ending(shape, _FIRST_STEP_LINE)])


def _variables(shape: Shape) -> str:
    """Return the names of the variables of the functions and constants of all steps."""
    constants = (_constants(index, form) for index, (_, _, form) in enumerate(shape))
    names = chain((f"f{index}" for index in range(len(shape))), chain.from_iterable(constants))
    return "".join(f"{name}, " for name in names)


def _constants(index: int, form: Form | None) -> list[str]:
    return [] if form is None else [f"c{index}_{number}" for number in range(form.constants)]


def _ending(shape: Shape, first_line: int) -> list[str]:
    """Write the handler of a failed step; an inlined expression is called as a function then.

    The call follows the handler: the exception of the function must not have the failure of the expression as context.
    """
    if all(form is None for _, _, form in shape):
        return [" except Exception as error:", f"  blame(error, ops, locals(), {first_line})", "  raise"]
    return [
        "  return",
        " except Exception as error:",
        f"  if not blame(error, ops, locals(), {first_line}): raise",
        "  failed = [error]",
        f" again(failed, ops, locals(), {first_line})",
    ]


def _statement(action: str, kind: type | None, call: str, level: int) -> str:
    """Return the statement of a step for the variable of its level; a `flat_map` opens the loop of the next level."""
    if action == "map":
        return f"v{level} = {_converted(call, kind)}"
    if action in _TIMES:
        return _TIMES[action].format(level)
    return call if action == "peek" else f"for v{level + 1} in {_all_converted(f'many({call})', kind)}:"


_TIMES = {"unpair": "t, v{0} = v{0}", "pair": "v{0} = t, v{0}"}
"""Statements that take the timestamp from an item, and pair them again; without a timestamp it is None."""


def run_branches(
    branches: Sequence[Sequence[Op]], items: Iterable[Any], takers: Sequence[Callable[[Any], object]]
) -> Iterator[Any]:
    """Yield the results of the first chain for each item, after `takers` received the results of the other chains."""
    first, *others = map(_short, branches)
    # The first branch runs last, since its results are yielded: by then the takers have received the item.
    chains = [*others, first]
    # Each branch has a line of its own before its steps and one after them.
    ops = list(chain.from_iterable((None, *each, None) for each in chains))
    shape, values = _shaped([op for op in ops if op is not None])
    return _dividing_loop(shape, tuple(map(len, chains)))(_rounds(iter(items), shape, values), ops, takers)


def _short(ops: Sequence[Op]) -> Sequence[Op]:
    """Return a chain that fits into a loop with others: a longer chain becomes a call for each item."""
    if len(ops) <= _MOST_STEPS_OF_BRANCH and sum(op.action == "flat_map" for op in ops) <= _MOST_LOOPS_OF_BRANCH:
        return ops
    return [Op("flat_map", functools.partial(_run_alone, ops), None, ops[0].step)]


# A filter nests the rest of its branch: Python allows 100 levels of indentation, and 20 nested loops (CPython 3.11).
_MOST_STEPS_OF_BRANCH = 48
_MOST_LOOPS_OF_BRANCH = 8


def _run_alone(ops: Sequence[Op], item: Any) -> Iterator[Any]:
    return run_chain(ops, (item,))


@functools.lru_cache(maxsize=128)
def _dividing_loop(shape: Shape, lengths: tuple[int, ...]) -> Callable[..., Iterator[Any]]:
    ends = list(accumulate(lengths))
    shapes = [shape[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return _compiled(_dividing_source(shape, shapes), shape, list(chain.from_iterable(map(_levels, shapes))))


def _dividing_source(whole: Shape, shapes: Sequence[Shape]) -> str:
    """Return the source of a loop of several branches; the last yields its items; each step has a line of its own."""
    takers = "".join(f"t{branch}, " for branch in range(len(shapes) - 1))
    lines = ["def loop(rounds, ops, takers):", f" ({takers}) = takers", " t = None", " try:"]
    lines += ["  for items, values in rounds:", f"   ({_variables(whole)}) = values", "   for item in items:"]
    first_line, number = len(lines) + 1, count()
    for branch, shape in enumerate(shapes):
        lines.append("    v0 = item")
        depth, level = 4, 0
        for action, kind, _ in shape:
            call = f"f{next(number)}(v{level})"
            lines.append(" " * depth + (f"if {call}:" if action == "filter" else _statement(action, kind, call, level)))
            depth += action in ("filter", "flat_map")
            level += action == "flat_map"
        is_last = branch == len(shapes) - 1
        lines.append(f"{' ' * depth}yield v{level}" if is_last else f"{' ' * depth}t{branch}(v{level})")
    return "\n".join([*lines, *_ending(whole, first_line)])


def _converted(call: str, kind: type | None) -> str:
    if kind is None:
        return call
    return f"r if type(r := {call}) is {kind.__name__} else exact_{kind.__name__}(r)"


def _opened(call: str, index: int, item: str, kind: type | None) -> str:
    """Write an iteration over built-in containers for C code; anything else may fail, and names the step."""
    if kind is None:
        return f"r if type(r := {call}) in harmless else named(r, ops[{index}], {item})"
    return f"named({call}, ops[{index}], {item})"


def _all_converted(call: str, kind: type | None) -> str:
    return call if kind is None else f"map(exact_{kind.__name__}, {call})"


def _named(result: Any, op: Op, item: Any) -> Iterator[Any]:
    """Yield the results of a `flat_map` for `item`; an error meanwhile names both."""
    try:
        yield from _all_of(result, op.kind)
    except Exception as error:
        blame(error, op.step, item)
        raise


_HARMLESS = frozenset({list, tuple, str, range})
"""Types that can be iterated over whatever happens meanwhile; a dict or a set may change."""
