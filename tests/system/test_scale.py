"""Millions of items flow through each shape of pipeline; `tests.soak.scale` has ten times as many."""

from __future__ import annotations

import pytest

from tests.soak.scale import BOUND, SHAPES, Scale, measured

ITEMS = 1_000_000
SECONDS = 300


@pytest.fixture(scope="module")
def scale() -> Scale:
    """What came of each shape, with workers whose operations may hold 64 MB."""
    return measured(list(SHAPES), ITEMS, memory="64m")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_million_items_give_the_exact_result(scale: Scale, shape: str) -> None:
    """The result is what the closed form says."""
    result, expected = scale.results[shape]

    assert result == expected


def test_workers_and_the_driver_stay_small(scale: Scale) -> None:
    """No process of Python is ever seen with more than 512 MB resident."""
    assert 0 < scale.peaks.worker < BOUND
    assert 0 < scale.peaks.driver < BOUND


def test_the_shapes_take_minutes_at_most_and_say_nothing(scale: Scale) -> None:
    """All of them together, also on two busy cores."""
    assert sum(scale.seconds.values()) < SECONDS, scale.seconds
    assert scale.said == ""
