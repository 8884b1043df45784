"""Deadlines of keys: the least one is right, and a key that gets items all the time costs no entry for each."""

from __future__ import annotations

import random

from dstream.operators.state.keys import KeyDeadlines


def test_the_least_deadline_is_that_of_now():
    """Keys whose deadlines have moved on, and those that have none any more, do not count."""
    due = {"a": 1, "b": 5, "c": 3}
    deadlines = KeyDeadlines(due.get)
    for key, deadline in due.items():
        deadlines.note(key, deadline)
    due["a"] = 9
    del due["c"]

    assert deadlines.least() == 5


def test_a_deadline_may_come_nearer():
    """If it was told; what is left of the one before does not count."""
    due = {"a": 9}
    deadlines = KeyDeadlines(due.get)
    for deadline in (9, 2, 6):
        due["a"] = deadline
        deadlines.note("a", deadline)
    passed = [due.pop(key) for key in deadlines.passed(100)]

    assert (passed, deadlines.least()) == ([6], None)


def test_keys_pass_by_their_deadlines_up_to_the_watermark():
    """It belongs to what it reaches; keys need no order."""
    due = {None: 3, "b": 1, 7: 3, "d": 4}
    deadlines = KeyDeadlines(due.get)
    deadlines.fill(due.items())

    assert [(key, due.pop(key)) for key in deadlines.passed(3)] == [("b", 1), (None, 3), (7, 3)]
    assert deadlines.least() == 4


def test_a_key_that_is_kept_alive_has_one_entry():
    """However often its deadline is told and asked for."""
    due = {"a": 0, "b": 50}
    deadlines = KeyDeadlines(due.get)
    for time in range(1000):
        due["a"] = time
        deadlines.note("a", time)
        deadlines.note("b", 50)
        assert deadlines.least() == min(time, 50)

    assert len(deadlines._heap) == 2


def test_random_deadlines():
    """As a dict has them that is asked for all its keys."""
    chance, due = random.Random(5), {}
    deadlines = KeyDeadlines(due.get)
    for step in range(5000):
        key = chance.randrange(30)
        due[key] = chance.randrange(step, step + 100)
        deadlines.note(key, due[key])
        if chance.random() < 0.1:
            passed = [due.pop(key) for key in deadlines.passed(step)]
            assert passed == sorted(passed)
        assert deadlines.least() == min(due.values(), default=None)


def test_entries_that_do_not_count_any_more_go():
    """A deadline that comes nearer leaves the one before behind, which is no second entry for ever."""
    due = {"a": 0}
    deadlines = KeyDeadlines(due.get)
    for time in range(0, 1000, 10):
        for due["a"] in (time + 9, time + 5):
            deadlines.note("a", due["a"])
        due["a"] = time + 10
        assert deadlines.least() == time + 10

    assert len(deadlines._heap) == 1
