"""B2: how often each word occurs in 120 MB of text, as a dictionary in the caller."""

from __future__ import annotations

import functools
import multiprocessing
import operator
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import dask
import dask.bag
from pyspark.sql import functions as F

from collectors import counting, frequencies, grouping_by
from sources import text_files
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

_DASK_BLOCK = "16MiB"


def cases(bench: Bench) -> list[Case]:
    """Return the case; counting into a distributed map joins it when there are such maps."""
    megabytes = bench.size(120, 2)
    path = corpus(bench.folder, megabytes)
    ours = Contestant("dstream grouping_by(word, counting())", functools.partial(_grouped, bench, path))
    return [
        Case(
            "B2",
            f"word count, {megabytes} MB",
            ours,
            [
                Contestant("dstream frequencies()", functools.partial(_frequencies, bench, path)),
                Contestant("textbook RDD", functools.partial(_textbook, bench, path), goal=0.5),
                Contestant("hand-tuned RDD", functools.partial(_hand_tuned, bench, path), goal=0.9),
                Contestant("native DataFrame", functools.partial(_native, bench, path), goal=1.4),
                Contestant("plain Python", functools.partial(_plain, path), goal=1.5, uses_spark=False),
                Contestant("Dask Bag", functools.partial(_dask, path), goal=0.8, uses_spark=False),
            ],
        )
    ]


def _grouped(bench: Bench, path: Path) -> dict[str, int]:
    words = bench.ctx.read(text_files(path)).flat_map(lambda line: line.split())
    return words.collect(grouping_by(lambda word: word, counting()))


def _frequencies(bench: Bench, path: Path) -> dict[str, int]:
    return bench.ctx.read(text_files(path)).flat_map(str.split).collect(frequencies())


def _textbook(bench: Bench, path: Path) -> dict[str, int]:
    lines = bench.spark.sparkContext.textFile(str(path))
    pairs = lines.flatMap(lambda line: line.split()).map(lambda word: (word, 1))
    counts: dict[str, int] = pairs.reduceByKey(operator.add).collectAsMap()
    return counts


def _hand_tuned(bench: Bench, path: Path) -> dict[str, int]:
    def counted(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
        return Counter(chain.from_iterable(map(str.split, lines))).items()

    lines = bench.spark.sparkContext.textFile(str(path))
    counts: dict[str, int] = lines.mapPartitions(counted).reduceByKey(operator.add).collectAsMap()
    return counts


def _native(bench: Bench, path: Path) -> dict[str, int]:
    words = bench.spark.read.text(str(path)).select(F.explode(F.split("value", " ")).alias("word"))
    counts = words.groupBy("word").count().toArrow()
    return dict(zip(*(column.to_pylist() for column in counts.columns), strict=True))


def _plain(path: Path) -> dict[str, int]:
    with path.open(encoding="utf-8") as lines:
        return Counter(chain.from_iterable(map(str.split, lines)))


def _dask(path: Path) -> dict[str, int]:
    words = dask.bag.read_text(str(path), blocksize=_DASK_BLOCK).map(str.split).flatten()
    return dict(words.frequencies().compute(scheduler="processes", pool=_pool()))


@functools.cache
def _pool() -> Any:
    """Return workers for Dask that stay, as those of Spark do; by default it starts new ones for each job."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
