"""B6: `find_first` in a thousand partitions; what counts is how many items were touched, and where.

The predicate notes each item that it sees in a file, on the worker, so that also a task that was
stopped early is counted. The goal: besides the items up to the one that is found, at most one batch
in each of a handful of partitions.
"""

from __future__ import annotations

import functools
import os
from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.harness import Bench, Case, Contestant, Detail

__all__ = ["cases"]

_PARTITIONS = 1000
_PER_PARTITION = 1000
_A_BATCH = 64
_A_HANDFUL = 4
_ITEMS = range(_PARTITIONS * _PER_PARTITION)


def cases(bench: Bench) -> list[Case]:
    """Return the search for an item of the first partition, and for one of the fourth."""
    return [_case(bench, wanted) for wanted in (5, 3_500)]


def _case(bench: Bench, wanted: int) -> Case:
    def ours(note: Path | None = None) -> int:
        found = bench.ctx.stream(_ITEMS, _PARTITIONS).filter(functools.partial(_reaches, wanted, note)).find_first()
        return found.get()

    def rdd(note: Path | None = None) -> int:
        numbers = bench.spark.sparkContext.parallelize(_ITEMS, _PARTITIONS)
        return int(numbers.filter(functools.partial(_reaches, wanted, note)).first())

    note = bench.folder / "touched.bin"
    return Case(
        "B6",
        f"find_first, item {wanted:,}",
        Contestant("dstream find_first()", ours, detail=lambda: _touched(ours, note, wanted, is_ours=True)),
        [Contestant("RDD first()", rdd, detail=lambda: _touched(rdd, note, wanted, is_ours=False))],
    )


def _reaches(wanted: int, note: Path | None, item: int) -> bool:
    if note is not None:
        with note.open("ab") as touched:
            touched.write(item.to_bytes(8, "little"))
    return item >= wanted


def _touched(run: Callable[[Path], int], note: Path, wanted: int, *, is_ours: bool) -> Detail:
    """Run once more with the predicate taking notes."""
    note.write_bytes(b"")
    run(note)
    items = array("q", note.read_bytes())
    os.remove(note)
    beyond = Counter(item // _PER_PARTITION for item in items if item > wanted)
    met = len(beyond) <= _A_HANDFUL and max(beyond.values(), default=0) <= _A_BATCH
    text = f"touched {len(items):,} items, {beyond.total():,} of them beyond, in {len(beyond)} partitions"
    return Detail(text, met if is_ours else None)
