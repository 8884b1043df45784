"""Vertices of windows: the cases of Jet's SlidingWindowPTest and SessionWindowPTest, as literals."""

from __future__ import annotations

import operator
import time

import pytest

from collectors import co_operation, counting, to_list, to_set
from dstream.core import Watermark, processors
from dstream.core.processors.windows import OperatorProcessor
from dstream.failures import failure
from dstream.operators.windows.frames import FrameWindows
from dstream.operators.windows.sessions import SessionWindows
from dstream.processors.blocks import GraphArrival
from dstream.spi import AggregateOperation
from dstream.testing.protocol import RUNS, ProcessorRun
from dstream.windows import FrameWindow, KeyedWindowResult, WindowResult, session, sliding, tumbling
from tests.core.processors.four_runs import emitted_in_four_runs
from tests.processors.graphs_by_hand import edge, run_of, vertex


def sums(deducts):
    """Return a sum of values of pairs, which is deducted or not."""
    take = operator.sub if deducts else None
    return AggregateOperation(int, lambda total, event: total + event[1], operator.add, take)


def wm(*timestamps):
    """Return watermarks."""
    return [Watermark(each) for each in timestamps]


def of_key(start, end, key, result):
    """Show a result in short."""
    return end, key, result


def one_stage(deducts):
    """Return a vertex of windows of 4, by 1."""
    return processors.aggregate_to_sliding_window(
        keys=[lambda event: "k"],
        timestamps=[lambda event: event[0]],
        window=sliding(4, by=1),
        operation=sums(deducts),
        to=of_key,
    )


class TwoStages:
    """The second of two stages; events become frames, as the first one makes them."""

    def __call__(self, deducts):
        """Return the vertex."""
        return processors.combine_to_sliding_window(window=sliding(4, by=1), operation=sums(deducts), to=of_key)


def emitted(stages, deducts, events):
    """Return what comes of events at (timestamp, 1) and watermarks."""
    if isinstance(stages, TwoStages):
        events = [
            each if isinstance(each, Watermark) else KeyedWindowResult(each[0], each[0] + 1, "k", each[1])
            for each in events
        ]
    return emitted_in_four_runs(stages(deducts), events)


ALL = [(1, "k", 1), (2, "k", 2), (3, "k", 3), (4, "k", 4), (5, "k", 4), (6, "k", 3), (7, "k", 2), (8, "k", 1)]
"""The windows of five events at 0 to 4."""
WITH_WATERMARKS = [each for end, result in enumerate(ALL, 1) for each in (result, Watermark(end))]
every_kind = pytest.mark.parametrize(
    ("stages", "deducts"), [(one_stage, True), (one_stage, False), (TwoStages(), True), (TwoStages(), False)]
)


@every_kind
def test_no_events_give_no_windows(stages, deducts):
    """Jet: when_noEvents_then_wmsEmitted."""
    assert emitted(stages, deducts, wm(1, 2, 3)) == wm(1, 2, 3)


@every_kind
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [3, 0, 4, 1, 2]])
def test_windows_are_emitted_ascending_in_any_order_of_events(stages, deducts, order):
    """Jet: when_receiveAscendingTimestamps, DescendingTimestamps, RandomTimestamps_then_emitAscending."""
    events = [(each, 1) for each in order] + wm(*range(1, 9))

    assert emitted(stages, deducts, events) == WITH_WATERMARKS


@every_kind
def test_one_watermark_closes_many_windows(stages, deducts):
    """Jet: when_receiveWithGaps_then_emitAscending: they go out before it."""
    assert emitted(stages, deducts, [*((each, 1) for each in range(5)), *wm(3, 8)]) == [
        *ALL[:3],
        Watermark(3),
        *ALL[3:],
        Watermark(8),
    ]


@every_kind
def test_windows_between_events_are_not_skipped(stages, deducts):
    """Jet: when_receiveWithGaps_then_doNotSkip: a key is in every window that covers its frames."""
    assert emitted(stages, deducts, [(0, 1), (10, 1), *wm(50)]) == [
        *((end, "k", 1) for end in (1, 2, 3, 4, 11, 12, 13, 14)),
        Watermark(50),
    ]


@every_kind
def test_the_end_closes_what_is_open(stages, deducts):
    """Jet: when_wmNeverReceived_then_emitEverythingInComplete, when_batch_then_emitEverything."""
    assert emitted(stages, deducts, [(each, 1) for each in range(5)]) == ALL


@every_kind
def test_an_event_of_a_closed_frame_is_dropped(stages, deducts):
    """Jet: when_lateEvent_then_ignore: also while larger windows that hold it are open."""
    assert emitted(stages, deducts, [*wm(16), (0, 1), (15, 1), (16, 1)]) == [
        Watermark(16),
        *((end, "k", 1) for end in (17, 18, 19, 20)),
    ]


