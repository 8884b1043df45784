"""What is reduced inside of partitions and across their borders: plain functions, no Spark."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from more_itertools import sliding_window

from collectors import to_list
from dstream.engine.tasks.gatherers import AccumulateAcross, AccumulateInside, Bordering
from dstream.engine.tasks.rows import ITEMS
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Accumulate
from dstream.gatherers import Gatherer, window_sliding
from dstream.gatherers.neighbours import pairs
from dstream.operators.rows.batches import loads
from dstream.plan import Step
from dstream.spi import Collector

STEP = Step(".collect(to_list())", None, 3, 3)


def bordering(gatherer: Gatherer[Any, Any, Any], collector: Collector[Any, Any, Any] | None = None) -> Bordering:
    """Reduce to a list, or with another collector."""
    kind: Any = gatherer.parallel
    return Bordering(kind, (), Accumulate(collector or to_list(), STEP))


def met(way: Bordering, parts: list[list[Any]]) -> list[tuple[int, Any]]:
    """Run each partition and then the one task as Spark would; yield each container with its owner."""
    rows = [row for n, part in enumerate(parts) for row in AccumulateInside(way)(iter(part), StageTask(n, 2**60))]
    assert {(row.target, row.channel) for row in rows} <= {(0, ITEMS)}
    rows.sort(key=lambda row: (row.source, row.sequence))
    written = AccumulateAcross(way)(iter(rows), StageTask(0, 2**60))
    return [(row.source, *loads(row.payload)) for row in written]


def items_of(parts: list[list[Any]]) -> list[Any]:
    """Return all items."""
    return list(itertools.chain.from_iterable(parts))


CUTS = [
    [],
    [[]],
    [[1]],
    [[], [1], []],
    [[], [1, 2, 3, 4, 5, 6], []],
    [[1], [2], [], [3], [4]],
    [[1, 2], [3, 4, 5, 6, 7], [], [8]],
    [[], [1, 2, 3], [4], [5], [], [6, 7, 8, 9], []],
    [list(range(1000)), list(range(300)), [], list(range(257)), list(range(256))],
]


@pytest.mark.parametrize("parts", CUTS, ids=lambda parts: str(list(map(len, parts))))
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 200, 5000])
def test_containers_in_their_order_hold_each_window_once(parts, n):
    """Those inside of partitions and those across borders together are all windows, in order."""
    items = items_of(parts)
    windows = items_of([container for _, container in met(bordering(window_sliding(n)), parts)])

    assert windows == (list(sliding_window(items, n)) or [tuple(items)] * bool(items))


@pytest.mark.parametrize("parts", CUTS, ids=lambda parts: str(list(map(len, parts))))
def test_pairs_cross_borders(parts):
    """The last item of a partition makes a pair with the first one behind it, in whichever partition that is."""
    pairs_of_all = items_of([container for _, container in met(bordering(pairs()), parts)])

    assert pairs_of_all == list(itertools.pairwise(items_of(parts)))


def test_a_container_comes_as_soon_as_nothing_is_missing_before_it():
    """What lies across a border stands between the containers of its two partitions."""
    assert met(bordering(window_sliding(2)), [[1, 2], [3, 4], [5, 6]]) == [
        (0, [(1, 2)]),
        (0, [(2, 3)]),
        (1, [(3, 4)]),
        (1, [(4, 5)]),
        (2, [(5, 6)]),
        (2, []),
    ]


def test_a_collector_that_has_had_enough_leaves_the_borders_as_they_are():
    """The last items are known even if nobody asked for them."""
    first = Collector(list, list.append, list.extend, accumulate_all=lambda held, items: [*held, next(items, None)])

    assert [container for _, container in met(bordering(pairs(), first), [[1, 2, 3], [4, 5]])] == [
        [(1, 2)],
        [(3, 4)],
        [(4, 5)],
        [None],
    ]


def test_containers_of_several_rows_stay_together(monkeypatch):
    """A large container is written in pieces, one after another."""
    monkeypatch.setattr("dstream.engine.tasks.sinks._PIECE_BYTES", 10)
    way = bordering(pairs())
    rows = [
        row for n, part in enumerate([[1, 2, 3], [4]]) for row in AccumulateInside(way)(iter(part), StageTask(n, 2**60))
    ]
    rows.sort(key=lambda row: (row.source, row.sequence))
    held: list[bytes] = []
    for row in AccumulateAcross(way)(iter(rows), StageTask(0, 2**60)):
        if row.sequence == 0:
            held.append(b"")
        held[-1] += bytes(row.payload)

    assert list(map(loads, held)) == [[[(1, 2), (2, 3)]], [[(3, 4)]], [[]], [[]]]


def test_no_more_than_a_chunk_is_read_ahead():
    """The items come some at a time, so that the last ones are known, and one at first: they may be large."""
    read: list[int] = []
    way = bordering(
        pairs(), Collector(list, list.append, list.extend, accumulate_all=lambda held, items: [next(items)])
    )
    rows = AccumulateInside(way)((read.append(n) or n for n in range(1000)), StageTask(0, 2**60))
    next(rows)

    assert 0 < len(read) <= 256
