"""Sinks and readers of `distinct`, for items in columns or one by one.

Each task sends the first of equal items, among up to a million at a time, to the task of their key, which selects the
first of them all and, if the items have an order, sends it back to its partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dstream.base.records import record
from dstream.engine.tasks.readers import first_of_keys, in_place_order
from dstream.engine.tasks.routing import RouteFirstOnes
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import RouteByKey, RouteByPlace, first_ones_in_order
from dstream.failures import naming
from dstream.operators.rows.batches import Batcher, loads_items
from dstream.operators.rows.blocks import Block, ColumnItems, given
from dstream.operators.rows.operations import Task
from dstream.operators.rows.spill import distinct_items, distinct_of_batches
from dstream.plan.steps import Step
from dstream.values.bad_records import EncodedLines

if TYPE_CHECKING:
    from dstream.operators.columns.values import Column

__all__ = [
    "RouteBack",
    "RouteFirsts",
    "RouteForward",
    "back_in_order",
    "distinct_in_task",
    "first_of_each",
    "first_of_forwarded",
    "one_of_each",
    "read_forwarded",
    "read_placed",
]


_MOST_ROWS = 2**20
"""The number of rows of a task of which the first ones are found at once."""


@record(slots=False)
class RouteFirsts:
    """Send the first ones of equal items to their target, as `FirstRows` where they are columns of numbers or strings.

    Attributes:
        is_ordered: others are sent as (position, item); otherwise as items alone.
    """

    targets: int
    step: Step
    is_ordered: bool

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        if type(items) is not ColumnItems:
            yield from self._one_by_one(items, 0, task)
            return
        # The blocks are written by several routers, each of which counts its own rows from the beginning.
        numbers = count()
        for row in self._rows(items.blocks(), task):
            yield row._replace(sequence=next(numbers))

    def _rows(self, blocks: Iterator[Block], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        before = 0
        for block in _gathered(blocks):
            rows = None if isinstance(block, Sequence | Iterator) else self._in_columns(block, before)
            if rows is None:
                counter = count(before)
                # The block is first, so that its end takes no number away from the counter.
                items = map(itemgetter(0), zip(given(block), counter))  # noqa: B905 - one of them has no end
                yield from self._one_by_one(items, before, task)
                before = next(counter)
            else:
                size, sent = rows
                before += size
                yield from (Row(target, task.partition, 0, ITEMS, few, data) for target, few, data in sent)

    def _in_columns(self, column: Column, before: int) -> tuple[int, Iterable[tuple[int, int, bytes]]] | None:
        from dstream.operators.columns.distinct import firsts_of_task  # loads NumPy, which made the column

        return firsts_of_task(column, before, self.targets)

    def _one_by_one(self, items: Iterator[Any], before: int, task: StageTask) -> Iterator[Row]:
        if self.is_ordered:
            return RouteByKey(None, self.targets, self.step, before)(items, task)
        return RouteFirstOnes(None, self.targets, self.step)(items, task)


def _gathered(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield neighbouring columns of one type together."""
    buffered: list[Any] = []
    rows = size = 0
    for block in map(_at_hand, blocks):
        is_column = not isinstance(block, Sequence | Iterator)
        is_full = rows >= _MOST_ROWS or size >= _MOST_BYTES
        if buffered and (not is_column or is_full or type(block) is not type(buffered[0])):
            yield _stacked(buffered)
            buffered, rows, size = [], 0, 0
        if is_column:
            buffered.append(block)
            more, bytes_of_texts = _weight(block)
            rows, size = rows + more, size + bytes_of_texts
        else:
            yield block
    if buffered:
        yield _stacked(buffered)


_MOST_BYTES = 2**26
"""The number of bytes of strings from which on no more blocks are put together."""


def _at_hand(block: Block) -> Block:
    """Return the lines of a file as a column, unless there are few; other blocks unchanged."""
    if type(block) is not EncodedLines or block.are_few:
        return block
    from dstream.operators.columns.values import NotColumnar, column_at_hand  # loads NumPy

    try:
        return column_at_hand(block)
    except NotColumnar:
        return block


def _weight(column: Any) -> tuple[int, int]:
    """Return how many rows a column has, and how many bytes their strings have."""
    from dstream.operators.columns.values import bytes_of_texts, size_of_column  # loads NumPy, which made the column

    return size_of_column(column), bytes_of_texts(column)


def _stacked(columns: list[Any]) -> Block:
    from dstream.operators.columns.values import stacked_or_items  # loads NumPy, which made the columns

    return stacked_or_items(columns)


