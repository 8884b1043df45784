"""An epoch costs what it touches: a million keys that wait are nearly free."""

from __future__ import annotations

import time

import pytest

from dstream.operators.state.keyed_operators import KeyedDistinct, StatefulMapping
from dstream.operators.state.keys import DumpedKeys
from dstream.spi.epochs import EpochTime

IDLE = 1_000_000
TOUCHED = 1_000
OPERATORS = [
    (KeyedDistinct(abs, within=10), range(IDLE)),
    (StatefulMapping(abs, list, lambda state, key, item: item, "map", ttl=10), [["one for all of them", 0]] * IDLE),
]


def seconds(operator, state, number):
    """Return how long an epoch takes that touches other keys than those that wait, each in time."""
    first = IDLE + TOUCHED * number
    items, moment = [(item, item) for item in range(first, first + TOUCHED)], EpochTime(number, 0.0, 0, 0)
    start = time.process_time()
    partials = operator.partial(0, iter(items), moment, 1)
    outputs = list(state.apply([(0, partials.of_shards[0])], moment).outputs)
    found = state.delta(), state.deadline()
    took = time.process_time() - start
    assert len(outputs) == len(found[0].keys) == TOUCHED
    return took


@pytest.mark.parametrize(("operator", "states"), OPERATORS)
def test_a_million_idle_keys_at_most_double_an_epoch(operator, states):
    """Beside an empty state, in one run; the best of twenty, since other programs run meanwhile."""
    empty, full = operator.new(), operator.new()
    full.load(DumpedKeys(list(range(IDLE)), list(states)))

    alone = min(seconds(operator, empty, number) for number in range(20))
    beside = min(seconds(operator, full, number) for number in range(20))

    assert len(full) == IDLE + 20 * TOUCHED
    assert beside < 2 * alone


def test_a_million_idle_keys_are_not_looked_at():
    """When time passes, only those that it reaches are."""
    looked_at = []
    operator = StatefulMapping(
        abs, list, max, "map", ttl=10, on_evict=lambda state, key, watermark: looked_at.append(key)
    )
    state = operator.new()
    state.load(DumpedKeys(list(range(1000)), [[None, item] for item in range(1000)]))
    list(state.apply([], EpochTime(1, 0.0, 0, 13)).outputs)

    assert (looked_at, len(state), state.deadline()) == ([0, 1, 2], 997, 14)
