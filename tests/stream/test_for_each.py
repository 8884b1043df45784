"""`for_each`, `for_each_ordered`, `for_each_partition`: something done with each item."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize("method", ["for_each", "for_each_ordered"])
def test_for_each_runs_in_the_caller_in_order(engine, method):
    """The action sees every item, None too, in encounter order, in the caller's process."""
    seen = []
    result = getattr(engine.stream([2, None, 1], 3), method)(lambda item: seen.append((item, os.getpid())))

    assert (result, seen) == (None, [(item, os.getpid()) for item in [2, None, 1]])


def test_for_each_of_nothing_does_nothing(engine):
    """No items, no calls."""
    seen = []
    engine.stream([], 2).for_each(seen.append)

    assert seen == []


def test_for_each_lets_an_exception_of_the_action_out(engine):
    """The action's own exception ends the operation; no item behind it is shown."""
    seen = []
    with pytest.raises(ZeroDivisionError):
        engine.stream([2, 1, 0, 5], 2).for_each(lambda n: seen.append(1 // n))

    assert seen == [0, 1]


def test_for_each_partition_runs_where_the_items_are(engine, tmp_path):
    """The action gets an iterator over each partition, on its worker; the items are all there, once."""

    def write(items):
        items = list(items)
        (tmp_path / f"{os.getpid()}-{items}").write_text("\n".join(items))

    assert engine.stream("abc", 2).map(str.upper).for_each_partition(write) is None
    texts = [path.read_text().split() for path in tmp_path.iterdir()]
    assert sorted(word for text in texts for word in text) == ["A", "B", "C"]
    assert len(texts) == (2 if engine.name == "spark" else 1)


def test_for_each_partition_may_leave_items_unread(engine):
    """An action that reads nothing is no error."""
    assert engine.stream([1, 2], 3).for_each_partition(lambda items: None) is None
