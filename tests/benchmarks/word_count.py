"""B2: how often each word occurs in 120 MB of text, as a dictionary in the caller and as a distributed map.

The map lies on the lake in a folder of the local disk. Each run makes a new one, so that none pays for what is there.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import multiprocessing
import operator
import shutil
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import dask
import dask.bag
from pyspark.sql import functions as F

import dstream as ds
from collectors import counting, frequencies, grouping_by
from dstream import IStreamMap
from reducers import to_imap
from sources import text_files
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases", "count_plainly", "count_words"]

_DASK_BLOCK = "16MiB"


def cases(bench: Bench) -> list[Case]:
    """Return the case, which has three ways to count."""
    megabytes = bench.size(120, 2)
    path = corpus(bench.folder, megabytes)
    into_map = _IntoMap(bench, path)
    return [
        Case(
            "B2",
            f"word count, {megabytes} MB",
            Contestant("dstream frequencies()", functools.partial(count_words, bench.ctx, path)),
            [
                Contestant("textbook RDD", functools.partial(_textbook, bench, path), goal=0.5),
                Contestant("hand-tuned RDD", functools.partial(_hand_tuned, bench, path), goal=0.9),
                Contestant("native DataFrame", functools.partial(_native, bench, path), goal=0.8),
                Contestant("plain Python", functools.partial(count_plainly, path), goal=0.8, uses_spark=False),
                Contestant("Dask Bag", functools.partial(_dask, path), goal=0.8, uses_spark=False),
            ],
            also=[
                Contestant("dstream grouping_by(word, counting())", functools.partial(_grouped, bench, path)),
                Contestant("dstream to_imap(word, 1, add), lake", into_map.run, check=into_map.entries),
            ],
        )
    ]


def count_words(ctx: ds.Context, path: Path) -> dict[str, int]:
    """Count the words of a file, as a user of dstream would best write it."""
    return ctx.read(text_files(path)).flat_map(str.split).collect(frequencies())


def count_plainly(path: Path) -> dict[str, int]:
    """Do the same in one process, without any library."""
    with path.open(encoding="utf-8") as lines:
        return Counter(chain.from_iterable(map(str.split, lines)))


def _grouped(bench: Bench, path: Path) -> dict[str, int]:
    words = bench.ctx.read(text_files(path)).flat_map(lambda line: line.split())
    return words.collect(grouping_by(lambda word: word, counting()))


class _IntoMap:
    """Counts words into maps, which a storage of their own holds."""

    def __init__(self, bench: Bench, path: Path) -> None:
        folder = bench.folder / "word-counts"
        shutil.rmtree(folder, ignore_errors=True)
        self._path = path
        self._ctx = ds.connect(engine="spark", storage=folder)
        self._numbers = itertools.count()
        self._newest: IStreamMap[str, int] | None = None
        atexit.register(self._ctx.close)

    def run(self) -> None:
        """Count once more."""
        words = self._ctx.read(text_files(self._path)).flat_map(str.split)
        name = f"counts-{next(self._numbers)}"
        self._newest = words.collect(to_imap(name, lambda word: word, lambda word: 1, operator.add))

    def entries(self) -> dict[str, int]:
        """Return what was counted last."""
        assert self._newest is not None, "the results are compared after a run"
        return self._newest.copy()


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


def _dask(path: Path) -> dict[str, int]:
    words = dask.bag.read_text(str(path), blocksize=_DASK_BLOCK).map(str.split).flatten()
    return dict(words.frequencies().compute(scheduler="processes", pool=_pool()))


@functools.cache
def _pool() -> Any:
    """Return workers for Dask that stay, as those of Spark do; by default it starts new ones for each job."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
