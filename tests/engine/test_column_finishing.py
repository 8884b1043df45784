"""What tables of groups become: what their collector's own finisher gives, beside the first rank and the key."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from collectors import averaging, counting, summing, summing_double
from dstream.base.memory import Bound
from dstream.engine.tasks.runtime import StageTask
from dstream.failures.account import known_of
from dstream.operators.columns.group_by import TextBuffer
from dstream.operators.columns.group_results import finished_entries, finished_tables
from dstream.operators.columns.groups import grouped, groups_of_texts
from dstream.operators.columns.strings import Strings
from dstream.operators.columns.values import Ints, column_of
from dstream.operators.rows.aggregates import _GroupResults
from dstream.operators.rows.blocks import ColumnItems, given, lists_of_few
from dstream.plan.steps import Step
from dstream.values import Entry

_STEP = Step("aggregate_by_key", None, 1, 1)


def _ints(*values: int) -> Ints:
    found = column_of(list(values))
    assert isinstance(found, Ints)
    return found


def _texts(*values: str) -> Strings:
    found = column_of(list(values))
    assert isinstance(found, Strings)
    return found


_OF_INTS = grouped(_ints(7, 8, 7), _ints(1, 2, 4))
_OF_TEXTS = groups_of_texts(_texts("a", "b", "a"), _ints(1, 2, 4))


def _failing(container: Any) -> Any:
    return 1 // 0


@pytest.mark.parametrize(
    ("downstream", "values"),
    [
        (counting(), (2, 1)),
        (replace(counting(), finisher=operator.neg), (-2, -1)),
        (summing(), (5, 2)),
        (summing_double(lambda n: n), (5.0, 2.0)),
        (averaging(), (2.5, 2.0)),
        (replace(averaging(), finisher=repr), ("1407374883553282", "562949953421313")),
    ],
)
@pytest.mark.parametrize(("table", "keys"), [(_OF_INTS, (7, 8)), (_OF_TEXTS, ("a", "b"))])
def test_groups_are_finished_as_their_collector_does(downstream: Any, values: Any, table: Any, keys: Any) -> None:
    """In columns if it is known what that gives, and otherwise by the finisher itself."""
    table = replace(table, sums=()) if downstream.on_columns().finds == "count" else table
    (block,) = finished_tables(downstream, [table])  # type: ignore[misc]
    assert repr(list(given(block))) == repr(list(zip((0, 1), keys, values, strict=True)))


@pytest.mark.parametrize("downstream", [summing(), summing_double(lambda n: n)])
def test_a_function_makes_of_a_group_what_goes_on(downstream: Any) -> None:
    """Without one, entries do."""
    plain = finished_entries(downstream, None, _STEP, [_OF_INTS])
    made = finished_entries(downstream, lambda key, total: (total, key), _STEP, [_OF_INTS])
    assert [each for block in plain or () for each in given(block)] == [Entry(7, 5), Entry(8, 2)]
    assert [each for block in made or () for each in given(block)] == [(5, 7), (2, 8)]


def test_keys_of_two_types_make_no_table() -> None:
    """They go on as lists."""
    assert finished_tables(summing(), [_OF_INTS, _OF_TEXTS]) is None


@pytest.mark.parametrize(
    ("downstream", "to"), [(replace(summing(), finisher=_failing), None), (summing(), lambda key, total: 1 // 0)]
)
def test_a_failure_names_the_key_of_its_group(downstream: Any, to: Any) -> None:
    """Whether the finisher fails, or what takes its result."""
    found = finished_entries(downstream, to, _STEP, [_OF_INTS])
    with pytest.raises(ZeroDivisionError) as caught:
        [list(given(block)) for block in found or ()]
    failure = known_of(caught.value)
    assert failure is not None
    assert failure.given == "in the group of the key 7"


def _of(number: int) -> Any:
    return summing().accumulated(summing().supplier(), [number])


@pytest.fixture(params=[False, True])
def is_full(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Say whether the memory of the process is full."""
    is_full: bool = request.param
    monkeypatch.setattr(Bound, "exceeded", lambda self, coming=0: is_full)
    return is_full


