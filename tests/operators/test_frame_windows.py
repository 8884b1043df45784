"""Tumbling and sliding windows: Jet's cases for `SlidingWindowP`, as literals."""

from __future__ import annotations

from operator import itemgetter

import pytest

from collectors import co_operation, counting, mapping, summing, to_list
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi import AggregateOperation
from dstream.values.time import END_OF_TIME, NO_WATERMARK, Late
from dstream.windows import KeyedWindowResult, WindowResult, session, sliding, tumbling
from tests.operators.running import KEPT, LOADED, PATCHED, Running

KEY, VALUE = itemgetter(0), itemgetter(1)
DEDUCTED = summing()
RECOMBINED = AggregateOperation(int, int.__add__, int.__add__)
NOT_COMBINED = AggregateOperation(int, int.__add__)
SUMS = pytest.mark.parametrize("total", [DEDUCTED, RECOMBINED, NOT_COMBINED], ids=["deduct", "combine", "neither"])


def ones(*timestamps):
    """Return the item 1 at each timestamp, as those of one task."""
    return [(0, [(timestamp, 1) for timestamp in timestamps])]


def ends(results):
    """Return end and result of each window."""
    return [(result.end, result.result) for result in results]


@SUMS
def test_sliding_windows_of_nothing_give_nothing(total):
    """A watermark alone closes no window that has items."""
    assert Running(FrameWindows(sliding(4, by=1), None, total)).epoch([], 100) == []


@SUMS
def test_sliding_windows_go_on_until_their_frames_have_left(total):
    """Jet's simple case: the windows rise and fall with the items inside."""
    running = Running(FrameWindows(sliding(4, by=1), None, total))

    assert ends(running.results(ones(*range(6)), 2)) == [(1, 1), (2, 2)]
    assert ends(running.results([], 6)) == [(3, 3), (4, 4), (5, 4), (6, 4)]
    assert ends(running.results([], 100)) == [(7, 3), (8, 2), (9, 1)]
    assert running.states[0].deadline() is None


@SUMS
def test_sliding_windows_skip_gaps(total):
    """Windows without items are left out, however long the time between."""
    running = Running(FrameWindows(sliding(4, by=2), None, total))

    assert ends(running.results(ones(0, 10**15), END_OF_TIME)) == [(2, 1), (4, 1), (10**15 + 2, 1), (10**15 + 4, 1)]


@SUMS
def test_windows_with_an_offset_are_those_of_moved_items(total):
    """Frames that begin 3 later give for items that come 3 later what others give, 3 later."""
    plain = Running(FrameWindows(sliding(8, by=4), None, total))
    moved = Running(FrameWindows(sliding(8, by=4).with_offset(3), None, total))
    stamps = [-5, -1, 0, 3, 4, 9]

    expected = [plain.results(ones(*stamps), 8), plain.results([], 100)]
    found = [moved.results(ones(*(each + 3 for each in stamps)), 11), moved.results([], 103)]
    assert [ends(each) for each in found] == [[(end + 3, n) for end, n in ends(each)] for each in expected]
    assert ends(found[0]) == [(-1, 1), (3, 2), (7, 3), (11, 3)]


def test_windows_with_an_offset_keep_another_state():
    """A job that goes on with other frames cannot take over those it has; without an offset nothing changes."""
    plain, moved = (FrameWindows(each, None, DEDUCTED) for each in (tumbling(4), tumbling(4).with_offset(1)))

    assert plain.signature[:2] == (4, 4)
    assert plain.signature != moved.signature != FrameWindows(tumbling(4).with_offset(2), None, DEDUCTED).signature


def test_tumbling_windows_are_half_open():
    """What happens at the end of a window belongs to the next; the result has the last instant inside as its time."""
    running = Running(FrameWindows(tumbling(10), None, counting()))

    assert running.epoch(ones(0, 9, 10), 9) == []
    assert running.epoch([], 10) == [(9, WindowResult(0, 10, 2))]
    assert running.epoch([], 20) == [(19, WindowResult(10, 20, 1))]


def test_windows_wait_for_the_first_watermark():
    """Before it nothing is late, and the first window is that of the first frame, wherever items begin."""
    running = Running(FrameWindows(tumbling(10), None, counting()))

    assert running.results(ones(205), NO_WATERMARK) == []
    assert ends(running.results(ones(101), 95)) == []
    assert ends(running.results(ones(99), 210)) == [(100, 1), (110, 1), (210, 1)]


def test_windows_that_open_behind_the_first_to_emit_are_not_lost():
    """The first window is the least one ahead of the watermark, not the first that got an item."""
    running = Running(FrameWindows(tumbling(10), None, counting()))
    running.results(ones(55), 20)

    assert ends(running.results(ones(25), 60)) == [(30, 1), (60, 1)]


def test_windows_drop_items_whose_frame_is_closed():
    """Also those that windows still open would hold; they are counted, and an item at the border is in time."""
    running = Running(FrameWindows(sliding(20, by=10), None, counting()))
    running.results(ones(5), 15)

    assert ends(running.results(ones(9, 10, 14), 20)) == [(20, 3)]
    assert running.late == 1


