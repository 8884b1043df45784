"""Aggregates: one result for all items, or one for each key, of one input or several."""

from __future__ import annotations

import dataclasses
import operator
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import co_operation, counting, reducing, summing, to_bags, to_list
from dstream import Entry, Stream
from dstream.errors import IllegalStateError, SerializationError, UnstableKeyError
from dstream.operators.rows.aggregates import partial
from dstream.operators.rows.loops import run_chain
from dstream.operators.rows.operations import operation
from dstream.plan import Step, explained, rewrite
from dstream.plan.operations.ends import Several, Write
from dstream.plan.operations.streams import Fork
from dstream.spi import AggregateOperation
from dstream.stream.keyed import aggregated
from reducers import to_ilist

WORDS = AggregateOperation(list, list.append, list.extend, finish=tuple)
IN_ORDER = AggregateOperation(list, (lambda held, item: held.append(item), lambda held, item: held.append(-item)))
"""It cannot combine: all items of a group come to one task."""


def aggregate(
    *streams: Stream[Any], op: Any, keys: Sequence[Callable[[Any], Any]] | None = None, to: Any = None
) -> Any:
    """Return the stream of the results."""
    return Stream(aggregated([each._node for each in streams], op, keys, to), streams[0]._runtime)


@dataclasses.dataclass(frozen=True)
class Noted:
    """A writer whose receipts are the items, each in a tuple."""

    def write(self, items: Any) -> Any:
        return ((item,) for item in items)


def received(engine: Any, *streams: Stream[Any]) -> list[list[Any]]:
    """Run a plan that writes each stream; return the items that each end got."""
    several = Several(
        tuple(Write(each._node, Noted(), None, step=Step(f".write_to({n})")) for n, each in enumerate(streams))
    )
    with explained(several, "write_to"):
        receipts = engine.context.running_engine().submit(rewrite(several)).result()
    return [[item for (item,) in some] for some in receipts]


@pytest.mark.parametrize("partitions", [1, 3])
def test_an_aggregate_gives_one_result_for_all_items(engine, partitions):
    """In encounter order; operations behind it go on with that one item."""
    words = engine.context.stream(["a", "b", "c", "d"], partitions)

    assert aggregate(words, op=WORDS).to_list() == [("a", "b", "c", "d")]
    assert aggregate(words, op=counting()).map(lambda n: n + 1).to_list() == [5]


@pytest.mark.parametrize("op", [counting(), reducing(0, operator.add), AggregateOperation(list, list.append)])
def test_an_aggregate_of_nothing_is_the_result_of_nothing(engine, op):
    """One item, also if all partitions are empty, or there are none."""
    numbers = engine.context.stream(range(5), 3)

    expected = [op.finish(op.create())]
    assert aggregate(numbers.filter(lambda n: n > 9), op=op).to_list() == expected
    assert aggregate(engine.context.stream([]), op=op).to_list() == expected


def test_an_aggregate_by_key_gives_an_entry_for_each_key(engine):
    """None is a key like any other; an empty input has no keys."""
    words = engine.context.stream(["a", "bb", None, "cc", "d"], 3)
    lengths = aggregate(words, op=to_list(), keys=[lambda word: word and len(word)])

    assert set(map(repr, lengths)) == {
        repr(Entry(1, ["a", "d"])),
        repr(Entry(2, ["bb", "cc"])),
        repr(Entry(None, [None])),
    }
    assert aggregate(words.filter(lambda word: False), op=to_list(), keys=[len]).to_list() == []


def test_equal_keys_are_one_key(engine):
    """As in a dict; every NaN is one."""
    nan = float("nan")
    keys = engine.context.stream([1, True, 1.0, nan, -nan, 0.0, -0.0, "1"], 4)

    assert sorted(e.value for e in aggregate(keys, op=counting(), keys=[lambda key: key])) == [1, 2, 2, 3]


def test_a_key_without_a_value_of_its_own_is_refused(engine):
    """With the step, and the item."""
    with pytest.raises(UnstableKeyError) as caught:
        aggregate(engine.context.stream([1, 2], 2), op=counting(), keys=[lambda item: object()]).to_list()

    assert any(".aggregate(counting())" in note for note in caught.value.__notes__)


def test_to_makes_what_goes_on(engine):
    """Of the key and its result; it may give None."""
    numbers = engine.context.stream(range(6), 3)
    results = aggregate(
        numbers, op=summing(), keys=[lambda n: n % 2], to=lambda key, total: (key, total) if key else None
    )

    assert sorted(results, key=str) == [(1, 9), None]


