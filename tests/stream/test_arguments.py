"""What is refused at the call: a None or a number in place of a function, before anything runs."""

from __future__ import annotations

import functools

import pytest

from dstream import IntStream, Stream
from dstream.gatherers import Gatherer

# fmt: off
REQUIRED = [
    "filter", "map", "map_to_obj", "map_to_int", "map_to_long", "map_to_double", "flat_map", "flat_map_to_int",
    "flat_map_to_long", "flat_map_to_double", "map_multi", "map_multi_to_int", "map_multi_to_long",
    "map_multi_to_double", "peek", "take_while", "drop_while", "on_close", "for_each", "for_each_ordered",
    "for_each_partition", "to_array", "reduce", "any_match", "all_match", "none_match",
]
OF_NUMBERS = [
    "filter", "map", "map_to_obj", "map_to_double", "flat_map", "map_multi", "peek", "take_while", "any_match",
    "reduce",
]
# fmt: on


def never():
    """Fail: a stream of this must not run."""
    raise AssertionError("the stream ran")


@pytest.mark.parametrize("value", [None, 3, "text"])
@pytest.mark.parametrize("method", REQUIRED)
def test_methods_refuse_what_is_no_function(local_context, method, value):
    """Each method that takes a function refuses anything else with a `TypeError` at the call."""
    stream = local_context.stream([1]).map(lambda _: never())

    with pytest.raises(TypeError, match="must be a function"):
        getattr(stream, method)(value)


@pytest.mark.parametrize("method", OF_NUMBERS)
def test_methods_of_numbers_refuse_what_is_no_function(method):
    """Streams of numbers refuse it too."""
    with pytest.raises(TypeError, match="must be a function, not None"):
        getattr(IntStream.of(1), method)(None)


@pytest.mark.parametrize("method", ["sorted", "distinct", "min", "max"])
def test_methods_with_a_key_refuse_what_is_no_function(local_context, method):
    """A key is a function or None."""
    with pytest.raises(TypeError, match="key must be a function"):
        getattr(local_context.stream([1]).map(lambda _: never()), method)(key=3)


@pytest.mark.parametrize("args", [(None,), (0, None), (0, None, max), (0, max, None), (0, 1, 2)])
def test_reduce_refuses_what_is_no_function(local_context, args):
    """Each form of `reduce` checks its functions at the call."""
    with pytest.raises(TypeError, match="must be a function"):
        local_context.stream([1]).map(lambda _: never()).reduce(*args)


@pytest.mark.parametrize("args", [(), (None,), (list,), (list, None, list), (None, list, list), (list, list)])
def test_collect_refuses_what_is_no_collector(local_context, args):
    """`collect` takes a collector, a reducer, or three functions."""
    with pytest.raises(TypeError):
        local_context.stream([1]).map(lambda _: never()).collect(*args)


def test_reduce_refuses_another_number_of_arguments():
    """`reduce` takes one to three arguments."""
    for args in ((), (0, max, max, max)):
        with pytest.raises(TypeError, match="reduce"):
            Stream.of(1).reduce(*args)


async def _awaited(*args):
    return False


def _yielding(*args):
    yield False


ASK_OR_ACT = {
    "filter": lambda s, fn: s.filter(fn),
    "peek": lambda s, fn: s.peek(fn),
    "take_while": lambda s, fn: s.take_while(fn),
    "drop_while": lambda s, fn: s.drop_while(fn),
    "any_match": lambda s, fn: s.any_match(fn),
    "all_match": lambda s, fn: s.all_match(fn),
    "none_match": lambda s, fn: s.none_match(fn),
    "for_each": lambda s, fn: s.for_each(fn),
    "for_each_ordered": lambda s, fn: s.for_each_ordered(fn),
    "for_each_partition": lambda s, fn: s.for_each_partition(fn),
    "map_multi": lambda s, fn: s.map_multi(fn),
    "on_close": lambda s, fn: s.on_close(fn),
    "iterate": lambda s, fn: Stream.iterate(0, fn, abs),
    "integrator": lambda s, fn: s.gather(Gatherer.of(integrator=fn)),
    "finisher": lambda s, fn: s.gather(Gatherer.of(integrator=print, finisher=fn)),
}


@pytest.mark.parametrize("name", ASK_OR_ACT)
@pytest.mark.parametrize("fn", [_awaited, functools.partial(_awaited, 1), _yielding], ids=["async", "partial", "yield"])
def test_functions_that_would_not_run_are_refused(name, fn):
    """A coroutine or a generator is true, and runs nothing: no predicate and no action may be made of one."""
    with pytest.raises(TypeError, match=r"map_concurrent\(n, fn\)|flat_map\(\)"):
        ASK_OR_ACT[name](Stream.of(1, 2), fn)
