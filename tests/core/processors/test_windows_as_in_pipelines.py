"""What a window of a pipeline gives, vertices give too: random items, orders and watermarks, on the local executor."""

from __future__ import annotations

import random
from operator import attrgetter, itemgetter

import pytest

from collectors import summing, to_list
from dstream.core import Watermark, processors
from dstream.pipeline import Pipeline
from dstream.plan.processor_graph import Routing
from dstream.processors.blocks import GraphArrival
from dstream.spi import AggregateOperation
from dstream.testing import epochs
from dstream.windows import FrameWindow, session, sliding, tumbling
from reducers import to_ilist
from tests.processors.graphs_by_hand import edge, run_of, vertex

WINDOWS = [tumbling(10), tumbling(7), sliding(30, by=10), sliding(12, by=3), session(5), session(20)]
OPERATIONS = [
    summing(itemgetter(1)),
    to_list().with_finish(sorted),
    AggregateOperation(int, lambda total, item: total + item[1]),
]


class Case:
    """Random items (key, value, time) in epochs, some of them late, a window and an operation."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.lag = chance.choice([0, 5, 40])
        self.window = chance.choice(WINDOWS)
        is_frame = isinstance(self.window, FrameWindow)
        self.operation = chance.choice(OPERATIONS if is_frame else OPERATIONS[:2])
        self.epochs = [
            [(chance.choice("abcdefgh"), chance.randint(0, 9), 20 * epoch + chance.randint(-25, 25)) for _ in range(n)]
            for epoch, n in enumerate(chance.choices([0, 3, 30], k=chance.randint(1, 6)))
        ]
        self.parallelism = chance.randint(1, 3)

    def of_pipeline(self):
        """Return what the window of a pipeline gives."""
        by_hand, pipeline = epochs(), Pipeline()
        source = by_hand.source("items")
        stamped = pipeline.read_from(source).add_timestamps(itemgetter(2), allowed_lag=self.lag)
        stamped.grouping_key(itemgetter(0)).window(self.window).aggregate(self.operation).write_to(to_ilist("results"))
        by_hand.of(pipeline)
        found = []
        for number, items in enumerate(self.epochs, 1):
            [got] = by_hand.cut({source: items}, is_end=number == len(self.epochs)).values()
            found += got
        return sorted(found)

    def of_vertices(self, vertices, edges):
        """Return what vertices give, the first of which is `first`; a watermark stands between two epochs."""
        greatest, arriving = None, []
        for items in self.epochs:
            arriving += items
            greatest = max([item[2] for item in items] + ([] if greatest is None else [greatest]), default=None)
            arriving += [] if greatest is None else [Watermark(greatest - self.lag)]
        feeding = vertex("feed", processors.map(lambda item: item))
        by_key = edge("feed", vertices[0].name, routing=Routing.PARTITIONED, key=key_of)
        return sorted(
            run_of([feeding, *vertices], [edge("in", "feed"), by_key, *edges], [GraphArrival(0, 0, None, arriving)])
        )


def key_of(item):
    """Return the key; watermarks are not asked for theirs."""
    return item[0]


KEYED = {"keys": [itemgetter(0)], "timestamps": [itemgetter(2)]}


@pytest.mark.parametrize("seed", range(60))
def test_a_vertex_gives_what_a_pipeline_gives(seed):
    """In one stage, with one to three processors; late items are dropped alike."""
    case = Case(seed)
    is_frame = isinstance(case.window, FrameWindow)
    make = processors.aggregate_to_sliding_window if is_frame else processors.aggregate_to_session_window
    only = vertex("only", make(**KEYED, window=case.window, operation=case.operation), case.parallelism)

    assert case.of_vertices([only], [edge("only", "out")]) == case.of_pipeline()


@pytest.mark.parametrize("seed", [seed for seed in range(60) if isinstance(Case(seed).window, FrameWindow)])
def test_two_stages_give_what_a_pipeline_gives(seed):
    """Containers of frames go from one to the other."""
    case = Case(seed)
    case.operation = OPERATIONS[seed % 2]
    given = {"window": case.window, "operation": case.operation}
    first = vertex("first", processors.accumulate_by_frame(**KEYED, **given), case.parallelism)
    second = vertex("second", processors.combine_to_sliding_window(**given), 4 - case.parallelism)
    between = edge("first", "second", routing=Routing.PARTITIONED, key=attrgetter("key"))

    assert case.of_vertices([first, second], [between, edge("second", "out")]) == case.of_pipeline()
