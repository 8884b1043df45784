"""Aggregates and stateful steps of one partition: partial containers, merged and finished groups.

The first part of an aggregate sends (keys, containers) to its last part for an aggregate by key, or a table of
groups in columns, and containers alone for any other aggregate. Where hardly a key occurs twice, a container
combines nothing and is larger than its item: then (keys, items, numbers of their input) are sent. Inputs are read one
after another, so that the containers of earlier inputs are combined before the containers of later inputs.

The states of all keys of a stateful step are in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any, TypeAlias

from dstream.base.functions import many, refuse_awaitable
from dstream.base.memory import Bound, holding, pieces, size_of
from dstream.base.records import record
from dstream.failures import blame, naming
from dstream.failures.attribution import stopped
from dstream.keys import canonical_all, canonical_keys
from dstream.operators.rows.blocks import Block, ColumnItems
from dstream.operators.rows.group_tables import (
    Table,
    collected,
    finished_lines,
    groups_of_table,
    is_table,
    results_of_groups,
    table_as_lists,
    tables_by_key,
    tables_of_groups,
)
from dstream.operators.rows.keys import item_key
from dstream.operators.rows.operations import Operation, Task, operation
from dstream.operators.rows.spill import Columns, Groups, merged_as, sorted_items
from dstream.plan.operations.keyed import Aggregate, Stateful
from dstream.plan.steps import Step
from dstream.spi import AggregateOperation, Collector
from dstream.values.entries import Pairs, PairsOfOneValue
from dstream.values.user_functions import results

__all__ = ["StatefulCalls", "at_places", "finished_groups", "finishing", "groups_of_partition", "partial"]


def partial(node: Aggregate, number: int, items_may_travel: bool = True) -> Operation:
    """Return the first stage for a partition of one input; by key, it may send items if `items_may_travel`."""
    reduction = node.reductions[number]
    if node.is_keyed:
        # Receivers make containers of a table by the first collector (`_in_lists`), which is right for one input alone.
        tables_may_travel = items_may_travel and len(node.reductions) == 1
        return functools.partial(groups_of_partition, reduction, number, node.step, items_may_travel, tables_may_travel)
    if not node.combines:
        return functools.partial(_numbered, number)
    return functools.partial(_containers, reduction, node.step)


def groups_of_partition(
    reduction: Collector[Any, Any, Any],
    number: int,
    step: Step,
    items_may_travel: bool,
    tables_may_travel: bool,
    items: Iterator[Any],
    task: Task,
) -> Iterator[Columns | Table]:
    """Yield the groups of a partition as (keys, containers), past the memory bound in several rounds; or its items.

    Groups in columns are sent as tables, if tables may be sent.
    """
    tables = tables_of_groups(reduction, items, task.bound)
    if tables is None:
        yield from _groups_of_items(reduction, number, step, items_may_travel, items, task)
        return
    with naming(step):
        for each in _with_items_together(tables):
            if isinstance(each, Iterable):
                yield from _groups_of_items(reduction, number, step, items_may_travel, iter(each), task)
            elif tables_may_travel and is_table(each):
                yield each
            else:
                for groups in groups_of_table(reduction, each):
                    yield list(groups), list(groups.values())


def _with_items_together(tables: Iterator[Any]) -> Iterator[Any]:
    """Yield tables, and the items of consecutive blocks without a table as one iterable, to be grouped together."""
    for each in tables:
        if not isinstance(each, Iterable):
            yield each
            continue
        behind: list[Any] = []
        yield _until_a_table(each, tables, behind)
        yield from behind


def _until_a_table(items: Iterable[Any], tables: Iterator[Any], behind: list[Any]) -> Iterator[Any]:
    """Yield items, and the items of the next blocks up to a table, which is appended to `behind`."""
    yield from items
    for each in tables:
        if not isinstance(each, Iterable):
            behind.append(each)
            return
        yield from each


def _groups_of_items(
    reduction: Collector[Any, Any, Any], number: int, step: Step, may_travel: bool, items: Iterator[Any], task: Task
) -> Iterator[Columns]:
    with naming(step), holding():
        groups, seen, items_travel = reduction.supplier(), 0, False
        for piece in _pieces(items):
            if items_travel:
                piece = list(piece)
                keys = _keys_of(reduction, piece)
                # These items are sent in any case: combining them would call the classifier a second time.
                yield keys, piece, [number] * len(piece)
                items_travel = _hardly_repeat(len(set(keys)), len(keys))
                continue
            groups = reduction.accumulated(groups, piece)
            # True for at most one piece of a round: `_are_smaller` pickles, which costs too much for each piece.
            is_looked_at = may_travel and seen < _ENOUGH <= seen + len(piece)
            seen += len(piece)
            items_travel = is_looked_at and _hardly_repeat(len(groups), seen) and _are_smaller(piece, groups)
            if items_travel or task.bound.exceeded():
                yield list(groups), list(groups.values())
                groups.clear()
                groups, seen = reduction.supplier(), 0
                task.bound.spilled()
        if groups:
            yield list(groups), list(groups.values())


def _pieces(items: Iterator[Any]) -> Iterator[Sequence[Any]]:
    """Return the items in lists; pairs with one common value are stored as their keys and the value."""
    if type(items) is PairsOfOneValue:
        return (Pairs(keys, items.value) for keys in pieces(items.keys, _PIECE))
    return pieces(items, _PIECE)


_PIECE = 512
_ENOUGH = 16_384
"""The number of items that show whether their keys repeat."""


def _keys_of(reduction: Collector[Any, Any, Any], items: list[Any]) -> list[Any]:
    assert reduction.keyed is not None, "only what groups by key is asked"
    return canonical_keys(results(reduction.keyed.classifier, items), items)


def _hardly_repeat(keys: int, items: int) -> bool:
    """Return whether one item in 256, or fewer, has the key of an earlier one.

    Of 16,384 items whose keys are drawn evenly from 500,000, more than one in 256 repeat a key.
    """
    return items - keys <= items >> 8


def _are_smaller(items: Sequence[Any], groups: dict[Any, Any]) -> bool:
    """Return whether the pickled items take at most the bytes of as many of the latest containers."""
    containers = list(islice(reversed(groups.values()), len(items)))
    return size_of(list(items)) <= size_of(containers)


def _containers(reduction: Collector[Any, Any, Any], step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the container of a partition, or its parts; nothing, or an empty container, if it has no items."""
    with naming(step):
        if type(items) is ColumnItems:
            yield from _sent(reduction, collected(reduction, items))
            return
        # The loop runs once, or not at all without items: the chain uses up the iterator.
        for first in items:
            yield from _sent(reduction, reduction.accumulated(reduction.supplier(), chain((first,), items)))


