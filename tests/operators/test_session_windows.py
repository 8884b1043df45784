"""Session windows: Jet's cases for `SessionWindowP`, as literals."""

from __future__ import annotations

from operator import itemgetter

import pytest

from collectors import co_operation, counting, mapping, to_list
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi import AggregateOperation
from dstream.values.time import END_OF_TIME, Late
from dstream.windows import KeyedWindowResult, WindowResult, session
from tests.operators.running import Running

KEY, VALUE = itemgetter(0), itemgetter(1)
SORTED = to_list().with_finish(sorted)


def at(*timestamps):
    """Return items of one task that are their own timestamps."""
    return [(0, [(timestamp, timestamp) for timestamp in timestamps])]


@pytest.mark.parametrize(
    ("timestamps", "expected"),
    [
        ([1], [(1, 11, [1])]),
        ([1, 11], [(1, 21, [1, 11])]),
        ([1, 12], [(1, 11, [1]), (12, 22, [12])]),
        ([11, 1], [(1, 21, [1, 11])]),
        ([1, 21, 11], [(1, 31, [1, 11, 21])]),
        ([1, 22, 12, 11], [(1, 32, [1, 11, 12, 22])]),
        ([5, 1, 3], [(1, 15, [1, 3, 5])]),
        ([50, 1, 25], [(1, 11, [1]), (25, 35, [25]), (50, 60, [50])]),
    ],
)
def test_sessions_hold_items_that_touch(timestamps, expected):
    """An item at the very end of a session still belongs to it, and one between two makes them one."""
    together = Running(SessionWindows(session(10), None, SORTED))
    alone = Running(SessionWindows(session(10), None, SORTED))
    for timestamp in timestamps:
        alone.results(at(timestamp), 0)

    assert together.results(at(*timestamps), END_OF_TIME) == [WindowResult(*each) for each in expected]
    assert alone.results([], END_OF_TIME) == [WindowResult(*each) for each in expected]


def test_sessions_close_strictly_behind_their_end():
    """The watermark at the end closes nothing: an item with that time would still belong."""
    running = Running(SessionWindows(session(10), None, SORTED))

    assert running.results(at(1), 11) == []
    assert running.states[0].deadline() == 12
    assert running.results(at(11), 12) == []
    assert running.states[0].deadline() == 22
    assert running.epoch([], 22) == [(21, WindowResult(1, 21, [1, 11]))]


def test_sessions_close_in_the_order_of_their_ends():
    """Over all keys of a shard, though a key that comes first may go on for longer."""
    running = Running(SessionWindows(session(10), (lambda item: item % 2,), counting()))
    running.results(at(1, 2, 40), 0)

    assert running.results(at(5), END_OF_TIME) == [
        KeyedWindowResult(2, 12, 0, 1),
        KeyedWindowResult(1, 15, 1, 2),
        KeyedWindowResult(40, 50, 0, 1),
    ]


def test_a_session_before_the_first_one_of_its_key_closes_first():
    """Items come out of order: the key no longer waits for the end of the session that came first."""
    running = Running(SessionWindows(session(10), None, SORTED))
    running.results(at(100), 0)
    running.results(at(50), 0)

    assert running.results([], 70) == [WindowResult(50, 60, [50])]
    assert running.results([], END_OF_TIME) == [WindowResult(100, 110, [100])]


def test_sessions_keep_the_order_in_which_items_came():
    """Those of a later epoch follow, whatever their timestamps; where sessions become one, the earlier goes first."""
    running = Running(SessionWindows(session(10), None, to_list()))
    for timestamps in ([5], [9, 7], [30], [19]):
        running.results(at(*timestamps), 0)

    assert running.results([], END_OF_TIME) == [WindowResult(5, 29, [5, 9, 7, 19]), WindowResult(30, 40, [30])]
    assert Running(SessionWindows(session(10), None, to_list())).results(at(21, 1, 11), END_OF_TIME) == [
        WindowResult(1, 31, [1, 21, 11])
    ]


def test_sessions_drop_items_behind_the_watermark():
    """Also those that would belong to an open session; one at the watermark is in time."""
    running = Running(SessionWindows(session(10), None, SORTED, gives_late=True))
    running.results(at(20), 18)

    assert running.epoch(at(17, 18), 18) == [(17, Late(17))]
    assert running.results([], END_OF_TIME) == [WindowResult(18, 30, [18, 20])]
    assert running.late == 1


def test_sessions_are_apart_for_each_key():
    """Jet's case of several keys in shards."""
    running = Running(SessionWindows(session(10), (KEY,), mapping(VALUE, SORTED)), shards=7)
    items = [(1, ("a", 1)), (5, ("b", 2)), (8, ("a", 3)), (30, ("a", 4))]

    assert sorted(running.results([(0, items)], 20)) == [
        KeyedWindowResult(1, 18, "a", [1, 3]),
        KeyedWindowResult(5, 15, "b", [2]),
    ]
    assert running.results([], END_OF_TIME) == [KeyedWindowResult(30, 40, "a", [4])]


def test_sessions_of_several_inputs_hold_the_items_of_all():
    """An item of one input may join two sessions of another."""
    running = Running(SessionWindows(session(10), None, co_operation(SORTED, counting())))
    running.results([(0, [(1, "a"), (20, "b")])], 0)

    assert running.results([(1, [(11, "x")])], END_OF_TIME) == [WindowResult(1, 30, (["a", "b"], 1))]


def test_sessions_give_what_the_function_of_the_user_makes():
    """`to` takes start, end, the key if there is one, and the result."""
    running = Running(SessionWindows(session(10), (str,), counting(), to=lambda *parts: parts))

    assert running.epoch(at(1), END_OF_TIME) == [(11, (1, 11, "1", 1))]


def test_sessions_need_an_operation_that_combines():
    """The message names the operation."""
    with pytest.raises(TypeError, match=r"AggregateOperation\(list, list\.append\) has no combine, and sessions"):
        SessionWindows(session(10), None, AggregateOperation(list, list.append))


def test_sessions_need_a_key_function_for_each_input():
    """As many as the operation has inputs."""
    with pytest.raises(TypeError, match="has 2 inputs, and there are 1 key functions"):
        SessionWindows(session(10), (KEY,), co_operation(counting(), counting()))
