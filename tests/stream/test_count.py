"""`count`: how many items there are."""

from __future__ import annotations

from dstream import IntStream


def test_count_counts_every_item(engine):
    """None counts, equal items count each; nothing counts 0, one item 1."""
    assert engine.stream([1, None, 1], 5).count() == 3
    assert (engine.stream([], 3).count(), engine.stream(["a"], 3).count()) == (0, 1)


def test_count_runs_the_steps_before_it(engine):
    """What a step leaves out is not counted, what it adds is."""
    assert engine.stream(range(6), 3).filter(lambda n: n % 2).flat_map(lambda n: [n] * n).count() == 9


def test_count_of_a_range_does_not_bring_it_to_the_caller(default_engine):
    """A million ints are counted where they are made."""
    assert IntStream.range(0, 1_000_000).count() == 1_000_000
