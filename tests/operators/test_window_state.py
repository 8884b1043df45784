"""The state of windows: what is saved, what an epoch changes, and what can be seen of it."""

from __future__ import annotations

import pickle
from operator import itemgetter

import pytest

from collectors import counting, to_list
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi.epochs import EpochTime
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from dstream.windows import session, sliding, tumbling
from tests.operators.running import Running

KEY = itemgetter(0)
SLIDING = FrameWindows(sliding(20, by=10), (KEY,), counting())
SESSIONS = SessionWindows(session(20), (KEY,), counting())
BOTH = pytest.mark.parametrize("operator", [SLIDING, SESSIONS], ids=["sliding", "session"])


def items(*events):
    """Return pairs of key and number as those of one task."""
    return [(0, [(timestamp, (key, number)) for number, (timestamp, key) in enumerate(events)])]


def keys_of(operator, saved):
    """Return the keys of what a delta or a partial has: by frame, or of all sessions."""
    return list(saved if operator is SESSIONS else saved[10])


def applied(operator, state, events, old, new):
    """Apply events of one task to the only shard, and return what goes on."""
    moment = EpochTime(1, 0.0, old, new)
    partials = operator.partial(0, iter(items(*events)[0][1]), EpochTime(1, 0.0, old, old), 1).of_shards
    return list(state.apply([(0, partial) for partial in partials.values()], moment).outputs)


@BOTH
def test_deltas_hold_what_was_touched_only(operator):
    """However many keys the state has; an epoch without a change has no delta."""
    state = operator.new()
    applied(operator, state, [(1, key) for key in range(100)], NO_WATERMARK, 0)
    first = state.delta()
    applied(operator, state, [(2, 7)], 0, 0)
    second = state.delta()

    assert (len(keys_of(operator, first[2])), keys_of(operator, second[2])) == (100, [7])
    assert (state.delta(), len(state)) == (None, 100)


@BOTH
def test_a_state_that_was_patched_goes_on_as_the_one_that_changed(operator):
    """Another process ran the epoch between: frames that were in the window have gone meanwhile."""
    state, other = operator.new(), operator.new()
    applied(operator, state, [(1, "a")], NO_WATERMARK, 10)
    other.load(pickle.loads(pickle.dumps(state.dump())))
    applied(operator, other, [(25, "b")], 10, 35)
    state.patch(pickle.loads(pickle.dumps(other.delta())))

    found, expected = (applied(operator, each, [(41, "a")], 35, 60) for each in (state, other))
    assert found == expected != []


@BOTH
def test_deltas_of_what_closes_hold_no_key(operator):
    """The watermark says what has gone."""
    state = operator.new()
    applied(operator, state, [(1, key) for key in range(100)], NO_WATERMARK, 0)
    state.delta()
    applied(operator, state, [], 0, 1000)

    assert (state.delta(), len(state)) == ((1000, None, {}), 0)


@BOTH
def test_watermarks_that_close_nothing_change_nothing(operator):
    """No file is written for a shard in which nothing happened."""
    state = operator.new()
    applied(operator, state, [(1, "a")], NO_WATERMARK, 0)
    state.delta()

    assert (applied(operator, state, [], 0, 5), state.delta()) == ([], None)


@BOTH
def test_dumps_share_nothing_with_the_state(operator):
    """Items that come later do not change what was dumped."""
    state = operator.new()
    applied(operator, state, [(1, "a")], NO_WATERMARK, 0)
    dumped = state.dump()
    applied(operator, state, [(2, "a"), (3, "b")], 0, 0)
    again = operator.new()
    again.load(dumped)

    assert [out.result for _, out in applied(operator, again, [], 0, END_OF_TIME)][:1] == [1]
    assert len(again) == 0


@pytest.mark.parametrize(
    "operator",
    [FrameWindows(sliding(20, by=10), None, to_list()), SessionWindows(session(20), None, to_list())],
    ids=["sliding", "session"],
)
def test_dumps_copy_containers(operator):
    """A list in the state grows, and the one that was dumped does not."""
    state = operator.new()
    applied(operator, state, [(1, "a")], NO_WATERMARK, 0)
    dumped = state.dump()
    applied(operator, state, [(2, "b")], 0, 0)
    again = operator.new()
    again.load(dumped)

    assert applied(operator, again, [], 0, END_OF_TIME)[0][1].result == [("a", 0)]


def test_deadlines_of_windows_are_their_next_ends():
    """The least watermark at which a window that has items closes."""
    state = SLIDING.new()
    seen = [state.deadline()]
    for new in (NO_WATERMARK, 5, 10, 25, 30, 1000):
        applied(SLIDING, state, [(1, "a"), (12, "a")] if new == NO_WATERMARK else [], NO_WATERMARK, new)
        seen.append(state.deadline())

    assert seen == [None, 10, 10, 20, 30, None, None]


def test_entries_show_containers_by_the_end_of_their_frame():
    """For whoever looks into a running job."""
    running = Running(SLIDING)
    running.results(items((1, "a"), (2, "a"), (12, "a"), (12, "b")), 0)

    assert dict(running.states[0].entries()) == {"a": {10: 2, 20: 1}, "b": {20: 1}}
    assert len(running.states[0]) == 2


def test_keys_count_as_long_as_a_frame_has_them():
    """One that is in two frames leaves with the second."""
    running = Running(FrameWindows(tumbling(10), (KEY,), counting()))
    seen = []
    for tasks, watermark in [(items((1, "a"), (1, "b"), (12, "a")), 5), ([], 10), ([], 20)]:
        running.results(tasks, watermark)
        seen.append(len(running.states[0]))

    assert seen == [2, 1, 0]


def test_entries_show_open_sessions():
    """Start, end, and container."""
    running = Running(SESSIONS)
    running.results(items((1, "a"), (100, "a"), (2, "b")), 0)

    assert dict(running.states[0].entries()) == {"a": [(1, 21, 1), (100, 120, 1)], "b": [(2, 22, 1)]}


def test_signatures_tell_states_apart():
    """State of another size, another operation, or with keys where there were none is another state."""
    operators = [SLIDING, SESSIONS, FrameWindows(tumbling(20), (KEY,), counting())]
    operators += [
        FrameWindows(sliding(20, by=10), None, counting()),
        FrameWindows(sliding(20, by=10), (KEY,), to_list()),
    ]

    assert len({(each.kind, each.signature) for each in operators}) == 5
    assert SLIDING.signature == FrameWindows(sliding(20, by=10), (len,), counting(), to=max).signature
    assert (SLIDING.kind, SESSIONS.kind, SLIDING.inputs) == ("window", "session", 1)


@BOTH
def test_partials_are_cut_into_shards_by_key(operator):
    """A key has one shard in every task; a shard without items has no partial."""
    found = operator.partial(0, iter(items(*[(1, key) for key in range(8)])[0][1]), EpochTime(1, 0.0, 0, 0), 3)

    assert {shard: keys_of(operator, part) for shard, (part, _) in found.of_shards.items()} == {
        0: [2, 6, 7],
        1: [0, 3],
        2: [1, 4, 5],
    }
    assert (found.items, found.late) == (8, 0)
