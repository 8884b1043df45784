"""Operators give what their definitions in plain Python give, wherever epochs, partitions and shards end."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from collectors import mapping, to_list
from dstream.operators.joins.intervals import IntervalJoin
from dstream.operators.state.keyed_operators import KeyedDistinct, RollingAggregate, StatefulMapping
from dstream.spi.epochs import StateOperator
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Late
from tests.operators import definitions
from tests.operators.by_hand import DUMPED, KEPT, PATCHED, ByHand
from tests.operators.definitions import Epochs, same

KEYS = ["a", "b", 1, 1.0, True, 2, None, float("nan"), ("a", float("nan")), (None, 1)]
SEEDS = range(60)
LAGS = [0, 8, 1000]
"""Of the watermark behind the time of the source: with the last one, no item is late."""


def key_of(item: Any) -> Any:
    """Return the key of `(key, number)`."""
    return item[0]


def number_of(item: Any) -> int:
    """Return the number of `(key, number)`."""
    return int(item[1])


def numbers_so_far(state: list[int], key: Any, item: Any) -> Any:
    """Take the number into the state, and return all that it has."""
    state.append(item[1])
    return key, list(state)


def farewell(state: list[int], key: Any, watermark: int) -> Any:
    """Say what a state had, and when it went."""
    return key, ["gone", *state, watermark]


def keyed(item: Any) -> Any:
    """Return what was given, in the words of the definitions."""
    return same(item[0]), item[1]


def paired(pair: Any) -> Any:
    """The same of a pair of a join."""
    (key, left), (_, right) = pair
    return same(key), (left, right)


def random_epochs(chance: random.Random, inputs: int, lag: int) -> Epochs:
    """Return epochs of items out of order, and one in which all inputs have ended."""
    epochs: Epochs = []
    time, watermark, numbers = chance.randrange(-50, 50), NO_WATERMARK, itertools.count()
    for _ in range(chance.randrange(1, 12)):
        given: list[list[list[Any]]] = [[[] for _ in range(chance.randint(1, 4))] for _ in range(inputs)]
        for number in itertools.islice(numbers, chance.choice([0, 1, 5, 20])):
            time += chance.choice([0, 1, 1, 2, 15])
            chance.choice(chance.choice(given)).append((time - chance.randrange(12), (chance.choice(KEYS), number)))
        watermark = max(watermark, time - lag) if chance.random() < 0.7 else watermark
        epochs.append((given, watermark))
    return [*epochs, ([[] for _ in range(inputs)], END_OF_TIME)]


def run(operator: StateOperator, epochs: Epochs, chance: random.Random, words: Callable[[Any], Any] = keyed) -> Any:
    """Return (epoch, timestamp, item) of all that an operator gives, on shards whose states come and go."""
    by_hand = ByHand(operator, chance.randint(1, 7), lambda: chance.choice([KEPT, DUMPED, PATCHED]))
    found = []
    for epoch, (inputs, watermark) in enumerate(epochs):
        for timestamp, item in by_hand.epoch(*inputs, to=watermark):
            said = Late(keyed(item.item)) if isinstance(item, Late) else words(item)
            found.append((epoch, timestamp, said))
    assert by_hand.late == sum(isinstance(item, Late) for _, _, item in found)
    return found


def by_key(found: Iterable[Any]) -> dict[Any, list[Any]]:
    """Return what came out for each key, in order; what was late on its own, sorted."""
    sorted_out: dict[Any, list[Any]] = defaultdict(list)
    for epoch, timestamp, item in found:
        late = isinstance(item, Late)
        sorted_out["late" if late else item[0]].append((epoch, timestamp, item))
    sorted_out["late"].sort(key=repr)
    return sorted_out


@pytest.mark.parametrize("lag", LAGS)
def test_rolling_aggregates_give_what_their_definition_gives(lag):
    """Key by key, in order."""
    for seed in SEEDS:
        chance = random.Random(seed)
        epochs, op = random_epochs(chance, 1, lag), mapping(number_of, to_list())
        found = run(RollingAggregate(key_of, op), epochs, chance)

        assert by_key(found) == by_key(definitions.rolling(epochs)), seed


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("ttl", [None, 0, 5, 40])
def test_states_of_functions_give_what_their_definition_gives(ttl, lag):
    """Key by key, in order, late items and evicted states too."""
    on_evict = None if ttl is None else farewell
    for seed in SEEDS:
        chance = random.Random(seed)
        epochs = random_epochs(chance, 1, lag)
        found = run(StatefulMapping(key_of, list, numbers_so_far, "map", ttl, on_evict, True), epochs, chance)

        assert by_key(found) == by_key(definitions.mapping(epochs, ttl)), seed


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("within", [None, 0, 5, 40])
def test_distinct_items_are_those_of_the_definition(within, lag):
    """Key by key, in order, late items too."""
    for seed in SEEDS:
        chance = random.Random(seed)
        epochs = random_epochs(chance, 1, lag)
        found = run(KeyedDistinct(key_of, within, True), epochs, chance)

        assert by_key(found) == by_key(definitions.distinct(epochs, within)), seed


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize(("before", "after"), [(0, 0), (5, 0), (3, 20), (-2, 9)])
def test_interval_joins_give_what_their_definition_gives(before, after, lag):
    """Pair by pair, each in the epoch of its second item, late items too."""
    for seed in SEEDS:
        chance = random.Random(seed)
        epochs = random_epochs(chance, 2, lag)
        found = run(IntervalJoin(key_of, key_of, before, after, True), epochs, chance, paired)

        assert sorted(found, key=repr) == sorted(definitions.joined(epochs, before, after), key=repr), seed


def test_interval_joins_without_late_items_do_not_depend_on_where_epochs_end():
    """All items in one epoch give the same pairs."""
    for seed in SEEDS:
        chance = random.Random(seed)
        epochs = random_epochs(chance, 2, lag=1000)
        whole = [[list(itertools.chain.from_iterable(inputs[side])) for inputs, _ in epochs] for side in (0, 1)]
        cut, at_once = (
            run(IntervalJoin(key_of, key_of, 5, 9), given, chance, paired) for given in (epochs, [(whole, 5000)])
        )

        assert sorted(pair[1:] for pair in cut) == sorted(pair[1:] for pair in at_once), seed
