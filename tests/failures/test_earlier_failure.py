"""Where two items are wrong, the first one is blamed, although items are taken many at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dstream as ds
from collectors import averaging, counting, grouping_by, mapping, min_by, partitioning_by, summing, to_list, to_map
from dstream.base.memory import BatchIterator, pieces
from reducers import to_imap
from tests.conftest import EngineUnderTest

FEW, LATER, COUNT = 7, 9, 12
MANY = 1_200
"""Behind so many items lists are long, and both wrong items are in one."""


class Wrong(Exception):
    """What a step raises about the earlier item."""


class WrongLater(Exception):
    """What the step before it raises about a later one."""


def first_wrong(number: int) -> int:
    """Refuse the earlier of the two items."""
    if number in (FEW, MANY + FEW):
        raise Wrong(number)
    return number


def then_wrong(number: int) -> int:
    """Refuse the later one, though it meets its items first."""
    if number in (LATER, MANY + LATER):
        raise WrongLater(number)
    return number


def joined(stream: ds.Stream[int], engine: EngineUnderTest) -> Any:
    """Join by a key that cannot be made of one item."""
    return stream.key_by(first_wrong).join(engine.stream([1, 2], 1).key_by(lambda number: number)).to_list()


ENDS: dict[str, Callable[[ds.Stream[int], EngineUnderTest], Any]] = {
    "map": lambda stream, engine: stream.map(first_wrong).to_list(),
    "grouping_by": lambda stream, engine: stream.collect(grouping_by(first_wrong, counting())),
    "partitioning_by": lambda stream, engine: stream.collect(partitioning_by(lambda number: first_wrong(number) > 3)),
    "mapping": lambda stream, engine: stream.collect(mapping(first_wrong, to_list())),
    "to_map": lambda stream, engine: stream.collect(to_map(first_wrong, str)),
    "summing": lambda stream, engine: stream.collect(summing(first_wrong)),
    "averaging": lambda stream, engine: stream.collect(averaging(first_wrong)),
    "min_by": lambda stream, engine: stream.collect(min_by(first_wrong)),
    "min": lambda stream, engine: stream.min(first_wrong),
    "reduce": lambda stream, engine: stream.reduce(0, lambda total, number: total + first_wrong(number)),
    "distinct": lambda stream, engine: stream.distinct(first_wrong).to_list(),
    "reduce_by_key": lambda stream, engine: stream.key_by(first_wrong).reduce_by_key(max).to_list(),
    "count_by_key": lambda stream, engine: stream.key_by(first_wrong).count_by_key().to_list(),
    "join": joined,
    "take_while": lambda stream, engine: stream.take_while(lambda number: first_wrong(number) >= 0).to_list(),
    "to_imap": lambda stream, engine: stream.collect(to_imap("earlier", first_wrong, str)),
}


@pytest.mark.on_spark("name")
@pytest.mark.parametrize("numbers", [range(COUNT), range(COUNT, MANY + COUNT)], ids=["few", "many"])
@pytest.mark.parametrize("name", ENDS)
def test_the_first_wrong_item_is_blamed(name: str, numbers: range, engine: EngineUnderTest) -> None:
    """The step that meets it runs behind the one that meets the other, which is asked for many items ahead."""
    stream = engine.stream(list(numbers), 1).map(then_wrong)
    with pytest.raises(Wrong):
        ENDS[name](stream, engine)


def failing_behind(count: int) -> Iterator[int]:
    """Give so many numbers, and fail."""
    yield from range(count)
    raise Wrong


def in_pieces(items: Iterator[int], most: int, found: list[int]) -> None:
    """Find what the lists hold."""
    for piece in pieces(items, most):
        found += piece


def looking_ahead(items: Iterator[int], found: list[int]) -> None:
    """Find what there is by taking more and fewer items, and look each time whether there is more."""
    taking, sizes = BatchIterator(items), itertools.cycle([1, 3, 600])
    while taking.has_more() and taking.has_more():
        found += taking.take(next(sizes))


@pytest.mark.parametrize("most", [1, 7, 512, 100_000])
@pytest.mark.parametrize("count", [0, 1, 10, 1_000, 20_000])
def test_a_list_ends_before_an_item_that_cannot_be_made(most: int, count: int) -> None:
    """However long lists may be."""
    found: list[int] = []
    with pytest.raises(Wrong):
        in_pieces(failing_behind(count), most, found)
    assert found == list(range(count))


@pytest.mark.parametrize("count", [0, 1, 10, 1_000])
def test_who_looks_ahead_loses_nothing(count: int) -> None:
    """The item that was read ahead comes first, and a failure that was met then is met again."""
    found: list[int] = []
    with pytest.raises(Wrong):
        looking_ahead(failing_behind(count), found)
    assert found == list(range(count))


def test_looking_ahead_costs_no_stack() -> None:
    """However often somebody looks."""
    taking = BatchIterator(iter(range(100_000)))
    found = 0
    while taking.has_more():
        found += len(taking.take(1))
    assert found == 100_000
