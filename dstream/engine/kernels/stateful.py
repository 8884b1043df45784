"""What a partition does with items that meet a state: one for all of them, or one for each key.

The states of all keys of a partition are held in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.engine.kernels.core_operations import Operation, Task, operation
from dstream.engine.kernels.fused_steps import many
from dstream.engine.kernels.join_sides import item_key
from dstream.failures import blame
from dstream.plan.core_of_stages import Stateful
from dstream.plan.steps import Step
from dstream.values.blaming import stopped

__all__ = ["Calls", "at_places"]


class Calls:
    """The calls of a stateful function, with the states that it has made.

    Args:
        node: whose function.
        step: names a failure, which has the item too.
    """

    def __init__(self, create: Callable[[], Any], fn: Callable[..., Any], action: str, is_keyed: bool, step: Step):
        self._create, self._fn, self._is_keyed, self._step = create, fn, is_keyed, step
        self._made = _MADE[action]
        self._states: dict[Any, Any] = {}

    def of(self, key: Any, item: Any) -> Iterable[Any]:
        """Return what becomes of an item."""
        try:
            if key not in self._states:
                self._states[key] = self._create()
            state = self._states[key]
            result = self._fn(state, key, item) if self._is_keyed else self._fn(state, item)
            return self._made(result, item)
        except StopIteration as error:
            failed = stopped(getattr(self._fn, "__qualname__", type(self._fn).__qualname__))
            blame(failed, self._step, item)
            raise failed from error
        except Exception as error:
            blame(error, self._step, item)
            raise


def _one(result: Any, item: Any) -> Iterable[Any]:
    return (result,)


def _kept(result: Any, item: Any) -> Iterable[Any]:
    return (item,) if result else ()


def _all(result: Any, item: Any) -> Iterable[Any]:
    return many(result)


_MADE: dict[str, Callable[[Any, Any], Iterable[Any]]] = {"map": _one, "filter": _kept, "flat_map": _all}


@operation.register
def _(node: Stateful) -> Operation:
    return functools.partial(_in_order, calls_of(node), node.key, node.step)


def calls_of(node: Stateful) -> Callable[[], Calls]:
    """Return what makes the calls of a task."""
    return functools.partial(Calls, node.create, node.fn, node.action, node.key is not None, node.step)


def _in_order(
    calls: Callable[[], Calls], key: Callable[[Any], Any] | None, step: Step, items: Iterator[Any], task: Task
) -> Iterator[Any]:
    """Let the items pass their states one after another."""
    made, key_of = calls(), step.guard(functools.partial(item_key, key)) if key is not None else None
    for item in items:
        yield from made.of(None if key_of is None else key_of(item), item)


def at_places(
    calls: Callable[[], Calls], placed: Iterator[tuple[Any, tuple[Any, Any]]], task: Task
) -> Iterator[tuple[Any, Any]]:
    """Let (place, (key, item)) pass the states of their keys; give (place, what became of it)."""
    made = calls()
    for place, (key, item) in placed:
        for each in made.of(key, item):
            yield place, each
