"""Operations on streams of entries: one at a time, and all of a key."""

from __future__ import annotations

import functools
import operator
import uuid
from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import averaging, counting, to_list
from dstream import Entry, Stream
from dstream.errors import NullElementError, UnstableKeyError
from dstream.spi import AggregateOperation
from dstream.testing.comparison import exact
from reducers import to_imap

SHIPS = [("Pequod", 30), ("Rachel", 26), ("Pequod", 2), (None, None), ("Rachel", 1)]
NAN = float("nan")


def grouped(pairs):
    """List the values of each key as a dict does; every NaN is one key."""
    groups = defaultdict(list)
    for key, value in pairs:
        groups["NaN" if key != key else key].append(value)
    return groups


def told(entries):
    """Return entries as what can be compared."""
    return Counter((exact("NaN" if key != key else key), exact(value)) for key, value in entries)


def test_entries_have_keys_and_values_that_swap(engine):
    """Pairs pass for entries; what comes out is an `Entry`."""
    ships = engine.stream(SHIPS, 3)

    assert ships.keys().to_list() == ["Pequod", "Rachel", "Pequod", None, "Rachel"]
    assert ships.values().to_list() == [30, 26, 2, None, 1]
    assert ships.swap().limit(1).map(lambda entry: entry.key).to_list() == [30]


def test_values_are_mapped_filtered_and_flattened_under_their_key(engine):
    """Keys and order stay."""
    texts = engine.stream([(1, "to be"), (2, ""), (3, "or")], 2)

    assert texts.map_values(len).to_list() == [Entry(1, 5), Entry(2, 0), Entry(3, 2)]
    assert texts.filter_values(bool).map(lambda entry: entry.key).to_list() == [1, 3]
    assert texts.flat_map_values(str.split).to_list() == [(1, "to"), (1, "be"), (3, "or")]


def test_flat_map_values_takes_streams_and_none():
    """As `flat_map` does; anything else is an error that says so."""
    numbers = Stream.of((1, 2), (2, 0))

    assert numbers.flat_map_values(lambda n: Stream.of(n, n) if n else None).to_list() == [(1, 2), (1, 2)]
    with pytest.raises(
        TypeError, match=r"flat_map_values\(\) needs a function that gives an iterable or None, not int"
    ):
        numbers.flat_map_values(lambda n: n).to_list()


def test_flat_map_values_reads_no_further_than_wanted():
    """Each value is made when it is asked for."""
    endless = Stream.of((1, 5), (2, 6)).flat_map_values(lambda n: iter(lambda: n, None))

    assert endless.limit(3).to_list() == [(1, 5)] * 3


BY_KEY = {
    "reduce": (lambda s: s.reduce_by_key(operator.add), lambda values: functools.reduce(operator.add, values)),
    "last": (lambda s: s.reduce_by_key(lambda left, right: right), lambda values: values[-1]),
    "aggregate": (lambda s: s.aggregate_by_key(to_list()), list),
    "group": (lambda s: s.group_by_key(), list),
    "count": (lambda s: s.count_by_key(), len),
    "top": (lambda s: s.top_by_key(2, key=abs), lambda values: sorted(values, key=abs, reverse=True)[:2]),
}
keys = st.sampled_from([0, 1, True, 1.0, None, "k", NAN, (1, None)])
pairs = st.lists(st.tuples(keys, st.sampled_from([1, 1, 1, -1, 2, 0.5])), max_size=20)


@pytest.mark.parametrize("name", BY_KEY)
@settings(max_examples=40)
@given(items=pairs, partitions=st.integers(1, 8))
def test_what_is_done_by_key_agrees_with_a_dict(local_context, name, items, partitions):
    """Also for keys that are equal, and that are None or NaN; values of a key stay in order."""
    ours, theirs = BY_KEY[name]

    found = ours(local_context.stream(items, partitions)).to_list()

    assert told(found) == told((key, theirs(values)) for key, values in grouped(items).items())
    assert all(type(entry) is Entry for entry in found)


