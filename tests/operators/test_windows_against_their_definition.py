"""Windows in shards, epochs and moving state give what their definition on one page gives."""

from __future__ import annotations

from itertools import chain
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import co_operation, counting, mapping, summing, to_list
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.spi import AggregateOperation
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from dstream.windows import session, sliding, tumbling
from tests.operators.definition_of_windows import Epoch, Event, frame_windows, session_windows
from tests.operators.running import ELSEWHERE, KEPT, LOADED, PATCHED, Running

KEY, VALUE = itemgetter(0), itemgetter(1)
SUM = mapping(VALUE, summing())
IN_ORDER = to_list()
SORTED = to_list().with_finish(sorted)
NOT_COMBINED = AggregateOperation(list, list.append)
TWO = co_operation(counting(), SUM)
SORTED_PAIR = co_operation(to_list(), counting()).with_finish(lambda lists: (sorted(lists[0]), lists[1]))
WINDOWS = [tumbling(10), sliding(30, by=10), sliding(70, by=7), sliding(12, by=3)]


@st.composite
def events(draw, inputs=1, most_lag=20):
    """Draw events that are roughly in order, in the partitions of one or several inputs."""
    kind = st.builds(
        Event,
        timestamp=st.integers(-10, 60) | st.integers(-10, 150) | st.sampled_from([-10_000, 10_000]),
        key=st.sampled_from(["a", "b", 1, (1, None)]) if inputs == 1 else st.integers(0, 2),
        value=st.integers(-2, 2),
        number=st.integers(0, inputs - 1),
        partition=st.integers(0, draw(st.sampled_from([1, 2, 3, 8])) - 1),
    )
    found = draw(st.lists(kind, max_size=30) | st.lists(kind, min_size=20, max_size=60))
    jitter = draw(st.lists(st.integers(0, most_lag), min_size=len(found), max_size=len(found)))
    return [event for _, event in sorted(zip(jitter, found, strict=True), key=lambda pair: pair[0] + pair[1].timestamp)]


@st.composite
def lags(draw, most=20):
    """Draw the lag of each partition of each of two inputs."""
    return {(number, partition): draw(st.integers(0, most)) for number in range(2) for partition in range(8)}


def cut(found, borders, lag_of):
    """Return epochs of events, with the watermarks of partitions that have each a lag; the last one ends all."""
    epochs, old, greatest = [], NO_WATERMARK, {}
    for start, stop in zip([0, *borders], [*borders, len(found)], strict=True):
        part = sorted(found[start:stop], key=lambda event: (event.number, event.partition))
        for event in part:
            place = event.number, event.partition
            greatest[place] = max(greatest.get(place, event.timestamp), event.timestamp)
        places = {(event.number, event.partition) for event in found}
        new = min(
            (greatest[place] - lag_of[place] if place in greatest else NO_WATERMARK for place in places), default=0
        )
        epochs.append(Epoch(part, old, max(old, new)))
        old = epochs[-1].new
    return [*epochs, Epoch([], old, END_OF_TIME)]


def borders(draw, found):
    """Draw where epochs end."""
    return sorted(draw(st.lists(st.integers(0, len(found)), max_size=6)))


def ran(draw, operator, epochs):
    """Run an operator over epochs, with its state in any number of shards that move as they like."""
    choice = st.sampled_from([KEPT, LOADED, PATCHED, ELSEWHERE])
    running = Running(operator, draw(st.integers(1, 7)), lambda: draw(choice))
    return running, [running.results(tasks_of(epoch), epoch.new) for epoch in epochs]


def tasks_of(epoch):
    """Return the items of each partition as those of a task."""
    tasks = {}
    for event in epoch.events:
        tasks.setdefault((event.number, event.partition), []).append((event.timestamp, event.item))
    return [(number, items) for (number, _), items in tasks.items()]


def in_order(results):
    """Return the results of each epoch in an order that does not depend on shards."""
    return [sorted(of_epoch, key=lambda result: (result.end, repr(result))) for of_epoch in results]


def keys_of(operation):
    """Return the key function of each input."""
    return (KEY,) * operation.arity


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@pytest.mark.parametrize("operation", [SUM, IN_ORDER, NOT_COMBINED, TWO], ids=["sum", "list", "items", "two inputs"])
@given(data=st.data())
@settings(max_examples=20)
def test_frames_give_what_their_definition_gives(window, operation, data):
    """With and without deduct or combine, of one input and two, late items included."""
    found = data.draw(events(operation.arity))
    epochs = cut(found, borders(data.draw, found), data.draw(lags()))
    running, results = ran(data.draw, FrameWindows(window, keys_of(operation), operation), epochs)

    assert in_order(results) == in_order(frame_windows(epochs, window.size, window.by, operation.result_of))
    assert running.late == sum(len(epoch.late) for epoch in epochs)
    assert sum(map(len, running.states.values())) == 0


@pytest.mark.parametrize("operation", [SUM, SORTED, SORTED_PAIR], ids=["sum", "list", "two inputs"])
@given(data=st.data(), timeout=st.sampled_from([1, 5, 20]))
@settings(max_examples=25)
def test_sessions_give_what_their_definition_gives(operation, data, timeout):
    """Sessions that grow, meet, and close, of one input and two, late items included."""
    found = [
        Event(each.timestamp, repr(each.key), each.value, each.number) for each in data.draw(events(operation.arity))
    ]
    epochs = cut(found, borders(data.draw, found), data.draw(lags()))
    running, results = ran(data.draw, SessionWindows(session(timeout), keys_of(operation), operation), epochs)

    assert in_order(results) == in_order(session_windows(epochs, timeout, operation.result_of))
    assert running.late == sum(len(epoch.late) for epoch in epochs)
    assert sum(map(len, running.states.values())) == 0


@pytest.mark.parametrize(
    "operator",
    [
        FrameWindows(sliding(30, by=10), (KEY,), SUM),
        FrameWindows(sliding(30, by=10), (KEY,), SORTED),
        FrameWindows(tumbling(10), (KEY,), SORTED),
        SessionWindows(session(10), (KEY,), SORTED),
    ],
    ids=["deducting", "recombining", "tumbling", "session"],
)
@given(data=st.data())
@settings(max_examples=20)
def test_windows_do_not_depend_on_where_epochs_end(operator, data):
    """As long as no item is late, only when a result comes depends on it."""
    found = data.draw(events(most_lag=0))
    in_time = {(number, partition): 0 for number in range(2) for partition in range(8)}
    once, twice = (cut(found, borders(data.draw, found), in_time) for _ in range(2))
    results = [in_order([list(chain.from_iterable(ran(data.draw, operator, epochs)[1]))]) for epochs in (once, twice)]

    assert results[0] == results[1]
