"""Vertices that aggregate, in one group and by key: the cases of Jet's ProcessorsTest."""

from __future__ import annotations

import math
import operator
import pickle

import pytest

from collectors import counting, to_list
from dstream.base.pickling import dumps
from dstream.core import entry_key, processors, whole_item
from dstream.failures import failure
from dstream.plan.processor_graph import Routing
from dstream.processors.blocks import GraphArrival
from dstream.spi import AggregateOperation
from dstream.testing.protocol import RUNS, ProcessorRun
from tests.core.processors.four_runs import emitted_in_four_runs
from tests.processors.graphs_by_hand import edge, run_of, vertex

TOTALS = AggregateOperation(list, (list.append, list.append), list.extend, finish=sum)
LENGTHS = AggregateOperation(int, operator.add)


def test_aggregate_gives_the_result_of_all_items():
    """Of one processor, one result."""
    assert emitted_in_four_runs(processors.aggregate(TOTALS), [1, 2], [3]) == [6]


def test_aggregate_gives_the_result_of_nothing():
    """Once for each processor."""
    assert emitted_in_four_runs(processors.aggregate(counting()), []) == [0]


def test_accumulate_gives_a_container():
    """It is not finished; without items there is none."""
    assert emitted_in_four_runs(processors.accumulate(TOTALS), [1, 2], [3]) == [[1, 2, 3]]
    assert emitted_in_four_runs(processors.accumulate(TOTALS), []) == []


def test_combine_gives_the_result_of_all_containers():
    """And that of nothing."""
    assert emitted_in_four_runs(processors.combine(TOTALS), [[1, 2], [3]]) == [6]
    assert emitted_in_four_runs(processors.combine(TOTALS), []) == [0]


def test_aggregate_by_key_gives_an_entry_for_each_key():
    """In the order of the first items; each edge has its own key function."""
    keyed = processors.aggregate_by_key([len, abs], AggregateOperation(int, (_add_length, operator.sub)))

    assert emitted_in_four_runs(keyed, ["aa", "b"], [-1, 3]) == [(2, 2), (1, 2), (3, -3)]


def test_aggregate_by_key_makes_what_it_is_told_to():
    """Of each key and its result."""
    shown = processors.aggregate_by_key([whole_item], counting(), to="{}={}".format)

    assert emitted_in_four_runs(shown, ["a", "b", "a"]) == ["a=2", "b=1"]


def test_accumulate_by_key_gives_containers():
    """As entries."""
    assert emitted_in_four_runs(processors.accumulate_by_key([len, len], TOTALS), ["a", "bb"], ["c"]) == [
        (1, ["a", "c"]),
        (2, ["bb"]),
    ]


def test_combine_by_key_finishes_containers():
    """In the second stage."""
    assert emitted_in_four_runs(processors.combine_by_key(TOTALS), [("a", [1]), ("b", [2]), ("a", [3])]) == [
        ("a", 4),
        ("b", 2),
    ]


def test_combine_by_key_makes_what_it_is_told_to():
    """Of each key and its result."""
    assert emitted_in_four_runs(processors.combine_by_key(counting(), to="{}={}".format), [("a", 2), ("a", 1)]) == [
        "a=3"
    ]


def test_equal_keys_are_one_group():
    """1 and True, 0.0 and -0.0, and all NaN, also after they were restored."""
    items = [1, True, 0.0, -0.0, math.nan, float("nan")]
    emitted = emitted_in_four_runs(processors.aggregate_by_key([whole_item], counting()), items)

    assert [count for _, count in emitted] == [2, 2, 2]


def test_an_operation_without_combine_is_aggregated_in_one_stage():
    """Two stages refuse it."""
    assert emitted_in_four_runs(processors.aggregate_by_key([bool], LENGTHS), [1, 2, 0]) == [(True, 3), (False, 0)]
    with pytest.raises(TypeError, match=r"accumulate_by_key: .* has no combine"):
        processors.accumulate_by_key([bool], LENGTHS)


@pytest.mark.parametrize("keys", [[], [len, len], len])
def test_each_input_has_a_key_function(keys):
    """Jet: as many as the operation has inputs."""
    with pytest.raises(TypeError, match=r"key functions|function for each inbound edge"):
        processors.aggregate_by_key(keys, counting())


def test_two_stages_give_what_one_gives():
    """Over a partitioned edge, with several processors, also pickled."""
    supplier = pickle.loads(dumps(processors.accumulate_by_key([whole_item], to_list())))
    vertices = [vertex("first", supplier, 3), vertex("second", processors.combine_by_key(counting_lists()), 2)]
    edges = [
        edge("in", "first"),
        edge("first", "second", routing=Routing.PARTITIONED, key=entry_key),
        edge("second", "out"),
    ]

    found = run_of(vertices, edges, [GraphArrival(0, 0, None, [n % 5]) for n in range(20)])

    assert sorted(found) == [(key, 4) for key in range(5)]


def counting_lists():
    """Return what counts what is in lists."""
    return to_list().with_finish(len)


def test_a_failing_key_names_the_item():
    """Although blocks are keyed as a whole."""
    keyed = processors.aggregate_by_key([lambda n: 1 // n], counting())
    with pytest.raises(ZeroDivisionError) as caught:
        run_of([vertex("v", keyed)], [edge("in", "v"), edge("v", "out")], [GraphArrival(0, 0, None, [1, 0])])

    assert failure(caught.value).item == 0


def test_a_failing_accumulator_names_the_item():
    """Also where the container is that of all items."""
    summed = processors.aggregate(AggregateOperation(int, operator.add))
    with pytest.raises(TypeError) as caught:
        run_of([vertex("v", summed)], [edge("in", "v"), edge("v", "out")], [GraphArrival(0, 0, None, [1, "x"])])

    assert failure(caught.value).item == "x"


def _add_length(total, text):
    return total + len(text)


def test_a_result_that_waited_is_emitted_once():
    """The outbox was full when the items ended; then the processor was saved and restored."""
    one = ProcessorRun(processors.aggregate(counting()), RUNS[3])
    one.outbox.capacities = [0]
    assert not one.processor.complete()
    one.outbox.capacities = [1]
    one.outbox.reset()
    one.snapshot()
    one.complete()

    assert one.emitted == [0]


def test_what_was_saved_does_not_change():
    """Also where an operation has no combine."""
    for operation in (to_list(), AggregateOperation(list, list.append)):
        one = ProcessorRun(processors.aggregate_by_key([abs], operation), RUNS[1])
        one.process(0, 1)
        saved = dict(one.saved)
        one.process(0, 1)

        assert [value for value in saved.values() if value] == [{1: [1]}]
