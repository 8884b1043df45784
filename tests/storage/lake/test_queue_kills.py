"""Processes that lease and take from queues, and are killed: `tests.soak.queues` does more of it."""

from __future__ import annotations

from tests.soak import queues


def test_kills_lose_nothing_and_give_nothing_twice(capsys):
    """Two processes share 20 items, and a third one takes over where one of them is killed."""
    assert queues.run(processes=2, items=10, kills=1, lease=1.5), capsys.readouterr().out
