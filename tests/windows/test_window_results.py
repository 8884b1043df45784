"""Results of windows: tuples with names."""

from __future__ import annotations

import pickle

import pytest

from dstream.windows import KeyedWindowResult, WindowResult


@pytest.mark.parametrize("result", [WindowResult(0, 10, [1]), KeyedWindowResult(0, 10, "a", [1], is_early=True)])
def test_window_results_survive_pickling(result):
    """They go through shuffles and sinks."""
    assert pickle.loads(pickle.dumps(result)) == result


def test_window_results_are_final_unless_they_say_otherwise():
    """`is_early` comes last, and is left out mostly."""
    assert WindowResult(0, 10, 3) == (0, 10, 3, False)
    assert KeyedWindowResult(0, 10, "a", 3) == (0, 10, "a", 3, False)
