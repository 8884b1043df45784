"""`fold` and `scan`: one value that goes from item to item."""

from __future__ import annotations

import functools
import itertools
import operator

import pytest

from dstream import Stream, failure
from dstream.engine.compiler import gatherers as compiled_gatherers
from dstream.errors import IllegalStateError
from dstream.gatherers import fold, scan
from dstream.testing import Parts, same_everywhere

WORDS = ["sea", "", "whale", "ship", "a", "oar"]
COMBINERS = [None, operator.add]


def joined(text: str, word: str) -> str:
    """Add a word; it is associative, and not commutative."""
    return text + word


@pytest.mark.parametrize("combiner", COMBINERS)
def test_fold_gives_one_value(combiner):
    """It is that of `functools.reduce`, however the items are divided."""
    folded = same_everywhere(lambda s: s.gather(fold(str, joined, combiner)), WORDS)

    assert folded == [functools.reduce(joined, WORDS, "")]


@pytest.mark.parametrize("combiner", COMBINERS)
def test_fold_of_nothing_is_its_start(engine, combiner):
    """An empty stream gives one item too, also in empty partitions, also where there are no partitions."""
    empty = engine.context.read(Parts([], []))

    assert empty.gather(fold(lambda: "start", joined, combiner)).to_list() == ["start"]
    assert empty.limit(0).map(str).gather(fold(lambda: "start", joined, combiner)).to_list() == ["start"]


def test_fold_keeps_none_as_a_value(engine):
    """None that `fn` or the combiner returns is the value, not a sign of anything."""
    folded = engine.stream([1, 2, 3], 3).gather(fold(lambda: 0, lambda value, n: None, lambda left, right: None))

    assert folded.to_list() == [None]


@pytest.mark.parametrize("combiner", COMBINERS)
def test_scan_gives_the_value_behind_each_item(combiner):
    """One for each item, not the start: `itertools.accumulate`."""
    scanned = same_everywhere(lambda s: s.gather(scan(str, joined, combiner)), WORDS)

    assert scanned == list(itertools.accumulate(WORDS))


@pytest.mark.parametrize("combiner", COMBINERS)
def test_scan_over_empty_partitions(engine, combiner):
    """An empty partition changes no value; nothing gives nothing."""
    stream = engine.context.read(Parts([], [1, 2], [], [3], [], [4, 5], []))

    assert stream.gather(scan(int, operator.add, combiner)).to_list() == [1, 3, 6, 10, 15]
    assert engine.context.read(Parts([], [])).gather(scan(int, operator.add, combiner)).to_list() == []


def test_scan_with_a_combiner_that_changes_its_left_value(spark_context):
    """What a combiner does to one prefix is not seen by another."""
    stream = spark_context.read(Parts([1], [2], [3], [4]))
    scanned = stream.gather(scan(list, lambda seen, n: [*seen, n], operator.iadd))

    assert scanned.to_list() == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]


def test_scan_with_large_values_runs_in_one_task(spark_context, monkeypatch):
    """If the values between the partitions are too large for every task, one task does it: the same values."""
    monkeypatch.setattr(compiled_gatherers, "_LARGEST_TOGETHER", 100)
    scanned = spark_context.stream(["x" * 90, "y", "z"], 3).gather(scan(str, joined, operator.add))

    assert [[len(text) for text in part] for part in scanned.partitions()] == [[90, 91, 92]]


def test_a_combiner_of_scan_that_raises_stop_iteration_fails(spark_context):
    """It does not cut the values between the partitions short."""

    def stop(left, right):
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        spark_context.stream([1, 2, 3], 3).gather(scan(int, operator.add, stop)).to_list()
    assert ".gather(scan(...))" in caught.value.__notes__[1]


def test_scan_of_an_endless_stream(default_engine):
    """The values come one by one; a fold of it would never end, and is refused."""
    numbers = Stream.iterate(1, lambda n: n + 1)

    assert numbers.gather(scan(int, operator.add, operator.add)).limit(4).to_list() == [1, 3, 6, 10]
    with pytest.raises(IllegalStateError, match="infinite"):
        numbers.gather(fold(int, operator.add)).to_list()


def test_scan_makes_a_start_for_each_run(engine):
    """A start is a supplier, so that a value that is changed is not carried into the next run."""
    stream = engine.stream([1, 2], 1).gather(fold(list, lambda seen, n: seen.append(n) or seen))

    assert [stream.to_list(), stream.to_list()] == [[[1, 2]], [[1, 2]]]


@pytest.mark.parametrize("make", [fold, scan])
@pytest.mark.parametrize("combiner", COMBINERS)
def test_fold_and_scan_name_the_item_that_failed(engine, make, combiner):
    """The exception keeps its type, and knows the step and the item."""
    stream = engine.stream([4, 2, 0, 1], 2)
    with pytest.raises(ZeroDivisionError) as caught:
        stream.gather(make(int, lambda total, n: total + 1 // n, combiner)).to_list()

    found = failure(caught.value)
    assert (found.item, found.step.label) == (0, f".gather({make.__name__}(...))")


def test_a_combiner_that_fails_names_the_step_and_no_item(spark_context):
    """No item is to blame for what a combiner was given."""
    for make in (fold, scan):
        stream = spark_context.stream([1, 2, 3], 3).gather(make(int, operator.add, lambda left, right: left / 0))
        with pytest.raises(ZeroDivisionError) as caught:
            stream.to_list()
        assert repr(failure(caught.value).item) == "<not known>"
        assert failure(caught.value).step.label == f".gather({make.__name__}(...))"


@pytest.mark.parametrize("make", [fold, scan])
@pytest.mark.parametrize(("arguments", "name"), [((0, max), "start"), ((int, 0), "fn"), ((int, max, 0), "combiner")])
def test_fold_and_scan_refuse_what_is_no_function(make, arguments, name):
    """At the factory, by the name of the argument."""
    with pytest.raises(TypeError, match=f"^{name} must be a function, not int"):
        make(*arguments)
