"""`ListedSplits`: the pieces that tasks read, of sources that are each listed once.

Splits stand in levels: some of them leave pieces out, and each adds its operations to those that it gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dstream.engine.graph.vertices import SourceSplits, Splits, operations_of
from dstream.engine.kernels.core_operations import Operation
from dstream.engine.kernels.item_batches import Batch, Batcher
from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.segments import Pieces
from dstream.engine.spark.shipped_splits import packed_split
from dstream.engine.worker.stage import Piece
from dstream.failures import naming
from dstream.pickling import dumps
from dstream.plan.steps import Step
from dstream.plan.walk import inputs_first
from dstream.spi import Split

__all__ = ["ListedSplits"]

_LARGEST_SPLIT = 2**20


class ListedSplits:
    """The splits of one run of a graph.

    Args:
        cluster: counts what tasks read, if somebody wants to see it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._listed: dict[int, Pieces] = {}
        self._whole: dict[int, tuple[Piece, ...]] = {}
        self._held: list[object] = []  # What is found by its `id` must stay, so that no other object gets that.

    def pieces(self, splits: Splits) -> Iterator[Piece]:
        """Give the pieces of splits, asking their sources for one after another."""
        for each in inputs_first(splits, _levels_of):
            if (each.tasks or each.for_each) and id(each) not in self._whole:
                self._whole[id(each)] = self._all_of(each)
                self._held.append(each)
        yield from self._whole[id(splits)] if id(splits) in self._whole else self._one_by_one(splits)

    def _all_of(self, splits: Splits) -> tuple[Piece, ...]:
        """Return the pieces of splits for which all of them must be known."""
        pieces = tuple(self._one_by_one(replace(splits, applied=(), tasks=None, for_each=None)))
        if splits.tasks is not None and len(pieces) != splits.tasks:
            pieces = tuple(_dealt(pieces, splits.tasks))
        if splits.for_each is not None:
            last = splits.for_each(pieces)
            pieces = tuple(_followed(each, last(number)) for number, each in enumerate(pieces))
        return tuple(_followed(each, *operations_of(splits.applied)) for each in pieces)

    def _one_by_one(self, splits: Splits) -> Iterator[Piece]:
        """Give pieces through all levels of splits, each of which may leave some out, and adds its operations."""
        levels = [_Level(splits, iter(splits.parts))]
        while levels:
            part = next(levels[-1].parts, None)
            if part is None:
                levels.pop()
            elif isinstance(part, SourceSplits):
                levels.append(_Level(_AS_THEY_ARE, iter(self._listing(part))))
            elif isinstance(part, Splits):
                whole = self._whole.get(id(part))
                levels.append(_Level(part, iter(part.parts)) if whole is None else _Level(_AS_THEY_ARE, iter(whole)))
            elif (passed := _through(levels, part)) is not None:
                yield passed

    def _listing(self, source: SourceSplits) -> Pieces:
        """Return the pieces of a source, which is divided once."""
        if id(source) not in self._listed:
            counting = self._cluster.counting()
            operations = () if counting is None else (counting,)
            self._listed[id(source)] = Pieces(_split(source, operations))
            self._held.append(source)
        return self._listed[id(source)]


@dataclass
class _Level:
    """Splits whose pieces are being given; `number` is that of the next one."""

    splits: Splits
    parts: Iterator[Splits | SourceSplits | Piece]
    number: int = 0


_AS_THEY_ARE = Splits(())


def _through(levels: list[_Level], piece: Piece) -> Piece | None:
    """Let a piece pass the levels around it, innermost first; levels that have given their last one are left."""
    operations: list[Operation] = []
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        number, level.number = level.number, level.number + 1
        if level.number == level.splits.stop:
            del levels[depth:]
        if number < level.splits.start or number == level.splits.stop:
            return None
        operations += operations_of(level.splits.applied)
    return _followed(piece, *operations)


def _followed(piece: Piece, *operations: Operation) -> Piece:
    return replace(piece, operations=(*piece.operations, *operations)) if operations else piece


def _dealt(pieces: tuple[Piece, ...], tasks: int) -> Iterator[Piece]:
    """Give a piece for each task, which reads some that follow each other; it runs also where there is nothing."""
    for task in range(tasks):
        first, last = (number * len(pieces) // tasks for number in (task, task + 1))
        yield Piece(None, pieces[first:last], (), None)


def _levels_of(each: Splits) -> Sequence[Splits]:
    return [part for part in each.parts if isinstance(part, Splits)]


def _split(source: SourceSplits, operations: tuple[Operation, ...]) -> Iterator[Piece]:
    node = source.node
    guards = tuple(guard.on_a_worker() for guard in node.guards)
    cut = _in_batches if node.source.in_caller and not guards else _whole
    with naming(node.step):
        for split in node.source.splits(source.divisor):
            yield replace(_followed(cut(split, node.step), *operations), guards=guards)


def _whole(split: Split[Any], step: Step) -> Piece:
    return Piece(packed_split(split, step), (), (), step)


def _in_batches(split: Split[Any], step: Step) -> Piece:
    """Cut a large split that holds its items itself, so that a worker unpickles a batch at a time."""
    whole = _whole(split, step)
    if whole.split is None or len(whole.split) <= _LARGEST_SPLIT:
        return whole
    batches = Batcher().batches(split.read())
    return Piece(None, tuple(Piece(dumps(Batch(data)), (), (), step) for _, data in batches), (), step)