@pytest.mark.parametrize("partitions", [1, 3])
def test_inputs_are_reduced_together(engine, partitions):
    """Those of earlier inputs come first, with and without combining."""
    left, right = engine.context.stream([1, 2, 3], partitions), engine.context.stream([4, 5], partitions)

    assert aggregate(left, right, op=to_bags(2)).to_list() == [([1, 2, 3], [4, 5])]
    assert aggregate(left, right, op=IN_ORDER).to_list() == [[1, 2, 3, -4, -5]]
    parity = [lambda n: n % 2] * 2
    assert sorted(aggregate(left, right, op=IN_ORDER, keys=parity)) == [Entry(0, [2, -4]), Entry(1, [1, 3, -5])]
    co = co_operation(counting(), summing())
    assert sorted(aggregate(left, right, op=co, keys=parity)) == [Entry(0, (1, 4)), Entry(1, (2, 5))]


def test_a_stream_may_be_several_inputs(engine):
    """Its items are counted for each of them."""
    numbers = engine.context.stream([1, 2, 3], 2)

    assert aggregate(numbers, numbers.map(str), op=to_bags(2)).to_list() == [([1, 2, 3], ["1", "2", "3"])]


def test_what_stands_behind_an_aggregate_goes_on(engine):
    """Sorting, another aggregate, a join."""
    numbers = engine.context.stream(range(100), 4)
    counts = aggregate(numbers, op=counting(), keys=[lambda n: n % 7])

    assert counts.sorted(key=lambda e: e.key).limit(2).to_list() == [Entry(0, 15), Entry(1, 15)]
    assert sorted(aggregate(counts, op=to_list(), keys=[lambda e: e.value], to=lambda n, es: (n, len(es)))) == [
        (14, 5),
        (15, 2),
    ]
    assert counts.join(numbers.filter(lambda n: n < 3), on=(lambda e: e.key, lambda n: n)).count() == 3


@pytest.mark.on_spark("part")
@pytest.mark.parametrize("part", ["accumulate", "combine", "finish", "to", "key"])
def test_a_failure_names_the_step_and_what_it_was_given(engine, part):
    """The item, or the key of the group. One partition alone combines nothing."""
    if (part, engine.context.engine) == ("combine", "local"):
        return

    def fails(*given: Any) -> Any:
        raise ZeroDivisionError

    parts = {"accumulate": list.append, "combine": list.extend, "finish": len, part: fails}
    op = AggregateOperation(list, parts["accumulate"], parts["combine"], finish=parts["finish"])
    key = fails if part == "key" else lambda item: 0
    with pytest.raises(ZeroDivisionError) as caught:
        aggregate(engine.context.stream([7, 8, 9], 3), op=op, keys=[key], to=fails if part == "to" else None).to_list()

    notes = "\n".join(caught.value.__notes__)
    assert ".aggregate(AggregateOperation(list" in notes
    if part in ("accumulate", "key"):
        assert ds.failure(caught.value).item in (7, 8, 9)
    if part in ("finish", "to"):
        assert "in the group of the key 0" in notes


def test_an_infinite_input_is_refused():
    """Whichever input it is, before anything runs."""
    endless = Stream.iterate(1, lambda n: n + 1)
    with pytest.raises(IllegalStateError, match="an infinite stream cannot be aggregated"):
        aggregate(Stream.of(1), endless, op=to_bags(2)).to_list()


def test_peeks_before_an_aggregate_see_each_item_once(engine):
    """Those of all inputs, in order."""
    seen: list[Any] = []
    left, right = engine.context.stream([1, 2], 2).peek(seen.append), engine.context.stream(["a"], 1).peek(seen.append)

    assert aggregate(left, right, op=to_bags(2)).to_list() == [([1, 2], ["a"])]
    assert seen == [1, 2, "a"]


def test_an_aggregate_is_explained(spark_context):
    """With what moves, and why."""
    numbers = spark_context.stream(range(10), 3)
    text = str(aggregate(numbers, op=counting(), keys=[abs]).explain("mermaid"))

    assert ".aggregate#40;counting#40;#41;#41;" in text
    assert "what the tasks have of a key meets in one place" in text


@pytest.mark.parametrize("op", [counting(), to_list(), AggregateOperation(list, list.append)])
def test_more_groups_than_memory_holds(full, task, op):
    """They go to disk and come back, once each, in the order in which their keys were first seen."""
    task.bound = full
    numbers = [n * 7919 % 400 for n in range(1600)]
    node = rewrite(aggregate(Stream.of(0), op=op, keys=[lambda n: n])._node)
    results = list(operation(node)(partial(node, 0)(iter(numbers), task), task))

    groups = {number: op.on_input(0).collect([number] * 4) for number in numbers}
    assert results == [Entry(number, group) for number, group in groups.items()]