def _sent(reduction: Collector[Any, Any, Any], container: Any) -> Iterable[Any]:
    return (container,) if reduction.parts is None else reduction.parts(container)


def _numbered(number: int, items: Iterator[Any], task: Task) -> Iterator[tuple[int, Any]]:
    """Return each item with the number of its input: an operation that cannot combine reads all items in one task."""
    return ((number, item) for item in items)


def finishing(node: Aggregate) -> Operation:
    """Return the second stage, which finishes the output of `partial`; results of keys have no order after a spill."""
    if node.is_keyed:
        return _group_results(node).in_any_order
    if not node.combines:
        return functools.partial(_accumulated, node.operation, node.step)
    return functools.partial(_finished, node.reductions[0], node.step)


def _group_results(node: Aggregate) -> _GroupResults:
    reductions = (each.keyed.downstream for each in node.reductions if each.keyed is not None)
    return _GroupResults(list(reductions), node.to, node.step)


def finished_groups(collector: Collector[Any, Any, Any], items: Iterator[Any], bound: Bound) -> Iterator[Block]:
    """Yield blocks of (rank, key, finished value) of the groups of all items, in the order of their first items.

    If all groups are tables, they are merged and finished in columns.
    """
    assert collector.keyed is not None, "it makes groups"
    found = tables_of_groups(collector, items, bound)
    if found is None:
        container = collector.accumulated(collector.supplier(), items)
    else:
        from dstream.operators.columns.group_results import groups_in_task  # loads NumPy, which made the columns

        blocks, container = groups_in_task(collector, found)
        yield from blocks
    lines = ((rank, *group) for rank, group in enumerate(container.items()))
    yield finished_lines(collector.keyed.downstream, lines)


