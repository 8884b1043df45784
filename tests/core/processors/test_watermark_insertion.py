"""Watermarks among items: the cases of Jet's InsertWatermarksPTest and WatermarkEmissionPolicyTest, as literals."""

from __future__ import annotations

import operator
import pickle

import pytest

from dstream.base.pickling import dumps
from dstream.core import Watermark, processors
from dstream.failures import failure
from dstream.processors.blocks import GraphArrival, Mark
from dstream.processors.inbox_outbox import BlockInbox
from dstream.spi import AggregateOperation
from dstream.spi.suppliers import meta_supplier
from dstream.testing.protocol import RUNS, ProcessorRun
from dstream.windows import (
    emit_by_frame,
    emit_by_min_step,
    limiting_lag,
    limiting_lag_and_lull,
    limiting_timestamp_and_wall_clock_lag,
    no_throttling,
    sliding,
    tumbling,
)
from tests.core.processors.four_runs import emitted_in_four_runs
from tests.processors.graphs_by_hand import edge, run_of, vertex


def inserted(items, lag=3, emission=None):
    """Return items and watermarks, these as ("wm", timestamp)."""
    made = processors.insert_watermarks(timestamps=abs, policy=limiting_lag(lag), emission=emission, clock=lambda: 0.0)
    return [
        ("wm", each.timestamp) if isinstance(each, Watermark) else each for each in emitted_in_four_runs(made, items)
    ]


def wm(timestamp):
    """Return what stands for a watermark."""
    return "wm", timestamp


@pytest.mark.parametrize(
    ("items", "emitted"),
    [
        ([10], [wm(7), 10]),  # when_firstEvent_then_wmBeforeIt
        ([10, 11, 12], [wm(7), 10, wm(8), 11, wm(9), 12]),  # when_eventsIncrease_then_wmIncreases
        ([12, 11, 10], [wm(9), 12, 11, 10]),  # when_eventsDecrease_then_oneWm
        ([12, 2], [wm(9), 12, 2]),  # when_lateEvent_then_notDropped
        ([11, 110], [wm(8), 11, wm(107), 110]),  # when_gapBetweenEvents_then_oneWm
        ([10, 10, 10], [wm(7), 10, 10, 10]),  # when_sameTimestamps_then_oneWm
    ],
)
def test_a_watermark_stands_before_the_item_that_moved_time(items, emitted):
    """Without throttling."""
    assert inserted(items) == emitted


def test_without_a_lag_a_watermark_is_that_of_its_item():
    """Jet: when_zeroLag."""
    assert inserted([10, 13], lag=0) == [wm(10), 10, wm(13), 13]


@pytest.mark.parametrize(
    ("frame", "items", "emitted"),
    [
        (2, [10, 11, 12, 13], [wm(6), 10, wm(8), 11, 12, wm(10), 13]),  # eventsIncrease
        (2, [11, 12, 13, 14], [wm(8), 11, 12, wm(10), 13, 14]),  # eventsIncreaseAndStartAtVergeOfFrame
        (10, [14, 15, 24], [wm(10), 14, 15, wm(20), 24]),  # eventsNotAtTheVergeOfFrame
        (2, [11, 15], [wm(8), 11, wm(12), 15]),  # gapBetweenEvents
    ],
)
def test_watermarks_by_frame_are_those_of_jet(frame, items, emitted):
    """Jet: emitByFrame_when_..., as of 3.0."""
    assert inserted(items, emission=emit_by_frame(tumbling(frame))) == emitted


@pytest.mark.parametrize(
    ("items", "emitted"),
    [
        ([11, 12, 13, 14, 15, 16], [wm(8), 11, 12, 13, wm(11), 14, 15, 16]),
        ([15, 14, 13], [wm(12), 15, 14, 13]),
        ([11, 21, 31], [wm(8), 11, wm(18), 21, wm(28), 31]),
    ],
)
def test_watermarks_can_keep_a_distance(items, emitted):
    """Jet: emitByMinStep_when_eventsIncrease, eventsDecrease, eventsIncreaseByStep."""
    assert inserted(items, emission=emit_by_min_step(3)) == emitted


@pytest.mark.parametrize(
    ("items", "emitted"),
    [
        ([11, 12, 13, 14, 15, 16, 17], [wm(6), 11, wm(9), 12, 13, 14, wm(12), 15, 16, 17]),
        ([18, 17, 16], [wm(15), 18, 17, 16]),
        ([10, 20, 30], [wm(6), 10, wm(15), 20, wm(27), 30]),
    ],
)
def test_watermarks_can_stand_at_the_borders_of_frames(items, emitted):
    """Jet: emitByFrame_when_eventsIncrease, eventsDecrease, eventsIncreaseByLargeStep."""
    assert inserted(items, emission=emit_by_frame(tumbling(3))) == emitted


def test_all_items_of_a_block_go_on():
    """All items go on, in order."""
    made = processors.insert_watermarks(timestamps=abs, policy=limiting_lag(3), clock=lambda: 0.0)
    items = [n * 7919 % 1000 for n in range(1000)]
    seen = []
    arrivals = [GraphArrival(0, 0, None, items)]
    end = processors.write_buffered(lambda context: seen, list.append, len)
    run_of([vertex("v", made), vertex("end", end)], [edge("in", "v"), edge("v", "end")], arrivals)

    assert seen == items


def idle_ones(timeout, script):
    """Return what comes of readings of the clock and items; None: no item."""
    now = [0.0]
    made = processors.insert_watermarks(
        timestamps=abs, policy=limiting_lag(3), idle_timeout=timeout, clock=lambda: now[0]
    )
    one = ProcessorRun(made, RUNS[0])
    for at, item in script:
        now[0] = at
        if item is None:
            one.until_done("tick")
        else:
            one.process(0, item)
    return one.emitted


