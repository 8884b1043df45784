"""Sums by key that `+` makes have the digits that it gives item by item, also where blocks of ints and others meet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from dstream.base.memory import Bound
from dstream.collectors.entries import folded_values
from dstream.connectors.collections.sinks import entries
from dstream.engine.compiler.evaluation import collector_read
from dstream.operators.columns.collectors import group_tables
from dstream.operators.columns.values import NotColumnar, column_of
from dstream.operators.rows.aggregates import groups_of_partition
from dstream.operators.rows.blocks import Block, ColumnItems
from dstream.operators.rows.group_tables import collected, is_table
from dstream.plan.steps import Step

STEP = Step("reduce_by_key", None, 1, 1)
LARGE = 2.0**53
"""An int that is added to it is lost; several of them together are not."""

_OF_INTS = [(number % 3, 1) for number in range(20)]
_OF_FLOATS = [(number % 3, LARGE) for number in range(4)]
_OF_TEXTS = [(str(number % 3), 1) for number in range(20)]
_PAIRS = [((number % 3, "a"), 1) for number in range(20)]
_FOLDS: list[Callable[[], Any]] = [lambda: folded_values(operator.add), lambda: entries(None, None, operator.add)]


def _read(make: Callable[[], Any]) -> Any:
    found = collector_read(make(), is_verified=False)[0]
    assert found.on_columns() is not None
    return found


def _blocks(*parts: list[Any]) -> Iterator[Block]:
    for part in parts:
        try:
            yield column_of(part)
        except NotColumnar:
            yield iter(part)


@pytest.mark.parametrize("make", _FOLDS)
@pytest.mark.parametrize(
    "parts",
    [
        [_OF_INTS, _OF_FLOATS, _OF_INTS],
        [_OF_FLOATS, _OF_INTS, _OF_INTS],
        [_OF_TEXTS, [("1", LARGE)], _OF_TEXTS, _OF_TEXTS],
        [_PAIRS, [((1, "a"), LARGE)], _PAIRS],
        [_OF_INTS, [(1, 1), (2, True)], _OF_FLOATS, _OF_INTS],
        [_OF_INTS, [(1, 2**70), (1.0, 1)], _OF_INTS, _OF_FLOATS, [(4, 2)], _OF_INTS],
    ],
)
def test_sums_have_the_digits_of_python(make: Callable[[], Any], parts: list[list[Any]]) -> None:
    """A float gets each int by itself, in order: in a container, and as one partition sends it."""
    expected = make().collect([item for part in parts for item in part])

    read = _read(make)
    assert repr(read.finisher(collected(read, ColumnItems(_blocks(*parts))))) == repr(expected)
    assert repr(dict(_sent(read, *parts))) == repr(dict(expected))


def test_sums_of_blocks_by_chance_have_the_digits_of_python() -> None:
    """For 400 partitions of a few blocks, some of them of ints alone."""
    for seed in range(400):
        random = Random(seed)
        keys = random.choice([[0, 1], ["a", "b"], [(0, "a"), (1, "a")], [0.0, 1], [True, 0]])
        parts = [_part(keys, random) for _ in range(random.randrange(1, 7))]
        make = random.choice(_FOLDS)
        expected = make().collect([item for part in parts for item in part])

        assert repr(dict(_sent(_read(make), *parts))) == repr(dict(expected)), f"seed {seed}: {parts}"


def _part(keys: list[Any], random: Random) -> list[Any]:
    values: list[Any] = random.choice([[1, 2], [1, 2, 5], [1, 0.1], [LARGE, 3], [True, 7], [2**62, 2**63], [0.1, 0.7]])
    return [(random.choice(keys), random.choice(values)) for _ in range(random.randrange(1, 12))]


def _sent(read: Any, *parts: list[Any]) -> Sequence[tuple[Any, Any]]:
    class Task:
        bound = Bound()

    found = groups_of_partition(read, 0, STEP, False, False, ColumnItems(_blocks(*parts)), Task())  # type: ignore[arg-type]
    ((keys, containers),) = found
    return list(zip(keys, containers, strict=True))


def test_a_block_of_other_ints_leaves_the_next_ones_in_columns() -> None:
    """Ints beyond 64 bits are added up in any order."""
    read = _read(_FOLDS[0])
    taken: list[Any] = []

    def blocks() -> Iterator[Block]:
        for part in (_OF_INTS, [(1, 2**70)], _OF_INTS):
            taken.extend(part)
            yield from _blocks(part)

    (found,) = group_tables(read, read.in_columns, blocks(), Bound())
    assert not is_table(found)
    assert found.groups == {0: 14, 1: 14 + 2**70, 2: 12}  # type: ignore[union-attr]


@pytest.mark.parametrize("parts", [[_OF_INTS, _OF_INTS], [_OF_TEXTS, _OF_TEXTS], [_PAIRS, _PAIRS]])
def test_tables_of_ints_are_one_table(parts: list[list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """So each key has one container, to which those of other partitions are added."""
    monkeypatch.setattr("dstream.operators.columns.collectors._MOST_NUMBERS", 1)
    monkeypatch.setattr("dstream.operators.columns.groups._MOST_STRING_GROUPS", 1)
    monkeypatch.setattr("dstream.operators.columns.group_by._MOST_WEIGHT", 1)

    found = dict(_sent(_read(_FOLDS[0]), *parts))
    assert found == _FOLDS[0]().collect([item for part in parts for item in part])


def test_past_the_memory_bound_groups_come_in_rounds() -> None:
    """What has come is given, and the next round begins with ints again."""

    class Full(Bound):
        def exceeded(self, coming: int = 0) -> bool:
            return True

    read = _read(_FOLDS[0])
    parts = [_OF_INTS, _OF_FLOATS, _OF_INTS]
    found = list(group_tables(read, read.in_columns, _blocks(*parts), Full()))

    totals = [sum(total for _, _, total in each.lines()) for each in found if is_table(each)]  # type: ignore[arg-type]
    assert totals == [20, 20]
    others = [each.groups for each in found if not is_table(each)]  # type: ignore[union-attr, arg-type]
    assert sum(sum(groups.values()) for groups in others) == 4 * LARGE
    assert len(others) > 1
