"""Graphs of processors by chance: both engines give what plain Python gives."""

from __future__ import annotations

import pytest

import dstream as ds
from tests.differential.random_graphs import random_graph


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_the_local_engine_gives_what_plain_python_gives(local_context: ds.Context, first: int) -> None:
    """For ten graphs each."""
    for seed in range(first, first + 10):
        made = random_graph(seed)

        assert made.given_by(local_context) == made.expected, f"seed {seed}"


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_spark_gives_what_plain_python_gives(spark_context: ds.Context, seed: int) -> None:
    """Also where vertices have more processors than there are cores."""
    made = random_graph(seed)

    assert made.given_by(spark_context) == made.expected
