"""Items that stand in columns: what steps and collectors make of them, block by block, with a way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from collectors import averaging, counting, frequencies, grouping_by, summing
from dstream.engine.compiler.evaluation import collector_read, read_op
from dstream.engine.tasks.runtime import StageTask
from dstream.errors import EngineError
from dstream.failures.account import known_of
from dstream.operators.columns.chain_evaluation import is_same
from dstream.operators.columns.values import size_of_column
from dstream.operators.rows import blocks
from dstream.operators.rows.batches import Batcher, loads_items
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.operators.rows.operations import operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Guard, Op, Step, unchanged
from dstream.values import Entry, Optional

_STEP = Step(".map(fn)", None, 1, 1)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_FEWEST", 4)
    monkeypatch.setattr(blocks, "_ROWS", 4)
    monkeypatch.setattr(blocks, "_WORTH_A_LIST", 0)
    monkeypatch.setattr(blocks, "_NUMBERS", frozenset({int, float, bool, tuple}))


def _op(action: str, fn: Callable[[Any], Any], kind: type | None = None) -> Op:
    op = read_op(Op(action, fn, kind, _STEP)).op
    assert op.evaluation.expression is not None, "these tests are about functions that are read"
    return op


def _items(items: Any, *ops: Op) -> Iterator[Any]:
    chain = Chain(Limit(None, 0, step=_STEP), ops, step=_STEP)  # type: ignore[arg-type]
    return operation(chain)(iter(items), StageTask(0, 2**40))


def test_a_range_passes_its_steps_in_blocks() -> None:
    """Whoever asks for items gets them; the last steps may be ones that are not known."""
    found = _items(
        range(10), _op("map", lambda x: x * 3), _op("filter", lambda x: x % 2 == 0), Op("map", str, None, _STEP)
    )

    assert list(found) == ["0", "6", "12", "18", "24"]


def test_blocks_are_columns() -> None:
    """As long as nobody asked for an item."""
    found = _items(list(range(10)), _op("map", lambda x: x * 3))

    assert isinstance(found, ColumnItems)
    assert [type(block).__name__ for block in found.blocks()] == ["Ints", "Ints", "Ints"]


def _around(action: Literal["unpair", "pair"]) -> Op:
    return read_op(Op(action, unchanged, None, _STEP)).op


_PAIRS = [(100 + n, n) for n in range(8)]


@pytest.mark.parametrize(
    ("steps", "values"),
    [
        ([("filter", lambda x: x % 2 == 0), ("map", lambda x: x * 10)], {0: 0, 2: 20, 4: 40, 6: 60}),
        # What needs more than 64 bits leaves the columns, in the second block behind a filter.
        ([("filter", lambda x: x > 5), ("map", lambda x: x * 2**62)], {6: 6 * 2**62, 7: 7 * 2**62}),
        ([("map", lambda x: x + 1), ("flat_map", lambda x: [x] * (x % 2))], {0: 1, 2: 3, 4: 5, 6: 7}),
    ],
)
def test_timestamps_are_those_of_the_items_that_pass(steps: list[Any], values: dict[int, int]) -> None:
    """Timestamps leave the items in columns, and return to those that pass."""
    found = _items(_PAIRS, _around("unpair"), *(_op(*each) for each in steps), _around("pair"))

    assert list(found) == [(100 + n, value) for n, value in values.items()]


def test_timestamps_stay_beside_items_that_a_loop_takes() -> None:
    """The columns end before pairs are taken apart that only steps behind them put together."""
    steps = [_op("map", lambda x: x + 1), Op("map", str, None, _STEP)]

    assert list(_items(_PAIRS, _around("unpair"), *steps, _around("pair"))) == [(100 + n, str(n + 1)) for n in range(8)]


def test_items_that_leave_their_timestamps_have_none() -> None:
    """Items get no timestamps from earlier pairs."""
    steps = [_around("unpair"), _op("map", lambda x: x + 1), _around("pair"), _op("map", lambda x: x[1])]

    assert list(_items(_PAIRS, *steps, _around("pair"))) == [(None, n + 1) for n in range(8)]


def test_items_that_were_asked_for_come_once() -> None:
    """What is left comes in blocks that are no columns."""
    found = _items(range(10), _op("map", lambda x: x + 1))
    assert isinstance(found, ColumnItems)

    first = list(islice(found, 2))

    assert first == [1, 2]
    assert [list(block) for block in found.blocks()] == [[3, 4, 5, 6, 7, 8, 9, 10]]  # type: ignore[arg-type]


def test_few_items_and_others_pass_one_by_one() -> None:
    """A column costs more than it saves for few of them; what has no columns is left alone."""
    assert not isinstance(_items(range(3), _op("map", lambda x: x + 1)), ColumnItems)
    assert not isinstance(_items((n for n in range(9)), _op("map", lambda x: x + 1)), ColumnItems)


def test_a_list_that_costs_more_than_it_saves_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making a column of it takes as long as some operators in a loop."""
    monkeypatch.setattr(blocks, "_WORTH_A_LIST", 3)
    little, much = _op("map", lambda x: x + 1), _op("map", lambda x: (x + 1) * 3 % 5)

    assert not isinstance(_items([1, 2, 3, 4, 5], little), ColumnItems)
    assert isinstance(_items([1, 2, 3, 4, 5], much), ColumnItems)
    assert not isinstance(_items(["a", "b", "c", "d", "e"], much), ColumnItems)


