"""Who takes a few items loses nothing that was noted of those before, wherever a run keeps or moves them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from dstream.gatherers import fold, map_concurrent
from dstream.stream import Stream
from reducers import to_ilist

WAYS: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "kept by waves": lambda s: s.take_while(lambda n: n < 20),
    "kept with places": lambda s: s.zip_with_index(),
    "kept as runs": lambda s: s.sorted(),
    "moved by key": lambda s: s.partition_by(3),
    "moved together": lambda s: s.gather(map_concurrent(2, abs, rate=5000)),
    "moved to one": lambda s: s.gather(fold(int, operator.add, operator.add)),
}
ENDS: dict[str, Callable[[Stream[Any]], object]] = {
    "find_first": lambda s: s.find_first(),
    "next": lambda s: next(iter(s)),
}


def inverse(n: int) -> int:
    """Fail on 0."""
    return 1 // n


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_short_circuit_loses_no_letter_and_no_peek(local_context, spark_context, way, end):
    """A cluster notes what its tasks saw, which is all that one process would have seen, or more."""
    letters, seen = [], []
    for context in (local_context, spark_context):
        name = f"letters-{id(way)}-{id(end)}"
        peeked: list[int] = []
        numbers = context.stream([0, 2, 1, 3, 0, 4, 5, 0, 6, 7, 8, 9], 3).peek(peeked.append)
        end(way(numbers.map(inverse).on_error(ZeroDivisionError, into=to_ilist(name)).map(abs)))
        letters.append(len(list(context.get_list(name))))
        seen.append(peeked)

    assert 1 <= letters[0] <= letters[1]
    assert seen[0] == seen[1][: len(seen[0])]