@record
class _GroupResults:
    """Results of an aggregate by key from the output of `partial`, in one partition or partitioned by key.

    Attributes:
        downstreams: the collectors of the items of a key, one per input.
        to: returns the result for (key, finished value); None: the result is the pair.
        step: named by failures.
    """

    downstreams: list[Collector[Any, Any, Any]]
    to: Callable[[Any, Any], Any] | None
    step: Step

    def in_any_order(self, batches: Iterator[Columns | Table], task: Task) -> Iterator[Any]:
        """Return the results of all groups."""
        return ColumnItems(self._blocks(batches, task))

    def in_order(self, batches: Iterator[Columns | Table], task: Task) -> Iterator[Any]:
        """Return the results of all groups in the order in which their keys were first seen."""
        return ColumnItems(self._blocks_in_order(batches, task))

    def _blocks(self, batches: Iterator[Columns | Table], task: Task) -> Iterator[Block]:
        parts, rest = tables_by_key(batches, task.bound)
        for tables in parts:
            finished = self._finished(tables)
            if finished is None:
                yield self._lists(iter(tables), task)
            else:
                yield from finished
        yield self._lists(rest, task)

    def _blocks_in_order(self, batches: Iterator[Columns | Table], task: Task) -> Iterator[Block]:
        tables, rest = _tables_in_memory(batches, task.bound)
        if tables:
            # Tables are merged in their order, so that keys keep the order of their first occurrence.
            finished = self._finished(tables)
            if finished is not None:
                yield from finished
                return
            rest = iter(tables)
        yield self._lists_in_order(rest, task)

    def _finished(self, tables: Sequence[Table]) -> Iterable[Block] | None:
        from dstream.operators.columns.group_results import finished_entries  # loads NumPy, as the tables did

        return finished_entries(self.downstreams[0], self.to, self.step, tables)

    def _lists(self, batches: Iterator[Columns | Table], task: Task) -> Iterator[Any]:
        with naming(self.step):
            arrived = ((columns, ()) for columns in _in_lists(self.downstreams, batches))
            yield from self._results(_merged(self.downstreams, arrived, task))

    def _lists_in_order(self, batches: Iterator[Columns | Table], task: Task) -> Iterator[Any]:
        with naming(self.step):
            ranks = count()
            lists = _in_lists(self.downstreams, batches)
            # The rank of a key is its first position: `merged` retains the further columns of the first batch with the
            # key.
            arrived = ((columns, [list(islice(ranks, len(columns[0])))]) for columns in lists)
            merged = _merged(self.downstreams, arrived, task)
            yield from self._results(sorted_items(merged, itemgetter(2), False, task.bound))

    def _results(self, groups: Iterator[Any]) -> Iterator[Any]:
        return results_of_groups(self.downstreams[0].finisher, self.to, groups)


def _in_lists(downstreams: list[Collector[Any, Any, Any]], batches: Iterator[Columns | Table]) -> Iterator[Columns]:
    """Yield batches, with tables of groups converted to (keys, containers)."""
    for batch in batches:
        if isinstance(batch, Sequence):
            yield batch
        else:
            keys, _, containers = table_as_lists(downstreams[0], batch)
            yield keys, containers


Arrived: TypeAlias = tuple[Columns, Sequence[list[Any]]]
"""A batch, and the columns beside its keys."""


def _merged(
    downstreams: list[Collector[Any, Any, Any]], arrived: Iterator[Arrived], task: Task
) -> Iterator[tuple[Any, ...]]:
    """Return (key, container, ...) of the groups whose containers or items have arrived."""
    combine = downstreams[0].combined

    def take(groups: Groups, batch: Arrived) -> None:
        (keys, values, *numbers), beside = batch
        if numbers:
            groups.accumulate(keys, values, map(downstreams.__getitem__, *numbers), beside)
        else:
            groups.take(keys, [values, *beside], combine)

    return merged_as(arrived, take, combine, task.bound)


