"""Items of megabytes: no buffer between two operations holds more than a few of them at a time."""

from __future__ import annotations

import weakref
from collections import deque

import pytest

from collectors import counting, grouping_by, mapping, summing
from dstream.engine.batches import Batcher
from dstream.engine.columns import batches_of
from dstream.engine.joining import Side
from dstream.engine.kernels import partial_groups
from dstream.engine.spark.routing import RouteItems, RouteSide
from dstream.engine.spark.sinks import Accumulate, RouteByKey, WriteItems
from dstream.engine.spark.stage import StageTask
from dstream.memory import pieces
from dstream.storage.portions import Portions

SIZE = 2 * 2**20
MANY = 80


class Large(bytearray):
    """Something that can be counted while it lives."""

    __hash__ = object.__hash__


@pytest.fixture
def watched():
    """Items of 2 MB, and how many of them were alive at once."""
    alive: weakref.WeakSet[Large] = weakref.WeakSet()
    most = [0]

    def items():
        for number in range(MANY):
            item = Large(SIZE)
            item[:] = bytes([number]) * SIZE
            alive.add(item)
            most[0] = max(most[0], len(alive))
            yield item
            del item

    return items(), most


def _number(item):
    return item[0]


def _grouped(items, task, step):
    return partial_groups(items, grouping_by(_number, counting()), task.bound)


def _portions(items, task, step):
    portions = Portions(8192)
    while some := portions.take(items):
        portions.learn(len(some), sum(map(len, some)))
        some.clear()
        yield


HOLDERS = {
    "batches": lambda items, task, step: Batcher().batches(items),
    "pieces": lambda items, task, step: pieces(items, 512),
    "rows": lambda items, task, step: WriteItems()(items, task),
    "routed": lambda items, task, step: RouteItems(_number, 4, step)(items, task),
    "distinct": lambda items, task, step: RouteByKey(_number, 4, step)(items, task),
    "a side": lambda items, task, step: RouteSide(Side(_number, step), 4)(items, task),
    "collected": lambda items, task, step: Accumulate(mapping(len, summing()), step)(items, task),
    "grouped": _grouped,
    "columns": lambda items, task, step: batches_of(map(bytes, items)),
    "portions": _portions,
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_few_large_items_are_held_at_once(watched, step, monkeypatch, holder):
    """Of eighty items of 2 MB half are let go of before the last ones are made, where all were held."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    items, most = watched
    deque(holder(items, StageTask(0, 2**60), step), maxlen=0)

    assert 0 < most[0] <= MANY // 2


def test_what_a_step_peeks_at_goes_to_a_file(op):
    """A task keeps 32 MB of what its items were, and reads the rest back at its end."""
    task = StageTask(0, 2**60)
    keep = task.peeking(op("peek", print))
    for number in range(60):
        keep(bytes([number]) * 2**20)

    assert task._side_rows._bytes < 40 * 2**20
    assert [row.size for row in task.last_side_rows()] == [1] * 60
