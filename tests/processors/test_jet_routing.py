"""The cases of Jet's RoutingPolicyTest: which processors of a destination get the items of which producer."""

from __future__ import annotations

from itertools import chain

import pytest

from dstream.core import Processor, whole_item
from dstream.plan.processor_graph import Routing
from tests.processors.graphs_by_hand import Log, edge, run_of, vertex

LOW, HIGH = range(4096), range(4096, 8192)


class Producer(Processor):
    """Emits the list at its own number."""

    def __init__(self, lists):
        self.lists = lists

    def init(self, outbox, context):
        """Take the list."""
        self.outbox, self.left = outbox, list(self.lists[context.index])

    def complete(self):
        """Emit as much as fits."""
        del self.left[: self.outbox.offer_all(self.left)]
        return not self.left


def received(lists, consumers, **routing):
    """Return what each of so many consumers got, in its order."""
    vertices = [vertex("producer", lambda: Producer(lists), len(lists)), vertex("log", Log, consumers)]
    found = run_of(vertices, [edge("producer", "log", **routing), edge("log", "out")])
    return [[item for index, what, item in found if index == number and what == 0] for number in range(consumers)]


def test_unicast_brings_each_item_to_one():
    """Jet: when_unicast."""
    assert sorted(chain.from_iterable(received([LOW, HIGH], 2))) == [*LOW, *HIGH]


def test_broadcast_brings_each_item_to_all():
    """Jet: when_broadcast."""
    assert [sorted(each) for each in received([LOW, HIGH], 4, routing=Routing.BROADCAST)] == [[*LOW, *HIGH]] * 4


def test_partitioned_brings_equal_items_to_one():
    """Jet: when_partitioned: each item twice, from two producers."""
    one, other = received([LOW, LOW, HIGH, HIGH], 2, routing=Routing.PARTITIONED, key=whole_item)

    assert set(one).isdisjoint(other)
    assert sorted(one + other) == sorted([*LOW, *HIGH] * 2)


def test_isolated_keeps_the_items_of_a_producer_in_order():
    """Jet: when_isolated_downstreamEqualsUpstream."""
    assert received([LOW, HIGH], 2, routing=Routing.ISOLATED) == [[*LOW], [*HIGH]]


@pytest.mark.parametrize("consumers", [4, 6])
def test_isolated_divides_the_items_of_a_producer_among_its_own(consumers):
    """Jet: when_isolated_downstreamGreaterThanUpstream."""
    lists = received([LOW, HIGH], consumers, routing=Routing.ISOLATED)

    assert sorted(chain.from_iterable(lists[::2])) == [*LOW]
    assert sorted(chain.from_iterable(lists[1::2])) == [*HIGH]
