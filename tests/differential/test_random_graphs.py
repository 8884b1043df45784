"""Graphs of processors by chance: both engines give what plain Python gives."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import dstream as ds
from dstream.operators.state.shards import kept_shards
from dstream.testing import epochs
from tests.differential.random_graphs import random_graph


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_the_local_engine_gives_what_plain_python_gives(local_context: ds.Context, first: int) -> None:
    """For ten graphs each."""
    for seed in range(first, first + 10):
        made = random_graph(seed)

        assert made.given_by(local_context) == made.expected, f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_graphs_in_this_process_give_what_plain_python_gives(moving_context: ds.Context, first: int) -> None:
    """For ten graphs each, by the tasks that run on Spark."""
    for seed in range(first, first + 10):
        made = random_graph(seed)

        assert made.given_by(moving_context) == made.expected, f"seed {seed}"


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_spark_gives_what_plain_python_gives(spark_context: ds.Context, seed: int) -> None:
    """Also where vertices have more processors than there are cores."""
    made = random_graph(seed)

    assert made.given_by(spark_context) == made.expected


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_epochs_change_nothing(first: int) -> None:
    """However many, and whether processors are kept or made anew from what they saved; for ten graphs each."""
    for seed in range(first, first + 10):
        given, expected = given_in_epochs(seed)

        assert given == expected, f"seed {seed}"


@pytest.mark.parametrize("seed", [11])
def test_epochs_change_nothing_on_spark(spark_context: ds.Context, seed: int) -> None:
    """Where any worker may get any processor."""
    given, expected = given_in_epochs(seed, spark_context)

    assert given == expected


def given_in_epochs(seed: int, context: ds.Context | None = None) -> tuple[tuple[Counter[int], ...], Any]:
    """Return what the outlets of a graph give over some epochs, and what they are to give."""
    made, chance, by_hand = random_graph(seed, has_priorities=False), Random(seed), epochs(context)
    sources = [by_hand.source(f"in{number}", max(parts, 1)) for number, (_, parts) in enumerate(made.inputs)]
    by_hand.of(made.plan_of(sources))
    cuts: list[Any] = [{} for _ in range(chance.randint(1, 4))]
    for source, (items, parts) in zip(sources, made.inputs, strict=True):
        for item in items:
            chance.choice(cuts).setdefault(source, {}).setdefault(chance.randrange(parts), []).append(item)
    given: tuple[Counter[int], ...] = tuple(Counter() for _ in made.graph.outlets)
    for number, cut in enumerate(cuts, start=1):
        for outlet, items in enumerate(by_hand.cut(cut, is_end=number == len(cuts)).values()):
            given[outlet].update(items)
        if chance.random() < 0.5:
            kept_shards.forget(by_hand._job)
    return given, made.expected
