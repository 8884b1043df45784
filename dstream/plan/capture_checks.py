"""What the functions of a plan take along to the workers: checked before the first job starts.

`check_captures` looks at every function of every step, also of steps that the first job would not
need, and names what cannot travel and what is large by its variable. It looks into closures,
globals, defaults, partials, methods, attributes and containers by type, and pickles only what it
cannot judge that way, so that it costs some microseconds for an ordinary lambda. `obstacles` has the
walk itself.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

from dstream.errors import LargeCaptureWarning, SerializationError
from dstream.failures import blame, is_our_name
from dstream.plan.ends import ForEach
from dstream.plan.guards_of_steps import Recover
from dstream.plan.nodes import Gather, Node, Peek, Read
from dstream.plan.obstacles import Large, Obstacle, look
from dstream.plan.steps import Step
from dstream.plan.walk import steps_of, topological
from dstream.plan.where import Where
from dstream.spi.in_parallel import Calling

__all__ = ["check_captures"]

_LARGE = 10 * 2**20


def check_captures(root: Node, *, travel: bool = True) -> None:
    """Refuse a plan whose functions capture what cannot travel to the workers; warn about what is large.

    Args:
        root: the last node of the plan.
        travel: whether the functions will travel now; if not, what is large does not matter.

    Raises:
        SerializationError: a function captures something that cannot be pickled, or that can only be
            used in the caller's process, such as a context; the message names the variable.
    """
    seen: dict[int, Any] = {}
    order = topological(root)
    for node, step in zip(order, steps_of(order), strict=True):
        for function in _shipped(node):
            for found in look(function, seen, _LARGE):
                if isinstance(found, Obstacle):
                    raise _refusal(found, step)
                if travel:
                    _warn(found, step)


def _shipped(node: Node) -> Iterator[Any]:
    """Give the functions, collectors and writers of a step that go to the workers."""
    if isinstance(node, Peek | ForEach):
        return
    if isinstance(node, Recover):
        yield from () if node.fn is None else (node.fn,)
        return
    if isinstance(node, Gather) and isinstance(node.gatherer.parallel, Calling):
        yield node.gatherer.parallel.fn
        return
    if isinstance(node, Read):
        # What travels is a source's splits; of ours it is known that these hold the source's functions.
        yield from _functions(node.source) if is_our_name(type(node.source).__module__) else ()
        return
    yield from _functions(node)


def _functions(holder: Any) -> Iterator[Any]:
    if not dataclasses.is_dataclass(holder):
        return
    for field in dataclasses.fields(holder):
        value = getattr(holder, field.name)
        if isinstance(value, Node | Step | Where):
            continue
        if callable(value) and not isinstance(value, type):
            yield value
        elif dataclasses.is_dataclass(value) and is_our_name(type(value).__module__):
            yield from _functions(value)


def _refusal(found: Obstacle, step: Step) -> SerializationError:
    error = SerializationError(f"{step} cannot be sent to the workers: {found}")
    blame(error, step)
    return error


def _warn(found: Large, step: Step) -> None:
    where = step.where
    warnings.warn_explicit(
        f"{found}; it travels to every task. Write it into a map or a file that the workers read, or let the function "
        "capture less",
        LargeCaptureWarning,
        "<unknown>" if where is None else where.file if where.cell is None else f"cell {where.cell}",
        1 if where is None else where.line,
    )