@pytest.mark.parametrize("name", BY_KEY)
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(items=pairs.filter(len), parts=st.integers(2, 8))
def test_what_is_done_by_key_agrees_with_a_dict_on_spark(spark_context, name, items, parts):
    """From several partitions, of which some are empty."""
    ours, theirs = BY_KEY[name]

    found = ours(spark_context.stream(items, parts)).to_list()

    assert told(found) == told((key, theirs(values)) for key, values in grouped(items).items())


PAIRED = {
    "one": lambda item: (item, 1),
    "true": lambda item: (item, True),
    "half": lambda item: (item, 0.5),
    "none": lambda item: (item, None),
    "text": lambda item: (item, "t"),
}


@pytest.mark.parametrize("name", [name for name in BY_KEY if name not in ("top", "reduce")])
@pytest.mark.parametrize("paired", PAIRED)
@settings(max_examples=10)
@given(items=st.lists(keys, max_size=20), partitions=st.integers(1, 4))
def test_pairs_of_one_value_agree_with_a_dict(local_context, name, paired, items, partitions):
    """A value that stands in each pair is not looked at for each of them."""
    ours, theirs = BY_KEY[name]
    fn = PAIRED[paired]

    found = ours(local_context.stream(items, partitions).map(fn)).to_list()

    assert told(found) == told((key, theirs(values)) for key, values in grouped(map(fn, items)).items())


@pytest.mark.parametrize("paired", [name for name in PAIRED if name != "none"])
@settings(max_examples=10)
@given(items=st.lists(keys, max_size=20), mixed=pairs, partitions=st.integers(1, 4))
def test_pairs_of_one_value_are_added_up(local_context, paired, items, mixed, partitions):
    """Also beside pairs of other values, which another stream brings."""
    fn = PAIRED[paired]
    others = [] if paired == "text" else mixed
    alone = local_context.stream(items, partitions).map(fn)
    for stream, given_pairs in (
        (alone, [*map(fn, items)]),
        (Stream.concat(alone, local_context.stream(others, 1)), [*map(fn, items), *others]),
    ):
        found = stream.reduce_by_key(operator.add).to_list()

        expected = grouped(given_pairs)
        assert told(found) == told((key, functools.reduce(operator.add, values)) for key, values in expected.items())


def test_pairs_of_one_value_on_spark(spark_context):
    """What a worker gets of the function is the same code."""
    words = spark_context.stream(["to", "be", "or", "not", "to", "be"], 3)
    counts = {"to": 2, "be": 2, "or": 1, "not": 1}

    assert dict(words.map(lambda word: (word, 1)).reduce_by_key(operator.add).to_list()) == counts
    assert dict(words.map(lambda word: (word, None)).count_by_key().to_list()) == counts


@pytest.mark.parametrize("by_key", [lambda s: s.reduce_by_key(operator.add), lambda s: s.count_by_key()])
def test_a_refused_key_of_pairs_of_one_value_is_told_with_its_pair(local_context, by_key):
    """As one of any other pairs."""
    refused = object()

    with pytest.raises(UnstableKeyError) as caught:
        by_key(local_context.stream(["a", refused]).map(lambda key: (key, 1))).to_list()
    assert ds.failure(caught.value).item == (refused, 1)


def test_reduce_by_key_adds_one_int_after_another_to_a_float(engine):
    """As a loop over the values of a key: 2.0**53 stays what it is with each 1, and with all of them together not."""
    ones = engine.stream(range(20_000), partitions=1).map(lambda n: (n % 2, 2.0**53 if n < 2 else 1))

    assert ones.reduce_by_key(operator.add).to_set() == {Entry(0, 2.0**53), Entry(1, 2.0**53)}


def test_reduce_by_key_takes_what_op_gives_also_none(engine):
    """None is a value: `functools.reduce` takes it, too."""
    entries = engine.stream([(1, 5), (1, 6), (1, 7)], 3)

    assert entries.reduce_by_key(lambda left, right: None).to_list() == [Entry(1, None)]