def test_events_without_keys_are_one_group():
    """Two inputs; results know their window."""
    vertex = processors.aggregate_to_sliding_window(
        timestamps=[abs, abs],
        window=tumbling(10),
        operation=AggregateOperation(list, (list.append, list.append), list.extend, finish=sorted),
    )

    assert emitted_in_four_runs(vertex, [1, 12], [-2]) == [
        WindowResult(0, 10, [-2, 1]),
        WindowResult(10, 20, [12]),
    ]


def test_windows_of_many_keys_come_in_the_order_of_their_ends():
    """Whatever the shards of the keys."""
    vertex = processors.aggregate_to_sliding_window(
        keys=[str], timestamps=[abs], window=tumbling(10), operation=counting(), to=of_key
    )
    ends = [end for end, _, _ in emitted_in_four_runs(vertex, range(59, -1, -1))]

    assert ends == sorted(ends)
    assert len(ends) == 60


def test_the_first_stage_emits_a_frame_when_it_closes():
    """Jet: SlidingWindowP_stage1Test: windows of four, frames of two; late events are dropped."""
    vertex = processors.accumulate_by_frame(
        keys=[lambda event: event[1]], timestamps=[lambda event: event[0]], window=sliding(4, by=2), operation=to_list()
    )
    one = ProcessorRun(vertex, RUNS[0])
    for each in [(0, "a"), (1, "b"), (2, "a"), Watermark(2), (1, "late"), Watermark(4)]:
        one.process(0, each)

    assert sorted(one.emitted[:2]) == [
        KeyedWindowResult(0, 2, "a", [(0, "a")]),
        KeyedWindowResult(0, 2, "b", [(1, "b")]),
    ]
    assert one.emitted[2:] == [
        Watermark(2),
        KeyedWindowResult(2, 4, "a", [(2, "a")]),
        Watermark(4),
    ]


def first_stage():
    """Return the first of two stages, with frames of 4, and a sum."""
    return processors.accumulate_by_frame(
        keys=[lambda event: "k"], timestamps=[operator.itemgetter(0)], window=sliding(16, by=4), operation=sums(True)
    )


def frame(end, total):
    """Return what the first stage emits."""
    return KeyedWindowResult(end - 4, end, "k", total)


def test_the_first_stage_is_that_of_jet():
    """Jet: SlidingWindowP_stage1Test.smokeTest: a watermark inside of a frame closes none."""
    one = ProcessorRun(first_stage(), RUNS[0])
    events = [*[(0, 1), (1, 1)], *wm(3, 4), *[(4, 1), (5, 1), (8, 1)], *wm(6, 7), (8, 1), *wm(8), (8, 1), *wm(21)]
    for each in events:
        one.process(0, each)

    assert one.emitted == [*wm(3), frame(4, 2), *wm(4, 6, 7), frame(8, 2), *wm(8), frame(12, 3), *wm(21)]


def test_the_first_stage_lets_watermarks_pass():
    """Jet: when_noEvents_then_wmtsEmitted."""
    assert emitted_in_four_runs(first_stage(), wm(2, 3, 4, 5, 6, 8, 20)) == wm(2, 3, 4, 5, 6, 8, 20)


def test_the_first_stage_emits_what_is_open_at_the_end():
    """Jet: when_batch_then_emitEverything: at once, although the last watermark is far from the end of time."""
    one = ProcessorRun(first_stage(), RUNS[0])
    for each in [(0, 1), *wm(4), (10**15, 1)]:
        one.process(0, each)
    one.complete()

    assert one.emitted == [frame(4, 1), *wm(4), frame(10**15 + 4, 1)]


def test_windows_of_two_inputs_have_both_for_each_key():
    """Jet: SlidingWindowP_CoGroupTest."""
    vertex = processors.aggregate_to_sliding_window(
        keys=[operator.itemgetter(0)] * 2,
        timestamps=[lambda event: 0] * 2,
        window=tumbling(1),
        operation=co_operation(to_list(), to_list()),
        to=lambda start, end, key, lists: (end, key, *lists),
    )
    found = emitted_in_four_runs(vertex, [("k1", "a"), ("k2", "b")], [("k1", "c"), ("k3", "d"), ("k1", "e")])

    assert sorted(found) == [
        (1, "k1", [("k1", "a")], [("k1", "c"), ("k1", "e")]),
        (1, "k2", [("k2", "b")], []),
        (1, "k3", [], [("k3", "d")]),
    ]


def test_the_second_stage_combines_frames():
    """Jet: SlidingWindowP_FrameCombiningTest: sets, which cannot be deducted."""
    vertex = processors.combine_to_sliding_window(
        window=sliding(8, by=4), operation=to_set(), to=lambda start, end, key, found: (end, sorted(found))
    )
    frames = [KeyedWindowResult(end - 4, end, "k", {letter}) for end, letter in ((4, "a"), (4, "b"), (8, "c"))]

    assert emitted_in_four_runs(vertex, frames) == [(4, ["a", "b"]), (8, ["a", "b", "c"]), (12, ["c"])]


