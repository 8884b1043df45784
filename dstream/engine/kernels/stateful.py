"""Stateful steps in one partition: one state for all of its items, or one for each key.

The states of all keys of a partition are held in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dstream.engine.kernels.core_operations import Operation, Task, operation
from dstream.engine.kernels.join_sides import item_key
from dstream.failures import blame
from dstream.keys import canonical_all
from dstream.plan.core_of_stages import Stateful
from dstream.plan.steps import Step
from dstream.values.blaming import stopped
from dstream.values.flattened import many, refuse_awaitable

__all__ = ["Calls", "at_places"]


class Calls:
    """The calls of a stateful function, with the states that it has made.

    Args:
        create: makes a state, when the first item of a key comes.
        fn: takes (state, item), or (state, key, item) if it `is_keyed`.
        action: what becomes of its result.
        step: names a failure, which has the item too.
    """

    def __init__(self, create: Callable[[], Any], fn: Callable[..., Any], action: str, is_keyed: bool, step: Step):
        self._create, self._fn, self._is_keyed, self._step = create, fn, is_keyed, step
        self._made = {"map": _one, "filter": _kept, "flat_map": self._all}[action]
        self._states: dict[Any, Any] = {}

    def of(self, key: Any, item: Any) -> Iterable[Any]:
        """Return what becomes of an item."""
        try:
            is_first = key not in self._states
            if is_first:
                self._states[key] = self._create()
            state = self._states[key]
            result = self._fn(state, key, item) if self._is_keyed else self._fn(state, item)
            if is_first:
                refuse_awaitable(result)
            return self._made(result, item)
        except StopIteration as error:
            failed = stopped(getattr(self._fn, "__qualname__", type(self._fn).__qualname__))
            blame(failed, self._step, item)
            raise failed from error
        except Exception as error:
            blame(error, self._step, item)
            raise

    def _all(self, result: Any, item: Any) -> Iterable[Any]:
        items = many(result)
        return items if type(items) in _AT_HAND else self._named(items, item)

    def _named(self, items: Iterable[Any], item: Any) -> Iterator[Any]:
        """Give what is made while it is asked for, such as by a function that yields."""
        try:
            yield from items
        except Exception as error:
            blame(error, self._step, item)
            raise


_AT_HAND = frozenset({list, tuple, str, range})


def _one(result: Any, item: Any) -> Iterable[Any]:
    return (result,)


def _kept(result: Any, item: Any) -> Iterable[Any]:
    return (item,) if result else ()


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
    calls: Callable[[], Calls], batches: Iterator[tuple[int, tuple[list[Any], list[int], list[Any]]]], task: Task
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Let items pass the states of their keys; give ((source, position), what became of it).

    Args:
        calls: makes the calls of this task.
        batches: (source, (keys, positions, items)).
        task: where it runs.
    """
    made = calls()
    for source, (keys, positions, items) in batches:
        # A NaN that travelled is no longer the one that a dict finds by its identity.
        for key, position, item in zip(canonical_all(keys), positions, items, strict=True):
            for each in made.of(key, item):
                yield (source, position), each
