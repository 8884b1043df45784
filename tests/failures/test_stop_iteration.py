"""A function that raises StopIteration: an error of the step, never the end of what is iterated over."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import collectors as c
import dstream as ds
from dstream.gatherers import Gatherer, fold, scan
from reducers import grouping_by_to_imap, to_imap


def stop_at_two(number: int, *_: Any) -> int:
    """Raise StopIteration on 2."""
    if number == 2:
        raise StopIteration
    return number


def add(left: int, right: int) -> int:
    """Do the same for the second argument."""
    return left + stop_at_two(right)


def stop(*_: Any) -> Any:
    """Raise it always."""
    raise StopIteration


def push(state: Any, item: int, downstream: Any) -> None:
    """Integrate an item."""
    downstream.push(stop_at_two(item))


WITH_ITEM: dict[str, Any] = {
    "to_imap key": lambda s: s.collect(to_imap("stopping", stop_at_two, str)),
    "to_imap value": lambda s: s.collect(to_imap("stopping", str, stop_at_two)),
    "fold": lambda s: s.gather(fold(int, add)).to_list(),
    "fold in parts": lambda s: s.gather(fold(int, add, operator.add)).to_list(),
    "scan": lambda s: s.gather(scan(int, add)).to_list(),
    "scan in parts": lambda s: s.gather(scan(int, add, operator.add)).to_list(),
    "gather": lambda s: s.gather(Gatherer.of(integrator=push)).to_list(),
    "gather and then": lambda s: s.gather(Gatherer.of(integrator=push).and_then(fold(list, lambda a, b: a))).to_list(),
    "for_each": lambda s: s.for_each(stop_at_two),
    "linear_trend": lambda s: s.collect(c.linear_trend(stop_at_two, float)),
    "accumulator": lambda s: s.collect(list, lambda held, item: held.append(stop_at_two(item)), list.extend),
    "partition_by": lambda s: s.partition_by(2, key=stop_at_two).to_list(),
}
WITHOUT_ITEM: dict[str, Any] = {
    "reducing": lambda s: s.collect(c.reducing(add)),
    "reducing below": lambda s: s.collect(c.grouping_by(bool, c.reducing(0, int, add))),
    "reduce": lambda s: s.reduce(add),
    "finisher": lambda s: s.collect(c.collecting_and_then(c.to_list(), stop)),
    "finisher below": lambda s: s.collect(c.grouping_by(bool, c.collecting_and_then(c.to_list(), stop))),
    "finisher of two sides": lambda s: s.collect(c.partitioning_by(bool, c.collecting_and_then(c.to_list(), stop))),
    "groups of a map": lambda s: s.collect(grouping_by_to_imap("g", bool, c.collecting_and_then(c.to_list(), stop))),
    "teeing": lambda s: s.collect(c.teeing(c.counting(), c.counting(), stop)),
    "supplier": lambda s: s.collect(c.to_collection(stop)),
    "merge": lambda s: s.collect(c.to_map(bool, str, stop)),
    "fold start": lambda s: s.gather(fold(stop, add)).to_list(),
    "finisher of a gatherer": lambda s: s.gather(Gatherer.of(integrator=print, finisher=stop)).to_list(),
    "for_each_partition": lambda s: s.for_each_partition(lambda items: [stop_at_two(item) for item in items]),
}


@pytest.mark.parametrize("place", {**WITH_ITEM, **WITHOUT_ITEM})
def test_stop_iteration_is_the_failure_of_its_step(local_context, place):
    """The step, the line of the function and, where there is one, the item are known; it is a RuntimeError."""
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        {**WITH_ITEM, **WITHOUT_ITEM}[place](local_context.stream([1, 2, 3]))
    known = ds.failure(caught.value)

    assert (known.step.position, known.origin.kind) == (2, "StopIteration")
    assert known.origin.function in ("stop_at_two", "stop")
    assert (known.item == 2) == (place in WITH_ITEM)


ON_WORKERS = ["to_imap key", "fold in parts", "scan", "gather", "for_each", "fold start", "finisher of two sides"]


@pytest.mark.parametrize("place", ON_WORKERS)
def test_stop_iteration_comes_from_a_worker_as_the_failure_of_its_step(spark_context, place):
    """The same on Spark."""
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        {**WITH_ITEM, **WITHOUT_ITEM}[place](spark_context.stream([1, 2, 3], 2))
    known = ds.failure(caught.value)

    assert (known.step.position, known.origin.kind) == (2, "StopIteration")
    assert (known.item == 2) == (place in WITH_ITEM)


NESTED: dict[str, Any] = {
    "terminal operation": lambda: ds.Stream.of(1, 2).reduce(add),
    "collector": lambda: c.reducing(add).collect([1, 2]),
    "groups": lambda: c.grouping_by(bool, c.collecting_and_then(c.to_list(), stop)).collect([1]),
}


@pytest.mark.parametrize("inner", NESTED)
def test_stop_iteration_of_an_inner_stream_ends_no_outer_one(local_context, inner):
    """Whoever iterates by `map` would take what comes out of a stream for the end of his items."""
    ds.set_default_context(local_context)

    def run(_: int) -> Any:
        return NESTED[inner]()

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        local_context.stream([1]).flat_map(lambda n: map(run, [n])).to_list()
