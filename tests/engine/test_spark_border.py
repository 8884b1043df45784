"""The border that a run crosses to Spark, with a Spark of the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dstream.engine.auto.border import SparkBorder
from dstream.engine.auto.cost_model import COSTS
from dstream.engine.auto.measured import MeasuredCosts
from dstream.engine.calls import Call, Cancellation
from dstream.engine.physical.vertices import Splits


class Listed:
    """Pieces that count how often they are listed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.times = 0

    def pieces(self, splits: Splits) -> Any:
        self.times += 1
        return iter(range(self.number))


def crossed_at(listed: Any, seconds: float) -> int | None:
    """Return the first piece that is read on a Spark which runs, if each takes so many seconds here."""
    spark: Any = SimpleNamespace(running=object(), status=lambda start: "running")
    border = SparkBorder(spark, 2, None, COSTS, MeasuredCosts(), Call("to_list()", None), Cancellation())
    splits = Splits(())
    for piece in range(listed.number):
        if border.is_crossed(listed, splits, piece):
            return piece
        border.took((), 1, seconds)
    return None


def test_pieces_are_counted_once_for_an_input():
    """Before each of 5,000 small ones, that would take longer than to read them."""
    listed = Listed(5_000)
    assert crossed_at(listed, COSTS.job / 2_500) is None
    assert listed.times == 1


def test_an_input_of_more_pieces_than_are_counted_moves():
    """As one of which nobody knows how many follow."""
    assert crossed_at(Listed(30_000), COSTS.job / 2_500) is not None
