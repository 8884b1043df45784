"""Gatherers on one partition: folding, lookahead into the next partitions, concurrent calls."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any, cast

from dstream.failures import blame, naming
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.guards import Handler
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.operators.rows.spill import in_batches, merged
from dstream.plan.operations.elementwise import CallResults, Gather
from dstream.plan.steps import Step
from dstream.spi import AtEnd, ByPlace, Gatherer, Outcome

__all__ = ["called_once", "calls_of", "finish", "gathered", "gathered_ahead", "state_of_part"]


@operation.register
def _(node: Gather) -> Operation:
    return functools.partial(gathered, node.gatherer, node.step)


def gathered(gatherer: Gatherer[Any, Any, Any], step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the output of `gatherer` for the items."""
    kind = gatherer.parallel
    if isinstance(kind, ByPlace) and kind.window is not None and type(items) is ColumnItems:
        return gathered_ahead(kind, items, (), lambda: True)
    gathered_items = gatherer.gather(items)
    # Positional gatherers call no user function: their failures belong to an upstream step.
    return gathered_items if isinstance(kind, ByPlace) else _named(step, gathered_items)


def _named(step: Step, items: Iterator[Any]) -> Iterator[Any]:
    with naming(step):
        yield from items


def state_of_part(kind: AtEnd[Any, Any], step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the state of one partition; nothing if it has no items."""
    with naming(step):
        # The loop runs once, or not at all without items: the chain uses up the iterator.
        for first in items:
            yield kind.state_of(chain((first,), items))


def finish(gatherer: Gatherer[Any, Any, Any], step: Step, states: Iterator[Any], task: Task) -> Iterator[Any]:
    """Combine the states of all partitions, in order, and yield the output of the finisher."""
    with naming(step):
        yield from gatherer.finished(states)


def gathered_ahead(
    kind: ByPlace[Any, Any], own: Iterator[Any], behind: Iterable[Any], is_first: Callable[[], bool]
) -> Iterator[Any]:
    """Yield the output that begins in `own`; see `ByPlace.gather_ahead`."""
    if kind.window is not None and type(own) is ColumnItems:
        from dstream.operators.columns.windows import sliding_windows  # loads NumPy

        return ColumnItems(sliding_windows(kind, own.blocks(), behind, is_first))
    assert kind.gather_ahead is not None, "only gatherers that read ahead get here"
    return kind.gather_ahead(own, behind, is_first)


Place = tuple[int, int]
_PLACES = 1


@operation.register
def _(node: CallResults) -> Operation:
    return functools.partial(_called, calls_of(node))


def calls_of(node: CallResults) -> CallResults:
    """Return `node` for a task: without its input and the parts that are only used in the driver."""
    guards = tuple(guard.on_a_worker() for guard in node.guards)
    return replace(node, upstream=cast(Any, None), calling=replace(node.calling, into=None), guards=guards)


def _called(node: CallResults, items: Iterator[Any], task: Task) -> Iterator[Any]:
    results = _timed_results(node, items, task) if node.is_timed else _results(node, items, task)
    # An exception of a downstream step may retain the generator, and so its threads.
    task.at_end(results.close)
    return results


def _results(node: CallResults, items: Iterator[Any], task: Task) -> Generator[Any, None, None]:
    settle = _Settling(node, task)
    with naming(node.step), closing(_outcomes(node, items, task)) as outcomes:
        for outcome in outcomes:
            yield from settle(outcome)


def _timed_results(node: CallResults, pairs: Iterator[Any], task: Task) -> Generator[Any, None, None]:
    """Yield the results of pairs `(timestamp, item)`: calls receive the item, and their results have its timestamp."""
    settle, timestamps = _Settling(node, task), deque[Any]()
    with naming(node.step), closing(_outcomes(node, _items_of(pairs, timestamps), task)) as outcomes:
        for outcome in outcomes:
            # Outcomes arrive in the order of the items, however the calls overlap.
            timestamp = timestamps.popleft()
            for result in settle(outcome):
                yield timestamp, result


def _items_of(pairs: Iterator[Any], timestamps: deque[Any]) -> Iterator[Any]:
    for timestamp, each in pairs:
        timestamps.append(timestamp)
        yield each


def called_once(node: CallResults, pairs: Iterator[tuple[Place, Any]], task: Task) -> Iterator[tuple[Place, Any]]:
    """Call once for equal items of (position, item) pairs; return (position, result) for each pair.

    Past the memory bound the items are stored on disk.
    """
    results = _results_once(node, pairs, task)
    # As in `_called`: the generator may outlive the task, and its threads with it.
    task.at_end(results.close)
    return results


def _results_once(
    node: CallResults, pairs: Iterator[tuple[Place, Any]], task: Task
) -> Generator[tuple[Place, Any], None, None]:
    settle = _Settling(node, task)
    places: deque[list[Place]] = deque()
    with naming(node.step), closing(_outcomes(node, _distinct(pairs, places, task), task)) as outcomes:
        for outcome in outcomes:
            for place in places.popleft():
                for result in settle(outcome):
                    yield place, result


def _distinct(pairs: Iterator[tuple[Place, Any]], places: deque[list[Place]], task: Task) -> Iterator[Any]:
    """Yield the first of equal items, and append the positions of all of them to `places`."""
    entries = ((each, (each, [place])) for place, each in pairs)
    for _, (first, stands) in merged(in_batches(entries, _together), _together, task.bound):
        places.append(stands)
        yield first


def _together(left: tuple[Any, list[Place]], right: tuple[Any, list[Place]]) -> tuple[Any, list[Place]]:
    left[_PLACES].extend(right[_PLACES])
    return left


def _outcomes(node: CallResults, items: Iterable[Any], task: Task) -> Any:
    return node.calling.outcomes(items, task.partition % node.slots, node.slots)


class _Settling:
    """Results of the outcomes of calls: a failed call has the results of its guard, or raises its exception."""

    def __init__(self, node: CallResults, task: Task) -> None:
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
