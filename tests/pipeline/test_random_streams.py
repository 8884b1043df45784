"""Random pipelines of windows give what their definition says, wherever epochs end and in however many partitions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import pytest

from collectors import counting, summing
from dstream.pipeline import Pipeline, StreamStage
from dstream.session.context import Context
from dstream.testing import epochs
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from dstream.windows import FrameWindow, Window, session, sliding, tumbling
from reducers import to_ilist
from tests.operators.definition_of_windows import Epoch, Event, frame_windows, session_windows

WINDOWS = [tumbling(10), tumbling(7), sliding(30, by=10), sliding(12, by=3), session(5), session(20)]
LAG = 1000
"""No item comes late."""


class Step(NamedTuple):
    """One that takes an item at a time: its name, and what becomes of an item, a triple (key, value, time)."""

    name: str
    fn: Callable[[Any], Any]


STEPS = [
    Step("map", lambda item: (item[0], item[1] + 1, item[2])),
    Step("filter", lambda item: item[1] % 3 > 0),
    Step("flat_map", lambda item: [item, (item[0], 5, item[2] + 4)]),
]


def stepped(step: Step, items: list[Any]) -> list[Any]:
    """Return what a step makes of items."""
    if step.name == "filter":
        return [item for item in items if step.fn(item)]
    return [made for item in items for made in ([step.fn(item)] if step.name == "map" else step.fn(item))]


def counted(window: Window, items: list[Any]) -> list[Any]:
    """Return how many items each key has in each window, as triples (key, count, time of the result)."""
    epoch = Epoch([Event(time, key, value) for key, value, time in items], NO_WATERMARK, END_OF_TIME)
    if isinstance(window, FrameWindow):
        [found] = frame_windows([epoch], window.size, window.by, len)
        return [(each.key, each.result, each.end - 1) for each in found]
    [found] = session_windows([epoch], window.timeout, len)
    return [(each.key, each.result, each.end) for each in found]


class Case:
    """A random pipeline of one or two sources, a window, and perhaps one over its results; with all its items."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sources = self.chance.choice([1, 1, 2])
        self.steps = [self.chance.choices(STEPS, k=self.chance.randint(0, 3)) for _ in range(self.sources)]
        self.window: Window = self.chance.choice(WINDOWS)
        self.second = self.chance.choice([None, tumbling(60), tumbling(20)])
        self.items = [[self.item(at) for at in range(self.chance.randint(0, 40))] for _ in range(self.sources)]

    def item(self, at: int) -> Any:
        """Return one that is roughly in order."""
        return self.chance.choice("abc"), self.chance.randint(0, 9), 3 * at + self.chance.randint(-30, 30)

    def results(self) -> list[Any]:
        """Return what the definition says."""
        stamped = []
        for steps, items in zip(self.steps, self.items, strict=True):
            for step in steps:
                items = stepped(step, items)
            stamped += items
        first = counted(self.window, stamped)
        if self.second is None:
            return sorted((key, number) for key, number, _ in first)
        ends = {(key, self.second.higher_frame(time)) for key, _, time in first}
        return sorted(
            (key, sum(n for k, n, time in first if k == key and self.second.higher_frame(time) == end))
            for key, end in ends
        )

    def pipeline(self, sources: Sequence[Any]) -> Pipeline:
        """Return the pipeline."""
        pipeline = Pipeline()
        first, *others = [self.stamped(pipeline.read_from(source), number) for number, source in enumerate(sources)]
        keyed = (first.merge(*others) if others else first).grouping_key(itemgetter(0))
        counts = keyed.window(self.window).aggregate(counting(), to=lambda start, end, key, number: (key, number))
        if self.second is not None:
            keyed = counts.grouping_key(itemgetter(0))
            sums = keyed.window(self.second).aggregate(summing(itemgetter(1)))
            counts = sums.map(lambda result: (result.key, result.result))
        counts.write_to(to_ilist("results"))
        return pipeline

    def stamped(self, stage: StreamStage[Any], number: int) -> StreamStage[Any]:
        """Return the items of one source with timestamps."""
        for step in self.steps[number]:
            stage = getattr(stage, step.name)(step.fn)
        return stage.add_timestamps(itemgetter(2), allowed_lag=LAG)

    def run(self, context: Context | None) -> list[Any]:
        """Return what comes of random epochs and partitions."""
        by_hand = epochs(context)
        partitions = self.chance.randint(1, 8)
        sources = [by_hand.source(f"source {number}", partitions) for number in range(self.sources)]
        by_hand.of(self.pipeline(sources))
        cuts, found = self.chance.randint(1, 5), list[Any]()
        for epoch in range(cuts):
            given = {source: self.part(items, epoch, cuts) for source, items in zip(sources, self.items, strict=True)}
            [got] = by_hand.cut(given, is_end=epoch == cuts - 1).values()
            found += got
        assert set(by_hand.late.values()) == {0}
        return sorted(found)

    def part(self, items: list[Any], epoch: int, cuts: int) -> dict[int, list[Any]]:
        """Return the items of an epoch by partition."""
        of_partition: dict[int, list[Any]] = {}
        for item in items[len(items) * epoch // cuts : len(items) * (epoch + 1) // cuts]:
            of_partition.setdefault(self.chance.randint(0, 8), []).append(item)
        return of_partition


@pytest.mark.parametrize("seed", range(60))
def test_a_random_pipeline_gives_what_windows_mean(local_context: Context, seed: int) -> None:
    """Without late items, epochs and partitions make no difference."""
    case = Case(seed)

    assert case.run(local_context) == case.results()


@pytest.mark.parametrize("seed", [104])
def test_a_random_pipeline_gives_the_same_on_spark(spark_context: Context, seed: int) -> None:
    """As above."""
    case = Case(seed)

    assert case.run(spark_context) == case.results()
