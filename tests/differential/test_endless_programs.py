"""Pipelines without an end by chance give what their definition gives, whatever happens between epochs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import dstream as ds
from dstream.jobs.unbounded.epoch_runner import EpochRunner
from dstream.jobs.unbounded.rate_control import SmallEpochs
from dstream.session.context import Context
from tests.differential.endless_definition import expected
from tests.differential.endless_pipelines import differences
from tests.differential.endless_programs import program
from tests.jobs.unbounded.moving_epochs import ElsewhereEngine, with_two_engines


@pytest.mark.parametrize("first", [0, 50, 100, 150])
def test_a_program_without_an_end_gives_what_it_means(local_context: Context, first: int) -> None:
    """Windows, joins, states and merges behind each other, with late items, idle partitions and drivers that die."""
    for seed in range(first, first + 50):
        made = program(seed)

        assert not differences(made, expected(made), local_context), made


def test_a_program_without_an_end_gives_the_same_in_compiled_graphs(inprocess_context: Context) -> None:
    """As on the local engine: watermarks pass forks and reach every task, and no row beside the items is a receipt."""
    for seed in range(50):
        made = program(seed)

        assert not differences(made, expected(made), inprocess_context), made


@pytest.mark.parametrize("seed", [13, 28])
def test_a_program_without_an_end_gives_the_same_on_spark(
    spark_context: Context, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """As above; one task takes every second epoch, so that shards of the state come and go."""
    made, in_one_task = program(seed), cycle([False, True])
    monkeypatch.setattr(SmallEpochs, "begin", lambda small, *, may_be: next(in_one_task))

    assert not differences(made, expected(made), spark_context), made


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The engines of epochs, which are chosen at random."""
    chosen, of_epoch, run = [], random.Random(7), EpochRunner.run

    def run_somewhere(runner: EpochRunner, *args: Any) -> Any:
        chosen.append(of_epoch.choice(["inprocess", "inprocess", "spark"]))
        return run(runner, *args[:5], engine=chosen[-1])

    monkeypatch.setattr(EpochRunner, "run", run_somewhere)
    yield chosen
    assert set(chosen) == {"inprocess", "spark"}


def test_a_program_without_an_end_gives_the_same_when_epochs_move(data: Path, moving: list[str]) -> None:
    """Engines in turns by chance: each has missed what the other one did, and keeps nothing that is not current."""
    for seed in range(50):
        made = program(seed)
        with ds.connect(engine="local", storage=data) as context:
            with_two_engines(context, ElsewhereEngine)

            assert not differences(made, expected(made), context), made


@pytest.mark.parametrize("seed", [4, 13, 28])
def test_a_program_without_an_end_gives_the_same_when_epochs_move_to_spark(
    spark_context: Context, data: Path, moving: list[str], seed: int
) -> None:
    """As above, with the workers of Spark."""
    made, spark = program(seed), spark_context.running_engine()
    with ds.connect(engine="local", storage=data) as context:
        with_two_engines(context, lambda: spark, spark._backend.caches)

        assert not differences(made, expected(made), context), made
        context._engine = None  # That of Spark is for other tests, too.
