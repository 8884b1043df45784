"""`join`: pairs of items with equal keys, on a broadcast side and through a shuffle."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dstream as ds
from collectors import frequencies
from dstream import Entry, IntStream, Stream
from dstream.errors import IllegalStateError, UnstableKeyError, UnsupportedError
from dstream.failures import failure
from dstream.testing import Parts, same_everywhere
from dstream.testing.comparison import exact

HOW = ["inner", "left", "right", "full"]
WAYS = {"small": "10mb", "large": "0", "never": "-1"}


def by_hand(lefts, rights, how):
    """Join two lists of pairs as a textbook does; one NaN is every NaN."""
    same = lambda a, b: a == b or (a != a and b != b)  # noqa: E731
    joined = [(k, (v, w)) for k, v in lefts for other, w in rights if same(k, other)]
    if how in ("left", "full"):
        joined += [(k, (v, None)) for k, v in lefts if not any(same(k, other) for other, _ in rights)]
    if how in ("right", "full"):
        joined += [(k, (None, w)) for k, w in rights if not any(same(k, other) for other, _ in lefts)]
    return Counter(exact(entry) for entry in joined)


def counted(entries):
    """Count entries as plain pairs."""
    return Counter(exact(tuple(entry)) for entry in entries)


def way(stream, name):
    """Set the largest number of bytes of a side that is broadcast."""
    return stream.configure({"spark.sql.autoBroadcastJoinThreshold": WAYS[name]})


NAN = float("nan")
LEFTS = [(1, "a"), (2, "b"), (None, "n"), (1.0, "c"), (NAN, "x"), (9, "l"), (True, "d"), ("1", "e")]
RIGHTS = [(1, "A"), (True, "B"), (None, "N"), (float("nan"), "X"), (7, "r"), (7, "s"), (7.0, "t")]


@pytest.mark.on_spark("how", "name")
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("how", HOW)
def test_join_gives_what_a_textbook_gives(engine, how, name):
    """`1`, `1.0` and `True` are one key, None is one, every NaN is one; the key is that of the left item."""
    joined = way(engine.stream(LEFTS, 3).join(engine.stream(RIGHTS, 4), how=how), name)

    assert counted(joined.to_list()) == by_hand(LEFTS, RIGHTS, how)


pairs = st.lists(st.tuples(st.sampled_from([0, 1, 2, None, "k", NAN, (1, None)]), st.integers(0, 9)), max_size=12)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs, pairs, st.sampled_from(HOW), st.sampled_from(list(WAYS)), st.integers(1, 8), st.integers(1, 8))
def test_join_of_random_sides_in_random_partitions(spark_context, lefts, rights, how, name, left_parts, right_parts):
    """The same for random items in one to eight partitions, some of them empty."""
    joined = spark_context.stream(lefts, left_parts).join(spark_context.stream(rights, right_parts), how=how)

    assert counted(way(joined, name).to_list()) == by_hand(lefts, rights, how)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs, pairs, st.sampled_from(HOW))
def test_join_of_random_sides_locally(local_context, lefts, rights, how):
    """The local engine is the definition."""
    joined = local_context.stream(lefts).join(local_context.stream(rights), how=how)

    assert counted(joined.to_list()) == by_hand(lefts, rights, how)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("lefts", "rights"), [([], []), ([], [(1, "A")]), ([(1, "a")], []), ([(1, "a")], [(1, "A")])])
def test_join_of_nothing_and_of_one_item(engine, lefts, rights, how):
    """An empty side matches nothing; what is kept of the other one is kept."""
    joined = engine.stream(lefts, 2).join(engine.stream(rights, 3), how=how)

    assert counted(joined.to_list()) == by_hand(lefts, rights, how)


@pytest.mark.on_spark("name")
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("how", HOW)
def test_join_keeps_the_order_of_the_matches_of_one_item(engine, how, name):
    """Whichever side is held, the matches of a left item come in the order of the right stream."""
    lefts, rights = engine.stream([("k", "a")], 1), engine.stream(range(40), 5).key_by(lambda n: "k")
    joined = way(lefts.join(rights, how=how), name)

    assert joined.map(lambda entry: entry.value[1]).to_list() == list(range(40))


@pytest.mark.on_spark("name")
@pytest.mark.parametrize("name", WAYS)
def test_join_keeps_the_order_of_matches_behind_a_shuffle_and_a_source(engine, name):
    """Also where the right side is made of a shuffle, a source and another shuffle."""
    some = engine.stream([3, 1, 2], 3)
    rights = some.sorted() + some + some.distinct() + some
    joined = way(engine.stream("ab", 2).sorted().join(rights, on=lambda item: 0, how="left"), name)

    found = [right for left, right in joined.map(lambda entry: entry.value).to_list() if left == "b"]
    assert found == [1, 2, 3, 3, 1, 2, 3, 1, 2, 3, 1, 2]


def test_join_by_one_key_function_and_by_two(engine):
    """With functions the sides are the items themselves."""
    words, lengths = engine.stream(["sea", "whale"], 2), engine.stream([5, 6], 2)

    assert words.join(words, on=len).to_list() != []
    assert words.join(lengths, on=(len, int)).to_list() == [Entry(5, ("whale", 5))]
    assert sorted(words.join(words, on=len).to_list()) == [(3, ("sea", "sea")), (5, ("whale", "whale"))]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_join_by_a_function_of_pairs_that_stand_in_columns(spark_context, how):
    """The first of a pair is its key only where no function says otherwise."""
    pairs = spark_context.stream(range(20_000)).map(lambda n: (n, n % 7))
    joined = pairs.join([(7, 3), (9, 5), (11, 8)], on=lambda pair: pair[1], how=how)

    expected = {3: 2857, 5: 2857, 8: 0 if how in ("inner", "left") else 1}
    found = joined.filter(lambda entry: entry.value[1] is not None).map(lambda entry: entry.key).collect(frequencies())
    assert found == {key: count for key, count in expected.items() if count}


def test_join_of_a_stream_with_itself(engine):
    """A shared stream is read for each side."""
    numbers = engine.stream(range(6), 3).map(abs).distinct()
    joined = numbers.join(numbers, on=lambda n: n % 2, how="full")

    assert sorted(joined.map(lambda entry: entry.value).to_list()) == [
        (left, right) for left in range(6) for right in range(6) if left % 2 == right % 2
    ]


def test_join_runs_no_function_twice(spark_context):
    """Each item of both sides is read once, also if the first side is too large to travel."""
    for name in WAYS:
        left, right = Parts(range(9), [], range(9, 12)), Parts(range(20))
        joined = spark_context.read(left).join(spark_context.read(right), on=int)

        assert way(joined, name).count() == 12
        assert (left.items_read, right.items_read) == (12, 20)


@pytest.mark.on_spark("name")
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("how", HOW)
def test_peek_sees_each_item_of_both_sides_once(engine, how, name):
    """What `peek` saw of a side comes back to the caller, whichever way the side goes."""
    seen = []
    left, right = engine.stream([1, 2, 3], 2).peek(seen.append), engine.stream([3, 4], 2).peek(seen.append)

    assert way(left.join(right, on=int, how=how), name).count() == {"inner": 1, "left": 3, "right": 2, "full": 4}[how]
    assert sorted(seen) == [1, 2, 3, 3, 4]


def test_join_goes_on_with_other_operations(engine):
    """The entries of a join are joined, sorted, limited and counted as any other."""
    crews = engine.stream([("Pequod", 30), ("Rachel", 26)], 2)
    seas, years = engine.stream([("Pequod", "Pacific")], 2), engine.stream([("Pequod", 1851)], 1)
    joined = crews.join(seas).join(years, how="left").sorted().limit(3)

    assert joined.to_list() == [("Pequod", ((30, "Pacific"), 1851))]


def test_join_reads_the_left_side_only_as_far_as_needed(engine):
    """A short circuit behind a join stops the left side, item by item."""
    left = engine.stream([1, 2, 0], 1).map(lambda n: 2 // n)

    assert left.join(engine.stream([2, 1], 1), on=int).limit(2).count() == 2


def test_join_of_an_endless_side_with_a_finite_one(default_engine):
    """The endless side passes by; with `on` pairs from the right side too."""
    endless, some = Stream.iterate(0, lambda n: n + 1), default_engine.stream([3, 5], 2)

    assert endless.join(some, on=int, how="left").limit(4).to_list()[-1] == (3, (3, 3))
    assert sorted(some.join(endless, on=int).limit(2).to_list()) == [(3, (3, 3)), (5, (5, 5))]
    assert some.join(endless, on=int, how="right").limit(1).to_list() == [(0, (None, 0))]


@pytest.mark.parametrize("holds_left", [True, False])
def test_join_of_an_endless_side_holds_the_other_one_whatever_its_size(holds_left):
    """Items without end cannot go to files, so what they pass by stays in memory past the bound."""
    endless = Stream.iterate((0, ""), lambda pair: (pair[0] + 1, ""))
    with ds.connect(engine="local", worker_memory=1) as context:
        large = context.stream(range(1100)).map(lambda n: (n, b"x" * 100_000))
        joined = large.join(endless) if holds_left else endless.join(large)

        assert joined.limit(2).map(lambda entry: entry.key).to_list() == [0, 1]


@pytest.mark.parametrize("how", HOW)
def test_join_refuses_an_endless_side_that_must_end(default_engine, how):
    """Before anything runs: two endless sides, and one whose unmatched items would be known at its end."""
    endless, some = Stream.iterate(0, lambda n: n + 1), Stream.of(1)
    refused = [endless.join(endless, on=int, how=how)]
    refused += [endless.join(some, on=int, how=how)] if how in ("right", "full") else []
    refused += [some.join(endless, on=int, how=how)] if how in ("left", "full") else []

    for stream in refused:
        with pytest.raises(IllegalStateError, match="an infinite stream cannot be this side of a join"):
            stream.limit(1).to_list()
    with pytest.raises(IllegalStateError, match="the stream is infinite"):
        Stream.of(1).join(endless, on=int, how="right").to_list()


def test_join_of_an_endless_side_with_a_large_one_is_not_run_on_spark(spark_context):
    """Items without end can only pass by what travels to them."""
    endless = spark_context.stream([1]).flat_map(lambda n: iter(int, 1)) + Stream.iterate(0, abs)
    joined = way(endless.join(spark_context.stream(range(9)), on=int), "large")

    with pytest.raises(UnsupportedError, match="joins an infinite stream only with one of at most 0 bytes"):
        joined.limit(1).to_list()


def test_join_names_the_item_whose_key_function_fails(engine):
    """The step, and the item of the side that it failed on."""
    joined = engine.stream([1, 2], 2).join(engine.stream(["3", "x"], 2), on=(int, int))
    with pytest.raises(ValueError, match="invalid literal") as caught:
        joined.to_list()

    found = failure(caught.value)
    assert (found.item, found.step.label) == ("x", ".join(..., on=int)")


def test_join_without_keys_refuses_what_is_no_entry(engine):
    """The message shows the item and its side."""
    entries, others = engine.stream([(1, 2)], 1), engine.stream(["sea"], 1)

    for left, right, side in [(entries, others, "right"), (others, entries, "left")]:
        with pytest.raises(TypeError, match=rf"entries, \(key, value\), not 'sea', an item of the {side} stream"):
            left.join(right).to_list()


def test_join_refuses_a_key_that_cannot_be_compared_across_processes(engine):
    """On both engines, on either side."""
    for key in ([1], object()):
        with pytest.raises(UnstableKeyError, match="cannot be a key"):
            engine.stream([1], 1).join(engine.stream([1], 1), on=(int, lambda n, key=key: key)).to_list()


def test_join_of_different_contexts_is_refused(local_context, spark_context):
    """Two contexts cannot meet in one stream; nor can a closed stream meet another."""
    with pytest.raises(IllegalStateError, match="different contexts"):
        local_context.stream([1]).join(spark_context.stream([2]), on=int)
    closed = local_context.stream([1])
    closed.close()
    with pytest.raises(IllegalStateError, match="closed"):
        local_context.stream([1]).join(closed, on=int)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((5,), TypeError, "other must be a stream, a map, a dict or a list, not int"),
        ((Stream.of(1), 3), TypeError, "on must be a function, not int"),
        ((Stream.of(1), (int, 3)), TypeError, r"on\[1\] must be a function, not int"),
        ((Stream.of(1), (int,)), TypeError, "on must be one key function or a pair of them, not 1 of them"),
        ((Stream.of(1), int, "outer"), ValueError, "how must be one of inner, left, right, full, not 'outer'"),
    ],
)
def test_join_refuses_wrong_arguments_at_the_call(arguments, error, message):
    """Nothing runs for that."""
    with pytest.raises(error, match=message):
        Stream.of(1).join(*arguments)


def test_join_is_shown_with_the_other_stream():
    """The text of a stream shows both sides, however many joins there are."""
    joined = Stream.of(1).join(Stream.of(2).map(abs), on=(int, abs), how="left").filter(bool)
    assert repr(joined) == "Stream.of(1).join(Stream.of(2).map(abs), on=(int, abs), how='left').filter(bool)"

    stream = IntStream.range(0, 3).boxed()
    for _ in range(500):
        stream = stream.join(stream, on=hash)
    assert len(repr(stream)) < 200_000


def test_join_of_hundreds_of_streams_runs(local_context):
    """A long chain of joins opens without a stack."""
    stream = one = local_context.stream([1])
    for _ in range(150):
        stream = stream.join(one, on=lambda item: 0).map(lambda entry: 1)

    assert stream.to_list() == [1]


def test_join_is_the_same_everywhere():
    """The kit agrees, on both engines and for many divisions."""
    crews, seas = [("Pequod", 30), ("Rachel", 26), ("Pequod", 31)], [("Pequod", "Pacific"), (None, "Arctic")]

    joined = same_everywhere(lambda left, right: left.join(right, how="full"), crews, seas, partitions=(1, 3))
    assert len(joined) == 4