def _tables_in_memory(
    batches: Iterator[Columns | Table], bound: Bound
) -> tuple[list[Table], Iterator[Columns | Table]]:
    """Return all batches, if they are tables that fit into memory together; otherwise none, and all batches again."""
    held: list[Table] = []
    costs = 0
    for batch in batches:
        if isinstance(batch, Sequence):
            return [], chain(held, (batch,), batches)
        held.append(batch)
        costs += batch.cost()
        if bound.exceeded(costs):
            return [], chain(held, batches)
    return held, iter(())


def _finished(reduction: Collector[Any, Any, Any], step: Step, containers: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the only result, also without containers."""
    with naming(step):
        # A container may be 0 or None, so a sentinel replaces a missing container.
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
    """Return the second stage, for the output of `partial` in one partition."""
    if not node.is_keyed:
        return finishing(node)
    return _group_results(node).in_order


class StatefulCalls:
    """The calls of a stateful function, with the states of its keys.

    Args:
        create: returns a new state when the first item of a key arrives.
        fn: receives (state, item), or (state, key, item) if it `is_keyed`.
        action: the use of its result, such as `map` or `filter`.
        step: named by failures, together with the item.
    """

    def __init__(self, create: Callable[[], Any], fn: Callable[..., Any], action: str, is_keyed: bool, step: Step):
        self._create, self._fn, self._is_keyed, self._step = create, fn, is_keyed, step
        self._made = {"map": _one, "filter": _filtered, "flat_map": self._all}[action]
        self._states: dict[Any, Any] = {}

    def of(self, key: Any, item: Any) -> Iterable[Any]:
        """Return the results of an item."""
        try:
            is_first = key not in self._states
            if is_first:
                self._states[key] = self._create()
            state = self._states[key]
            result = self._fn(state, key, item) if self._is_keyed else self._fn(state, item)
            # An async function returns a coroutine from the first call on: later results need no check.
            if is_first:
                refuse_awaitable(result)
            return self._made(result, item)
        except StopIteration as error:
            # In a generator above, a StopIteration would become a RuntimeError without the step and the item (PEP 479).
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
        """Yield results that are made lazily, such as by a generator function."""
        try:
            yield from items
        except Exception as error:
            blame(error, self._step, item)
            raise


# Iterating over these runs no code of the user's, so no failure has to be attributed.
_AT_HAND = frozenset({list, tuple, str, range})


def _one(result: Any, item: Any) -> Iterable[Any]:
    return (result,)


def _filtered(result: Any, item: Any) -> Iterable[Any]:
    return (item,) if result else ()


@operation.register
def _(node: Stateful) -> Operation:
    return functools.partial(_in_order, calls_of(node), node.key, node.step)


def calls_of(node: Stateful) -> Callable[[], StatefulCalls]:
    """Return a factory of the calls of a task."""
    return functools.partial(StatefulCalls, node.create, node.fn, node.action, node.key is not None, node.step)


def _in_order(
    calls: Callable[[], StatefulCalls], key: Callable[[Any], Any] | None, step: Step, items: Iterator[Any], task: Task
) -> Iterator[Any]:
    """Apply the items to their states one after another."""
    made, key_of = calls(), step.guard(functools.partial(item_key, key)) if key is not None else None
    for item in items:
        yield from made.of(None if key_of is None else key_of(item), item)


def at_places(
    calls: Callable[[], StatefulCalls],
    batches: Iterator[tuple[int, tuple[list[Any], list[int], list[Any]]]],
    task: Task,
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Pass items through the states of their keys; yield ((source, position), results).

    Args:
        calls: makes the calls of this task.
        batches: (source, (keys, positions, items)).
        task: where it runs.
    """
    made = calls()
    for source, (keys, positions, items) in batches:
        # A NaN that was pickled is another object, which a dict does not find by identity.
        for key, position, item in zip(canonical_all(keys), positions, items, strict=True):
            for each in made.of(key, item):
                yield (source, position), each
