"""The first items of blocks in columns are those that come first of all items, and columns that are wrong are told."""

from __future__ import annotations

from typing import Any

import pytest

from dstream.engine.kernels.columns import column_top
from dstream.engine.kernels.columns.column_top import top_of_blocks
from dstream.engine.kernels.columns.column_values import column_of
from dstream.errors import EngineError
from dstream.expressions import Argument
from dstream.plan.steps import KeyInColumns

_PARTS: list[list[Any]] = [[3.0, 4.0], [5.0, 6.0, 1.0], [2.0, float("nan"), 1.0]]


def _top(count: int, reverse: bool, is_verified: bool = False) -> list[Any]:
    columns = KeyInColumns(Argument(0), is_verified)
    return top_of_blocks(map(column_of, _PARTS), count, None, reverse, columns, "top(...)")


@pytest.mark.parametrize(
    ("count", "first"), [(1, [1.0]), (4, [1.0, 1.0, 2.0, 3.0]), (6, [1.0, 1.0, 2.0, 3.0, 4.0, 5.0])]
)
def test_blocks_that_hold_less_than_is_asked_for_leave_nothing_out(count: int, first: list[float]) -> None:
    """What comes behind the last item so far counts until there are enough."""
    assert _top(count, False) == first


def test_columns_that_leave_something_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns are verified."""
    assert _top(3, False, is_verified=True) == [1.0, 1.0, 2.0]
    monkeypatch.setattr(column_top, "_candidates", lambda *_: [])

    assert _top(3, False) == []
    with pytest.raises(EngineError, match="columns give"):
        _top(3, False, is_verified=True)
