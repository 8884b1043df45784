"""Several splits that one task reads stand in columns as one of them does, and are opened one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from dstream.base.pickling import dumps
from dstream.engine.compiler.evaluation import read_op
from dstream.engine.tasks.runtime import CountItems, StageTask
from dstream.engine.tasks.stage import Piece
from dstream.operators.columns.values import Ints
from dstream.operators.rows import blocks as column_items
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.operations import operation
from dstream.plan.operations.elementwise import Chain
from dstream.plan.operations.sort_limit import Limit
from dstream.plan.steps import Op, Step
from dstream.spi import ArrowRows

_STEP = Step(".map(fn)", None, 1, 1)
_OPENED: list[int] = []


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_items, "_FEWEST", 4)
    _OPENED.clear()


@dataclass(frozen=True)
class _InColumns:
    """Numbers in columns and one by one; `_OPENED` has the first number of those that were opened."""

    numbers: tuple[int, ...]

    def read(self) -> Iterator[int]:
        _OPENED.append(self.numbers[0])
        return (number for number in self.numbers)

    def arrow_rows(self) -> Iterator[ArrowRows]:
        array = pa.array(self.numbers, pa.int64())
        parts = {"": lambda: array}
        yield ArrowRows(len(array), parts, frozenset(), lambda at: ArrowRows.chosen(array, at).to_pylist(), 100)


@dataclass(frozen=True)
class _Plain:
    """Items without columns."""

    items: Any

    def read(self) -> Iterator[Any]:
        return iter(self.items)


def _opened(*splits: Any, then: Callable[[Iterator[Any], Any], Iterator[Any]] | None = None) -> Iterator[Any]:
    """Open splits as one piece that triples what it reads."""
    op = read_op(Op("map", lambda x: x * 3, None, _STEP)).op
    chain = Chain(Limit(None, 0, step=_STEP), (op,), step=_STEP)  # type: ignore[arg-type]  # Nobody asks it.
    parts = tuple(Piece(dumps(each), (), () if then is None else (then,), _STEP) for each in splits)
    return Piece(None, parts, (operation(chain),), None).open(StageTask(0, 2**40))


def test_splits_of_one_task_stay_in_columns() -> None:
    """Also where one between them has none, whose items pass one by one."""
    found = _opened(_InColumns((1, 2)), _Plain("ab"), _InColumns((3, 2**40)))
    assert isinstance(found, ColumnItems)

    blocks = [each if isinstance(each, Ints) else list(each) for each in found.blocks()]  # type: ignore[arg-type]

    assert [each.values.tolist() if isinstance(each, Ints) else each for each in blocks] == [
        [3, 6],
        ["aaa", "bbb"],
        [9, 3 * 2**40],
    ]


def test_ranges_of_one_task_become_columns() -> None:
    """Those of a plan that runs in one task, say."""
    found = _opened(_Plain(range(5)), _Plain(range(5, 10)))
    assert isinstance(found, ColumnItems)

    assert list(found) == [number * 3 for number in range(10)]


def test_a_split_is_opened_when_the_one_before_it_is_used_up() -> None:
    """Who stops before has opened no more; the first one is opened at once, as one that stands alone."""
    found = _opened(_InColumns((1, 2)), _InColumns((3, 4)), _InColumns((5, 6)))
    assert _OPENED == [1]

    assert list(islice(found, 3)) == [3, 6, 9]

    assert _OPENED == [1, 3]
    assert list(found) == [12, 15, 18]


def test_whoever_asks_for_items_gets_those_of_the_splits() -> None:
    """No columns are made where the first step is one that is called."""
    parts = tuple(Piece(dumps(_InColumns(some)), (), (), _STEP) for some in ((1, 2), (3, 4)))

    found = Piece(None, parts, (), None).open(StageTask(0, 2**40))
    assert isinstance(found, ColumnItems)
    assert (found.is_read, list(found)) == (True, [1, 2, 3, 4])
    assert list(Piece(None, (), (), None).open(StageTask(0, 2**40))) == []


def test_items_that_somebody_watches_stay_in_columns() -> None:
    """The number of those that were read is known when the task ends."""
    counted: list[dict[str, int]] = []
    watching = CountItems(_Sums(counted), "read")
    for split in (_InColumns(tuple(range(9))), _Plain(range(9))):
        task = StageTask(0, 2**40)
        found = Piece(dumps(split), (), (watching,), _STEP).open(task)
        assert isinstance(found, ColumnItems)
        with task.ending():
            assert list(islice(found, 7)) == list(range(7))

    assert counted == [{"read": 7}, {"read": 7}]


@dataclass(frozen=True)
class _Sums:
    """An accumulator that keeps what it is told."""

    added: list[dict[str, int]]

    def add(self, numbers: dict[str, int]) -> None:
        self.added.append(numbers)
