"""`opened`: what is known by a name is put in its place when there is a context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import dstream as ds
from dstream.errors import IllegalStateError
from dstream.plan import Read, Step, ToList, rewrite, topological
from dstream.plan.operations.calls import WithService
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.operations.streams import Fork
from dstream.plan.walk import opened
from dstream.spi.runtime import Service
from dstream.stream import Stream
from sources import Items


@dataclass(frozen=True)
class Named:
    """A source that is known by its name."""

    name: str
    bounded = ordered = in_caller = True

    def splits(self, parallelism: int) -> Any:
        raise AssertionError("it is opened first")

    def opened(self, context: Any) -> Any:
        return Items(context[self.name])


CONTEXT: Any = {"a": [1, 2], "b": [2, 3]}


def test_a_plan_without_names_stays_what_it_is(source):
    """The same object, with all that it reads from."""
    end = ToList(WithService(source, Service(list), lambda made, item: item, "map"))

    assert opened(end, CONTEXT) is end


def test_sources_and_services_are_opened(local_context):
    """On both sides of a join, behind shared nodes, which stay shared, and below several ends."""
    named = Named("a")
    fork = Fork(Read(named))
    joined = HashJoin(fork, Read(Named("b")), abs, abs)
    several = Several(tuple(Write(each, None, None, step=Step(".write_to(x)")) for each in (joined, fork, Read(named))))

    after = opened(several, CONTEXT)
    sources = [each.source for each in topological(after) if isinstance(each, Read)]
    assert [type(each) for each in sources] == [Items, Items, Items]
    assert sources[0] is sources[2]
    assert after.ends[0].upstream.left is after.ends[1].upstream
    assert Stream(after.ends[0].upstream, local_context).to_list() == [(1, None), (2, 2)]


def test_a_deep_plan_is_opened_by_a_loop():
    """Each node once."""
    stream = Stream(Read(Named("a")), None)
    for _ in range(20_000):
        stream = stream.map(abs)

    assert len(topological(opened(stream._node, CONTEXT))) == 20_001


def test_what_was_not_opened_says_so(engine):
    """It is explained all the same."""
    named = WithService(engine.stream([1])._node, ds.imap_service("ages"), lambda view, item: item, "map")
    with pytest.raises(IllegalStateError, match=r"imap_service\('ages'\) is known by its name"):
        Stream(named, engine.context).to_list()

    assert rewrite(named).label() == ".map_using(imap_service('ages'), lambda)"
