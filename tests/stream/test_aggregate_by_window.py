"""`aggregate_by_window`: windows of event time over streams that end."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import averaging, co_operation, counting, mapping, summing, to_list
from dstream import Stream
from dstream.errors import IllegalStateError
from dstream.spi import AggregateOperation
from dstream.values.time import END_OF_TIME, NO_WATERMARK
from dstream.windows import SessionWindow, session, sliding, tumbling
from reducers import to_ilist
from sources import items
from tests.operators.definition_of_windows import Epoch, Event, frame_windows, session_windows

KEY, TIME, VALUE = map(itemgetter, range(3))
EVENTS = [("a", 0, 1), ("b", 5, 2), ("a", 12, 3), ("a", 9, 4), ("b", 100, 5)]
"""Key, timestamp and value; one is late."""
NOT_COMBINED = AggregateOperation(list, list.append)
SORTED = to_list().with_finish(sorted)
WINDOWS = [tumbling(10), tumbling(10).with_offset(3), sliding(30, by=10), sliding(12, by=3), session(7)]


@pytest.mark.parametrize(
    ("window", "found"),
    [
        (tumbling(10), {(0, 10, 7), (10, 20, 3), (100, 110, 5)}),
        (sliding(20, by=10), {(-10, 10, 7), (0, 20, 10), (10, 30, 3), (90, 110, 5), (100, 120, 5)}),
        (session(5), {(0, 17, 10), (100, 105, 5)}),
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_windows_of_all_items(engine, window, found):
    """Without keys all items share the windows, whose results come in the order of time."""
    results = engine.stream(EVENTS).aggregate_by_window(window, summing(VALUE), timestamp=TIME).to_list()

    assert {(each.start, each.end, each.result) for each in results} == found
    assert [each.end for each in results] == sorted(each.end for each in results)
    assert {each.is_early for each in results} == {False}


@pytest.mark.parametrize(
    ("window", "found"),
    [
        (tumbling(10), {("a", 0, 10, 2), ("a", 10, 20, 1), ("b", 0, 10, 1), ("b", 100, 110, 1)}),
        (session(5), {("a", 0, 5, 1), ("a", 9, 17, 2), ("b", 5, 10, 1), ("b", 100, 105, 1)}),
    ],
    ids=["tumbling", "session"],
)
def test_windows_of_each_key(engine, window, found):
    """A late item joins sessions that come before and behind it."""
    results = engine.stream(EVENTS).aggregate_by_window(window, counting(), timestamp=TIME, key=KEY).to_list()

    assert {(each.key, each.start, each.end, each.result) for each in results} == found


events = st.lists(
    st.builds(
        Event, st.integers(-10, 60) | st.sampled_from([-10_000, 10_000]), st.sampled_from("ab"), st.integers(-2, 2)
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(found=events, window=st.sampled_from(WINDOWS), operation=st.sampled_from([summing(VALUE), SORTED, NOT_COMBINED]))
@pytest.mark.parametrize("is_keyed", [True, False])
def test_windows_are_those_of_their_definition(local_context, found, window, operation, is_keyed):
    """Whatever the order of the items and the partitions that they are in."""
    if operation is NOT_COMBINED and isinstance(window, SessionWindow):
        return
    triples = [(each.key if is_keyed else None, each.timestamp, each.value) for each in found]
    keys = {"key": KEY} if is_keyed else {}
    stream = local_context.stream(triples, 3).aggregate_by_window(window, operation, timestamp=TIME, **keys)
    results = [(each.start, each.end, getattr(each, "key", None), each.result) for each in stream]

    plain = [Event(item[1], item[0], item) for item in triples]
    epochs, reduction = [Epoch(plain, NO_WATERMARK, END_OF_TIME)], reduced_by(operation)
    if isinstance(window, SessionWindow):
        (defined,) = session_windows(epochs, window.timeout, reduction)
    else:
        (defined,) = frame_windows(epochs, window.size, window.by, reduction, window.offset)
    assert Counter(map(repr, results)) == Counter(repr(tuple(each[:4])) for each in defined)


def reduced_by(operation):
    """Return what the definition does with the items of a window."""
    return lambda numbered: operation.on_input(0).collect([item for _, (_, item) in numbered])


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_windows_are_those_of_a_pipeline(local_context, window):
    """A job over the same items gives the same results."""
    found = [("ab"[n % 2], n * n % 90, n) for n in range(40)]
    pipeline, name = ds.Pipeline(), f"windows {window!r}"
    timed = pipeline.read_from(items(*sorted(found, key=TIME))).add_timestamps(TIME).grouping_key(KEY)
    timed.window(window).aggregate(mapping(VALUE, averaging())).write_to(to_ilist(name))
    local_context.new_job(pipeline).join(20)
    stream = local_context.stream(found, 2)
    results = stream.aggregate_by_window(window, mapping(VALUE, averaging()), timestamp=TIME, key=KEY)

    assert sorted(results) == sorted(local_context.get_list(name)) != []


def test_timestamps_may_be_datetimes(local_context):
    """With a time zone; lengths may be timedeltas."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    visits = local_context.stream([noon + timedelta(minutes=n) for n in (0, 20, 61, 180)])
    sessions = visits.aggregate_by_window(session(timedelta(minutes=30)), counting(), timestamp=lambda visit: visit)
    hours = visits.aggregate_by_window(tumbling(timedelta(hours=1)), counting(), timestamp=lambda visit: visit)

    assert [each.result for each in sessions] == [2, 1, 1]
    assert [(each.start, each.result) for each in hours] == [
        (1000 * int((noon + timedelta(hours=n)).timestamp()), count) for n, count in [(0, 2), (1, 1), (3, 1)]
    ]


