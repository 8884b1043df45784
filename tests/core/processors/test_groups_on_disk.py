"""Groups of a graph that do not fit into memory: they move to disk, and nothing else differs."""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random
from typing import Any
from uuid import uuid4

import pytest

import dstream as ds
from collectors import averaging, counting, to_list
from dstream.base.memory import Bound
from dstream.core import DAG, Edge, entry_key, processors, whole_item
from dstream.core.processors.groups import FirstGrouping
from dstream.operators.rows.spill import GroupsOnDisk
from dstream.spi import AggregateOperation
from dstream.spi.processor import ProcessorContext
from dstream.testing import TestInbox, TestOutbox
from reducers import to_ilist
from sources import Items


class Full(GroupsOnDisk):
    """Says at every question that the process has too much."""

    taken = 0

    def is_due(self) -> bool:
        """Say so."""
        return True

    def take(self, groups: dict[Any, Any]) -> None:
        """Count, and take."""
        Full.taken += 1
        super().take(groups)


def emitted(processor: Any, *blocks: list[Any]) -> list[Any]:
    """Return what a processor in a full process emits for blocks of items."""
    Full.taken = 0
    outbox = TestOutbox(100_000)
    processor.init(outbox, ProcessorContext("groups", overflow=lambda: Full(Bound())))
    for block in blocks:
        processor.process(0, TestInbox(block))
    while not processor.complete():
        pass
    return outbox.drain_queue_and_reset(0)


def made_by(supplier: Any) -> Any:
    """Return a processor of a supplier."""
    (made,) = supplier.get(["here"])("here").get(1)
    return made


def test_lists_keep_the_order_of_their_items():
    """Those of a key, over all that went to disk; equal keys are one, also NaN."""
    chance = Random(3)
    keys = [0, 1, 1.0, True, "a", (1, "a"), (1.0, "a"), math.nan, float("nan"), *range(2, 90)]
    items = [(chance.choice(keys), number) for number in range(900)]
    lists = defaultdict(list)
    for key, number in items:
        lists["NaN" if key != key else key].append(number)
    supplier = processors.aggregate_by_key([entry_key], to_list())

    found = emitted(made_by(supplier), *(items[place : place + 100] for place in range(0, 900, 100)))

    assert {"NaN" if key != key else key: [n for _, n in pairs] for key, pairs in found} == lists
    assert (len(found), Full.taken) == (len(lists), 10)


def test_containers_are_combined_and_finished():
    """Of both stages."""
    first = emitted(made_by(processors.accumulate_by_key([abs], averaging())), [1, -1, 2], [-2, 4], [1])
    second = emitted(made_by(processors.combine_by_key(averaging())), first[:1], first[1:], [])

    assert dict(second) == {1: 1 / 3, 2: 0.0, 4: 4.0}


def test_what_cannot_be_combined_stays_in_memory():
    """Nobody knows how two containers of a key become one; a first stage gives what is much."""
    longest = processors.aggregate_by_key([whole_item], AggregateOperation(list, list.append, finish=len))

    assert emitted(made_by(longest), [1, 2], [1]) == [(1, 2), (2, 1)]
    assert emitted(FirstGrouping(whole_item, counting()), ["a"], ["a"]) == [("a", 2)]
    assert Full.taken == 0


def test_a_job_that_may_hold_nothing_gives_all_groups(local_context: ds.Context, monkeypatch: pytest.MonkeyPatch):
    """Where the processors of a graph run beside each other."""
    monkeypatch.setattr(Bound, "exceeded", lambda self: True)
    dag, name = DAG(), f"on-disk-{uuid4().hex}"
    read = dag.new_vertex("read", processors.read(Items([n % 100 for n in range(5000)], 2)))
    counts = dag.new_vertex("counts", processors.aggregate_by_key([whole_item], counting())).local_parallelism(2)
    written = dag.new_vertex("written", processors.write(to_ilist(name)))
    dag.edge(Edge.between(read, counts).partitioned(whole_item)).edge(Edge.between(counts, written))

    local_context.new_job(dag).join()

    assert sorted(local_context.get_list(name)) == [(n, 50) for n in range(100)]
