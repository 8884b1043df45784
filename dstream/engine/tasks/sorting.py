"""Sorting across partitions: sorted runs, cut into ranges of keys, each merged by one task.

Where the keys of a run are numbers of one type, they are sent with the items as ints in the same order: cutting and
merging runs compares these, and leaves most batches of items pickled.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any, TypeAlias

from dstream.base.memory import pieces, resident_bytes
from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.engine.tasks.rows import ITEMS, SAMPLE, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.failures import naming
from dstream.failures.attribution import each
from dstream.operators.rows.batches import Batcher, dumps_items, loads
from dstream.operators.rows.blocks import Block, ColumnItems, given
from dstream.operators.rows.operations import Operation, Task
from dstream.operators.rows.spill import sorted_items
from dstream.plan.steps import EarlyCheck, KeyInColumns, Step
from dstream.values.order import NanLast, first_compared, sort

if TYPE_CHECKING:
    from dstream.operators.columns.ranks import Ranks, SortedBatch

__all__ = ["RouteByRange", "SortAlone", "SortRuns", "merge_ranges"]


_RUN_ITEMS = 16_384
_RANKED_RUN_ITEMS = 65_536
"""The number of items of a run with ranks: of its batches only those are cut in which a border lies."""
_SAMPLE_ITEMS = 16
_SAMPLE_BYTES = 2**20
_CHUNK = 512

Batch: TypeAlias = "list[Any] | SortedBatch"


@record(slots=False)
class SortRuns:
    """Write the items in sorted runs, and a sample of each run.

    Attributes:
        columns: how keys may be stored in columns; None: Python compares them.
        looks: refuse an item of the first run, in the name of what takes the items later.
    """

    key: Callable[[Any], Any] | None
    reverse: bool
    step: Step
    columns: KeyInColumns | None = None
    looks: Sequence[EarlyCheck] = ()

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        sequence, batcher, looks = count(), Batcher(), self.looks
        for run in self._runs(items, task):
            written = 0
            with naming(self.step):
                ordered, batches = self._sorted(run, batcher)
            for size, data in batches:
                written += len(data)
                yield Row(0, task.partition, next(sequence), ITEMS, size, data)
            if not written:
                continue
            sample, total = _sample(ordered, written)
            for look in looks:
                look.at(sample[0])
            # One look is enough to refuse early; the end itself looks at every item.
            looks = ()
            yield Row(0, task.partition, next(sequence), SAMPLE, total, dumps_items(sample))
            # Emptied: names in this loop and in its generators refer to them while the next run is made.
            for each_run in (run, ordered):
                if isinstance(each_run, list):
                    each_run.clear()
            del ordered, batches, sample
            task.bound.spilled()

    def _sorted(self, run: Any, batcher: Batcher) -> tuple[Any, Iterator[tuple[int, bytes]]]:
        """Return a run in order, a list or a column, and its batches."""
        if self._may_have_ranks(run):
            from dstream.operators.columns.ranks import batches_of_run, run_in_order  # loads NumPy

            assert self.columns is not None, "otherwise there are no ranks"
            found = run_in_order(run, self.key, self.reverse, self.columns, self.step.label)
            if found is not None:
                return found[0], batches_of_run(*found, batcher)
        items = list(given(run))
        sort(items, self.key, self.reverse)
        return items, Batcher().batches(items)

    def _may_have_ranks(self, run: Any) -> bool:
        """Return whether the first key is a number, if it has to be made."""
        if self.columns is None or not isinstance(run, list):
            return self.columns is not None
        with naming(self.step):
            (key,) = run[:1] if self.key is None else each(self.key, run[:1])
        return type(key) in (int, float, bool)

    def _runs(self, items: Iterator[Any], task: StageTask) -> Iterator[Any]:
        """Yield columns, some of which may be empty, and lists of other items."""
        if self.columns is None or type(items) is not ColumnItems:
            yield from self._lists(items, task)
            return
        for block in items.blocks():
            if isinstance(block, Sequence | Iterator):
                yield from self._lists(block, task)
            else:
                yield block

    def _lists(self, items: Iterable[Any], task: StageTask) -> Iterator[list[Any]]:
        run: list[Any] = []
        most, is_compared = _RUN_ITEMS, False
        for piece in pieces(items, _CHUNK):
            run += piece
            del piece
            # Two items that cannot be compared are refused before a whole run is read.
            if len(run) > 1 and not is_compared:
                is_compared = True
                with naming(self.step):
                    first_compared(run, self.key)
            if len(run) >= most or task.bound.exceeded():
                if most == _RUN_ITEMS and self._may_have_ranks(run):
                    most = _RANKED_RUN_ITEMS
                    if len(run) < most and not task.bound.exceeded():
                        continue
                yield run
                run = []
        if run:
            yield run


def _sample(run: Any, size: int) -> tuple[list[Any], int]:
    """Return an evenly spaced sample of a run of `size` bytes, and the number of the run's items."""
    if not isinstance(run, list):
        from dstream.operators.columns.ranks import sample_of_column  # loads NumPy, which made the column

        return sample_of_column(run, functools.partial(_apart, size))
    apart = _apart(size, len(run))
    return run[apart // 2 :: apart], len(run)


def _apart(size: int, rows: int) -> int:
    few = max(1, min(_SAMPLE_ITEMS * max(1, rows // _RUN_ITEMS), _SAMPLE_BYTES * rows // size))
    return max(1, rows // few)


@record(slots=False)
class RouteByRange:
    """Cut batches that are sorted and send each part to the target of its range of keys.

    The items of the sample that divide it evenly are the borders; keys equal to a border are right of it.

    Attributes:
        sample: lists of items, pickled.
        columns: as of the runs.
    """

    key: Callable[[Any], Any] | None
    reverse: bool
    sample: Sequence[bytes]
    targets: int
    step: Step
    columns: KeyInColumns | None = None

    def __call__(self, items: Iterator[Batch], task: StageTask) -> Iterator[Row]:
        with naming(self.step):
            chosen = self._chosen()
            borders = list(map(NanLast(self.key), chosen))
            ranks = self._ranks(chosen)
            for sequence, batch in enumerate(items):
                for target, (size, data) in enumerate(self._parts(batch, borders, ranks)):
                    if size:
                        yield Row(target, task.partition, sequence, ITEMS, size, data)

    def _chosen(self) -> list[Any]:
        ordered = list(chain.from_iterable(map(loads, self.sample)))
        sort(ordered, self.key, self.reverse)
        return [ordered[len(ordered) * number // self.targets] for number in range(1, self.targets)]

    def _ranks(self, chosen: list[Any]) -> Ranks | None:
        if self.columns is None:
            return None
        from dstream.operators.columns.ranks import ranks_of_items  # loads NumPy

        return ranks_of_items(chosen, self.key, self.reverse)

    def _parts(self, batch: Batch, borders: list[Any], ranks: Ranks | None) -> Iterator[tuple[int, bytes]]:
        """Yield the number of items for each target, and these, pickled."""
        if isinstance(batch, list):
            yield from ((len(part), dumps_items(part)) for part in self._cut(batch, borders))
            return
        from dstream.operators.columns.ranks import cut_at  # loads NumPy, which made the ranks

        # Ranks of ints and of floats have no common order: Python compares their exact values.
        if ranks is not None and ranks.kind == batch.ranks.kind:
            yield from ((len(part), dumps(part) if len(part) else b"") for part in cut_at(batch, ranks))
        else:
            yield from ((len(part), dumps_items(part)) for part in self._cut(batch.items(), borders))

    def _cut(self, batch: list[Any], borders: list[Any]) -> Iterator[list[Any]]:
        start = 0
        for border in borders:
            # False up to the border and True from it on, so that few keys are computed and compared.
            end = bisect_left(batch, True, lo=start, key=functools.partial(self._reaches, border))
            yield batch[start:end]
            start = end
        yield batch[start:]

    def _reaches(self, border: Any, item: Any) -> bool:
        key = NanLast(self.key)(item)
        return not (border < key if self.reverse else key < border)


@record(slots=False)
class SortAlone:
    """Sorts the items of the only partition: columns by the ranks of their keys, as runs are.

    Attributes:
        otherwise: sorts items one by one.
    """

    key: Callable[[Any], Any] | None
    reverse: bool
    step: Step
    columns: KeyInColumns
    looks: Sequence[EarlyCheck]
    otherwise: Operation

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        if type(items) is not ColumnItems or self.columns.expression is None:
            return self.otherwise(items, task)
        return ColumnItems(self._blocks(items.blocks(), task))

    def _blocks(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        buffered, before = deque[Any](), resident_bytes()
        for block in blocks:
            buffered.append(block)
            # Rows in order are a copy of the columns, which are put together before.
            if isinstance(block, Sequence | Iterator) or task.bound.exceeded(2 * (resident_bytes() - before)):
                break
        else:
            ordered = self._in_order(buffered)
            if ordered is not None:
                yield from ordered
                return
        yield self.otherwise(chain.from_iterable(map(given, chain(_drained(buffered), blocks))), task)

    def _in_order(self, buffered: Iterable[Any]) -> Iterator[Block] | None:
        """Return the rows of columns in order; None if Python has to compare their keys."""
        from dstream.operators.columns.ranks import column_in_order  # loads NumPy, which made the columns

        with naming(self.step):
            return column_in_order(list(buffered), self.key, self.reverse, self.columns, self.step.label, self.looks)


def merge_ranges(
    key: Callable[[Any], Any] | None, reverse: bool, step: Step, batches: Iterator[Batch], task: Task
) -> Iterator[Any]:
    """Yield the items of sorted batches in order, those with equal keys in the order of the batches."""
    return ColumnItems(_merged(key, reverse, step, batches, task))


def _merged(
    key: Callable[[Any], Any] | None, reverse: bool, step: Step, batches: Iterator[Batch], task: Task
) -> Iterator[Block]:
    buffered = deque[Any]()
    for batch in batches:
        buffered.append(batch)
        if isinstance(batch, list) or batch.ranks.kind != buffered[0].ranks.kind or task.bound.exceeded():
            break
    else:
        if not buffered:
            return
        from dstream.operators.columns.ranks import merged_batches  # loads NumPy, which made the ranks

        blocks = merged_batches(buffered)
        if blocks is not None:
            buffered.clear()  # The merge releases each batch after its rows were yielded.
            yield from blocks
            return
    yield _by_python(key, reverse, step, chain(_drained(buffered), batches), task)


def _by_python(
    key: Callable[[Any], Any] | None, reverse: bool, step: Step, batches: Iterator[Batch], task: Task
) -> Iterator[Any]:
    items = chain.from_iterable(batch if isinstance(batch, list) else batch.items() for batch in batches)
    with naming(step):
        yield from sorted_items(items, key, reverse, task.bound)


def _drained(buffered: deque[Any]) -> Iterator[Any]:
    while buffered:
        yield buffered.popleft()