def test_none_and_nan_are_keys(engine):
    """As in `aggregate_by_key`; an empty stream has no windows."""
    stream = engine.stream([(None, 1, 1), (float("nan"), 1, 1), (float("nan"), 2, 1)])
    results = stream.aggregate_by_window(tumbling(10), counting(), timestamp=TIME, key=KEY).to_list()

    assert sorted((str(each.key), each.result) for each in results) == [("None", 1), ("nan", 2)]
    assert engine.stream([]).aggregate_by_window(tumbling(10), counting(), timestamp=TIME).to_list() == []


def test_results_of_windows_that_slide_share_nothing(local_context):
    """A list that is changed changes no other one."""
    stream = local_context.stream(EVENTS).aggregate_by_window(sliding(20, by=10), to_list(), timestamp=TIME)
    lists = stream.peek(lambda each: each.result.append("changed")).map(lambda each: len(each.result)).to_list()

    assert lists == [4, 5, 2, 2, 2]


@pytest.mark.parametrize(
    ("window", "collector", "more", "error", "said"),
    [
        (10, counting(), {}, TypeError, r"window must be one of dstream.windows, tumbling\(size\).*, not int"),
        (tumbling(10), len, {}, TypeError, "collector must be a Collector"),
        (tumbling(10), co_operation(counting(), counting()), {}, TypeError, "collector must have one input"),
        (session(5), NOT_COMBINED, {}, TypeError, "has no combine, and sessions become one"),
        (tumbling(10).early_results(1), counting(), {}, ValueError, "early results are of windows that are open"),
        (tumbling(10), counting(), {"timestamp": "time"}, TypeError, "timestamp must be a function"),
        (tumbling(10), counting(), {"key": "name"}, TypeError, "key must be a function"),
    ],
)
def test_arguments_are_checked(window, collector, more, error, said):
    """At the call."""
    with pytest.raises(error, match=said):
        Stream.of(1).aggregate_by_window(window, collector, **{"timestamp": int, **more})


def test_a_stream_without_an_end_is_refused():
    """Its windows are those of a pipeline."""
    endless = Stream.iterate(1, abs)
    with pytest.raises(IllegalStateError, match=r"an infinite stream cannot be aggregated: \.aggregate_by_window"):
        endless.aggregate_by_window(tumbling(10), counting(), timestamp=int).to_list()


def test_failures_name_the_item_and_the_window(engine):
    """A timestamp that is none is the item's; a finisher that fails is the window's."""
    stream = engine.stream([("a", 1), ("a", "soon")])
    with pytest.raises(TypeError) as of_item:
        stream.aggregate_by_window(tumbling(10), counting(), timestamp=TIME, key=KEY).to_list()
    failing = counting().with_finish(lambda count: 1 // (count - 1))
    with pytest.raises(ZeroDivisionError) as of_window:
        engine.stream(EVENTS).aggregate_by_window(tumbling(10), failing, timestamp=TIME, key=KEY).to_list()

    assert "('a', 'soon')" in told(of_item.value)
    assert "aggregate_by_window" in told(of_item.value)
    assert "in the window from 10 to 20 of the key 'a'" in told(of_window.value) or "'b'" in told(of_window.value)


def told(error):
    """Return the message of a failure, and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])
