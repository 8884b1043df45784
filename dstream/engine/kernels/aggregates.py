"""What each partition does for an aggregate: containers of its own first, then the combined and finished results.

What travels between the two is (keys, containers) for an aggregate by key, and containers alone for any other one.
Inputs come one after another, so that the containers of earlier inputs are combined before those of later ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any

from dstream.engine.kernels.core_operations import Operation, Task, operation, partial_groups
from dstream.engine.kernels.spilling import merged, sorted_items
from dstream.failures import naming
from dstream.plan.core_of_stages import Aggregate
from dstream.plan.steps import Step
from dstream.spi import AggregateOperation, Collector
from dstream.values import Entry
from dstream.values.blaming import in_group

__all__ = ["finishing", "partial"]


def partial(node: Aggregate, number: int) -> Operation:
    """Return what a partition of one input does with its items."""
    reduction = node.reductions[number]
    if node.is_keyed:
        return functools.partial(_groups, reduction, node.step)
    if not node.combines:
        return functools.partial(_numbered, number)
    return functools.partial(_containers, reduction, node.step)


def _groups(
    reduction: Collector[Any, Any, Any], step: Step, items: Iterator[Any], task: Task
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Give the groups of a partition as (keys, containers), past the memory bound in several rounds."""
    with naming(step):
        for groups in partial_groups(items, reduction, task.bound):
            if groups:
                yield list(groups), list(groups.values())


def _containers(reduction: Collector[Any, Any, Any], step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Give the container of a partition, or its parts; nothing of no items."""
    with naming(step):
        for first in items:
            container = reduction.accumulated(reduction.supplier(), chain((first,), items))
            yield from (container,) if reduction.parts is None else reduction.parts(container)


def _numbered(number: int, items: Iterator[Any], task: Task) -> Iterator[tuple[int, Any]]:
    """Give each item with the number of its input: an operation that cannot combine takes them all in one task."""
    return ((number, item) for item in items)


def finishing(node: Aggregate) -> Operation:
    """Return what makes results of all that `partial` gave; those of keys come in no order, if some went to disk."""
    reduction = node.reductions[0]
    if reduction.keyed is not None:
        return functools.partial(_finished_groups, reduction.keyed.downstream, node.to, node.step)
    if not node.combines:
        return functools.partial(_accumulated, node.operation, node.step)
    return functools.partial(_finished, reduction, node.step)


def _finished_groups(
    downstream: Collector[Any, Any, Any],
    to: Callable[[Any, Any], Any] | None,
    step: Step,
    batches: Iterator[tuple[list[Any], list[Any]]],
    task: Task,
) -> Iterator[Any]:
    with naming(step):
        groups = merged(batches, downstream.combined, task.bound)
        yield from _results(downstream.finisher, to, groups)


def _results(
    finish: Callable[[Any], Any], to: Callable[[Any, Any], Any] | None, groups: Iterator[tuple[Any, ...]]
) -> Iterator[Any]:
    """Give what goes on of each (key, container, ...)."""
    for key, container, *_ in groups:
        try:
            result = finish(container)
            each = _entry((key, result)) if to is None else to(key, result)
        except Exception as error:
            in_group(error, key)
            raise
        yield each


_entry = functools.partial(tuple.__new__, Entry)


def _groups_in_order(
    downstream: Collector[Any, Any, Any],
    to: Callable[[Any, Any], Any] | None,
    step: Step,
    batches: Iterator[tuple[list[Any], list[Any]]],
    task: Task,
) -> Iterator[Any]:
    """Do the same in the order in which the keys were first seen."""
    with naming(step):
        ranks = count()
        ranked = ((keys, containers, list(islice(ranks, len(keys)))) for keys, containers in batches)
        groups = merged(ranked, downstream.combined, task.bound)
        yield from _results(downstream.finisher, to, sorted_items(groups, itemgetter(2), False, task.bound))


def _finished(reduction: Collector[Any, Any, Any], step: Step, containers: Iterator[Any], task: Task) -> Iterator[Any]:
    """Give the one result, also of no containers."""
    with naming(step):
        first = next(containers, _NONE)
        held = reduction.supplier() if first is _NONE else first
        yield reduction.finisher(functools.reduce(reduction.combined, containers, held))


_NONE = object()


def _accumulated(
    operation: AggregateOperation[Any, Any, Any], step: Step, items: Iterator[tuple[int, Any]], task: Task
) -> Iterator[Any]:
    with naming(step):
        yield operation.result_of(items)


@operation.register
def _(node: Aggregate) -> Operation:
    """Return what makes results of what `partial` gave for all items there are, which stand in one place."""
    reduction = node.reductions[0]
    if reduction.keyed is None:
        return finishing(node)
    return functools.partial(_groups_in_order, reduction.keyed.downstream, node.to, node.step)
