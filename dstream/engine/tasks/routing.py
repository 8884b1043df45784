"""Sinks that route items to the partition of their key, and the tables of hash joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from dstream.base.memory import BatchIterator, Growth
from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.engine.tasks.process import Payloads
from dstream.engine.tasks.rows import ITEMS, Row
from dstream.engine.tasks.runtime import StageTask
from dstream.engine.tasks.sinks import Router
from dstream.failures import naming
from dstream.keys import canonical, canonical_keys, stable_hash, stable_hashes
from dstream.keys.hashing import keys_of
from dstream.operators.joins.hash import Matching, Membership
from dstream.operators.joins.lookup import RightSide, looked_up
from dstream.operators.joins.pairs import join_with
from dstream.operators.rows.batches import Batcher, dumps_columns
from dstream.operators.rows.blocks import ColumnItems, given
from dstream.operators.rows.group_tables import groups_of_table, is_table, tables_of_groups
from dstream.operators.rows.keys import Side, item_key
from dstream.operators.rows.operations import Task
from dstream.operators.rows.spill import Columns, first_ones, partial_groups
from dstream.plan.operations.pairs import HashJoin
from dstream.plan.steps import Step
from dstream.spi import Collector
from dstream.values.user_functions import results

if TYPE_CHECKING:
    from dstream.operators.columns.groups import GroupTable, StringGroupTable
    from dstream.operators.joins.columns import JoinRows

__all__ = [
    "JoinWithSent",
    "LookUp",
    "RouteByInput",
    "RouteByKeyAndPlace",
    "RouteByPlaceAmongAll",
    "RouteEvenly",
    "RouteFirstOnes",
    "RouteGroups",
    "RouteInTurn",
    "RouteItems",
    "RoutePartials",
    "RouteSide",
    "RouteTogether",
    "WriteRightSide",
]


@record(slots=False)
class RouteItems:
    """Send each item to the target of its key."""

    key: Callable[[Any], Any] | None
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        with naming(self.step):
            yield from Router(self.targets, task).rows(self._placed(items))

    def _placed(self, items: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        for item in items:
            yield stable_hash(item_key(self.key, item)) % self.targets, item


@record(slots=False)
class RouteByInput:
    """Send (position, item) to the target where equal items meet."""

    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        placed = ((self._target(item), (position, item)) for position, item in enumerate(items))
        with naming(self.step):
            yield from Router(self.targets, task).rows(placed)

    def _target(self, item: Any) -> int:
        return stable_hash(canonical(item)) % self.targets


@record(slots=False)
class RouteByKeyAndPlace:
    """Send each item to the target of its key, as (keys, positions, items)."""

    key: Callable[[Any], Any]
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        with naming(self.step):
            router, taking, positions = _ColumnRouter(self.targets, task), BatchIterator(items), count()
            while chunk := taking.take(router.count):
                keys = keys_of(self.key, chunk)
                yield from router.rows(keys, [keys, list(islice(positions, len(chunk))), chunk])
                # Large items do not wait in buffers until a batch is full.
                yield from router.rest() if taking.is_careful else ()
            yield from router.rest()


@record(slots=False)
class RouteInTurn:
    """Send items to the targets in turn, so that each gets the same number, in no order."""

    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        placed = ((number % self.targets, item) for number, item in enumerate(items, task.partition))
        yield from Router(self.targets, task).rows(placed)


@record(slots=False)
class RouteEvenly:
    """Send the same number of neighbouring items to each target.

    Attributes:
        before: how many items precede each partition; at the end, how many there are.
    """

    before: Sequence[int]
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        first, total = self.before[task.partition], self.before[-1]
        placed = ((position * self.targets // total, item) for position, item in enumerate(items, first))
        yield from Router(self.targets, task).rows(placed)


@record(slots=False)
class RouteByPlaceAmongAll:
    """Send the items of (position, item) to the target of the range that contains the position.

    Attributes:
        wanted: the number of positions that are divided into ranges; later items are sent to the last target.
    """

    wanted: int
    targets: int

    def __call__(self, items: Iterator[tuple[int, Any]], task: StageTask) -> Iterator[Row]:
        yield from Router(self.targets, task).rows((self._target(position), item) for position, item in items)

    def _target(self, position: int) -> int:
        return min(position * self.targets // self.wanted, self.targets - 1) if self.wanted else 0


@record(slots=False)
class RouteTogether:
    """Write the items for the target that neighbouring partitions share."""

    sources: int
    targets: int

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        target, sequence = task.partition * self.targets // self.sources, count()
        for size, data in Batcher().batches(items):
            yield Row(target, task.partition, next(sequence), ITEMS, size, data)


@record(slots=False)
class RouteSide:
    """Send the items of one side of a join to the targets of their keys, as [keys, items], or as a `JoinBatch`.

    Attributes:
        in_columns: whether int keys are sent in columns.
        parts: the parts of records that are used downstream of the join, if whole items are not; None: all.
    """

    side: Side
    targets: int
    in_columns: bool = False
    parts: frozenset[str] | None = None

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        with naming(self.side.step):
            router = _ColumnRouter(self.targets, task)
            blocks = items.blocks() if self.in_columns and type(items) is ColumnItems else iter((items,))
            for block in blocks:
                rows = self._rows_of_block(block) if self.in_columns else None
                if rows is None:
                    yield from self._items(router, given(block))
                else:
                    yield from router.joined(rows, self.parts)
            yield from router.rest()

    def _rows_of_block(self, block: Any) -> Any:
        if isinstance(block, Iterator | Sequence) or not self.side.has_keys_in_columns:
            return None
        return self.side.rows(block)

    def _items(self, router: _ColumnRouter, items: Iterable[Any]) -> Iterator[Row]:
        taking = BatchIterator(items)
        while chunk := taking.take(_MOST_JOINED if self.in_columns else router.count):
            keys, values = self.side.columns(chunk)
            rows = self._rows(keys, values)
            if rows is None:
                yield from router.rows(keys, [keys, values])
                yield from router.rest() if taking.is_careful else ()
            else:
                yield from router.joined(rows)

    def _rows(self, keys: list[Any], values: list[Any]) -> Any:
        if not self.in_columns or type(keys[0]) is not int:
            return None
        from dstream.operators.joins.columns import rows_of_items  # loads NumPy

        return rows_of_items(keys, values)


_MOST_JOINED = 16_384
"""The number of items of a side that are looked at together, if their keys may be stored in columns."""


@record(slots=False)
class RouteFirstOnes:
    """Send one item of each key to the target of the key, as (keys, items), or as (items,) that are their own keys."""

    key: Callable[[Any], Any] | None
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        with naming(self.step):
            router, taking, seen = _ColumnRouter(self.targets, task), BatchIterator(items), set[Any]()
            while chunk := taking.take(router.count):
                keys = canonical_keys(chunk if self.key is None else results(self.key, chunk), chunk)
                found = first_ones(keys, chunk, seen)
                keys, firsts = list(found), list(found.values())
                yield from router.rows(keys, [firsts] if self.key is None else [keys, firsts])
                yield from router.rest() if taking.is_careful else ()
                if task.bound.exceeded():
                    # A forgotten key is sent twice, and its target drops one of the two.
                    seen.clear()
                    task.bound.spilled()
            yield from router.rest()


@record(slots=False)
class RouteGroups:
    """Combine the items of this partition by key; send the groups to the targets of their keys.

    They are sent as (keys, ranks, containers): the ranks are the order in which all keys of all partitions were first
    seen.
    """

    collector: Collector[Any, Any, Any]
    targets: int
    step: Step

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        with naming(self.step):
            router, ranks = _ColumnRouter(self.targets, task), count(task.partition << _RANK_BITS)
            tables = tables_of_groups(self.collector, items, task.bound)
            for each in (items,) if tables is None else tables:
                if isinstance(each, Iterable):
                    yield from self._groups(
                        router, ranks, partial_groups(each, self.collector, task.bound, stable_hash)
                    )
                elif not is_table(each):
                    yield from self._groups(router, ranks, groups_of_table(self.collector, each))
                else:
                    first = next(islice(ranks, len(each) - 1, None)) - len(each) + 1
                    yield from router.table(each.ranked(first))

    def _groups(
        self, router: _ColumnRouter, ranks: Iterator[int], all_groups: Iterable[dict[Any, Any]]
    ) -> Iterator[Row]:
        for groups in all_groups:
            keys, containers = iter(groups), iter(groups.values())
            while some := list(islice(keys, router.count)):
                columns = [some, list(islice(ranks, len(some))), list(islice(containers, len(some)))]
                yield from router.rows(some, columns)
            yield from router.rest()  # The next ones may have the same keys, and a batch has each of them once.


@record(slots=False)
class RoutePartials:
    """Send groups, as (keys, containers), to the targets of their keys.

    Uncombined items are sent as (keys, items, numbers); a batch contains either kind only. Tables of groups are sent as
    tables.
    """

    targets: int
    step: Step

    def __call__(self, items: Iterator[Columns | GroupTable | StringGroupTable], task: StageTask) -> Iterator[Row]:
        task.check_can_route()
        router, width = _ColumnRouter(self.targets, task), 0
        with naming(self.step):
            for columns in items:
                if not isinstance(columns, Sequence):
                    yield from router.rest()
                    yield from router.table(columns)
                    continue
                # A batch has lines of one width, so that all of them have the same columns.
                if len(columns) != width:
                    yield from router.rest()
                    width = len(columns)
                start = 0
                while (some := [column[start : start + router.count] for column in columns])[0]:
                    yield from router.rows(some[0], some)
                    start += len(some[0])
                if width == 2:  # The next ones may have the same keys, and a batch of containers has each once.
                    yield from router.rest()
            yield from router.rest()


_RANK_BITS = 40
"""The bits of a rank within its partition: with more keys, its ranks would overlap those of the next one."""


class _ColumnRouter:
    """The buffers of columns for each target, up to a full batch."""

    def __init__(self, targets: int, task: StageTask) -> None:
        self._task = task
        self._held: list[list[list[Any]]] = [[] for _ in range(targets)]
        self._batcher = Batcher()
        self._growth = Growth()
        self._sequence = 0

    @property
    def count(self) -> int:
        """The number of items of a batch."""
        return self._batcher.count

    def rows(self, keys: list[Any], columns: Sequence[list[Any]]) -> Iterator[Row]:
        """Take columns, each line of which is sent to the target of its key; yield full batches."""
        targets = len(self._held)
        self._batcher.begin([column[:1] for column in columns])
        targets_of_keys = [number % targets for number in stable_hashes(keys)]
        for buffered in self._held:
            buffered += ([] for _ in columns[len(buffered) :])
        for number, column in enumerate(columns):
            # One look-up of a method for each target, not for each value.
            takers = [buffered[number].append for buffered in self._held]
            for place, value in zip(targets_of_keys, column, strict=True):
                takers[place](value)
        yield from (self._row(target) for target, buffered in enumerate(self._held) if len(buffered[0]) >= self.count)
        if self._growth.exceeded():
            yield from self.rest()
            self._growth.start()

    def table(self, table: GroupTable | StringGroupTable) -> Iterator[Row]:
        """Yield groups in columns; nothing waits before them."""
        from dstream.operators.columns.groups import parts_by_target  # loads NumPy, which made the table

        for target, part in parts_by_target(table, len(self._held)):
            self._sequence += 1
            yield Row(target, self._task.partition, self._sequence, ITEMS, len(part), dumps(part))

    def joined(self, rows: JoinRows, parts: frozenset[str] | None = None) -> Iterator[Row]:
        """Yield rows of a side of a join whose keys are in columns; nothing waits before them."""
        from dstream.operators.joins.columns import sent_to_targets  # loads NumPy, which made the keys

        yield from self.rest()
        for target, size, data in sent_to_targets(rows, len(self._held), parts):
            self._sequence += 1
            yield Row(target, self._task.partition, self._sequence, ITEMS, size, data)

    def rest(self) -> Iterator[Row]:
        """Yield the batches that are not full; columns of another number may follow."""
        yield from (self._row(target) for target, buffered in enumerate(self._held) if any(buffered))
        self._held = [[] for _ in self._held]

    def _row(self, target: int) -> Row:
        columns, self._held[target] = self._held[target], []
        data = dumps_columns(columns)
        self._batcher.learn(len(columns[0]), len(data))
        self._sequence += 1
        return Row(target, self._task.partition, self._sequence, ITEMS, len(columns[0]), data)


@record(slots=False)
class WriteRightSide:
    """Write the keys and values of the right side in batches, in order."""

    side: RightSide

    def __call__(self, items: Iterator[Any], task: StageTask) -> Iterator[Row]:
        for number, (size, data) in enumerate(self.side.batches(items)):
            yield Row(0, task.partition, number, ITEMS, size, data)


@record(slots=False)
class JoinWithSent:
    """Join the items of one side with the whole of the other one, which was sent to all tasks; see `join_with`."""

    sent: Payloads
    matching: Matching | Membership
    step: Step
    side: Side | None

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        return join_with(self.sent.payloads(), self.matching, self.step, self.side, items, task)


class LookUp:
    """The look-up of the pairs of left items.

    Args:
        node: the join.
        sent: the right side.
    """

    def __init__(self, node: HashJoin, sent: Payloads) -> None:
        assert node.left_key is not None, "a hash join has two keys"
        self._key, self._is_inner, self._step = node.left_key, node.is_inner, node.step
        self._sent = sent

    def __call__(self, items: Iterator[Any], task: Task) -> Iterator[Any]:
        assert isinstance(task, StageTask), "right sides are sent to the tasks of stages"
        table = partial(task.table_of, self._sent, self._step)
        return looked_up(table, self._key, self._is_inner, self._step, items)
