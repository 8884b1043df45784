"""`collect` with a collector or with three functions."""

from __future__ import annotations

import operator

import pytest

from collectors import collecting_and_then, counting, grouping_by, joining, partitioning_by, to_list, to_map
from dstream import Collector
from dstream.errors import IllegalStateError, UnstableKeyError


def test_collect_with_accumulators_that_change_the_container(engine):
    """`list.append` and `list.extend` change the container and return None."""
    assert engine.stream([1, None, 3], 3).collect(list, list.append, list.extend) == [1, None, 3]


def test_collect_with_accumulators_that_return_the_next_container(engine):
    """Functions that return the next container work as well, also if it is a false value."""
    assert engine.stream([3, 4, 5], 5).collect(int, operator.add, operator.add) == 12
    assert engine.stream([3, 0, 5], 2).collect(lambda: 1, operator.mul, operator.mul) == 0


def test_collect_of_nothing_finishes_an_empty_container(engine):
    """The result of nothing is the finished container of the supplier."""
    nothing = engine.stream([], 3)

    assert (nothing.collect(list, list.append, list.extend), nothing.collect(joining("-", "<", ">"))) == ([], "<>")
    assert nothing.collect(grouping_by(len)) == {}
    assert nothing.collect(partitioning_by(bool)) == {False: [], True: []}


def test_collect_runs_the_finisher_once(engine):
    """Whatever the number of partitions, the finisher runs once, in the caller."""
    calls = []
    collector = Collector.of(list, list.append, list.extend, lambda items: calls.append(len(items)) or tuple(items))

    assert (engine.stream("abc", 3).collect(collector), calls) == (("a", "b", "c"), [3])


def test_collect_supplies_a_fresh_container_to_each_run(engine):
    """A second run of the same stream and collector starts anew."""
    stream, collector = engine.stream([1, 2], 2), to_list()

    assert (stream.collect(collector), stream.collect(collector)) == ([1, 2], [1, 2])


@pytest.mark.parametrize("partitions", [1, 4])
def test_grouping_by_has_its_keys_in_first_seen_order(engine, partitions):
    """Keys come in the order in which the items first show them, items in encounter order inside."""
    words = engine.stream(["whale", "sea", "ship", "web", "ash", "sun", "wet"], partitions)
    groups = words.collect(grouping_by(lambda word: word[0]))

    assert list(groups.items()) == [("w", ["whale", "web", "wet"]), ("s", ["sea", "ship", "sun"]), ("a", ["ash"])]


@pytest.mark.parametrize("partitions", [1, 4])
def test_to_map_has_its_keys_in_first_seen_order(engine, partitions):
    """Values of one key are merged from left to right."""
    words = engine.stream(["whale", "sea", "web", "ship", "ash"], partitions)
    merged = words.collect(to_map(lambda word: word[0], lambda word: word, lambda left, right: f"{left}+{right}"))

    assert list(merged.items()) == [("w", "whale+web"), ("s", "sea+ship"), ("a", "ash")]


def test_partitioning_by_has_false_before_true(engine):
    """Both keys are always there, in the same order."""
    parts = engine.stream([3, 8, 1, 6], 3).collect(partitioning_by(lambda n: n > 4))

    assert list(parts.items()) == [(False, [3, 1]), (True, [8, 6])]


def test_grouping_of_groups_keeps_order_at_both_levels(engine):
    """A downstream grouping is combined over partitions as well."""
    words = engine.stream(["bb", "b", "a", "bc", "c"], 3)
    groups = words.collect(grouping_by(len, grouping_by(lambda word: word[0], counting())))

    assert repr(groups) == "{2: {'b': 2}, 1: {'b': 1, 'a': 1, 'c': 1}}"


def test_grouping_by_takes_equal_keys_from_different_partitions_as_one(engine):
    """`1`, `1.0` and `True` are one key, so are all NaN."""
    keys = engine.stream([1, float("nan"), 1.0, float("nan"), True], 5)

    assert repr(keys.collect(grouping_by(lambda key: key, counting()))) == "{1: 3, nan: 2}"


def test_to_map_refuses_a_duplicate_key_over_partitions(engine):
    """Two items with one key and no merge function: an `IllegalStateError` with key and values."""
    with pytest.raises(IllegalStateError, match="Duplicate key"):
        engine.stream(["aa", "b", "cc"], 3).collect(to_map(len, str))


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("key", [[1], object()])
def test_grouping_by_refuses_a_key_that_cannot_be_grouped(engine, key, partitions):
    """A key without a hash, or with one of its identity, is refused on each engine, never grouped wrongly."""
    with pytest.raises(UnstableKeyError, match="cannot be a key"):
        engine.stream([1, 2], partitions).collect(grouping_by(lambda n: [n] if isinstance(key, list) else object()))


def test_collect_with_a_finisher_around_a_grouping(engine):
    """What stands around a grouping sees its finished dictionary."""
    sizes = engine.stream("abca", 3).collect(collecting_and_then(grouping_by(str, counting()), len))

    assert sizes == 3


class Unwritable:
    """A sink, its target and its job, which fails when it is asked for its writer."""

    job = collector = None
    label, is_done, aborted = "unwritable()", False, 0

    def open(self, context):
        """Be the target too."""
        return self

    def begin(self, job, epoch=1):
        """Be the job too."""
        return self

    @property
    def writer(self):
        """Fail."""
        raise ConnectionError("no writer")

    def abort(self):
        """Count it."""
        self.aborted += 1


def test_what_a_sink_has_begun_is_removed_if_it_has_no_writer(local_context):
    """As if the tasks had failed."""
    sink = Unwritable()
    with pytest.raises(ConnectionError, match="no writer"):
        local_context.stream([1]).collect(sink)

    assert sink.aborted == 1