def test_both_stages_keep_the_offset_of_a_window():
    """Frames begin 1 later in the first, and windows end where these do in the second."""
    window = sliding(4, by=2).with_offset(1)
    first = processors.accumulate_by_frame(keys=[str], timestamps=[abs], window=window, operation=counting())
    second = processors.combine_to_sliding_window(window=window, operation=counting(), to=of_key)
    one, other = ProcessorRun(first, RUNS[0]), ProcessorRun(second, RUNS[0])
    for each in [1, 2, 3, Watermark(5)]:
        one.process(0, each)
    for each in [*one.emitted, Watermark(7)]:
        other.process(0, each)

    assert {(frame.start, frame.end) for frame in one.emitted[:3]} == {(1, 3), (3, 5)}
    assert sorted(each for each in other.emitted if not isinstance(each, Watermark)) == [
        *[(3, "1", 1), (3, "2", 1), (5, "1", 1), (5, "2", 1), (5, "3", 1), (7, "3", 1)]
    ]


def test_the_first_stage_hands_over_what_is_open_when_it_saves():
    """Jet: twoStageSnapshotTest: nothing but the watermark is saved."""
    vertex = processors.accumulate_by_frame(keys=[str], timestamps=[abs], window=sliding(4, by=2), operation=counting())
    one = ProcessorRun(vertex, RUNS[1])
    for each in [Watermark(0), 1, 1]:
        one.process(0, each)

    assert one.emitted == [Watermark(0), KeyedWindowResult(0, 2, "1", 1), KeyedWindowResult(0, 2, "1", 1)]
    assert list(one.saved.values()) == [0]


SESSION = (1, 6, 12, 30, 35, 40)
"""Of one key, with a timeout of 10: two sessions."""


def sessions(events):
    """Return what comes of pairs (key, timestamp)."""
    vertex = processors.aggregate_to_session_window(
        keys=[operator.itemgetter(0)],
        timestamps=[operator.itemgetter(1)],
        window=session(10),
        operation=counting(),
    )
    return emitted_in_four_runs(vertex, events)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [0, 2, 1, 5, 3, 4], [5, 4, 3, 2, 1, 0]])
@pytest.mark.parametrize("keys", ["a", "abc"])
def test_sessions_are_found_in_any_order_of_events(order, keys):
    """Jet: orderedEvents and disorderedEvents with one key and with three."""
    found = sessions([(key, SESSION[each]) for each in order for key in keys] + wm(100))

    assert found[-1] == Watermark(100)
    assert sorted(found[:-1]) == sorted(
        KeyedWindowResult(start, end, key, 3) for key in keys for start, end in ((1, 22), (30, 50))
    )


def test_the_end_closes_sessions():
    """Jet: when_batchProcessing_then_flushEverything."""
    assert sessions([("a", 1), ("a", 5)]) == [KeyedWindowResult(1, 15, "a", 2)]


def test_a_watermark_closes_one_session_and_the_end_the_other():
    """Jet: when_batchProcessing_then_flushEverything."""
    assert sessions([*(("a", at) for at in SESSION), *wm(25)]) == [
        KeyedWindowResult(1, 22, "a", 3),
        *wm(25),
        KeyedWindowResult(30, 50, "a", 3),
    ]


def test_a_session_closes_behind_its_end():
    """Not at it; an event exactly at the end still belongs to it."""
    assert sessions([("a", 1), *wm(11), ("a", 11), *wm(21, 22)]) == [
        *wm(11, 21),
        KeyedWindowResult(1, 21, "a", 2),
        *wm(22),
    ]


def test_an_event_behind_the_watermark_joins_no_session():
    """Jet: late events are dropped by their timestamp."""
    assert sessions([*wm(20), ("a", 19), ("a", 20)]) == [*wm(20), KeyedWindowResult(20, 30, "a", 1)]


def early(window, clock, **more):
    """Return what makes processors of a window that give early results by a clock."""
    one = AggregateOperation(int, lambda total, event: total + 1, operator.add)
    kind = FrameWindows if isinstance(window, FrameWindow) else SessionWindows
    windows = kind(window.early_results(5), (lambda event: event[0],), one)
    return lambda: OperatorProcessor(windows, (lambda event: event[1],), clock=clock, **more)