def test_a_block_that_falls_back_gives_what_python_gives_before_it_fails() -> None:
    """The blocks before it stay; its items run one by one, and the failing one is to blame."""
    found = _items(range(10), _op("map", lambda x: 10 // (6 - x)))
    given: list[int] = []

    with pytest.raises(ZeroDivisionError) as raised:
        given.extend(found)

    assert given == [10 // 6, 2, 2, 3, 5, 10]
    failure = known_of(raised.value)
    assert failure is not None
    assert (failure.step, failure.item) == (_STEP, 6)


def test_a_block_of_others_falls_back_alone() -> None:
    """Blocks of a list have types of their own."""
    items = [1, 2, 3, 4, 2**70, 1, 2, 3, 1.5, 2.5, 3.5, 4.5]
    found = _items(items, _op("map", lambda x: x * 2))
    assert isinstance(found, ColumnItems)

    kinds = [type(block).__name__ for block in found.blocks()]

    assert kinds[0], kinds[2] == ("Ints", "Floats")
    assert list(_items(items, _op("map", lambda x: x * 2))) == [item * 2 for item in items]


def test_after_some_fallbacks_the_rest_is_not_tried() -> None:
    """It would cost the same again and again."""
    found = _items([2**70] * 40, _op("map", lambda x: x + 1))
    assert isinstance(found, ColumnItems)

    sizes = [len(list(block)) for block in found.blocks()]  # type: ignore[arg-type]

    assert sizes == [4, 4, 4, 28]


@pytest.mark.parametrize(
    ("kind", "items", "expected"),
    [
        (int, [1, 2, 3, 4], [1, 2, 3, 4]),
        (int, [True, False, True, True], [1, 0, 1, 1]),
        (float, [1, 2, 2**53 + 1, 4], [1.0, 2.0, float(2**53 + 1), 4.0]),
        (float, [True, False, True, True], [1.0, 0.0, 1.0, 1.0]),
    ],
)
def test_numeric_streams_convert_columns_as_items(kind: type, items: list[Any], expected: list[Any]) -> None:
    """Bools become ints, ints floats; the step before has an expression."""
    found = list(_items(items, _op("map", lambda x: x, kind)))

    assert list(map(repr, found)) == list(map(repr, expected))


def test_floats_are_no_ints() -> None:
    """A column of them is refused as an item is."""
    with pytest.raises(TypeError, match=r"an int is needed here, not float: 1\.5"):
        list(_items([1.5, 2.5, 3.5, 4.5], _op("map", lambda x: x, int)))


def test_nothing_is_evaluated_for_a_block_of_which_no_item_is_left() -> None:
    """Not even what is the same for all items: Python never reaches it, and it may take long, or fail."""
    found = _items(range(10), _op("filter", lambda x: x > 100), _op("map", lambda x: (x * 0, 1 // 0)))

    assert isinstance(found, ColumnItems)
    assert all(size_of_column(block) == 0 for block in found.blocks())  # type: ignore[arg-type]


def test_a_step_that_only_converts_alone_makes_no_columns() -> None:
    """Without an expression there is nothing to gain."""
    assert not isinstance(_items(range(9), Op("map", unchanged, float, _STEP)), ColumnItems)


def test_a_step_with_a_guard_takes_items() -> None:
    """What it fails on is treated item by item."""
    op = _op("map", lambda number: 10 // number)
    guard = Guard((ZeroDivisionError,), "ignored", None, None, None, _STEP, _STEP)

    assert op.evaluation.obstacle is None
    assert read_op(replace(op, guards=(guard,))).op.evaluation.obstacle == "a map takes one item at a time"


def test_verify_finds_a_function_that_gives_something_else() -> None:
    """The error names the step, both values and the item."""
    right, other = _op("map", lambda x: x + 1), _op("map", lambda x: x * 2)
    wrong = replace(right, fn=other.fn, evaluation=replace(right.evaluation, is_verified=True))

    with pytest.raises(EngineError, match=r"step 1 of 1: .map\(fn\): columns give 1 where Python gives 0 for 0"):
        list(_items(range(5), wrong))


def test_a_flat_map_takes_items() -> None:
    """Also where its function is known."""
    found = _items(range(5), _op("map", lambda x: x + 1), _op("flat_map", lambda x: (x, -x)))

    assert list(found) == [1, -1, 2, -2, 3, -3, 4, -4, 5, -5]


@dataclass
class _Sale:
    shop: int
    price: float


@dataclass(eq=False)
class _Visit:
    shop: float


class _Place(NamedTuple):
    shop: float


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[((1,), [1]), (1, 1.0), (0.0, -0.0), ((1, 0.0), (1, -0.0)), ("a", "b")],
        *[(Entry("a", 1), Entry("a", True)), (_Place(1), _Place(1.0)), (_Sale(1, 0.0), _Sale(1, -0.0))],
        *[(_Visit(1), _Visit(1.0)), (Optional.of(1), Optional.of(1.0)), (Optional.of(1), Optional.empty())],
        (Decimal("1.0"), Decimal("1.00")),
        (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=ZoneInfo("UTC"))),
    ],
)
def test_verify_tells_types_and_signs_apart(one: Any, other: Any) -> None:
    """Inside of tuples and objects too; NaN is NaN."""
    assert not is_same(one, other)
    assert is_same(one, one)
    assert is_same(float("nan"), float("nan"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: _Visit(1.5),
        lambda: _Sale(1, float("nan")),
        lambda: Entry("a", (float("nan"), _Visit(float("nan")))),
        lambda: Optional.of({"price": float("nan")}),
        lambda: datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
    ],
)
def test_verify_takes_objects_that_were_made_twice_for_the_same(make: Callable[[], Any]) -> None:
    """Also those that do not say so themselves: they compare by identity, or have a NaN."""
    assert is_same(make(), make())


def test_verify_finds_another_type() -> None:
    """An int is not the float that equals it."""
    right, other = _op("map", lambda x: x + 1), _op("map", lambda x: x + 1.0)
    wrong = replace(right, fn=other.fn, evaluation=replace(right.evaluation, is_verified=True))

    with pytest.raises(EngineError, match=r"columns give 1 where Python gives 1\.0 for 0"):
        list(_items(range(5), wrong))


@pytest.mark.parametrize(
    "items",
    [range(100), [0.1] * 50 + [1e100, 1.0, -1e100] * 5, [2**62] * 20 + [-5] * 9, [True, 2, 3.5, 4, 5, 6, 7, 8, 9, 10]],
)
@pytest.mark.parametrize(
    "collector",
    [
        counting(),
        summing(),
        averaging(),
        frequencies(),
        grouping_by(lambda x: x % 7, summing(lambda x: x * 3)),
        grouping_by(lambda x: x % 7, summing()),
    ],
)
def test_collectors_take_blocks(collector: Any, items: Any) -> None:
    """Their containers are those that items make, also the types of keys."""
    known = collector_read(collector, is_verified=True)[0]
    assert known.in_columns is not None

    found = collected(known, _items(items, _op("map", lambda x: x)))

    expected = collector.accumulated(collector.supplier(), items)
    assert found == expected
    assert repr(collector.finisher(found)) == repr(collector.finisher(expected))


def test_verify_finds_a_collector_that_takes_something_else() -> None:
    """What columns made of a block is compared with what its items make."""
    from dataclasses import replace

    known = collector_read(summing(lambda x: x + 1), is_verified=True)[0]
    other = collector_read(summing(lambda x: x + 2), is_verified=True)[0].in_columns
    assert known.in_columns is not None
    assert other is not None
    wrong = replace(known, in_columns=replace(known.in_columns, expression=other.expression))

    with pytest.raises(EngineError, match=r"summing\(\.\.\.\): columns give 14 where Python gives 10 for a block of 4"):
        collected(wrong, _items(range(8), _op("map", lambda x: x + 0)))


def test_a_collector_with_other_functions_takes_no_columns() -> None:
    """What stood in their place is not known."""
    from dataclasses import replace

    known = collector_read(counting(), is_verified=False)[0]
    twice = replace(known, accumulator=lambda count, item: count + 2, accumulate_all=None)

    assert collected(twice, _items(range(8), _op("map", lambda x: x))) == 16


def test_columns_travel_as_lists() -> None:
    """Whoever reads them needs no columns; no batch has more rows than others."""
    items = [(1, 2.5, True, "a", None), (-1, -0.0, False, "", None)] * 10
    found = _items(items, _op("map", lambda x: (x[0], (x[1], x[2]), x[3], x[4], 7)))

    batches = [loads_items(data) for _, data in Batcher().batches(found)]

    assert [item for batch in batches for item in batch] == [(a, (b, c), d, e, 7) for a, b, c, d, e in items]
    assert {type(item[1][0]) for batch in batches for item in batch} == {float}
