"""Aggregate operations: of one input they are collectors, of several each input has a collector of its own."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import dstream as ds
from collectors import (
    AggregateOperation,
    all_of,
    co_operation,
    counting,
    filtering,
    grouping_by,
    mapping,
    summing,
    to_bags,
    to_list,
)
from dstream.base.pickling import dumps


def result(operation: AggregateOperation[Any, Any, Any], *inputs: list[Any]) -> Any:
    """Run an operation as an engine does: each input on its own, in two parts, combined in order."""
    parts = [operation.on_input(number) for number in range(operation.arity)]
    container = parts[0].supplier()
    for part, items in zip(parts, inputs, strict=True):
        for some in (items[: len(items) // 2], items[len(items) // 2 :]):
            container = part.combined(container, part.accumulated(part.supplier(), some))
    return parts[0].finisher(container)


def test_an_operation_of_one_input_ends_a_stream(engine):
    """With `combine` and without, and below a grouping."""
    longest = AggregateOperation(int, lambda most, word: max(most, len(word)), max, finish=str)
    in_order = AggregateOperation(list, list.append, finish=tuple)
    words = engine.stream(["a", "ccc", "bb", "d"])
    assert words.collect(longest) == "3"
    assert words.collect(in_order) == ("a", "ccc", "bb", "d")
    assert words.collect(grouping_by(len, in_order)) == {1: ("a", "d"), 3: ("ccc",), 2: ("bb",)}


def test_a_collector_is_an_operation_of_one_input():
    """It has all names of Jet, and can be changed as any other."""
    collector = summing(len)
    assert isinstance(collector, AggregateOperation)
    assert (collector.create, collector.combine, collector.finish) == (
        collector.supplier,
        collector.combiner,
        collector.finisher,
    )
    assert collector.arity == 1
    assert collector.on_input(0) is collector
    assert result(collector.with_finish(lambda held: -collector.finish(held)), ["a", "bb"]) == -3
    assert result(to_list().with_accumulate(lambda held, item: held.append(-item)), [1, 2]) == [-1, -2]


def test_inputs_meet_in_one_container():
    """A function for each; those of earlier inputs come first, also if nothing can be combined."""
    total = AggregateOperation(int, (lambda held, n: held + n, lambda held, word: held + len(word)), lambda a, b: a + b)
    seen = AggregateOperation(list, (list.append, lambda held, item: held.append(-item)))
    assert result(total, [1, 2], ["abc"]) == 6
    assert result(seen, [1, 2, 3], [4, 5]) == [1, 2, 3, -4, -5]


def test_co_operation_runs_one_operation_for_each_input():
    """The results as a tuple, or given to `finish`."""
    both = co_operation(counting(), mapping(len, summing()))
    assert result(both, [None, None, None], ["a", "bcd"]) == (3, 4)
    ratio = co_operation(counting(), counting(), to_list(), finish=lambda a, b, items: (a / b, items))
    assert result(ratio, "abcd", "xy", [7]) == (2.0, [7])
    assert result(both, [], []) == (0, 0)


def test_bags_are_lists_in_encounter_order():
    """One for each input; the result is no part of the container."""
    bags = to_bags(3)
    assert result(bags, [1, 2, 3], [], ["x"]) == ([1, 2, 3], [], ["x"])
    container = bags.create()
    bags.finish(container)[0].append(1)
    assert container == [[], [], []]


def test_all_of_gives_its_results_to_finish():
    """One argument for each."""
    assert all_of(counting(), summing(), finish=lambda count, total: total / count).collect([1, 2, 6]) == 3.0


@pytest.mark.parametrize(
    ("operation", "before", "other"),
    [
        (counting(), [1, 2], [3]),
        (to_bags(1), [1, 2, 1], [3, 3]),
        (all_of(counting(), filtering(bool, counting())), [0, 1], [0, 0, 5]),
        (co_operation(counting()), [1], [2]),
    ],
)
def test_deduct_undoes_combine(operation, before, other):
    """The container is what it was before."""
    part = operation.on_input(0)
    left, again, right = (part.accumulated(part.supplier(), items) for items in (before, before, other))
    combined = part.combined(left, right)
    following = operation.deduct(combined, part.accumulated(part.supplier(), other))
    assert (combined if following is None else following) == again


def test_what_cannot_be_deducted_has_no_deduct():
    """Then a window recombines its frames."""
    assert to_list().deduct is None
    assert all_of(counting(), to_list()).deduct is None
    assert co_operation(counting(), to_list()).deduct is None


def test_operations_travel_with_their_lambdas():
    """As collectors do."""
    operation = co_operation(counting(), mapping(lambda word: word * 2, to_list()), finish=lambda n, words: words * n)
    assert result(pickle.loads(dumps(operation)), [1, 2], ["a"]) == ["aa", "aa"]


def test_what_is_no_operation_is_refused_where_it_is_written():
    """Parts that cannot be called, no input, a wrong number of inputs."""
    with pytest.raises(TypeError, match="combine must be a function, not int"):
        AggregateOperation(list, list.append, 3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="accumulate needs a function for each input"):
        AggregateOperation(list, ())
    with pytest.raises(TypeError, match="has 2 inputs: give it to co_aggregate"):
        ds.Stream.of(1).collect(to_bags(2))
    with pytest.raises(TypeError, match="has 2 inputs"):
        grouping_by(len, to_bags(2))
    with pytest.raises(TypeError, match=r"operations\[1\] must be an operation of one input"):
        co_operation(counting(), to_bags(2))
    with pytest.raises(ValueError, match="an input at least"):
        to_bags(0)
    with pytest.raises(IndexError):
        counting().on_input(1)


def test_functions_that_would_not_run_are_refused():
    """A coroutine or a generator would take the place of the container."""

    async def later(container, item):
        container.append(item)

    def pausing(container, other):
        yield

    with pytest.raises(TypeError, match="accumulate must give a result, and an async function"):
        AggregateOperation(list, later)
    with pytest.raises(TypeError, match="combine must give a result, and a function that yields"):
        AggregateOperation(list, list.append, pausing)


def test_a_failure_names_the_item_also_without_combine():
    """It is found when the items of a group are accumulated at last."""
    failing = AggregateOperation(list, lambda held, item: held.append(1 // item))
    with pytest.raises(ZeroDivisionError) as caught:
        ds.connect(engine="local", storage="memory:").stream([1, 0]).collect(failing)
    assert "on the item 0" in "\n".join(caught.value.__notes__)


def test_a_failure_to_finish_names_no_item():
    """The last item that was accumulated is not to blame."""
    failing = AggregateOperation(list, list.append, finish=lambda held: 1 // 0)
    with pytest.raises(ZeroDivisionError) as caught:
        ds.connect(engine="local", storage="memory:").stream([1, 7]).collect(failing)
    assert "on the item" not in "\n".join(caught.value.__notes__)
