"""`ElsewhereEngine` in the place of Spark, and contexts whose epochs move between it and this process."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import dstream as ds
from dstream.engine.auto.border import SparkStart
from dstream.engine.auto.engine import AutoEngine
from dstream.engine.auto.placement import AutoSettings
from dstream.engine.inprocess import InProcessEngine
from dstream.jobs.unbounded.placement import EpochPlacement
from dstream.operators.rows.caches import Caches
from dstream.operators.state.shards import kept_shards
from dstream.spi import Engine

__all__ = ["ElsewhereEngine", "move_at_random", "with_two_engines"]


class ElsewhereEngine(InProcessEngine):
    """An engine that has shards of its own, as other processes have, and counts its runs."""

    def __init__(self) -> None:
        super().__init__(512 * 2**20)
        self.shards: dict[str, Any] = {}
        self.runs = 0

    def _run(self, *args: Any) -> Any:
        self.runs += 1
        here, kept_shards._jobs = kept_shards._jobs, self.shards
        try:
            return super()._run(*args)
        finally:
            self.shards, kept_shards._jobs = kept_shards._jobs, here


def with_two_engines(context: ds.Context, start: Callable[[], Engine], caches: Caches | None = None) -> ds.Context:
    """Return a context with the engines of `connect(engine="auto")`, of which `start` starts the one for Spark."""
    kept = Caches() if caches is None else caches
    here = InProcessEngine(512 * 2**20, caches=kept)
    spark = SparkStart(start, lambda: None, print)
    context._engine = AutoEngine(here, here, spark, lambda: 2, kept.found, AutoSettings())
    return context


def move_at_random(seed: int) -> None:
    """Run the epochs of this process here and elsewhere at random, in turns of one to four."""
    numbers, left = random.Random(seed), [0]

    def choose(placement: EpochPlacement, now: float, *, is_spark_running: bool) -> str:
        left[0] -= 1
        if left[0] < 0:
            left[0] = numbers.randrange(4)
            placement.engine = "spark" if placement.engine == "inprocess" else "inprocess"
        return placement.engine

    EpochPlacement.choose = choose  # type: ignore[method-assign, assignment]
