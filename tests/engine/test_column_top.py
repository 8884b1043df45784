"""The first items of blocks in columns are those that come first of all items, and columns that are wrong are told."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from collectors import bottom_n, top_n
from dstream.engine.compiler.evaluation import collector_read
from dstream.errors import EngineError
from dstream.expressions import Argument
from dstream.operators.columns import top
from dstream.operators.columns.top import top_of_blocks
from dstream.operators.columns.values import column_of, items_of, rows_at
from dstream.operators.rows.blocks import ColumnItems
from dstream.operators.rows.group_tables import collected
from dstream.plan.steps import KeyInColumns
from tests.differential.written_expressions import expression_of

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


_TEXTS = ["b", "", "a", "b", "ﬀ", "𝄞", "a", "é", "z", "\n", "a\0", "a", "𝄞𝄞", "b"]
"""Of one to four bytes a character: in UTF-16 the first of four bytes would come before one of three."""


def _first_texts(count: int, reverse: bool, blocks: list[Any]) -> list[Any]:
    columns = KeyInColumns(Argument(0), False)
    found = top_of_blocks(map(_block, blocks), count, None, reverse, columns, "top(...)")
    expected = sorted((text for block in blocks for text in block), reverse=reverse)[:count]
    assert found == expected
    return found


def _block(texts: list[Any]) -> Any:
    if "\ud800" in texts:
        return texts
    return column_of(texts) if texts else rows_at(column_of(["a"]), np.arange(0))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", range(1, 16))
def test_texts_have_the_order_of_their_characters(count: int, reverse: bool) -> None:
    """Whatever their lengths, in one block and in several, with an empty one among them."""
    _first_texts(count, reverse, [_TEXTS])
    _first_texts(count, reverse, [_TEXTS[:3], [], _TEXTS[3:8], _TEXTS[8:]])
    _first_texts(count, reverse, [[*_TEXTS[:4], "\ud800"], _TEXTS[4:]])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_of_equal_texts_the_first_rows_stay(count: int, reverse: bool) -> None:
    """Also where a block holds more of them than are asked for."""
    rows = [(text, number) for number, text in enumerate("bcabacbabcaacbb")]
    columns = KeyInColumns(expression_of("lambda x: x[0]"), False)
    blocks = [column_of(rows[start : start + 5]) for start in range(0, 15, 5)]
    found = top_of_blocks(iter(blocks), count, itemgetter(0), reverse, columns, "top(...)")

    assert found == sorted(rows, key=itemgetter(0), reverse=reverse)[:count]


def test_few_rows_of_texts_become_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand in each of ten blocks, no more than are asked for, and fewer behind the first block."""
    made: list[int] = []
    monkeypatch.setattr(top, "items_of", lambda column: made.append(len(column)) or items_of(column))
    texts = [f"{number * 7919 % 10_007:05}" for number in range(10_000)]
    blocks = [column_of(texts[start : start + 1000]) for start in range(0, 10_000, 1000)]

    found = top_of_blocks(iter(blocks), 10, None, False, KeyInColumns(Argument(0), False), "top(...)")

    assert (found, max(made), sum(made) < 50) == (sorted(texts)[:10], 10, True)
    made.clear()
    found = top_of_blocks(iter([column_of(["same"] * 1000)]), 10, None, False, KeyInColumns(Argument(0), False), "top")

    assert (found, made) == (["same"] * 10, [10])


def test_texts_beside_other_keys_are_compared_by_python() -> None:
    """Which refuses to."""
    blocks = iter([column_of([1, 2]), column_of(["a", "b"])])

    with pytest.raises(TypeError, match="not supported between instances of 'str' and 'int'"):
        top_of_blocks(blocks, 2, None, False, KeyInColumns(Argument(0), False), "top(...)")


class _Backwards(str):
    """A string that comes before those that are less than it."""

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)

    def __gt__(self, other: str) -> bool:
        return str.__lt__(self, other)


@pytest.mark.parametrize(("other", "first"), [("a", "b"), ("c", "c")])
def test_a_text_of_a_class_with_an_order_of_its_own_is_compared_by_python(other: str, first: str) -> None:
    """Arrow would compare its characters."""
    blocks = iter([iter([_Backwards("b")]), column_of([other])])

    assert top_of_blocks(blocks, 1, None, False, KeyInColumns(Argument(0), False), "top(...)") == [first]


def test_columns_that_leave_something_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns are verified."""
    assert _top(3, False, is_verified=True) == [1.0, 1.0, 2.0]
    monkeypatch.setattr(top, "_candidates", lambda *_: [])

    assert _top(3, False) == []
    with pytest.raises(EngineError, match="columns give"):
        _top(3, False, is_verified=True)


@pytest.mark.parametrize("ranking", [top_n, bottom_n])
def test_to_ask_for_no_texts_gives_none(ranking: Any) -> None:
    """Their keys are compared all the same, as those of items are."""
    collector, _ = collector_read(ranking(0, len), is_verified=False)
    of_texts, _ = collector_read(ranking(0), is_verified=False)

    assert collector.finisher(collected(collector, ColumnItems(iter([column_of(_TEXTS)])))) == []
    assert of_texts.finisher(collected(of_texts, ColumnItems(iter([column_of(_TEXTS)])))) == []
    with pytest.raises(TypeError, match="not supported between"):
        collected(of_texts, ColumnItems(iter([column_of(["a", "b"]), iter([1, "b"])])))
