"""Windows over blocks in columns: the partial containers of a task equal those of its items one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from collectors import all_of, averaging, counting, summing
from dstream.engine.compiler.evaluation import groups_read
from dstream.errors import ColumnsDifferError
from dstream.operators.columns.chain_evaluation import is_same
from dstream.operators.columns.values import ConstantColumn, Floats, Ints, Tuples, column_of
from dstream.operators.rows.blocks import Block, ColumnItems
from dstream.operators.state.watermarks import _Seen
from dstream.operators.windows.frames import FrameWindows
from dstream.spi.epochs import EpochTime, TaskPartials
from dstream.values.time import NO_WATERMARK
from dstream.windows import FrameWindow, limiting_lag, sliding, tumbling

KEY, VALUE = itemgetter(0), itemgetter(1)


def windows(
    window: FrameWindow, operation: Any, key: Any = KEY, *, late: bool = False, verified: bool = False
) -> FrameWindows:
    """Return windows whose functions are read."""
    keys = None if key is None else (key,)
    operator = FrameWindows(window, keys, operation, None, late)
    return operator.with_columns(tuple(groups_read(*each, is_verified=verified)[0] for each in operator.reductions()))


def block(*events: tuple[Any, Any, Any]) -> Tuples:
    """Return (timestamp, key, value) as a block of timestamped pairs."""
    timestamps, keys, values = (column_of(list(each)) for each in zip(*events, strict=True))
    return Tuples((timestamps, Tuples((keys, values), len(events))), len(events))


def partials(operator: FrameWindows, blocks: Iterable[Block], old: int = NO_WATERMARK) -> TaskPartials:
    """Return what a task sends of some blocks."""
    return operator.partial(0, ColumnItems(iter(blocks)), EpochTime(1, 0.0, old, old), 4)


def by_items(operator: FrameWindows, blocks: Iterable[Any], old: int = NO_WATERMARK) -> TaskPartials:
    """Return what it sends of the same items, one by one."""
    items: Iterator[Any] = iter([item for each in blocks for item in ColumnItems(iter([each]))])
    return operator.partial(0, items, EpochTime(1, 0.0, old, old), 4)


EVENTS = [(-11, "a", 1), (-10, "b", 2), (-1, "a", 3), (0, "a", 4), (9, "b", 5), (10, "c", 6), (10, "a", 7)]


@pytest.mark.parametrize("window", [tumbling(10), sliding(30, by=10), tumbling(10).with_offset(3)])
@pytest.mark.parametrize("key", [KEY, None, lambda item: (item[0], item[1] % 2)])
@pytest.mark.parametrize("operation", [counting(), summing(VALUE), all_of(counting(), averaging(VALUE))])
def test_blocks_give_what_items_give(window: FrameWindow, key: Any, operation: Any) -> None:
    """Frames before 1970 as well, in the same order, and also behind a block that is none."""
    operator = windows(window, operation, key)
    blocks = [block(*EVENTS), [(11, ("a", 8))], block(*EVENTS)]

    assert _are_same(operator, blocks)
    assert partials(operator, blocks).items == 2 * len(EVENTS) + 1


def _results(operator: FrameWindows, found: TaskPartials) -> list[Any]:
    """Return the results of all containers, in the order of frames and keys."""
    finish = operator.operation.on_input(0).finisher
    return [
        (shard, end, key, finish(container))
        for shard, (frames, _) in found.of_shards.items()
        for end, groups in frames.items()
        for key, container in groups.items()
    ]


def _are_same(operator: FrameWindows, blocks: list[Any]) -> bool:
    """Say whether blocks and their items give the same results, in the same order."""
    found, expected = partials(operator, blocks), by_items(operator, blocks)
    return found.items == expected.items and is_same(_results(operator, found), _results(operator, expected))


def test_blocks_are_not_looked_at_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair is made of a block whose keys and values are columns."""
    monkeypatch.setattr("dstream.operators.windows.buffers.given", lambda block: pytest.fail("items are made"))

    assert partials(windows(tumbling(10), summing(VALUE)), [block(*EVENTS)]).items == len(EVENTS)


@pytest.mark.parametrize(("old", "late"), [(-10, 1), (-1, 1), (0, 3), (10, 5)])
def test_late_items_of_a_block_are_apart(old: int, late: int) -> None:
    """Items of frames that have closed travel on with their keys."""
    operator = windows(tumbling(10), counting(), late=True)
    blocks = [block(*EVENTS), block((50, "z", 1))]

    found = partials(operator, blocks, old)

    assert found == by_items(operator, blocks, old)
    assert found.late == late
    assert sum(len(of_shard[1]) for of_shard in found.of_shards.values()) == late


@pytest.mark.parametrize(
    "unusual",
    [
        Tuples((column_of([1, 2]), Tuples((column_of(["a", "b"]), Floats(np.array([1.0, 2.0]))), 2)), 2),
        Tuples((column_of([1, 2]), Tuples((Floats(np.array([-0.0, 0.0])), column_of([1, 2])), 2)), 2),
        Tuples((column_of([True, False]), Tuples((column_of(["a", "b"]), column_of([1, 2])), 2)), 2),
        Tuples((Ints(np.array([2**62, 0]), 0, 2**62), Tuples((column_of(["a", "b"]), column_of([1, 2])), 2)), 2),
        Tuples((column_of([1, 2]), Tuples((column_of(["a", "b"]), column_of([2**62, 2**62])), 2)), 2),
        [(1, ("a", 1)), (2, (None, 2))],
        [(1, ("a", 1)), (2, (1.0, 2)), (3, (True, 1))],
        [],
    ],
)
def test_unusual_blocks_give_the_same(unusual: Any) -> None:
    """Floats, bools as timestamps, sums of more than 64 bits, keys of several types."""
    operator, blocks = windows(tumbling(10), summing(VALUE)), [block((1, "a", 1)), unusual, block((2, "a", 1))]

    assert _are_same(operator, blocks)


def test_what_is_seen_of_blocks_adds_up() -> None:
    """A block whose items are older leaves the greatest timestamp, and items one by one follow it."""
    seen = _Seen(limiting_lag(0), 0.0)
    seen.take(7, 2)
    seen.take(5, 1)
    assert list(seen.greatest_only(iter([(None, 3)]), int)) == [(3, 3)]

    assert (seen.greatest, seen.items) == (7, 4)


def test_items_without_a_timestamp_fail_with_the_item() -> None:
    """As items one by one do."""
    without = Tuples((ConstantColumn(None, 1), Tuples((column_of(["a"]), column_of([1])), 1)), 1)

    with pytest.raises(ValueError, match="an item without a timestamp"):
        partials(windows(tumbling(10), counting()), [without])


def test_verified_blocks_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here columns put all items into another frame."""
    operator = windows(tumbling(10), counting(), verified=True)
    assert partials(operator, [block(*EVENTS)]) == by_items(operator, [block(*EVENTS)])
    monkeypatch.setattr("dstream.operators.columns.windows.tight", lambda ints: Ints(ints.values + 10, 0, 0))

    with pytest.raises(ColumnsDifferError, match="counting"):
        partials(operator, [block(*EVENTS)])
