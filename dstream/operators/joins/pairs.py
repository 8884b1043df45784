"""Pairs of two inputs in one task: joined or cogrouped by key, or zipped by position."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice, zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from dstream.base.records import record
from dstream.failures import naming
from dstream.keys import canonical_all
from dstream.operators.joins.hash import Matching, Membership, cogrouped, index_of
from dstream.operators.rows.batches import Reopened, loads
from dstream.operators.rows.blocks import Block, ColumnItems, given
from dstream.operators.rows.keys import Side
from dstream.operators.rows.operations import Task
from dstream.operators.rows.spill import Run
from dstream.plan.operations.pairs import Zip, ZipMode
from dstream.plan.steps import Step

if TYPE_CHECKING:
    from dstream.operators.joins.columns import JoinBatch, JoinRows, JoinTable

__all__ = [
    "SideBySide",
    "cogroup_batches",
    "join_batches",
    "join_with",
    "pairs_of_batches",
    "two_sides",
    "zipped_batches",
]


P = TypeVar("P")

Batches = Iterator[tuple[int, Any]]
"""(target, [keys, items]), or (target, `JoinBatch`).

Batches of the second side have targets that start at the number of partitions."""


def join_with(
    payloads: Sequence[bytes],
    matching: Matching | Membership,
    step: Step,
    side: Side | None,
    items: Iterator[Any],
    task: Task,
) -> Iterator[Any]:
    """Join the items of one side, as they arrive, with the complete other side.

    Args:
        payloads: batches of the other side.
        matching: the output for the rows of both sides.
        step: the join.
        side: the probe side; None: its items are batches.
        items: the items of the probe side.
        task: the task that runs the join.
    """
    return ColumnItems(_joined_with(payloads, matching, step, side, items))


def _joined_with(
    payloads: Sequence[bytes], matching: Matching | Membership, step: Step, side: Side | None, items: Iterator[Any]
) -> Iterator[Block]:
    pairs_of: Callable[[Iterator[Any]], Iterator[Any]] = pairs_of_batches if side is None else side.pairs
    with naming(step):
        batches = [(0, loads(payload)) for payload in payloads]
        if side is None or (side.has_keys_in_columns and type(items) is ColumnItems):
            held = _in_columns(batches)
            if held:
                passing = items.blocks() if type(items) is ColumnItems else items
                yield from _matched_in_columns(held, matching, passing, side, step)
                return
        yield _named(step, matching.entries(index_of(pairs_of_batches(batches)), pairs_of(items)))


def join_batches(
    matching: Matching | Membership, step: Step, targets: int, batches: Batches, task: Task
) -> Iterator[Any]:
    """Join the two sides of one partition, of which the build side arrives first."""
    return ColumnItems(_joined_batches(matching, step, targets, batches, task))


def _joined_batches(
    matching: Matching | Membership, step: Step, targets: int, batches: Batches, task: Task
) -> Iterator[Block]:
    with naming(step):
        held, passing = two_sides(targets, batches)
        some = deque[Any]()
        for batch in held:
            some.append(batch)
            if isinstance(batch[1], list) or task.bound.exceeded():
                break
        # Only a side that has arrived completely in columns, and fits into memory, is matched in columns.
        else:
            in_columns = _in_columns(some)
            if in_columns:
                yield from _matched_in_columns(in_columns, matching, passing, None, step)
                return
        held = chain(_drained(some), held)
        yield _named(step, matching.joined(pairs_of_batches(held), pairs_of_batches(passing), task.bound))


def _named(step: Step, items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items; a failure is attributed to the step, also after other blocks were yielded."""
    with naming(step):
        yield from items


def _in_columns(batches: Iterable[tuple[int, Any]]) -> list[JoinBatch]:
    """Return the batches; an empty list if their keys do not fit one column."""
    held = [batch for _, batch in batches]
    if not held or any(isinstance(batch, list) for batch in held):
        return []
    from dstream.operators.joins.columns import are_of_one_type  # loads NumPy, which made the keys

    return held if are_of_one_type(held) else []


def _drained(batches: deque[Any]) -> Iterator[Any]:
    while batches:
        # Removed one by one, so that the memory of a batch is freed when its pairs are on disk.
        yield batches.popleft()


def _matched_in_columns(
    held: Sequence[JoinBatch],
    matching: Matching | Membership,
    passing: Iterator[Any],
    side: Side | None,
    step: Step,
) -> Iterator[Block]:
    """Match rows as long as the probe side has keys in columns, then items.

    Args:
        held: the batches of the build side.
        matching: the output for the rows of both sides.
        passing: blocks or batches of the probe side.
        side: the probe side; None: `passing` has batches.
        step: the join.
    """
    from dstream.operators.joins.columns import KeyTable as HeldKeys  # loads NumPy, which made the keys
    from dstream.operators.joins.columns import SideTable as HeldSide

    those = HeldKeys(held, matching) if isinstance(matching, Membership) else HeldSide(held, matching)
    rest = list[Any]()
    yield from those.blocks(_rows_of(passing, side, rest, those), are_collected=side is None)
    if rest:
        index = index_of(those.pairs())
        others = chain(_popped(rest), passing)
        left = pairs_of_batches(others) if side is None else side.pairs(chain.from_iterable(map(given, others)))
        yield _named(step, those.going_on(index, left))
    else:
        yield those.ending()