def test_a_processor_without_items_tells_that_it_is_idle():
    """Jet: when_idle_event_idle_then_idleMessageSentTwice: once for each pause."""
    script = [(9.0, None), (10.0, None), (20.0, None), (21.0, 10), (30.0, None), (31.0, None)]

    assert idle_ones(10, script) == [Mark.IDLE, Watermark(7), 10, Mark.IDLE]


def test_without_a_timeout_no_processor_is_idle():
    """Jet: when_zeroTimeout_then_notIdle."""
    assert idle_ones(0, [(1000.0, None), (2000.0, 10), (9000.0, None)]) == [Watermark(7), 10]


def test_time_goes_on_with_the_clock():
    """Jet: when_wmPolicyMovesByWallClock: between items, too."""
    now = [10.0]
    policy = limiting_timestamp_and_wall_clock_lag(3, wall_lag=5)
    made = processors.insert_watermarks(timestamps=abs, policy=policy, clock=lambda: now[0])
    one = ProcessorRun(made, RUNS[0])
    one.until_done("tick")
    now[0] = 11.0
    one.until_done("tick")

    assert one.emitted == [Watermark(5000), Watermark(6000)]


def test_the_last_watermark_is_saved():
    """Jet: time does not go back after a restart."""
    made = pickle.loads(dumps(processors.insert_watermarks(timestamps=abs, policy=limiting_lag(0), clock=float)))
    one = ProcessorRun(made, RUNS[3])
    one.process(0, 20)
    one.process(0, 10)

    assert one.emitted == [Watermark(20), 20, 10]


@pytest.mark.parametrize("shown", [meta_supplier, processors.peek_output])
def test_it_needs_the_clock_until_it_is_idle(shown):
    """A job without an end rests then, until an item comes; also where its output is logged."""
    now = [0.0]
    made = processors.insert_watermarks(timestamps=abs, policy=limiting_lag(0), idle_timeout=5, clock=lambda: now[0])
    one = ProcessorRun(shown(made), RUNS[0])
    needs = [one.processor.ticks_alone]
    now[0] = 6.0
    one.until_done("tick")
    needs.append(one.processor.ticks_alone)
    one.process(0, 10)
    needs.append(one.processor.ticks_alone)

    assert needs == [True, False, True]


def test_what_the_policy_has_seen_is_saved():
    """A pause that began before a restart lets time go on with the clock after it."""
    now = [0.0]
    policy = limiting_lag_and_lull(0, max_lull=5)
    made = processors.insert_watermarks(timestamps=abs, policy=policy, clock=lambda: now[0])
    one = ProcessorRun(made, RUNS[3])
    one.process(0, 10)
    now[0] = 6.0
    one.until_done("tick")

    assert one.emitted == [Watermark(10), 10, Watermark(1010)]


def test_windows_close_by_inserted_watermarks():
    """Jet: InsertWatermarksP_IntegrationTest: late items reach the window, and are dropped there."""
    made = processors.insert_watermarks(timestamps=abs, policy=limiting_lag(0), emission=emit_by_frame(tumbling(10)))
    windows = processors.aggregate_to_sliding_window(
        timestamps=[abs], window=tumbling(10), operation=summed(), to=lambda start, end, total: (end, total)
    )
    edges = [edge("in", "v"), edge("v", "w"), edge("w", "out")]

    found = run_of([vertex("v", made), vertex("w", windows)], edges, [GraphArrival(0, 0, None, [1, 2, 11, 3, 35])])

    assert found == [(10, 3), (20, 11), (40, 35)]


def summed():
    """Return a sum."""
    return AggregateOperation(int, operator.add, operator.add)


def test_emission_policies_choose_what_is_sent():
    """Jet: WatermarkEmissionPolicyTest."""
    assert [no_throttling()(now, 10) for now in (9, 11)] == [9, 11]
    assert [emit_by_min_step(5)(now, 10) for now in (11, 14, 15, 30)] == [10, 10, 15, 30]
    assert [emit_by_frame(sliding(20, by=5))(now, 10) for now in (11, 14, 15, 31)] == [10, 10, 15, 30]


@pytest.mark.parametrize(
    ("made", "kind"), [(lambda: emit_by_min_step(0), ValueError), (lambda: emit_by_frame(5), TypeError)]
)
def test_emission_policies_refuse_what_is_no_step(made, kind):
    """A step is positive, a frame that of a window."""
    with pytest.raises(kind, match="must be"):
        made()


def test_a_timestamp_that_is_no_int_names_the_item():
    """It would be compared with others."""
    made = processors.insert_watermarks(timestamps=str, policy=limiting_lag(0))
    with pytest.raises(TypeError, match="milliseconds as int") as caught:
        run_of([vertex("v", made)], [edge("in", "v"), edge("v", "out")], [GraphArrival(0, 0, None, [1])])

    assert failure(caught.value).item == 1


class Told:
    """A policy that keeps what it is told."""

    def __init__(self):
        self.count = 0

    def report(self, timestamp, now):
        """Count."""
        self.count += 1

    def watermark(self, now):
        """Return the count."""
        return self.count


def test_a_policy_is_told_all_timestamps():
    """Unless it asks for the greatest alone."""
    one = ProcessorRun(processors.insert_watermarks(timestamps=abs, policy=Told()), RUNS[0])
    inbox = BlockInbox()
    inbox.fill([3, 2, 1])
    one.outbox.capacities = [10]
    one.processor.process(0, inbox)

    assert one.outbox.queue(0) == [Watermark(1), 3, Watermark(2), 2, Watermark(3), 1]