@pytest.mark.parametrize(("window", "bounds"), [(tumbling(10), (0, 10)), (session(8), (1, 9))])
def test_early_results_come_by_the_clock(window, bounds):
    """Once in each period, for windows that have items; the last result is not early."""
    now = [11.0]
    one = ProcessorRun(early(window, lambda: now[0]), RUNS[0])
    one.process(0, ("a", 1))
    one.process(0, Watermark(1))
    for now[0] in (14.9, 15.0, 19.9):
        one.until_done("tick")
    assert one.emitted == [*wm(1), KeyedWindowResult(*bounds, "a", 1, True)]

    one.process(0, Watermark(20))
    assert one.emitted[2:] == [KeyedWindowResult(*bounds, "a", 1), *wm(20)]
    now[0] = 30.0
    one.until_done("tick")
    assert len(one.emitted) == 4


def test_early_results_come_in_time_after_a_restart():
    """What is open has its period in the snapshot."""
    now = [11.0]
    one = ProcessorRun(early(tumbling(10), lambda: now[0]), RUNS[3])
    one.process(0, ("a", 1))
    one.process(0, Watermark(1))
    now[0] = 16.0
    one.until_done("tick")

    assert one.emitted == [*wm(1), KeyedWindowResult(0, 10, "a", 1, True)]


def test_the_second_stage_gives_early_results_of_the_frames_that_have_closed():
    """The first one gives none of its own."""
    window = sliding(20, by=10).early_results(0.001)
    given = {"window": window, "operation": counting()}
    first = processors.accumulate_by_frame(keys=[operator.itemgetter(0)], timestamps=[operator.itemgetter(1)], **given)
    assert emitted_in_four_runs(first, [("a", 1), ("a", 12), *wm(10)]) == [
        KeyedWindowResult(0, 10, "a", 1),
        *wm(10),
        KeyedWindowResult(10, 20, "a", 1),
    ]
    second = ProcessorRun(processors.combine_to_sliding_window(**given), RUNS[0])
    second.process(0, KeyedWindowResult(0, 10, "a", 1))
    second.process(0, Watermark(9))
    time.sleep(0.002)
    second.until_done("tick")
    assert KeyedWindowResult(0, 20, "a", 1, True) in second.emitted


def test_windows_may_begin_later():
    """Both stages agree on where."""
    window = sliding(20, by=10).with_offset(3)
    given = {"window": window, "operation": counting()}
    of_items = {"keys": [operator.itemgetter(0)], "timestamps": [operator.itemgetter(1)]}
    whole = processors.aggregate_to_sliding_window(**of_items, **given)
    items = [("a", 2), ("a", 3), ("a", 12), ("a", 13)]
    expected = [KeyedWindowResult(start, start + 20, "a", n) for start, n in ((-17, 1), (-7, 3), (3, 3), (13, 1))]

    assert emitted_in_four_runs(whole, items) == expected
    first = vertex("first", processors.accumulate_by_frame(**of_items, **given))
    frames = run_of([first], [edge("in", "first"), edge("first", "out")], [GraphArrival(0, 0, None, items)])
    assert [(each.start, each.result) for each in frames] == [(-7, 1), (3, 2), (13, 1)]
    assert emitted_in_four_runs(processors.combine_to_sliding_window(**given), frames) == expected


def test_sessions_need_an_operation_that_combines():
    """Jet: checked when the vertex is made."""
    with pytest.raises(TypeError, match="has no combine"):
        processors.aggregate_to_session_window(
            timestamps=[abs], window=session(1), operation=AggregateOperation(int, operator.add)
        )


@pytest.mark.parametrize("timestamps", [abs, [], [abs, abs], ["x"]])
def test_each_input_has_a_timestamp_function(timestamps):
    """Of each inbound edge."""
    with pytest.raises(TypeError, match="timestamp"):
        processors.aggregate_to_sliding_window(timestamps=timestamps, window=tumbling(1), operation=counting())


def test_late_items_are_counted_in_the_log(caplog):
    """Jet logs them; here once for each watermark."""
    caplog.set_level("INFO", "dstream.core")
    vertex = processors.aggregate_to_sliding_window(timestamps=[abs], window=tumbling(10), operation=counting())
    one = ProcessorRun(vertex, RUNS[0])
    for item in [Watermark(20), 1, 2, Watermark(30)]:
        one.process(0, item)

    assert [each.getMessage() for each in caplog.records] == ["2 items came behind the watermark 20, and were dropped"]


@pytest.mark.parametrize("role", ["keys", "timestamps"])
def test_a_failure_names_the_item_that_waited(role):
    """Keys are asked for when a watermark comes, timestamps before."""
    given = {"keys": [abs], "timestamps": [abs]} | {role: [lambda n: 6 // n]}
    windows = processors.aggregate_to_sliding_window(**given, window=tumbling(10), operation=counting())
    edges = [edge("in", "v"), edge("v", "out")]
    with pytest.raises(ZeroDivisionError) as caught:
        run_of([vertex("v", windows)], edges, [GraphArrival(0, 0, None, [1, 0, 2, Watermark(20)])])

    assert failure(caught.value).item == 0