def _rows_of(
    passing: Iterator[Any], side: Side | None, rest: list[Any], held: JoinTable
) -> Iterator[JoinBatch | JoinRows]:
    """Yield rows with keys in columns of the table's type; the first block without is appended to `rest`."""
    for each in passing:
        rows = each[1] if side is None else side.rows(each)
        if rows is None or isinstance(rows, list) or not held.takes(rows):
            rest.append(each)
            return
        yield rows


def _popped(rest: list[Any]) -> Iterator[Any]:
    while rest:
        # Removed, so that no list references the block while its items are used.
        yield rest.pop(0)


def cogroup_batches(step: Step, targets: int, batches: Batches, task: Task) -> Iterator[Any]:
    """Group the two sides of one partition, of which the left one arrives first."""
    with naming(step):
        lefts, rights = two_sides(targets, batches)
        yield from cogrouped(pairs_of_batches(lefts), pairs_of_batches(rights), task.bound)


def two_sides(
    targets: int, batches: Iterator[tuple[int, P]]
) -> tuple[Iterator[tuple[int, P]], Iterator[tuple[int, P]]]:
    """Return the batches of the first side, and the batches of the second side, which are read afterwards.

    `more_itertools.before_and_after` (11.2) does the same with `tee`, which retains all of the second side in memory
    as long as the first iterator exists.
    """
    behind: list[tuple[int, P]] = []

    def first() -> Iterator[tuple[int, P]]:
        for batch in batches:
            if batch[0] >= targets:
                behind.append(batch)
                return
            yield batch

    def second() -> Iterator[tuple[int, P]]:
        while behind:
            yield behind.pop()
        yield from batches

    return first(), second()


def pairs_of_batches(batches: Iterable[tuple[int, Any]]) -> Iterator[tuple[Any, Any]]:
    """Return (key, item), with keys that are canonical in this process."""
    reopened = Reopened()
    lists = (batch if isinstance(batch, list | tuple) else batch.lists(reopened) for _, batch in batches)
    return chain.from_iterable(zip(canonical_all(keys), items, strict=True) for keys, items in lists)


@record(slots=False)
class SideBySide:
    """The output of two streams; the operation without its inputs."""

    how: ZipMode
    fill: Any
    step: Step

    @staticmethod
    def of(node: Zip) -> SideBySide:
        """Return that of an operation."""
        return SideBySide(node.how, node.fill, node.step)

    def items(self, lefts: Iterator[Any], rights: Iterator[Any], before: int = 0) -> Iterator[Any]:
        """Yield the output of two sides, of which the left one is read first.

        Args:
            lefts: the items of one side.
            rights: the items of the other side.
            before: the number of pairs before these, for a message.
        """
        match self.how:
            case "shortest":
                return zip(lefts, rights, strict=False)
            case "longest":
                return zip_longest(lefts, rights, fillvalue=self.fill)
            case "interleaved":
                return _in_turn(lefts, rights)
        return _strictly(lefts, rights, before, self.step)


def _in_turn(lefts: Iterator[Any], rights: Iterator[Any]) -> Iterator[Any]:
    for left in lefts:
        yield left
        for right in rights:
            yield right
            break
        else:
            yield from lefts
    yield from rights


def _strictly(lefts: Iterator[Any], rights: Iterator[Any], before: int, step: Step) -> Iterator[Any]:
    for pairs in count(before):
        left, right = next(lefts, _END), next(rights, _END)
        if left is _END and right is _END:
            return
        if left is _END or right is _END:
            longer, shorter = ("right", "left") if left is _END else ("left", "right")
            with naming(step):
                raise ValueError(f"the {longer} stream is longer: the {shorter} one ended after {_counted(pairs)}")
        yield left, right


_END = object()


def _counted(number: int) -> str:
    return "1 item" if number == 1 else f"{number:,} items"


def zipped_batches(
    side_by_side: SideBySide, targets: int, wanted: int, batches: Iterator[tuple[int, list[Any]]], task: Task
) -> Iterator[Any]:
    """Zip the two sides of one partition; the left one arrives first and is buffered, past the bound on disk.

    Args:
        side_by_side: the kind of zip.
        targets: the number of partitions, which is added to the targets of the right side.
        wanted: the number of positions in all partitions.
        batches: (target, items).
        task: the task that runs the zip.
    """
    target = 0
    # All batches have the target of the first one; without batches there is nothing to count.
    for head in islice(batches, 1):
        target, batches = head[0] % targets, chain((head,), batches)
    first, second = two_sides(targets, batches)
    held: list[Any] = []
    run = Run()
    for _, items in first:
        held += items
        if task.bound.exceeded():
            run.extend(held)
            held = []
            task.bound.spilled()
    rights = chain.from_iterable(items for _, items in second)
    # Each target has a range of positions, so its first position is known.
    yield from side_by_side.items(chain(run, held), rights, -(-target * wanted // targets))
