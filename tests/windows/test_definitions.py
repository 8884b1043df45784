"""Definitions of windows: what they take, how they read, and where frames end."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from dstream.windows import FrameWindow, SessionWindow, emit_by_frame, session, sliding, tumbling


def test_windows_take_milliseconds_and_timedelta():
    """A definition is a value: two that say the same are equal."""
    assert tumbling(timedelta(seconds=10)) == tumbling(10_000) == FrameWindow(10_000, 10_000)
    assert sliding(timedelta(minutes=1), by=timedelta(seconds=1)) == sliding(60_000, 1000) == FrameWindow(60_000, 1000)
    assert session(timedelta(minutes=30)) == SessionWindow(1_800_000)


def test_windows_of_one_frame_are_tumbling():
    """A sliding window that moves by its size is the same window."""
    assert sliding(10, by=10) == tumbling(10)
    assert (tumbling(10).is_tumbling, sliding(20, by=10).is_tumbling) == (True, False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tumbling(0), "size must be at least 1 ms"),
        (lambda: tumbling(-5), "size must be from 0 up to"),
        (lambda: sliding(10, by=0), "by must be at least 1 ms"),
        (lambda: sliding(10, by=3), "size must be a multiple of by: 10 ms is no multiple of 3 ms"),
        (lambda: sliding(10, by=20), "size must be a multiple of by: 10 ms is no multiple of 20 ms"),
        (lambda: session(0), "timeout must be at least 1 ms"),
        (lambda: tumbling(10).early_results(0), "every must be longer than 0 seconds"),
        (lambda: session(10).early_results(float("inf")), "every must be a finite number of seconds"),
    ],
)
def test_windows_refuse_lengths_that_make_none(make, message):
    """The message names the argument."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make", [tumbling, session, lambda size: sliding(10, size)])
def test_windows_refuse_floats(make):
    """A float could be meant as seconds."""
    with pytest.raises(TypeError, match=r"must be milliseconds as int, or a timedelta, not 2\.5"):
        make(2.5)


def test_frames_lie_between_their_borders():
    """A border is the last one not behind its own timestamp, and the frame that begins there ends one step on."""
    frames = sliding(8, by=2)

    assert [frames.floor_frame(each) for each in (-3, -2, -1, 0, 1, 2)] == [-4, -2, -2, 0, 0, 2]
    assert [frames.higher_frame(each) for each in (-3, -2, -1, 0, 1, 2)] == [-2, 0, 0, 2, 2, 4]


@pytest.mark.parametrize(
    ("offset", "floors"), [(0, [-8, -4, -4, 0, 0, 4]), (1, [-7, -7, -3, -3, 1, 1]), (2, [-6, -6, -2, -2, 2, 2])]
)
def test_frames_are_those_of_jet(offset, floors):
    """Jet: SlidingWindowPolicyTest.when_noOffset, when_offset1, when_offset2: frames of 4."""
    frames = sliding(12, by=4).with_offset(offset)
    stamps = (-5, -4, -1, 0, 3, 4)

    assert [frames.floor_frame(each) for each in stamps] == floors
    assert [frames.higher_frame(each) for each in stamps] == [each + 4 for each in floors]


def test_windows_know_their_measures():
    """Jet: test_tumblingWindowDef, test_toTumblingByFrame, test_withOffset."""
    moved = sliding(1000, by=100).with_offset(10)

    assert (tumbling(123).by, tumbling(123).size, tumbling(123).offset) == (123, 123, 0)
    assert (moved.by, moved.size, moved.offset, moved.is_tumbling) == (100, 1000, 10, False)
    assert tumbling(moved.by).with_offset(moved.offset) == FrameWindow(100, 100, offset=10)


def test_frames_with_an_offset_lie_that_much_later():
    """Also below zero."""
    frames = sliding(20, by=10).with_offset(3)

    assert [frames.floor_frame(each) for each in (-8, -7, 2, 3, 12, 13)] == [-17, -7, -7, 3, 3, 13]
    assert [frames.higher_frame(each) for each in (-8, -7, 2, 3, 12, 13)] == [-7, 3, 3, 13, 13, 23]


def test_offsets_are_not_negative():
    """The message names the argument."""
    with pytest.raises(ValueError, match="offset must be from 0"):
        tumbling(10).with_offset(-1)


def test_windows_read_as_they_were_made():
    """Plans and messages show them."""
    shown = [tumbling(10), sliding(20, by=10), session(5), tumbling(10).early_results(timedelta(seconds=2))]
    moved = sliding(20, by=10).with_offset(3).early_results(1)

    assert repr(moved) == "sliding(20, by=10).with_offset(3).early_results(1.0)"
    assert list(map(repr, shown)) == [
        "tumbling(10)",
        "sliding(20, by=10)",
        "session(5)",
        "tumbling(10).early_results(2.0)",
    ]


def test_windows_early_results_change_nothing_else():
    """Early results are an addition, in seconds of the clock."""
    assert sliding(20, by=10).early_results(0.5) == FrameWindow(20, 10, early=0.5)
    assert session(20).early_results(3) == SessionWindow(20, early=3.0)


@pytest.mark.parametrize(
    ("timestamp", "floor", "end"),
    [(0, 0, 4), (1, 0, 4), (3, 0, 4), (4, 4, 8), (-1, -4, 0), (-4, -4, 0), (-5, -8, -4)],
)
def test_frames_are_half_open(timestamp, floor, end):
    """The start belongs to a frame, its end to the next, before 1970 too."""
    assert (tumbling(4).floor_frame(timestamp), sliding(8, by=4).higher_frame(timestamp)) == (floor, end)


@pytest.mark.parametrize("window", [sliding(20, by=10).early_results(1), session(5)])
def test_windows_survive_pickling(window):
    """They travel inside of operators."""
    assert pickle.loads(pickle.dumps(window)) == window


@pytest.mark.parametrize(("timestamp", "floor"), [(2, -7), (3, 3), (12, 3), (13, 13), (-8, -17)])
def test_frames_may_begin_later(timestamp, floor):
    """Jet: SlidingWindowPolicyTest.when_offset; all of them by the same time."""
    window = sliding(20, by=10).with_offset(3)

    assert (window.floor_frame(timestamp), window.higher_frame(timestamp)) == (floor, floor + 10)
    assert emit_by_frame(window)(timestamp, -100) == floor
    assert repr(window) == "sliding(20, by=10).with_offset(3)"
    assert window.of_frames() == tumbling(10).with_offset(3)


@pytest.mark.parametrize(("offset", "error"), [(10, ValueError), (-1, ValueError), ("1", TypeError)])
def test_offsets_are_shorter_than_a_frame(offset, error):
    """Otherwise another one would mean the same."""
    with pytest.raises(error, match="offset"):
        tumbling(10).with_offset(offset)