def test_items_travel_themselves_where_hardly_a_key_repeats(task):
    """Containers of such items combine nothing; once keys repeat, containers travel again."""
    node = rewrite(aggregate(Stream.of(0), op=to_list(), keys=[lambda n: n])._node)
    numbers = [*range(-20_000, 0), *[1, 2] * 2000]
    travelling = list(partial(node, 0)(iter(numbers), task))

    assert [len(columns) for columns in (travelling[0], travelling[1], travelling[-1])] == [2, 3, 2]
    assert len(travelling[-1][0]) < 512
    groups = {number: [number] * numbers.count(number) for number in (-20_000, -1, 1, 2)}
    results = dict(operation(node)(iter(travelling), task))
    assert len(results) == 20_002
    assert {number: results[number] for number in groups} == groups


def test_the_classifier_is_called_once_for_each_item(task):
    """Also for the items from which on keys repeat again."""
    called: list[int] = []
    node = rewrite(aggregate(Stream.of(0), op=to_list(), keys=[lambda n: (called.append(n), n)[1]])._node)
    numbers = [*range(-20_000, 0), *[1, 2] * 2000]

    deque(partial(node, 0)(iter(numbers), task), maxlen=0)
    assert called == numbers


@pytest.mark.parametrize("bounded", [False, True])
def test_pairs_of_one_value_travel_and_spill_as_others(task, full, op, bounded):
    """Their keys are taken in lists, and put together with the value where the pairs themselves travel."""
    task.bound = full if bounded else task.bound
    numbers = [*range(-600 if bounded else -20_000, 0), *[1, 2] * (100 if bounded else 500)]
    pairs = Stream.of((0, "a"))
    for node in map(rewrite, (pairs.group_by_key()._node, pairs.aggregate_by_key(to_list())._node)):
        given = run_chain([op("map", lambda n: (n, "a"))], iter(numbers))
        plainly = iter([(n, "a") for n in numbers])

        found, expected = (list(operation(node)(partial(node, 0)(each, task), task)) for each in (given, plainly))
        assert found == expected


def test_containers_travel_where_they_are_smaller(task):
    """A count takes less than what it counts, however few are counted together."""
    node = rewrite(aggregate(Stream.of(0), op=counting(), keys=[lambda n: n])._node)

    travelling = list(partial(node, 0)(iter(range(20_000, 60_000)), task))
    assert [len(columns) for columns in travelling] == [2]


def test_items_that_travel_themselves_meet_containers(engine):
    """Of other tasks and other inputs, in the encounter order of each input."""
    left, right = engine.stream([*range(20_000), *range(20_000)], 2), engine.stream([*range(50)] * 3, 2)
    bags = aggregate(left, right, op=to_bags(2), keys=[lambda n: n] * 2)

    expected = {n: ([n, n], [n] * 3 if n < 50 else []) for n in range(20_000)}
    assert {entry.key: tuple(map(list, entry.value)) for entry in bags} == expected


@pytest.mark.parametrize("part", ["accumulate", "key"])
def test_a_failure_of_an_item_that_travelled_itself_names_it(engine, part):
    """As of one that was combined where it was."""

    def fails_at_last(*given: Any) -> Any:
        return 1 // (39_999 - given[-1]) or given[-1]

    def accumulate(held: list[int], item: int) -> None:
        held.append(fails_at_last(item) if part == "accumulate" else item)

    key = fails_at_last if part == "key" else lambda n: n
    op = AggregateOperation(list, accumulate, list.extend)
    with pytest.raises(ZeroDivisionError) as caught:
        aggregate(engine.stream(range(40_000), 2), op=op, keys=[key]).to_list()
    assert ds.failure(caught.value).item == 39_999


def test_what_the_functions_of_an_aggregate_capture_is_checked(spark_context):
    """Before anything runs, by the name of the variable: in keys, in the operation, in `to`."""
    lock, numbers = threading.Lock(), spark_context.stream([1], 2)
    failing = AggregateOperation(int, lambda count, item: (lock, count)[1], max)
    for refused in (
        aggregate(numbers, op=counting(), keys=[lambda n: (lock, n)[1]]),
        aggregate(numbers, op=failing),
        aggregate(numbers, op=AggregateOperation(int, failing.accumulates[0])),
        aggregate(numbers, op=counting(), keys=[abs], to=lambda key, count: lock),
    ):
        with pytest.raises(SerializationError, match="captures the variable 'lock'"):
            refused.to_list()


