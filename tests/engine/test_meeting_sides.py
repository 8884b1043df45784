"""Two sides that met in one partition of Spark: the one that is held first, the other one behind it."""

from __future__ import annotations

import contextlib
import weakref

import pytest

from dstream.base.memory import Bound
from dstream.operators.joins import pairs as meeting
from dstream.operators.joins.hash import Matching

TARGETS = 2


class Item:
    """What can be looked at from outside."""


class Here:
    bound = Bound()


@pytest.fixture(autouse=True)
def without_a_step(monkeypatch):
    """Nothing fails here."""
    monkeypatch.setattr(meeting, "naming", lambda step: contextlib.nullcontext())


def batches(held, passing):
    """Give batches as rows hold them: (target, [keys, items]), the held side first."""
    yield from ((0, [list(keys), list(keys)]) for keys in held)
    yield from ((TARGETS, [list(keys), list(keys)]) for keys in passing)


def joined(held, passing, how="inner"):
    """Return (left, right) of each entry."""
    matching = Matching.of(how, holds_left=True)
    entries = meeting.join_batches(matching, None, TARGETS, batches(held, passing), Here)
    return [tuple(entry.value) for entry in entries]


@pytest.mark.parametrize(
    ("held", "passing", "expected"),
    [
        ([], [], []),
        ([[1, 2]], [], [(1, None), (2, None)]),
        ([], [[1], [2]], [(None, 1), (None, 2)]),
        ([[1], [2]], [[2], [3], [2]], [(2, 2), (None, 3), (2, 2), (1, None)]),
    ],
)
def test_batches_of_both_sides_meet(held, passing, expected):
    """Also where one side has none."""
    assert joined(held, passing, how="full") == expected


def test_cogrouped_batches_of_both_sides_meet():
    """The lists hold what each side has, in order."""
    groups = meeting.cogroup_batches(None, TARGETS, batches([[1, 2]], [[2], [3]]), Here)

    assert [(key, tuple(lists)) for key, lists in groups] == [(1, ([1], [])), (2, ([2], [2])), (3, ([], [3]))]


def test_the_side_that_passes_by_is_not_kept():
    """Whatever its length, a batch is gone when the next ones are read."""
    alive = weakref.WeakSet()
    most = []

    def read():
        yield 0, [[0], [0]]
        for _ in range(50):
            items = [Item() for _ in range(20)]
            alive.update(items)
            most.append(len(alive))
            yield TARGETS, [[0] * 20, items]
            del items

    for _ in meeting.join_batches(Matching.of("inner", True), None, TARGETS, read(), Here):
        pass

    assert max(most) <= 3 * 20
