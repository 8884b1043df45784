"""Pipelines without an end by chance give what their definition gives, whatever happens between epochs."""

from __future__ import annotations

from itertools import cycle

import pytest

from dstream.jobs.unbounded.rate_control import SmallEpochs
from dstream.session.context import Context
from tests.differential.endless_definition import expected
from tests.differential.endless_pipelines import differences
from tests.differential.endless_programs import program


@pytest.mark.parametrize("first", [0, 50, 100, 150])
def test_a_program_without_an_end_gives_what_it_means(local_context: Context, first: int) -> None:
    """Windows, joins, states and merges behind each other, with late items, idle partitions and drivers that die."""
    for seed in range(first, first + 50):
        made = program(seed)

        assert not differences(made, expected(made), local_context), made


@pytest.mark.parametrize("seed", [13, 28])
def test_a_program_without_an_end_gives_the_same_on_spark(
    spark_context: Context, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """As above; one task takes every second epoch, so that shards of the state come and go."""
    made, in_one_task = program(seed), cycle([False, True])
    monkeypatch.setattr(SmallEpochs, "begin", lambda small, *, may_be: next(in_one_task))

    assert not differences(made, expected(made), spark_context), made