@pytest.mark.parametrize("keys", [None, (KEY,)])
def test_windows_give_late_items_to_those_who_want_them(keys):
    """They travel with their shard, in order, and are counted where they came."""
    running = Running(FrameWindows(tumbling(10), keys, counting(), gives_late=True), shards=5)
    running.epoch([], 10)
    items = [(9, ("a", 1)), (3, ("b", 2)), (11, ("a", 3)), (0, ("a", 4))]

    assert sorted(running.epoch([(0, items)], 10)) == [(0, Late(("a", 4))), (3, Late(("b", 2))), (9, Late(("a", 1)))]
    assert (running.late, sum(map(len, running.states.values()))) == (3, 1)


def test_windows_are_apart_for_each_key():
    """Each key has its results, at most one for each window."""
    running = Running(FrameWindows(tumbling(10), (KEY,), mapping(VALUE, summing())), shards=3)
    items = [(1, ("a", 1)), (2, ("b", 5)), (12, ("a", 2)), (3, ("a", 10))]

    assert sorted(running.results([(0, items)], END_OF_TIME)) == [
        KeyedWindowResult(0, 10, "a", 11),
        KeyedWindowResult(0, 10, "b", 5),
        KeyedWindowResult(10, 20, "a", 2),
    ]


@pytest.mark.parametrize("way", [KEPT, LOADED, PATCHED])
@pytest.mark.parametrize("kind", [FrameWindows, SessionWindows])
def test_windows_know_equal_keys_from_different_processes(kind, way):
    """Keys are those of `dstream.keys`: 1, 1.0 and True are one, and so are all NaN, however they travelled."""
    window = tumbling(10) if kind is FrameWindows else session(10)
    running = Running(kind(window, (lambda key: key,), counting()), shards=7, moving=lambda: way)
    running.results([(0, [(1, 1), (1, float("nan"))]), (0, [(2, 1.0), (3, True), (4, float("nan"))])], 0)
    running.results([(0, [(5, float("nan"))])], 0)

    assert sorted(result.result for result in running.results([], END_OF_TIME)) == [3, 3]


def test_a_key_leaves_a_sliding_window_with_its_last_item():
    """Not before, where what is left sums up to nothing: a sum of 0 is a result."""
    running = Running(FrameWindows(sliding(20, by=10), (KEY,), mapping(VALUE, summing())))
    items = [(5, ("a", 2)), (15, ("a", -2)), (15, ("b", 0)), (25, ("c", 1))]

    assert [(each.end, each.key, each.result) for each in running.results([(0, items)], END_OF_TIME)] == [
        (10, "a", 2),
        (20, "a", 0),
        (20, "b", 0),
        (30, "a", -2),
        (30, "b", 0),
        (30, "c", 1),
        (40, "c", 1),
    ]


def test_windows_of_several_inputs_hold_the_items_of_all():
    """A co-aggregate has a key function for each input; a key needs no item of every input."""
    operation = co_operation(counting(), mapping(VALUE, summing()))
    running = Running(FrameWindows(tumbling(10), (len, KEY), operation))
    tasks = [(0, [(1, "aa"), (2, "b")]), (1, [(3, (2, 30)), (4, (3, 40)), (13, (2, 50))])]

    assert [(each.end, each.key, each.result) for each in running.results(tasks, END_OF_TIME)] == [
        (10, 2, (1, 30)),
        (10, 1, (1, 0)),
        (10, 3, (0, 40)),
        (20, 2, (0, 50)),
    ]


def test_windows_give_what_the_function_of_the_user_makes():
    """`to` takes start, end, the key if there is one, and the result."""
    plain = Running(FrameWindows(tumbling(10), None, counting(), to=lambda start, end, n: f"{start}-{end}: {n}"))
    keyed = Running(FrameWindows(tumbling(10), (str,), counting(), to=lambda *parts: parts))

    assert plain.epoch(ones(1, 2), 10) == [(9, "0-10: 2")]
    assert keyed.epoch(ones(1, 2), 10) == [(9, (0, 10, "1", 2))]


@pytest.mark.parametrize("lists", [to_list(), AggregateOperation(list, lambda held, item: [*held, item], list.__add__)])
def test_sliding_windows_keep_the_order_of_items(lists):
    """By frame, and inside of a frame as they came, whatever the window has combined before."""
    running = Running(FrameWindows(sliding(40, by=10), None, lists))
    results = [running.results([(0, [(10 * epoch, epoch)])], 10 * epoch + 10) for epoch in range(7)]

    assert results[6] == [WindowResult(30, 70, [3, 4, 5, 6])]
    assert ends(running.results([], END_OF_TIME)) == [(80, [4, 5, 6]), (90, [5, 6]), (100, [6])]


def test_results_share_nothing_with_the_state():
    """Who changes the list that a sliding window gave changes no later one."""
    running = Running(FrameWindows(sliding(40, by=10), None, to_list()))
    for epoch in range(7):
        for result in running.results([(0, [(10 * epoch, epoch)])], 10 * epoch + 10):
            result.result.append("changed")

    assert ends(running.results([], END_OF_TIME)) == [(80, [4, 5, 6]), (90, [5, 6]), (100, [6])]


def test_frame_windows_need_a_key_function_for_each_input():
    """The message names the operation."""
    with pytest.raises(TypeError, match=r"counting\(\) has 1 inputs, and there are 2 key functions"):
        FrameWindows(tumbling(10), (KEY, KEY), counting())