def distinct_in_task(step: Step, items: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the first of equal items, in order; columns are compared as a whole, in growing batches."""
    if type(items) is ColumnItems:
        return ColumnItems(_named(step, _distinct_blocks(step, items.blocks(), task)))
    return _named(step, distinct_items(items, None, task.bound))


def _named(step: Step, items: Iterator[Any]) -> Iterator[Any]:
    with naming(step):
        yield from items


def _distinct_blocks(step: Step, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
    known: Column | None = None
    sizes: list[int] = []
    grown = _growing(blocks, sizes)
    for some in grown:
        found = _with_firsts(known, some) if isinstance(some, list) and not task.bound.exceeded() else None
        if found is None:
            before = sum(sizes)
            # From now on each column is passed on at once. The block, or the failure, that ended `some` follows it.
            sizes.clear()
            items = chain(
                () if known is None else given(known), chain.from_iterable(map(_one_by_one, chain((some,), grown)))
            )
            # The first items are known, no two of which are equal. The others are taken later, outside of this block.
            yield _named(step, islice(distinct_items(items, None, task.bound), before, None))
            return
        known, new = found
        sizes.append(_weight(new)[0])
        yield new


def _one_by_one(some: list[Column] | Iterator[Any]) -> Iterable[Any]:
    return chain.from_iterable(map(given, some)) if isinstance(some, list) else some


def _growing(blocks: Iterator[Block], sizes: Sequence[int]) -> Iterator[list[Column] | Iterator[Any]]:
    """Yield columns of twice as many rows as the sum of the sizes together; all items from the first other block on.

    Columns before a failure are yielded before it, as single items would be.
    """
    buffered: list[Any] = []
    rows = 0
    try:
        for block in map(_at_hand, blocks):
            if isinstance(block, Sequence | Iterator):
                yield from (buffered,) if buffered else ()
                yield chain(given(block), chain.from_iterable(map(given, blocks)))
                return
            buffered, rows = [*buffered, block], rows + _weight(block)[0]
            if rows >= 2 * sum(sizes):
                yield buffered
                buffered, rows = [], 0
    except Exception:
        yield from (buffered,) if buffered else ()
        raise
    yield from (buffered,) if buffered else ()


def _with_firsts(known: Column | None, columns: list[Column]) -> tuple[Column, Column] | None:
    from dstream.operators.columns.distinct import with_firsts  # loads NumPy, which made the columns

    return with_firsts(known, columns)


@record(slots=False)
class RouteForward:
    """Send the first of equal items of a partition to its own target, and to the targets of all later partitions.

    Attributes:
        targets: the number of targets, one for each partition.
    """

    key: Callable[[Any], Any] | None
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        for sequence, (size, data) in enumerate(self._batches(items, task)):
            for target in range(task.partition, self.targets):
                yield Row(target, task.partition, sequence, ITEMS, size, data)

    def _batches(self, items: Iterator[Any], task: StageTask) -> Iterator[tuple[int, bytes]]:
        is_column = self.key is None and type(items) is ColumnItems
        for block in _gathered(items.blocks()) if is_column and isinstance(items, ColumnItems) else (items,):
            found = None if isinstance(block, Sequence | Iterator) else _packed(block)
            yield from self._by_items(given(block), task) if found is None else found

    def _by_items(self, items: Iterable[Any], task: StageTask) -> Iterator[tuple[int, bytes]]:
        with naming(self.step):
            firsts = first_ones_in_order(enumerate(items), self.key, task.bound)
            yield from Batcher().batches(map(itemgetter(2), firsts))


def _packed(column: Column) -> Iterator[tuple[int, bytes]] | None:
    from dstream.operators.columns.distinct import packed_firsts  # loads NumPy, which made the column

    return packed_firsts(column)


def read_forwarded(rows: Iterator[Row]) -> Iterator[tuple[int, bool, Any]]:
    """Yield (target, whether the row originates in the partition of its target, batch) of each row."""
    for row in rows:
        yield row.target, row.source == row.target, loads_items(row.payload)


def first_of_forwarded(
    key: Callable[[Any], Any] | None, step: Step, batches: Iterator[tuple[int, bool, Any]], task: Task
) -> Iterator[Any]:
    """Yield the first of equal items in a partition, except those that earlier partitions forwarded."""
    # A partition has several targets if they are more than the partitions.
    targets = groupby(batches, itemgetter(0))
    return ColumnItems(chain.from_iterable(_of_target(key, step, each, task) for _, each in targets))


def _of_target(
    key: Callable[[Any], Any] | None, step: Step, batches: Iterator[tuple[int, bool, Any]], task: Task
) -> Iterator[Block]:
    buffered = deque[tuple[int, bool, Any]]()
    for each in batches:
        buffered.append(each)
        if isinstance(each[2], list) or task.bound.exceeded():
            break
    else:
        from dstream.operators.columns.distinct import own_firsts  # loads NumPy, which made the columns

        found = own_firsts(
            [rows for _, is_own, rows in buffered if not is_own], [rows for _, is_own, rows in buffered if is_own]
        )
        if found is not None:
            yield found
            return
    yield _own_items(key, step, chain(_drained(buffered), batches), task)


def _own_items(
    key: Callable[[Any], Any] | None, step: Step, batches: Iterable[tuple[int, bool, Any]], task: Task
) -> Iterator[Any]:
    pairs = (
        (is_own, item) for _, is_own, rows in batches for item in (rows if isinstance(rows, list) else given(rows))
    )
    return map(itemgetter(1), filter(itemgetter(0), first_of_keys(key, step, pairs, task)))


def one_of_each(step: Step, batches: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield one of equal items of batches, in any order."""

    def by_items(rest: Iterator[Any]) -> Iterator[Any]:
        lists = (batch if isinstance(batch, list) else [batch.items()] for batch in rest)
        with naming(step):
            yield from distinct_of_batches(lists, task.bound)

    numbered = ((0, batch) for batch in batches)
    return ColumnItems(_met(numbered, lambda rest: by_items(batch for _, batch in rest), task, 1))


def read_placed(rows: Iterator[Row]) -> Iterator[tuple[int, Any]]:
    """Yield (source, batch) of each row."""
    for row in rows:
        yield row.source, loads_items(row.payload)


def first_of_each(step: Step, batches: Iterator[tuple[int, Any]], task: Task) -> Iterator[Any]:
    """Yield ((source, position), item) of the first of equal items."""

    def by_items(rest: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        return first_of_keys(None, step, chain.from_iterable(map(_pairs, rest)), task)

    return ColumnItems(_met(batches, by_items, task, None))


def _pairs(batch: tuple[int, Any]) -> Iterator[tuple[tuple[int, int], Any]]:
    source, rows = batch
    pairs = rows if isinstance(rows, list) else zip(rows.places.tolist(), rows.items(), strict=True)
    return (((source, position), item) for position, item in pairs)


def _met(
    batches: Iterator[tuple[int, Any]],
    by_items: Callable[[Iterator[tuple[int, Any]]], Iterator[Any]],
    task: Task,
    member: int | None,
) -> Iterator[Block]:
    """Yield ((source, position), item) of the first items, or that member of it, in columns if all batches are."""
    buffered = deque[tuple[int, Any]]()
    for batch in batches:
        buffered.append(batch)
        if isinstance(batch[1], list) or task.bound.exceeded():
            break
    else:
        # No batch was a list, and all of them fit into memory: they are put together as columns.
        if not buffered:
            return
        from dstream.operators.columns.distinct import firsts_met  # loads NumPy, which made the columns

        found = firsts_met([source for source, _ in buffered], [rows for _, rows in buffered])
        if found is not None:
            yield found if member is None else found.members[member]
            return
    yield by_items(chain(_drained(buffered), batches))


def _drained(buffered: deque[Any]) -> Iterator[Any]:
    while buffered:
        yield buffered.popleft()


@record(slots=False)
class RouteBack:
    """Send ((source, position), item) back to the source of the item, several sources to a target."""

    sources: int
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        if type(items) is not ColumnItems:
            yield from RouteByPlace(self.sources, self.targets)(items, task)
            return
        # Several routers write these rows too.
        numbers = count()
        for block in items.blocks():
            for row in self._rows(block, task):
                yield row._replace(sequence=next(numbers))

    def _rows(self, block: Block, task: StageTask) -> Iterator[Row]:
        if isinstance(block, Sequence | Iterator):
            return RouteByPlace(self.sources, self.targets)(iter(block), task)
        from dstream.operators.columns.distinct import sent_back  # loads NumPy, which made the column

        sent = sent_back(block, self.sources, self.targets)
        return (Row(target, task.partition, 0, ITEMS, size, data) for target, size, data in sent)


def back_in_order(batches: Iterator[Any], task: Task) -> Iterator[Any]:
    """Yield the items of batches of ((source, position), item) in the order of their positions."""
    return ColumnItems(_in_order(batches, task))


def _in_order(batches: Iterator[Any], task: Task) -> Iterator[Block]:
    buffered = deque[Any]()
    for batch in batches:
        buffered.append(batch)
        if isinstance(batch, list) or task.bound.exceeded():
            break
    else:
        if not buffered:
            return
        from dstream.operators.columns.distinct import in_places  # loads NumPy, which made the columns

        found = in_places(buffered)
        if found is not None:
            yield found
            return
    items = (batch if isinstance(batch, list) else given(batch) for batch in chain(_drained(buffered), batches))
    yield in_place_order(chain.from_iterable(items), task)
