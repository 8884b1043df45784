"""Neighbours: gatherers over several partitions, each of which needs to know something of the others.

A first job leaves the items where they are, and each partition tells something of them in one row: how
many there are and the first few of them, or what they add up to, or the state of an integrator. The
driver looks at these rows only. What follows reads the items again from where they are, so that no user
function before the gatherer runs twice.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from dstream.engine.batches import dumps_items, loads
from dstream.engine.gathering import finish, state_of_part
from dstream.engine.kernels import Operation, Task
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.flow import Flow, Frame, Splits, rows_of
from dstream.engine.spark.readers import KeepRange
from dstream.engine.spark.rows import ITEMS, TOLD, Row
from dstream.engine.spark.sinks import WriteItems
from dstream.engine.spark.stage import Piece, StageTask
from dstream.engine.spark.told import ReadByPlace, ReadRunning, WriteIntegrated, WriteWithHead, WriteWithTotal
from dstream.engine.spark.work import CountItems
from dstream.failures import naming
from dstream.plan.steps import Step
from dstream.spi import AtEnd, ByPlace, Gatherer, Running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ahead", "at_end", "by_place", "in_one_task", "integrated", "running"]

_LARGEST_TOGETHER = 16 * 2**20
"""How many bytes of what the partitions told may travel back to each task; beyond it one task does it all."""

_LARGEST_ALONE = 64 * 2**10
"""How many bytes a partition may tell in any case, however many partitions there are."""


def in_one_task(rows: DataFrame, operation: Operation, cluster: Cluster) -> Flow:
    """Let one task take all items in order."""
    return Flow((Frame(cluster.shuffled(rows, 1), 1).pipe(operation),))


def by_place(kind: ByPlace[Any, Any], whole: Operation, flow: Flow, cluster: Cluster) -> Flow:
    """Let each partition gather its items, knowing its place and the first items of those behind it."""
    partitions = flow.count_partitions()
    sink = WriteWithHead(kind.following, max(_LARGEST_TOGETHER // max(partitions, 1), _LARGEST_ALONE))
    kept = cluster.pinned(rows_of(flow, sink, cluster))
    told = _told(kept, cluster)
    heads = [bytes(row.payload) for row in told]
    if any(row.size < 0 for row in told[1:]) or sum(map(len, heads)) > _LARGEST_TOGETHER:
        return in_one_task(kept.where(f"channel >= {ITEMS}"), whole, cluster)
    return Flow((Frame(kept, partitions, ReadByPlace(kind, [row.sequence for row in told], heads)),))


def _told(kept: DataFrame, cluster: Cluster) -> list[Row]:
    """Compute the rows, which stay where they are, and return the one that each partition told, in order."""
    return list(cluster.rows(kept.where(f"channel = {TOLD}")))


def ahead(kind: ByPlace[Any, Any], flow: Flow) -> Flow:
    """Let the task of each piece read on to the first items of the pieces behind it: no job has to come before."""
    (segment,) = flow.segments
    assert isinstance(segment, Splits), "what is free to read is a source"
    pieces = tuple(segment.pieces)
    quiet = tuple(replace(piece, operations=tuple(map(_uncounted, piece.operations))) for piece in pieces)
    return Flow((Splits([_reading_on(kind, quiet, number, piece) for number, piece in enumerate(pieces)]),))


def _uncounted(operation: Operation) -> Operation:
    return _pass_on if isinstance(operation, CountItems) else operation


def _pass_on(items: Iterator[Any], task: Task) -> Iterator[Any]:
    return items


def _reading_on(kind: ByPlace[Any, Any], pieces: tuple[Piece, ...], number: int, piece: Piece) -> Piece:
    return replace(piece, operations=(*piece.operations, functools.partial(_gather_ahead, kind, pieces, number)))


def _gather_ahead(
    kind: ByPlace[Any, Any], pieces: tuple[Piece, ...], number: int, items: Iterator[Any], task: StageTask
) -> Iterator[Any]:
    def is_first() -> bool:
        return not any(True for piece in pieces[:number] for _ in piece.open(task))

    assert kind.gather_ahead is not None, "whoever reads ahead has asked for it"
    return kind.gather_ahead(items, chain.from_iterable(piece.open(task) for piece in pieces[number + 1 :]), is_first)


def running(kind: Running[Any, Any], whole: Operation, step: Step, flow: Flow, cluster: Cluster) -> Flow:
    """Let each partition go over its items from the value of those before it."""
    partitions = flow.count_partitions()
    kept = cluster.pinned(rows_of(flow, WriteWithTotal(kind, step, partitions - 1), cluster))
    with naming(step):
        before = dict(_values_before(kind, [row for row in _told(kept, cluster) if row.size]))
    if sum(map(len, before.values())) > _LARGEST_TOGETHER:
        return in_one_task(kept.where(f"channel >= {ITEMS}"), whole, cluster)
    return Flow((Frame(kept, partitions, ReadRunning(kind, step, before)),))


def _values_before(kind: Running[Any, Any], told: list[Row]) -> Iterator[tuple[int, bytes]]:
    """Give each partition but the first with the value of all items before it, pickled before it is changed."""
    value: list[Any] = []
    for row, following in pairwise(told):
        (total,) = loads(row.payload)
        value = [kind.combiner(value[0], total) if value else total]
        yield following.source, dumps_items(value)


def at_end(gatherer: Gatherer[Any, Any, Any], kind: AtEnd[Any, Any], step: Step, flow: Flow, cluster: Cluster) -> Flow:
    """Let each partition make a state of its items; one task combines the states, in order, and finishes."""
    states = flow.pipe(functools.partial(state_of_part, kind, step))
    return in_one_task(rows_of(states, WriteItems(), cluster), functools.partial(finish, gatherer, step), cluster)


def integrated(gatherer: Gatherer[Any, Any, Any], step: Step, flow: Flow, cluster: Cluster) -> Flow:
    """Let each partition integrate with a state of its own; one task combines the states and finishes.

    Where an integrator wanted no more, nothing of the partitions behind it is given.
    """
    kept = cluster.pinned(rows_of(flow, WriteIntegrated(gatherer, step), cluster))
    last = _last_wanted(cluster.places(kept.where(f"channel = {TOLD}")))
    pushed = Frame(kept, flow.count_partitions(), KeepRange(dict.fromkeys(range(last + 1), (0, None))))
    states = kept.where(f"channel = {TOLD} and source <= {last}")
    states = states.selectExpr("target", "source", "sequence", f"{ITEMS} as channel", "size", "payload")
    ended = in_one_task(states, functools.partial(finish, gatherer, step), cluster)
    return Flow((pushed, *ended.segments))


def _last_wanted(places: Iterable[tuple[int, int, int, int]]) -> int:
    """Return the first partition whose integrator wanted no more, or the last one that there is."""
    last = -1
    for source, _, _, has_stopped in places:
        last = source
        if has_stopped:
            break
    return last