def test_aggregate_by_key_takes_operations_that_do_not_combine(engine):
    """All values of a key come to one task, in order."""
    kept = AggregateOperation(list, list.append)

    assert engine.stream([(1, 5), (1, 6), (1, 4)], 3).aggregate_by_key(kept).to_list() == [Entry(1, [5, 6, 4])]


def test_results_by_key_go_on_as_a_stream(engine):
    """No dictionary comes to the caller in between."""
    averages = engine.stream([("a", 1), ("b", 4), ("a", 3)], 2).aggregate_by_key(averaging())

    assert averages.map_values(str).sorted().to_list() == [("a", "2.0"), ("b", "4.0")]


def test_groups_go_to_disk_past_the_memory_bound(monkeypatch, local_context):
    """What was put aside comes back whole."""
    monkeypatch.setattr("dstream.base.memory.Bound.exceeded", lambda bound: True)
    items = [(n % 700, n) for n in range(2100)]

    found = local_context.stream(items).group_by_key().to_list()

    assert sorted(found) == [(key, [key, key + 700, key + 1400]) for key in range(700)]


@pytest.mark.parametrize("call", [lambda s: s.keys(), lambda s: s.map_values(str), lambda s: s.count_by_key()])
def test_what_is_no_entry_is_named(engine, call):
    """With the step and the item."""
    with pytest.raises(TypeError, match=r"the items must be entries, \(key, value\), not 5; key_by\(fn\)") as caught:
        call(engine.stream([(1, 2), 5], 2)).to_list()

    assert "on the item 5" in "".join(caught.value.__notes__)


def test_keys_without_a_stable_hash_are_refused(engine):
    """A group that depends on the process would be silently wrong."""
    with pytest.raises(UnstableKeyError):
        engine.stream([(object(), 1), (object(), 2)], 2).reduce_by_key(max).to_list()


@pytest.mark.parametrize("partitions", [1, 3])
def test_results_by_key_are_written_into_a_map(engine, partitions):
    """The result of each key, under its bucket; also of keys that only equal each other."""
    entries = engine.stream([("a", 1), (1, 2), (True, 3), ("a", 4)], partitions)

    assert entries.reduce_by_key(operator.add).collect(to_imap("sums of keys")).copy() == {"a": 5, 1: 5}


def test_writing_results_by_key_moves_nothing_again(spark_context):
    """One shuffle brings the containers to the tasks that write their buckets."""
    counts = spark_context.stream(SHIPS, 3).count_by_key()
    text = str(counts.explain("mermaid", into=to_imap("counts of keys")))

    assert "1 job, 1 shuffle" in text
    assert "what the tasks have of a key meets in the task that writes its bucket" in text


def test_many_results_of_few_entries_are_written_into_a_map(spark_context):
    """Each of so many keys comes once, so that nothing could be combined before."""
    name = f"keys-{uuid.uuid4().hex}"
    pairs = spark_context.stream(range(40_000), 2).map(lambda n: (n, [n]))
    written = pairs.group_by_key().collect(to_imap(name))

    assert (len(written), written[0], written[39_999]) == (40_000, [[0]], [[39_999]])


def test_a_map_takes_no_none_from_results_by_key(engine):
    """As from any other entries."""
    entries = engine.stream([("a", 1), ("a", 2), ("b", 1)], 3)

    with pytest.raises(NullElementError, match="a map holds no None values"):
        entries.reduce_by_key(lambda left, right: None).collect(to_imap("nothing"))


def test_aggregate_by_key_refuses_what_is_no_collector():
    """At the call."""
    with pytest.raises(TypeError, match="collector must be a Collector, not builtin_function_or_method"):
        Stream.of((1, 2)).aggregate_by_key(max)
    with pytest.raises(TypeError, match="has 2 inputs"):
        Stream.of((1, 2)).aggregate_by_key(AggregateOperation(list, (list.append, list.append)))


def test_reductions_by_key_say_what_they_are(local_context):
    """In the words of the user's call."""
    entries = local_context.stream([(1, 2)])

    assert entries.aggregate_by_key(counting())._node.label() == ".aggregate_by_key(counting())"
    assert entries.top_by_key(2, key=abs)._node.label() == ".top_by_key(2, key=abs)"
