"""Functions whose results have to be awaited are refused everywhere but in `map_concurrent`."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytest

import collectors as c
import dstream as ds
from dstream import Pipeline
from dstream.gatherers import Gatherer, fold, map_concurrent, scan
from reducers import grouping_by_to_imap, sink_from, to_imap, to_nothing, updating_imap
from sources import items, source_from

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")


async def later(*given: Any) -> Any:
    """Give a coroutine."""
    return given


async def piecewise(*given: Any) -> Any:
    """Give an async generator."""
    yield given


class Later:
    """An object that is called as an async function is, and has such a method."""

    async def __call__(self, *given: Any) -> Any:
        return given

    async def method(self, *given: Any) -> Any:
        """Do the same."""
        return given


class Awaitable:
    """A result that has to be awaited, and is no coroutine."""

    def __await__(self) -> Any:
        yield


KNOWN: dict[str, Any] = {
    "async def": later,
    "async generator": piecewise,
    "object": Later(),
    "method": Later().method,
    "partial": functools.partial(later, 1),
    "partial of partial": functools.partial(functools.partial(Later(), 1)),
    "cached": functools.cache(later),
}
"""Functions of which one knows without a call."""

SHOWN: dict[str, Any] = {
    "plain around async def": lambda *given: later(*given),
    "plain around async generator": lambda *given: piecewise(*given),
    "awaitable": lambda *given: Awaitable(),
}
"""Functions of which the first result tells."""

VERBS: dict[str, Any] = {
    "all_match": lambda s, fn: s.all_match(fn),
    "any_match": lambda s, fn: s.any_match(fn),
    "none_match": lambda s, fn: s.none_match(fn),
    "map": lambda s, fn: s.map(fn).to_list(),
    "map then str": lambda s, fn: s.map(fn).map(str).to_list(),
    "map behind a filter": lambda s, fn: s.filter(lambda n: n == "x").map(fn).map(str).to_list(),
    "map behind a flat_map": lambda s, fn: s.flat_map(lambda n: [n]).map(fn).count(),
    "map_to_int": lambda s, fn: s.map_to_int(fn).sum(),
    "map_to_double": lambda s, fn: s.map_to_double(fn).sum(),
    "map_values": lambda s, fn: s.key_by(len).map_values(fn).to_list(),
    "filter_values": lambda s, fn: s.key_by(len).filter_values(fn).to_list(),
    "flat_map_values": lambda s, fn: s.key_by(len).flat_map_values(fn).to_list(),
    "filter": lambda s, fn: s.filter(fn).count(),
    "flat_map": lambda s, fn: s.flat_map(fn).to_list(),
    "flat_map_to_int": lambda s, fn: s.flat_map_to_int(fn).to_list(),
    "map_multi": lambda s, fn: s.map_multi(fn).to_list(),
    "starmap": lambda s, fn: s.zip(s).starmap(fn).to_list(),
    "peek": lambda s, fn: s.peek(fn).to_list(),
    "take_while": lambda s, fn: s.take_while(fn).to_list(),
    "drop_while": lambda s, fn: s.drop_while(fn).to_list(),
    "distinct": lambda s, fn: s.distinct(key=fn).to_list(),
    "sorted by key": lambda s, fn: s.sorted(key=fn).to_list(),
    "sorted by comparator": lambda s, fn: s.sorted(fn).to_list(),
    "top": lambda s, fn: s.top(2, key=fn).to_list(),
    "min": lambda s, fn: s.min(key=fn),
    "max": lambda s, fn: s.max(key=fn),
    "reduce": lambda s, fn: s.reduce(fn),
    "reduce from": lambda s, fn: s.reduce("", fn),
    "fold": lambda s, fn: s.gather(fold(str, fn)).to_list(),
    "scan": lambda s, fn: s.gather(scan(str, fn)).to_list(),
    "integrator": lambda s, fn: s.gather(Gatherer.of(integrator=fn)).to_list(),
    "finisher of a gatherer": lambda s, fn: s.gather(Gatherer.of(integrator=print, finisher=fn)).to_list(),
    "key_by": lambda s, fn: s.key_by(fn).to_list(),
    "group_by": lambda s, fn: s.group_by(fn).to_list(),
    "count_by": lambda s, fn: s.count_by(fn).to_list(),
    "reduce_by_key": lambda s, fn: s.key_by(len).reduce_by_key(fn).to_list(),
    "join": lambda s, fn: s.join(s, on=fn).to_list(),
    "cogroup": lambda s, fn: s.cogroup(s, on=fn).to_list(),
    "partition_by": lambda s, fn: s.partition_by(2, key=fn).to_list(),
    "for_each": lambda s, fn: s.for_each(fn),
    "for_each_ordered": lambda s, fn: s.for_each_ordered(fn),
    "for_each_partition": lambda s, fn: s.for_each_partition(fn),
    "ignore": lambda s, fn: s.map(int).resolve(ValueError, fn).to_list(),
    "on_close": lambda s, fn: s.on_close(fn).close(),
    "iterate": lambda s, fn: ds.Stream.iterate("1", fn).limit(3).to_list(),
    "generate": lambda s, fn: ds.Stream.generate(fn).limit(3).to_list(),
    "collect of functions": lambda s, fn: s.collect(list, fn, list.extend),
    "to_imap key": lambda s, fn: s.collect(to_imap("keys", fn, str)),
    "to_imap value": lambda s, fn: s.collect(to_imap("values", str, fn)),
    "to_imap merge": lambda s, fn: s.collect(to_imap("merged", len, str, fn)),
    "grouping_by_to_imap": lambda s, fn: s.collect(grouping_by_to_imap("groups", fn, c.counting())),
    "updating_imap": lambda s, fn: s.collect(updating_imap("updated", str, fn)),
    "sink_from": lambda s, fn: s.collect(sink_from(list, fn)),
    "source_from": lambda s, fn: ds.default_context().read(source_from([1], fn)).to_list(),
    "pipeline map": lambda s, fn: in_pipeline(lambda stage: stage.map(fn)),
    "pipeline filter": lambda s, fn: in_pipeline(lambda stage: stage.filter(fn)),
    "pipeline key": lambda s, fn: in_pipeline(lambda stage: stage.grouping_key(fn).aggregate(c.counting())),
    "pipeline map_stateful": lambda s, fn: in_pipeline(lambda stage: stage.map_stateful(list, fn)),
    "mapping": lambda s, fn: s.collect(c.mapping(fn, c.to_list())),
    "filtering": lambda s, fn: s.collect(c.filtering(fn, c.to_list())),
    "flat_mapping": lambda s, fn: s.collect(c.flat_mapping(fn, c.to_list())),
    "collecting_and_then": lambda s, fn: s.collect(c.collecting_and_then(c.counting(), fn)),
    "teeing": lambda s, fn: s.collect(c.teeing(c.counting(), c.counting(), fn)),
    "grouping_by": lambda s, fn: s.collect(c.grouping_by(fn)),
    "partitioning_by": lambda s, fn: s.collect(c.partitioning_by(fn)),
    "max_by": lambda s, fn: s.collect(c.max_by(fn)),
    "sorting": lambda s, fn: s.collect(c.sorting(fn)),
    "reducing": lambda s, fn: s.collect(c.reducing("", fn)),
    "reducing of mapped": lambda s, fn: s.collect(c.reducing(0, fn, operator.add)),
    "summing": lambda s, fn: s.collect(c.summing(fn)),
    "averaging": lambda s, fn: s.collect(c.averaging(fn)),
    "variance": lambda s, fn: s.collect(c.variance(fn)),
    "to_map key": lambda s, fn: s.collect(c.to_map(fn, str)),
    "to_map value": lambda s, fn: s.collect(c.to_map(str, fn)),
    "to_map merge": lambda s, fn: s.collect(c.to_map(len, str, fn)),
    "to_collection": lambda s, fn: s.collect(c.to_collection(fn)),
    "top_n": lambda s, fn: s.collect(c.top_n(2, fn)),
}


def in_pipeline(step: Any) -> Any:
    """Run a pipeline with one step."""
    pipeline = Pipeline()
    step(pipeline.read_from(items("1", "2", "x"))).write_to(to_nothing())
    return ds.default_context().new_job(pipeline).join()


@pytest.fixture
def stream(local_context: ds.Context) -> Any:
    """Three strings, with the local engine as the default."""
    ds.set_default_context(local_context)
    yield local_context.stream(["1", "2", "x"])
    ds.set_default_context(None)


@pytest.mark.parametrize("verb", VERBS)
def test_async_functions_are_refused_before_anything_runs(stream, verb):
    """The message names the argument, and leads to `map_concurrent`."""
    for fn in KNOWN.values():
        with pytest.raises(TypeError, match=r"must give a result, and an async .*map_concurrent"):
            VERBS[verb](stream, fn)


@pytest.mark.parametrize("verb", VERBS)
def test_results_that_have_to_be_awaited_are_refused(stream, verb):
    """The first one is looked at, whichever item it is of."""
    for fn in SHOWN.values():
        with pytest.raises(TypeError) as caught:
            VERBS[verb](stream, fn)
        assert "has to be awaited" in str(caught.value)
        assert "map_concurrent" in str(caught.value)


@pytest.mark.parametrize("verb", ["map then str", "map behind a filter", "sorted by key", "mapping", "to_imap value"])
def test_results_that_have_to_be_awaited_are_refused_on_workers(spark_context, verb):
    """With the step and the item; locally it is the same message."""
    with pytest.raises(TypeError, match="has to be awaited") as caught:
        VERBS[verb](spark_context.stream(["1", "2", "x"], 2), SHOWN["plain around async def"])

    assert "What to do: use gather(map_concurrent(n, fn))" in "\n".join(caught.value.__notes__)


def test_results_behind_many_dropped_items_are_refused(local_context):
    """A function that no item has reached yet is still looked after when one does."""
    numbers = local_context.stream(range(20_000))

    with pytest.raises(TypeError, match="has to be awaited"):
        numbers.filter(lambda n: n == 19_999).map(SHOWN["awaitable"]).map(str).to_list()


def test_an_async_function_is_awaited_by_map_concurrent(local_context):
    """The advice of the messages."""
    assert local_context.stream([1, 2]).gather(map_concurrent(2, later)).to_list() == [(1,), (2,)]


INSIDE: dict[str, Any] = {
    "a list": lambda n: [n, later(n)],
    "a dict": lambda n: {"n": later(n)},
    "a dict of lists": lambda n: {"n": [1, (later(n),)]},
    "a tuple of lists": lambda n: (n, [Awaitable()]),
    "a set": lambda n: {Awaitable()},
}


@pytest.mark.parametrize("step", ["map", "flat_map", "map_values"])
@pytest.mark.parametrize("kind", INSIDE)
def test_what_has_to_be_awaited_inside_of_a_result_is_refused(local_context, step, kind):
    """In the step that gives it, among the first parts of the first results."""
    stream, make = local_context.stream([1, 2]), INSIDE[kind]
    stream = stream.key_by(str) if step == "map_values" else stream
    fn = (lambda n: [make(n)]) if step == "flat_map" else make
    with pytest.raises(TypeError, match="await") as refused:
        getattr(stream, step)(fn).map(str).to_list()

    assert ds.failure(refused.value).step.label.startswith(f".{step}(")


def test_parts_far_behind_are_not_looked_at(local_context):
    """Nor later results, since each would cost as much as the step."""
    far = local_context.stream(range(9)).map(lambda n: [*range(20), later(n)] if n != 8 else later(n)).to_list()

    assert len(far) == 9
