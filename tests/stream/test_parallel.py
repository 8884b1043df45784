"""`parallel`, `sequential`, `is_parallel`: in how many partitions a pipeline runs."""

from __future__ import annotations

import pytest

from dstream import IntStream


def test_parallel_and_sequential_keep_the_items_in_order(engine):
    """How many partitions there are changes no result."""
    letters = engine.context.stream("cab")

    assert letters.parallel(3).map(str.upper).to_list() == ["C", "A", "B"]
    assert letters.parallel().sequential().skip(1).distinct().to_list() == ["a", "b"]


def test_parallel_says_in_how_many_partitions_the_whole_pipeline_runs(spark_context):
    """The last call counts, wherever it stands in the chain."""
    stream = spark_context.stream(range(9)).parallel(3).map(lambda n: n)

    assert (len(stream.partitions()), len(stream.parallel(5).partitions())) == (3, 5)


@pytest.mark.parametrize("partitions", [None, 3])
def test_sequential_runs_in_one_partition(engine, partitions):
    """All items stand in one partition, also those of a source that was made with more."""
    stream = engine.context.stream([3, 1, 2], partitions).sequential()

    assert [list(part) for part in stream.partitions()] == [[3, 1, 2]]


def test_is_parallel_follows_the_last_call(local_context):
    """A stream is parallel unless it was made sequential; the last call wins, as in Java."""
    stream = local_context.stream([1])

    assert stream.is_parallel()
    assert not stream.parallel().sequential().map(str).is_parallel()
    assert stream.sequential().parallel().is_parallel()


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-2, ValueError), ("2", TypeError), (1.5, TypeError)])
def test_parallel_refuses_what_is_no_number_of_partitions(n, error):
    """The number is an int of at least 1, checked at the call."""
    with pytest.raises(error, match="partitions"):
        IntStream.of(1).parallel(n)
