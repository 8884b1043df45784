"""Early results: what open windows hold, by the clock."""

from __future__ import annotations

import pickle
from math import inf, nextafter

import pytest

from collectors import counting, summing, to_list
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.results import _end_of_period
from dstream.operators.windows.sessions import SessionWindows
from dstream.values.time import END_OF_TIME
from dstream.windows import SessionWindow, WindowResult, session, sliding, tumbling
from tests.operators.running import KEPT, LOADED, PATCHED, Running

EARLY_FRAMES = FrameWindows(tumbling(10).early_results(5), None, counting())
EARLY_SESSIONS = SessionWindows(session(10).early_results(5), None, counting())
BOTH = pytest.mark.parametrize("operator", [EARLY_FRAMES, EARLY_SESSIONS], ids=["tumbling", "session"])


def ones(*timestamps):
    """Return the item 1 at each timestamp, as those of one task."""
    return [(0, [(timestamp, 1) for timestamp in timestamps])]


def test_early_results_come_in_the_first_epoch_of_each_period():
    """The period that an item falls into is the first; later ones are multiples of its length."""
    running = Running(EARLY_FRAMES)
    seen = [running.results(ones(1), 0, now) for now in (103.0, 104.9, 105.0, 106.0, 117.0, 119.0, 120.0)]

    assert [[result.result for result in results] for results in seen] == [[], [], [3], [], [5], [], [7]]
    assert seen[2] == [WindowResult(0, 10, 3, is_early=True)]


@BOTH
@pytest.mark.parametrize("way", [KEPT, LOADED, PATCHED])
def test_early_results_wait_for_a_reading_of_the_clock(operator, way):
    """Nothing has to come for them, and the time they wait for is part of the state."""
    running = Running(operator, moving=lambda: way)
    running.results(ones(1), 0, 103.0)
    waits = running.states[0].clock_deadline()

    assert (waits, [each.result for each in running.results([], 0, 105.0)]) == (105.0, [1])
    assert running.results([], 0, 109.0) == []
    assert [each.is_early for each in running.results([], 0, 110.0)] == [True]


@BOTH
def test_early_results_end_with_the_last_window(operator):
    """A state without items waits for nothing; the final result is no early one."""
    running = Running(operator)
    running.results(ones(1), 0, 103.0)

    assert [each.is_early for each in running.results([], END_OF_TIME, 104.0)] == [False]
    assert (running.states[0].clock_deadline(), running.states[0].deadline()) == (None, None)


def test_early_results_are_not_those_of_windows_that_close():
    """A window that closes in the epoch has its final result only."""
    running = Running(EARLY_FRAMES)

    running.results(ones(1, 12), 0, 103.0)
    assert running.results([], 10, 105.0) == [WindowResult(0, 10, 1), WindowResult(10, 20, 1, is_early=True)]


def test_early_results_of_sliding_windows_are_those_of_all_that_have_items():
    """Also of windows whose end lies behind the last item; they leave what closes later as it was."""
    running = Running(FrameWindows(sliding(30, by=10).early_results(1), None, summing()))
    running.results(ones(5, 15), 10, 1.0)
    early = running.results([], 10, 2.0)

    assert early == [WindowResult(-10, 20, 2, True), WindowResult(0, 30, 2, True), WindowResult(10, 40, 1, True)]
    assert [each[:3] for each in running.results([], END_OF_TIME, 2.5)] == [(-10, 20, 2), (0, 30, 2), (10, 40, 1)]


@pytest.mark.parametrize(
    "operator",
    [
        FrameWindows(tumbling(10).early_results(1), None, to_list()),
        SessionWindows(session(10).early_results(1), None, to_list()),
    ],
    ids=["tumbling", "session"],
)
def test_early_results_share_nothing_with_the_state(operator):
    """Who changes an early list changes no later one."""
    running = Running(operator)
    running.results(ones(1), 0, 1.0)
    running.results([], 0, 2.0)[0].result.append("changed")

    assert running.results([], 0, 3.0)[0].result == [1]
    assert running.results([], END_OF_TIME, 3.5)[0].result == [1]


def test_early_results_have_the_time_of_the_final_one():
    """A window over the results finds both in the same place."""
    frames, sessions = (Running(operator) for operator in (EARLY_FRAMES, EARLY_SESSIONS))
    early = [running.epoch(ones(1), 0, 1.0) + running.epoch([], 0, 5.0) for running in (frames, sessions)]

    assert [[timestamp for timestamp, _ in outputs] for outputs in early] == [[9], [11]]
    assert pickle.loads(pickle.dumps(early)) == early


@pytest.mark.parametrize("shards", [1, 3, 7])
@pytest.mark.parametrize("way", [KEPT, LOADED, PATCHED])
@pytest.mark.parametrize("window", [tumbling(100), sliding(100, by=50), session(100)], ids=["one", "many", "session"])
def test_early_results_do_not_depend_on_the_shard_of_a_key(window, shards, way):
    """A key that is new in an epoch past a period has its early result in that epoch, whatever else is in its shard."""
    kind = SessionWindows if isinstance(window, SessionWindow) else FrameWindows
    running = Running(kind(window.early_results(5), (str,), counting()), shards, lambda: way)
    seen = []
    for now, keys in [(103.0, "ab"), (105.0, "cde"), (106.0, "fg"), (110.0, ""), (117.0, "h"), (119.0, "i")]:
        results = running.results([(0, [(50, key) for key in keys])], 0, now)
        seen.append("".join(sorted({result.key for result in results})))

    assert seen == ["", "abcde", "", "abcdefg", "abcdefgh", ""]


@pytest.mark.parametrize("every", [0.1, 0.2, 0.3, 0.7, 1.1, 1 / 3, 0.001, 5.0, 86_400.0])
def test_a_period_ends_behind_the_reading_and_no_later_than_the_next_multiple(every):
    """Also where the quotient of floats is off by one, so that a period would end at its beginning, again and again."""
    multiples = [*range(400), 10**9, 17 * 10**8]
    readings = [near for n in multiples for now in (n * every, n / 10, float(n)) for near in (now, nextafter(now, inf))]
    ends = {now: _end_of_period(now, every) for now in readings}

    assert [now for now, end in ends.items() if end <= now] == []
    assert [now for now, end in ends.items() if (round(end / every) - 1) * every > now] == []
    assert _end_of_period(1.7e9, 1e-12) == nextafter(1.7e9, inf)
