"""Every processor of the library gives the same wherever it is saved and restored, with room for one item at a time."""

from __future__ import annotations

import pytest

import dstream as ds
from collectors import counting
from dstream.core import Watermark, processors, whole_item
from dstream.testing.protocol import RUNS, ProcessorRun
from dstream.windows import KeyedWindowResult, limiting_lag, session, sliding, tumbling
from tests.core.processors.four_runs import emitted_in_four_runs

TEN = ds.Service(lambda: 10)
STAMPED = {"timestamps": [abs], "operation": counting()}
CASES = {
    "map": (processors.map(lambda n: n * 2 or None), [1, 0, 2], [2, 4]),
    "filter": (processors.filter(bool), [1, 0, 2], [1, 2]),
    "flat_map": (processors.flat_map(range), [1, 0, 2], [0, 0, 1]),
    "noop": (processors.noop(), [1], []),
    "map_using": (processors.map_using(TEN, min), [11, 2], [10, 2]),
    "filter_using": (processors.filter_using(TEN, int.__gt__), [11, 2], [2]),
    "flat_map_using": (processors.flat_map_using(TEN, lambda ten, n: [ten, n]), [1], [10, 1]),
    "aggregate": (processors.aggregate(counting()), [7, 8], [2]),
    "accumulate": (processors.accumulate(counting()), [7, 8], [2]),
    "combine": (processors.combine(counting()), [7, 8], [15]),
    "aggregate_by_key": (processors.aggregate_by_key([abs], counting()), [1, -1, 2], [(1, 2), (2, 1)]),
    "accumulate_by_key": (processors.accumulate_by_key([abs], counting()), [1, -1, 2], [(1, 2), (2, 1)]),
    "combine_by_key": (processors.combine_by_key(counting()), [("a", 1), ("a", 2)], [("a", 3)]),
    "aggregate_to_sliding_window": (
        processors.aggregate_to_sliding_window(**STAMPED, window=sliding(4, by=2), to=lambda start, end, n: (end, n)),
        [1, 2, Watermark(2)],
        [(2, 1), Watermark(2), (4, 2), (6, 1)],
    ),
    "combine_to_sliding_window": (
        processors.combine_to_sliding_window(window=sliding(4, by=2), operation=counting(), to=lambda *given: given),
        [KeyedWindowResult(0, 2, "k", 3)],
        [(-2, 2, "k", 3), (0, 4, "k", 3)],
    ),
    "aggregate_to_session_window": (
        processors.aggregate_to_session_window(**STAMPED, window=session(5), to=lambda *given: given),
        [1, 2, 20, Watermark(9)],
        [(1, 7, 2), Watermark(9), (20, 25, 1)],
    ),
    "insert_watermarks": (
        processors.insert_watermarks(timestamps=abs, policy=limiting_lag(1), clock=float),
        [3, 2],
        [Watermark(2), 3, 2],
    ),
    "write_buffered": (processors.write_buffered(lambda context: [], list.append, len), [1], []),
    "write_logger": (processors.write_logger(), [1], []),
    "peek_input": (processors.peek_input(processors.map(abs)), [1], [1]),
    "peek_output": (processors.peek_output(processors.map(abs)), [1], [1]),
    "peek_snapshot": (processors.peek_snapshot(processors.aggregate(counting())), [1], [1]),
}
APART = {"accumulate_by_frame", "hash_join", "read", "write"}
"""The first emits other containers where it is saved, the second needs an order of edges; the others have none."""


@pytest.mark.parametrize("name", CASES)
def test_a_processor_gives_the_same_wherever_it_is_restored(name):
    """Order included, for a single key."""
    supplier, items, emitted = CASES[name]

    assert emitted_in_four_runs(supplier, items) == emitted


def test_no_processor_is_left_out():
    """One that is new takes its place here."""
    assert CASES.keys() | APART == set(processors.__all__)


@pytest.mark.parametrize("run", range(4))
def test_frames_add_up_wherever_they_are_handed_over(run):
    """The second stage combines what the first one emits in pieces."""
    first = ProcessorRun(processors.accumulate_by_frame(keys=[whole_item], **STAMPED, window=tumbling(10)), RUNS[run])
    for item in [1, 1, 2, Watermark(10), 11, 1]:
        first.process(0, item)
    first.complete()
    second = processors.combine_to_sliding_window(
        window=tumbling(10), operation=counting(), to=lambda start, end, key, n: (end, key, n)
    )

    assert sorted(each for each in emitted_in_four_runs(second, first.emitted) if not isinstance(each, Watermark)) == [
        (10, 1, 2),
        (10, 2, 1),
        (20, 11, 1),
    ]
