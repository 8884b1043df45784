"""What the calls of a gatherer give for items that stand in one place, in order."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, cast

from dstream.engine.kernels.core_operations import Operation, Task, operation
from dstream.engine.kernels.guards import Handler
from dstream.engine.kernels.spilling import in_batches, merged
from dstream.failures import blame, naming
from dstream.plan.core import Called
from dstream.spi import Outcome

__all__ = ["called_once", "calls_of"]

Place = tuple[int, int]
_PLACES = 1


@operation.register
def _(node: Called) -> Operation:
    return functools.partial(_called, calls_of(node))


def calls_of(node: Called) -> Called:
    """Return `node` as it travels: without what it reads from, and what stays in the driver."""
    guards = tuple(guard.on_a_worker() for guard in node.guards)
    return replace(node, upstream=cast(Any, None), calling=replace(node.calling, into=None), guards=guards)


def _called(node: Called, items: Iterator[Any], task: Task) -> Iterator[Any]:
    results = _timed_results(node, items, task) if node.is_timed else _results(node, items, task)
    # An exception from further down may keep the generator alive, and so its threads.
    task.at_end(results.close)
    return results


def _results(node: Called, items: Iterator[Any], task: Task) -> Generator[Any, None, None]:
    settle = _Settling(node, task)
    with naming(node.step), closing(_outcomes(node, items, task)) as outcomes:
        for outcome in outcomes:
            yield from settle(outcome)


def _timed_results(node: Called, pairs: Iterator[Any], task: Task) -> Generator[Any, None, None]:
    """Do the same with pairs `(timestamp, item)`: calls are given the item, and what they give has its timestamp."""
    settle, timestamps = _Settling(node, task), deque[Any]()
    with naming(node.step), closing(_outcomes(node, _items_of(pairs, timestamps), task)) as outcomes:
        for outcome in outcomes:
            timestamp = timestamps.popleft()
            for result in settle(outcome):
                yield timestamp, result


def _items_of(pairs: Iterator[Any], timestamps: deque[Any]) -> Iterator[Any]:
    for timestamp, each in pairs:
        timestamps.append(timestamp)
        yield each


def called_once(node: Called, pairs: Iterator[tuple[Place, Any]], task: Task) -> Iterator[tuple[Place, Any]]:
    """Call once for equal items of (place, item) pairs; give (place, result) for each of them.

    Past the memory bound the items wait on disk.
    """
    results = _results_once(node, pairs, task)
    task.at_end(results.close)
    return results


def _results_once(
    node: Called, pairs: Iterator[tuple[Place, Any]], task: Task
) -> Generator[tuple[Place, Any], None, None]:
    settle = _Settling(node, task)
    places: deque[list[Place]] = deque()
    with naming(node.step), closing(_outcomes(node, _distinct(pairs, places, task), task)) as outcomes:
        for outcome in outcomes:
            for place in places.popleft():
                for result in settle(outcome):
                    yield place, result


def _distinct(pairs: Iterator[tuple[Place, Any]], places: deque[list[Place]], task: Task) -> Iterator[Any]:
    """Give the first of equal items, and let `places` know where they all stand."""
    entries = ((each, (each, [place])) for place, each in pairs)
    for _, (first, stands) in merged(in_batches(entries, _together), _together, task.bound):
        places.append(stands)
        yield first


def _together(left: tuple[Any, list[Place]], right: tuple[Any, list[Place]]) -> tuple[Any, list[Place]]:
    left[_PLACES].extend(right[_PLACES])
    return left


def _outcomes(node: Called, items: Iterable[Any], task: Task) -> Any:
    return node.calling.outcomes(items, task.partition % node.slots, node.slots)


class _Settling:
    """Makes results of outcomes: those of calls that failed are what a guard makes of them, or raised."""

    def __init__(self, node: Called, task: Task) -> None:
        self._step = node.step
        self._handle = Handler(node.guards, task)

    def __call__(self, outcome: Outcome) -> Iterable[Any]:
        if outcome.error is None:
            return (outcome.result,)
        handled = self._handle(outcome.item, outcome.error)
        if handled is None:
            blame(outcome.error, self._step, outcome.item)
            raise outcome.error
        return handled
