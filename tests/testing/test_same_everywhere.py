"""`same_everywhere` passes right pipelines, returns their result, and runs what it says."""

from __future__ import annotations

import math
import operator

import pytest

import dstream as ds
from collectors import counting, grouping_by
from dstream.errors import IllegalStateError
from dstream.testing import Parts, same_everywhere, watch
from reducers import to_ilist, to_imap


def test_a_stream_comes_back_as_a_list():
    """The items that every run gave are returned."""
    assert same_everywhere(lambda words: words.map(len).sorted(), ["ccc", "a", "bb"]) == [1, 2, 3]


def test_any_result_comes_back(spark_context):
    """The result of a terminal operation is compared as it is."""
    counted = same_everywhere(lambda words: words.collect(grouping_by(len, counting())), ["a", "b", "cc"])

    assert counted == {1: 2, 2: 1}


def test_collections_come_back_as_what_they_hold():
    """A map is compared as a dict, a list as a list, each run with a storage of its own."""
    pipeline = lambda words: words.collect(to_imap("m", len, lambda word: 1, operator.add))  # noqa: E731

    assert same_everywhere(pipeline, ["a", "b", "cc"], partitions=[2]) == {1: 2, 2: 1}
    assert same_everywhere(lambda words: words.collect(to_ilist("l")), ["a", "b"], partitions=[2]) == ["a", "b"]


def test_several_inputs_are_divided_each_on_its_own():
    """A pipeline takes one stream for each input."""
    assert same_everywhere(ds.Stream.concat, [1, 2, 3], [4], partitions=[1, 2]) == [1, 2, 3, 4]


def test_the_same_exception_everywhere_is_raised():
    """An exception is a result; it never passes in silence."""
    with pytest.raises(ZeroDivisionError, match="by zero"):
        same_everywhere(lambda numbers: numbers.map(lambda n: 1 // n), [1, 0, 2], partitions=[2])


def test_nan_is_nan_and_items_need_no_hash():
    """Results with NaN and with lists in them can be the same."""
    same_everywhere(lambda numbers: numbers.map(lambda n: [n, math.nan]), [1, 2], partitions=[2])


def test_the_order_of_an_unordered_stream_does_not_count():
    """A set is shuffled, and what comes of it is compared as a multiset."""
    same_everywhere(lambda numbers: numbers.map(lambda n: [n]), set(range(50)), partitions=[1, 3])


def test_the_order_of_a_list_made_without_order_does_not_count():
    """What a terminal operation inside the pipeline lists of an unordered stream has no order either."""
    shuffled = Parts(list(range(50)), ordered=False)

    same_everywhere(lambda numbers: numbers.map(str).to_list(), shuffled, partitions=[1, 3])


def test_by_makes_a_result_comparable():
    """Float sums differ in the last digits; a rounding does not."""
    numbers = [0.1] * 7 + [1e16, -1e16, 0.3]

    same_everywhere(lambda s: s.reduce(0.0, operator.add), numbers, by=lambda total: total > -1e9, partitions=[3])


def test_spark_runs_every_number_of_partitions():
    """The items stand in 1, 2, 3 and 8 partitions, and one in each, however the function sees them."""
    size = watch(int)

    same_everywhere(lambda numbers: numbers.for_each_partition(lambda items: size(len(list(items)))), range(12))

    # One on the local engine, then 1 + 2 + 3 + 8 + 12 on Spark, where an empty partition is one too.
    assert size.calls == 1 + 26
    assert sum(size.saw) == 12 * 6
    assert 0 in size.saw


def test_without_spark_nothing_runs_there():
    """`engines=["local"]` makes only the checks that need no Java."""
    spy = watch(str)

    same_everywhere(lambda numbers: numbers.map(spy), [1, 2], engines=["local"])

    assert spy.saw == [1, 2]


def test_streams_without_a_context_run_where_the_pipeline_does(local_context):
    """Inside the pipeline its context is the default one; afterwards the one before is."""
    ds.set_default_context(local_context)
    same_everywhere(lambda numbers: ds.Stream.concat(numbers, ds.Stream.of(9)), [1], partitions=[2])

    assert ds.default_context() is local_context
    ds.set_default_context(None)


def test_an_infinite_stream_fails_as_it_does_anywhere():
    """What cannot end is refused, not read for ever."""
    with pytest.raises(IllegalStateError, match="infinite"):
        same_everywhere(lambda s: ds.Stream.concat(s, ds.Stream.iterate(1, abs)), [1], partitions=[2])


def test_peek_may_fill_a_captured_list():
    """The action of `peek` runs in the caller, so what it changes is there."""
    seen: list[int] = []

    same_everywhere(lambda numbers: numbers.peek(seen.append).map(abs), [1, 2], partitions=[2])

    assert seen == [1, 2] * 2


def test_a_memo_may_be_allowed():
    """`may_change` names what a function keeps for itself."""
    memo: dict[int, int] = {}

    def squared(n: int) -> int:
        return memo.setdefault(n, n * n)

    assert same_everywhere(lambda s: s.map(squared), [2, 3], partitions=[2], may_change=["memo"]) == [4, 9]