@pytest.mark.parametrize("batches", ["tables", "tables and lists", "tables of two types"])
def test_one_task_gives_groups_in_the_order_of_their_first_keys(batches: str, is_full: bool) -> None:
    """Of tables alone, which fit into memory, in columns; and otherwise the same, one by one."""
    found: list[Any] = [grouped(_ints(9, 7), _ints(1, 2)), grouped(_ints(3, 9, 7, 3), _ints(4, 8, 16, 32))]
    expected = [Entry(9, 9), Entry(7, 18), Entry(3, 36)]
    if batches == "tables and lists":
        found.insert(1, ([5, 7], [_of(64), _of(128)]))
        expected = [Entry(9, 9), Entry(7, 146), Entry(5, 64), Entry(3, 36)]
    elif batches == "tables of two types":
        found.insert(1, _OF_TEXTS)
        expected = [Entry(9, 9), Entry(7, 18), Entry("a", 5), Entry("b", 2), Entry(3, 36)]
    blocks = _GroupResults([summing()], None, _STEP).in_order(iter(found), StageTask(0, 2**40))
    assert isinstance(blocks, ColumnItems)
    made = list(blocks.blocks())

    assert list(chain.from_iterable(map(given, made))) == expected
    assert isinstance(made[0], Iterator) == (is_full or batches != "tables")


def test_texts_that_differ_are_counted_together(is_full: bool) -> None:
    """Each as often as it occurs, in the order of the first ones, whatever is held between the blocks."""
    blocks = [_texts("c", "a", "b"), _texts("a", "a", "a", "a"), _texts("e\n", "c"), _texts("b"), _texts("ä", "c", "")]
    buffer = TextBuffer(Bound())
    tables = [*chain.from_iterable(map(buffer.take, blocks)), *buffer.rest(), *buffer.rest()]
    counts: Counter[str] = Counter()
    for table in tables:
        for key, count in table.lines():
            counts[key] += count

    assert list(counts.items()) == [("c", 3), ("a", 5), ("b", 2), ("e\n", 1), ("ä", 1), ("", 1)]
    assert len(tables) == (5 if is_full else 1)


def test_texts_that_repeat_are_counted_at_once() -> None:
    """So that the table of a block stays small."""
    buffer = TextBuffer(Bound())
    (table,) = buffer.take(_texts(*"ababab"))

    assert list(table.lines()) == [("a", 3), ("b", 3)]
    assert list(buffer.rest()) == []


def _failing_at_the_end(*blocks: Any) -> Iterator[Any]:
    yield from blocks
    raise ValueError("torn")


def test_few_items_beside_columns_become_lists() -> None:
    """Before, between and behind them; many stay as they are, and so do all without columns."""
    column, many = _ints(1, 2), range(5_000)
    found = list(lists_of_few(iter([iter([5]), column, iter([6, 7]), [8], column, iter(many), iter([9])])))

    assert [each if isinstance(each, list) else type(each).__name__ for each in found] == (
        [[5], "Ints", [6, 7], [8], "Ints", "chain", [9]]
    )
    assert list(given(found[5])) == list(many)
    assert [list(given(each)) for each in lists_of_few(iter([iter([5]), iter(()), iter([6])]))] == [[5], [6]]
    assert not any(isinstance(each, list) for each in lists_of_few(iter([iter([5]), iter([6])])))


def test_items_before_a_failure_are_given_before_it() -> None:
    """Of the block that fails, and of those before it."""
    blocks = lists_of_few(_failing_at_the_end(_ints(1), iter([5])))
    assert isinstance(next(blocks), Ints)
    assert list(given(next(blocks))) == [5]
    with pytest.raises(ValueError, match="torn"):
        next(blocks)
    blocks = lists_of_few(iter([_ints(1), _failing_at_the_end(6, 7)]))
    next(blocks)
    assert list(given(next(blocks))) == [6, 7]
    with pytest.raises(ValueError, match="torn"):
        next(blocks)