def test_a_failure_in_accumulate_is_replayed(local_context):
    """On the item alone, in a container of its own."""
    failing = AggregateOperation(list, lambda held, n: held.append(1 // n), list.extend)
    with pytest.raises(ZeroDivisionError) as caught:
        aggregate(local_context.stream([1, 0]), op=failing, keys=[lambda n: n]).to_list()

    with pytest.raises(ZeroDivisionError):
        ds.failure(caught.value).replay()
    assert dataclasses.replace(ds.failure(caught.value), item=1).replay() == {1: [1]}


def test_dead_letters_before_an_aggregate_are_delivered_once(engine):
    """Those of every input; what failed is in no group."""
    name = f"letters-of-aggregates-{engine.name}"
    left, right = engine.stream([1, 0, 2]), engine.stream([0, 4])
    inverse = [each.map(lambda n: 8 // n).on_error(ZeroDivisionError, into=to_ilist(name)) for each in (left, right)]

    assert aggregate(*inverse, op=to_bags(2)).to_list() == [([8, 4], [2])]
    assert [letter.item for letter in engine.context.get_list(name)] == [0, 0]


def test_forks_before_and_behind_an_aggregate(engine):
    """What several ends read is computed once, and each of them gets all of it."""
    seen: list[Any] = []
    items = Stream(Fork(engine.stream(range(6), 3).peek(seen.append)._node), None)
    sums = Stream(Fork(aggregate(items, op=summing(), keys=[lambda n: n % 2])._node), None)
    ends = [items, sums.sorted(), sums.map(lambda e: e.value).sorted(), aggregate(sums, op=counting())]

    assert received(engine, *ends) == [list(range(6)), [(0, 6), (1, 9)], [6, 9], [2]]
    assert seen == list(range(6))


def test_auto_runs_small_aggregates_here(capsys):
    """The items of all inputs count."""
    with ds.connect(engine="auto", storage="memory:") as context:
        both = aggregate(context.stream([1, 2]), context.stream([3]), op=to_bags(2))
        assert both.to_list() == [([1, 2], [3])]
        both.explain()
    assert "runs in this process: 3 items from the caller" in capsys.readouterr().out


@settings(max_examples=60, deadline=None)
@given(
    inputs=st.lists(st.lists(st.integers(-9, 9), max_size=12), min_size=1, max_size=3),
    modulus=st.integers(1, 4),
    combines=st.booleans(),
)
def test_aggregates_give_what_plain_python_gives(local_context, inputs, modulus, combines):
    """Any inputs, by key and without."""
    accumulates = tuple(lambda held, item, n=n: held.append((n, item)) for n in range(len(inputs)))
    op = AggregateOperation(list, accumulates, list.extend if combines else None)
    streams = [local_context.stream(items, 2) for items in inputs]
    pairs = [(number, item) for number, items in enumerate(inputs) for item in items]

    assert aggregate(*streams, op=op).to_list() == [pairs]
    keys = [lambda item: item % modulus] * len(inputs)
    groups = {item % modulus: [pair for pair in pairs if pair[1] % modulus == item % modulus] for _, item in pairs}
    assert aggregate(*streams, op=op, keys=keys).to_list() == [Entry(key, group) for key, group in groups.items()]


@pytest.mark.parametrize("seed", range(8))
def test_spark_gives_what_plain_python_gives(spark_context, seed):
    """Any inputs in 1 to 8 partitions, by key and without, with `combine` and without it."""
    chosen = random.Random(seed)
    inputs = [[chosen.randint(-9, 9) for _ in range(chosen.randrange(30))] for _ in range(1 + seed % 3)]
    accumulates = tuple(lambda held, item, n=n: held.append((n, item)) for n in range(len(inputs)))
    op = AggregateOperation(list, accumulates, list.extend if seed < 4 else None)
    streams = [spark_context.stream(items, chosen.randint(1, 8)) for items in inputs]
    pairs = [(number, item) for number, items in enumerate(inputs) for item in items]

    assert aggregate(*streams, op=op).to_list() == [pairs]
    groups = {item % 4: [pair for pair in pairs if pair[1] % 4 == item % 4] for _, item in pairs}
    results = aggregate(*streams, op=op, keys=[lambda item: item % 4] * len(inputs)).to_list()
    assert (len(results), dict(results)) == (len(groups), groups)
