"""Aggregates, states and partitions of pipelines, from end to end on both engines."""

from __future__ import annotations

import pytest

from collectors import AggregateOperation, all_of, co_operation, counting, summing_int, to_bags, to_list
from dstream import Entry
from reducers import to_imap
from sources import Items
from tests.pipeline.conftest import run


def test_all_items_become_one(numbers, given_on):
    """Also none of them; what cannot combine takes them in order."""
    some = numbers.aggregate(all_of(counting(), summing_int(abs)))
    none = numbers.limit(0).aggregate(counting())
    kept = numbers.aggregate(AggregateOperation(list, list.append))

    assert given_on(some, none, kept) == [[(6, 15)], [0], [[0, 1, 2, 3, 4, 5]]]


def test_items_of_each_key_become_one(numbers, given_on):
    """An entry, or what a function makes of it; of nothing comes nothing. None is a key."""
    keyed = numbers.grouping_key(lambda n: None if n == 5 else n % 2)
    entries, texts = keyed.aggregate(to_list()), keyed.aggregate(counting(), to=lambda key, n: f"{key}: {n}")
    none = numbers.limit(0).grouping_key(abs).aggregate(counting())
    lists, counted, nothing = given_on(entries, texts, none)

    assert dict(lists) == {0: [0, 2, 4], 1: [1, 3], None: [5]}
    assert (sorted(counted), nothing) == (["0: 3", "1: 2", "None: 1"], [])


def test_several_stages_become_one(pipeline, numbers, given_on):
    """For all of them, and for each key; a stage may meet itself."""
    words = pipeline.read_from(Items(["sea", "whale", "a"], 2))
    both = numbers.co_aggregate(words, op=co_operation(counting(), to_list()))
    keyed = numbers.grouping_key(lambda n: n % 2)
    lengths = words.grouping_key(lambda word: len(word) % 2)
    bags = keyed.co_aggregate(lengths, keyed, op=to_bags(3))
    whole, by_key = given_on(both, bags)

    assert whole == [(6, ["sea", "whale", "a"])]
    assert dict(by_key) == {0: ([0, 2, 4], [], [0, 2, 4]), 1: ([1, 3, 5], ["sea", "whale", "a"], [1, 3, 5])}


def test_the_greatest_and_the_first_of_each_key(numbers, given_on):
    """As lists in entries, and as items in order."""
    keyed = numbers.grouping_key(lambda n: n % 2)
    top, first = given_on(keyed.top(2), keyed.distinct())

    assert (dict(top), first) == ({0: [4, 2], 1: [5, 3]}, [0, 1])


def test_results_roll_in_order(numbers, given_on):
    """Each item gives the result so far, in its place; what was given stays."""
    lists = numbers.limit(3).rolling_aggregate(to_list())
    by_key = numbers.grouping_key(lambda n: n % 2).rolling_aggregate(all_of(to_list(), counting()))

    assert given_on(lists, by_key.limit(3)) == [
        [[0], [0, 1], [0, 1, 2]],
        [Entry(0, ([0], 1)), Entry(1, ([1], 1)), Entry(0, ([0, 2], 2))],
    ]


def counted(seen: list[int], n: int) -> int:
    """Return how many came before, and note one more."""
    seen.append(n)
    return len(seen) - 1


def test_functions_have_a_state(numbers, given_on):
    """One for all items, or one for each key; the three forms."""
    keyed = numbers.grouping_key(lambda n: n % 2)

    assert given_on(
        numbers.map_stateful(list, counted),
        numbers.filter_stateful(list, counted),
        keyed.map_stateful(list, lambda seen, key, n: (key, counted(seen, n))),
        keyed.flat_map_stateful(list, lambda seen, key, n: [n] * counted(seen, n)),
    ) == [
        [0, 1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
        [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)],
        [2, 3, 4, 4, 5, 5],
    ]


def test_items_keep_their_order_where_they_are_spread(numbers, given_on):
    """With a key, equal ones come together, in any order of keys."""
    spread = numbers.rebalance().map(abs).set_local_parallelism(3)
    source = numbers.pipeline.read_from(Items(range(4))).set_local_parallelism(2)
    routed = numbers.rebalance(lambda n: n % 2).set_local_parallelism(2)
    items, parts, by_key = given_on(spread, source, routed)

    assert (items, parts) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3])
    assert sorted(by_key) == [0, 1, 2, 3, 4, 5]


def test_a_rebalanced_key_needs_no_number(numbers, given_on):
    """The cores say how many partitions there are."""
    assert sorted(given_on(numbers.rebalance(abs))) == [0, 1, 2, 3, 4, 5]


def test_counts_reach_a_map(numbers, engine):
    """From a source over an aggregate to a sink."""
    name = f"counts-{engine.name}"
    numbers.grouping_key(lambda n: n % 2).aggregate(counting()).write_to(to_imap(name))
    (counts,) = run(engine.context, numbers.pipeline.plan())

    assert dict(counts.items()) == {0: 3, 1: 3}


def test_a_failing_operation_names_its_stage(numbers, given):
    """With the line of the call, as a step of a stream does."""
    shares = AggregateOperation(list, lambda container, n: container.append(6 // n), list.extend)
    with pytest.raises(ZeroDivisionError) as caught:
        given(numbers.grouping_key(abs).aggregate(shares).set_name("shares"))

    notes = "\n".join(caught.value.__notes__)
    assert "as 'shares' at" in notes
    assert "test_running_aggregates.py" in notes
    assert "the item 0" in notes
