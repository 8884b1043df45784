"""Plans that read what is kept of their caches: values, made of a rewritten plan and of what was found."""

from __future__ import annotations

import pickle

import pytest

from dstream.plan import (
    Cache,
    CacheContent,
    Concat,
    Join,
    Limit,
    Map,
    Read,
    Sorted,
    SourceLocation,
    Step,
    ToList,
    nothing_kept,
    recalled,
    rewrite,
    topological,
)
from dstream.plan.operations.streams import ReadCache

KEPT = CacheContent([1, 2], is_ordered=True)


def test_a_plan_of_which_nothing_is_kept_stays_as_it_is(source):
    """It is the same object."""
    core = rewrite(Map(Cache(source), str))

    assert recalled(core, nothing_kept) is core


def test_what_is_kept_is_read_instead_of_what_stands_before_it(source, shape):
    """The operation has the step of the user's call."""
    cache = Cache(Sorted(source), step=Step(where=SourceLocation("a.py", 3)))
    core = rewrite(ToList(Map(cache, str)))
    read = recalled(core, lambda node: KEPT)

    assert shape(core) == "Read Sorted Cache Chain ToList"
    assert shape(read) == "ReadCache Chain ToList"
    recall, chain, _ = topological(read)
    assert (recall.items, recall.is_ordered, recall.step.where) == (KEPT.items, True, cache.step.where)
    assert (recall.step.position, chain.step) == (3, topological(core)[3].step)


@pytest.mark.parametrize("make", [lambda c, s: Concat((c, s)), lambda c, s: Join(c, s, abs, abs)])
def test_operations_of_two_inputs_read_what_is_kept(source, make):
    """The other side stays what it is."""
    cache, other = Cache(Sorted(source)), Limit(source, 3)
    core = rewrite(make(cache, other))
    read = recalled(core, lambda node: KEPT)

    assert [type(each) for each in read.inputs()] == [ReadCache, Limit]
    assert read.inputs()[1] is core.inputs()[1]


def test_a_cache_that_is_shared_is_read_once(source):
    """Both readers have the same operation."""
    cache = Cache(source)
    first, second = recalled(rewrite(Concat((Map(cache, str), Limit(cache, 1)))), lambda node: KEPT).inputs()

    assert first.upstream is second.upstream


def test_each_cache_is_looked_for_once(source):
    """What another thread keeps meanwhile is read by the next plan."""
    cache, answers = Cache(source), [KEPT]
    read = recalled(rewrite(Concat((Map(cache, str), Limit(cache, 1)))), lambda node: answers.pop())

    assert [type(each).__name__ for each in topological(read)] == ["ReadCache", "Chain", "Limit", "Concat"]


def test_a_plan_with_a_cache_is_pickled(source):
    """A cache that has two readers is one afterwards, and another one than before."""
    cache = Cache(Map(source, str))
    first, second = pickle.loads(pickle.dumps(Concat((Limit(cache, 1), Limit(cache, 2))))).inputs()

    assert isinstance(first.upstream.upstream.upstream, Read)
    assert first.upstream is second.upstream
    assert first.upstream.identity is not cache.identity
