"""Shards whose states are in a table on disk give what those in memory give."""

from __future__ import annotations

import math
import os
import random
import sys
from collections import Counter
from typing import Any

import pytest

from collectors import counting
from dstream.errors import EngineError
from dstream.operators.state import disk as states_on_disk
from dstream.operators.state import keys as key_states
from dstream.operators.state.disk import StatesOnDisk
from dstream.operators.state.keyed_operators import KeyedDistinct, RollingAggregate, StatefulMapping
from dstream.operators.state.keys import KeyStates
from dstream.values.time import END_OF_TIME
from tests.operators.by_hand import DUMPED, KEPT, PATCHED, ByHand

KEYS = [-1, -2, 0, 2**61 - 1, None, "a", ("a", None), math.nan, 1.5, b"b"]
"""Two pairs of them have one hash: -1 and -2, 0 and 2**61 - 1."""


def key_of(item: tuple[int, int]) -> Any:
    """Return one of a few keys."""
    return KEYS[item[0]]


def numbered(state: list[int], key: Any, item: tuple[int, int]) -> tuple[str, int, int]:
    """Count the items of a key, in place."""
    state.append(item[1])
    return repr(key), len(state), sum(state)


def told(state: list[int], key: Any, watermark: int) -> tuple[str, int, int]:
    """Say what a state was when it went."""
    return repr(key), -len(state), watermark


OPERATORS = [
    StatefulMapping(key_of, list, numbered, "map"),
    StatefulMapping(key_of, list, numbered, "map", 7, told, gives_late=True),
    KeyedDistinct(key_of),
    KeyedDistinct(key_of, 5, gives_late=True),
    RollingAggregate(key_of, counting()),
]


class OnDisk(ByHand):
    """Moves each shard to disk before each epoch."""

    def epoch(self, *inputs: Any, to: int | None = None) -> Any:
        for state in self.states:
            state.to_disk()
        return super().epoch(*inputs, to=to)


@pytest.fixture(autouse=True)
def _little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_states, "_MANY", 0)
    monkeypatch.setattr(states_on_disk, "_AT_ONCE", 2)
    monkeypatch.setattr(states_on_disk, "_MOST_IN_MEMORY", 3)


@pytest.mark.parametrize("fate", [KEPT, DUMPED, PATCHED])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: f"{each.kind}-{each.signature}")
@pytest.mark.parametrize("seed", range(8))
def test_states_on_disk_give_what_states_in_memory_give(operator, fate, seed):
    """In every epoch, with deltas and dumps; those that go at one time go in any order."""
    chance = random.Random(seed)
    memory, disk = ByHand(operator, 2), OnDisk(operator, 2, lambda: fate)
    watermark = 0
    for number in range(12):
        events = [
            (watermark + chance.randrange(-3, 9), (chance.randrange(len(KEYS)), each)) for each in range(number % 5 * 3)
        ]
        watermark = END_OF_TIME if number == 11 else watermark + chance.randrange(4)
        here, there = (each.epoch([events], to=watermark) for each in (memory, disk))
        in_order = getattr(operator, "on_evict", None) is None
        assert (list if in_order else Counter)(map(repr, here)) == (list if in_order else Counter)(map(repr, there))
        assert [timestamp for timestamp, _ in here] == [timestamp for timestamp, _ in there]
        assert [len(state) for state in memory.states] == [len(state) for state in disk.states]
        entries = [
            Counter(repr(entry) for state in each.states for entry in state.entries()) for each in (memory, disk)
        ]
        assert entries[0] == entries[1]
        assert [state.deadline() for state in memory.states] == [state.deadline() for state in disk.states]


@pytest.mark.parametrize("forever", [2**62, END_OF_TIME, 2**80])
def test_a_state_on_disk_may_live_longer_than_time(forever):
    """A table of SQLite has numbers of 64 bits; no watermark is greater."""
    operator = StatefulMapping(key_of, list, numbered, "map", forever, told)
    memory, disk = ByHand(operator, 2), OnDisk(operator, 2)

    for events, watermark in ([(5, (0, 1)), (2**61, (1, 2))], 4), ([(6, (0, 3))], 2**62 + 9), ([], END_OF_TIME):
        here, there = (each.epoch([events], to=watermark) for each in (memory, disk))
        assert Counter(map(repr, here)) == Counter(map(repr, there))
    assert [len(state) for state in memory.states] == [len(state) for state in disk.states]


def test_a_shard_on_disk_holds_what_an_epoch_touches():
    """The rest is in the table; iterating gives copies."""
    states = StatesOnDisk({number: [number] for number in range(1000)}, None)
    states.begin([1, 2, 5000])
    states[2].append(7)
    states[5000] = ["new"]
    del states[3]

    assert (len(states), len(states._near)) == (1000, 3)
    states.begin([])
    assert not states._near
    assert (states[2], states[5000], 3 in states) == ([2, 7], ["new"], False)
    assert sorted(map(len, states.values())) == [1] * 999 + [2]
    copy = dict(states.items())[2]
    assert copy == [2, 7]
    assert copy is not states[2]


def test_few_keys_stay_in_memory(monkeypatch):
    """A table of their own would take more."""
    monkeypatch.setattr(key_states, "_MANY", 3)
    state: KeyStates[Any] = KeyStates()
    state._put(1, [1])

    assert (state.to_disk(), isinstance(state._states, dict)) == (False, True)
    state._put(2, [1])
    state._put(3, [1])
    assert (state.to_disk(), state.to_disk(), isinstance(state._states, dict)) == (True, False, False)


@pytest.mark.parametrize("ttl", [None, 10**6])
def test_an_epoch_holds_what_it_touched(ttl):
    """What earlier ones touched goes back to the table, and deadlines stand there as well."""
    run = OnDisk(StatefulMapping(lambda item: item, list, lambda state, key, item: None, "map", ttl))
    run.epoch([[(1, number) for number in range(50)]], to=1)
    for number in range(10, 20):
        run.epoch([[(2, number), (2, number + 50)]], to=1)

    (state,) = run.states
    assert (len(state), len(state._states._near)) == (60, 2)
    assert not getattr(state._deadlines, "_entered", None)


def test_states_on_disk_pass_by_their_time():
    """Those in memory wait for those in the table that are due before them."""
    states = StatesOnDisk({number: [number] for number in range(9)}, lambda state: state[0])
    states.begin([1, 8])

    passed = []
    while keys := states.passed(8):
        for key in keys:
            passed.append(key)
            del states[key]
    assert passed == list(range(9))
    assert (len(states), states.least()) == (0, None)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_the_table_is_a_file_without_a_name():
    """So it goes with its process, also if that is killed."""
    states = StatesOnDisk(dict.fromkeys(range(4000), "x" * 500), None)

    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    files = [os.readlink(link) for link in links if os.path.islink(link)]
    tables = [file for file in files if "etilqs" in file]
    assert tables
    assert all(file.endswith("(deleted)") for file in tables)
    assert len(states) == 4000


def test_a_full_disk_is_an_error_that_says_where():
    """No state is lost in silence."""
    states = StatesOnDisk({0: "x"}, None)
    states._table.execute("PRAGMA max_page_count = 4")
    states[1] = os.urandom(100_000)

    with pytest.raises(EngineError, match=r"disk is full.*needs room in SQLITE_TMPDIR, TMPDIR"):
        states.begin([])
