"""`map` and `map_to_obj`: each item replaced."""

from __future__ import annotations

from dstream import IntStream


def test_map_replaces_each_item_in_order(engine):
    """One result for each item, in order, over more partitions than items."""
    assert engine.stream(["a", "bb", "ccc"], 5).map(len).to_list() == [1, 2, 3]


def test_map_keeps_none(engine):
    """A None result is an item, and so is a None that comes in."""
    assert engine.stream([1, None], 2).map(lambda item: item if item is None else None).to_list() == [None, None]


def test_map_of_nothing_and_of_one_item(engine):
    """Nothing stays nothing; one item becomes one."""
    assert (engine.stream([], 2).map(str) + engine.stream([1], 2).map(str)).to_list() == ["1"]


def test_map_runs_what_the_function_captured(engine):
    """A function may use variables of the place where it was written."""
    factor = 3

    assert engine.stream([1, 2], 2).map(lambda n: n * factor).to_list() == [3, 6]


def test_map_gives_back_objects_of_the_callers_own_class(engine):
    """A class that only the caller knows is the same class again after the way to the workers and back."""

    class Point:
        def __init__(self, x):
            self.x = x

    points = engine.stream([1, 2], 2).map(Point).to_list()

    assert [(type(p) is Point, p.x) for p in points] == [(True, 1), (True, 2)]


def test_map_to_obj_of_numbers_gives_a_stream_of_objects(default_engine):
    """What becomes of a number may be anything, None too."""
    assert IntStream.of(1, 0).map_to_obj(lambda n: "one" if n else None).to_list() == ["one", None]
