"""B9: a loop in the caller over one gigabyte of items, and the most memory that the caller occupies meanwhile.

CPU and wall time are measured as in every case. The memory is that of another process, which does nothing else: this
module, run as a program, whose resident memory is sampled without that of the JVM and the workers. What Python and the
libraries occupy before the loop is part of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dstream as ds
from sources import text_files
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Case, Contestant, Detail
from tests.benchmarks.separate import answering, watched

__all__ = ["cases"]

_GOAL = 300 * 10**6
_FILES = 9
_LETTERS_OF_A_RECORD = 1000

Walk = tuple[int, int]
"""How many items there were, and how many letters in them."""


def cases(bench: Bench) -> list[Case]:
    """Return the loop over lines of files, over records in partitions like those of files, and in few large ones."""
    lines = _linked(bench.folder, bench.size(120, 2), _FILES)
    few = _linked(bench.folder, 2, 2)
    cases = [_case(bench, f"{_size(_bytes_in(lines))} of lines", "lines", lines, few)]
    for count, partitions in ((bench.size(1_000_000, 20_000), 32), (bench.size(250_000, 5_000), 2)):
        title = f"{_size(count * _LETTERS_OF_A_RECORD)} of records in {partitions} partitions"
        cases.append(_case(bench, title, "records", f"{count}/{partitions}", f"1000/{partitions}"))
    return cases


def _case(bench: Bench, title: str, kind: str, what: str, few: str) -> Case:
    def contestant(name: str, who: str, items_of: Callable[[str], Iterable[str]]) -> Contestant:
        detail = partial(_peak, who, kind, what)
        on_spark = who != "plain"
        return Contestant(
            name, lambda: _walked(items_of(what)), check=lambda: list(items_of(few)), detail=detail, uses_spark=on_spark
        )

    return Case(
        "B9",
        f"iterate over {title}",
        contestant("dstream, for item in stream", "dstream", partial(_ours, bench.ctx, kind)),
        [
            contestant("RDD toLocalIterator", "rdd", partial(_rdd, bench.spark.sparkContext, kind)),
            contestant("plain Python", "plain", partial(_plain, kind)),
        ],
    )


def _linked(folder: Path, megabytes: int, times: int) -> str:
    """Return a folder with so many copies of the text, which all are the same file on disk."""
    text, copies = corpus(folder, megabytes), folder / f"{times}-x-{megabytes}mb"
    copies.mkdir(exist_ok=True)
    for number in range(times):
        copy = copies / f"{number}.txt"
        copy.unlink(missing_ok=True)
        os.link(text, copy)
    return str(copies)


def _bytes_in(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB"


def _walked(items: Iterable[str]) -> Walk:
    count = letters = 0
    for item in items:
        count += 1
        letters += len(item)
    return count, letters


def _ours(ctx: ds.Context, kind: str, what: str) -> Iterable[str]:
    return ctx.read(text_files(what)) if kind == "lines" else ctx.stream(*_numbers(what)).map(_record)


def _rdd(context: Any, kind: str, what: str) -> Iterable[str]:
    if kind == "lines":
        rows = context.textFile(what)
    else:
        numbers, partitions = _numbers(what)
        rows = context.range(len(numbers), numSlices=partitions).map(_record)
    items: Iterable[str] = rows.toLocalIterator(prefetchPartitions=True)
    return items


def _plain(kind: str, what: str) -> Iterable[str]:
    return _lines(what) if kind == "lines" else map(_record, _numbers(what)[0])


def _numbers(what: str) -> tuple[range, int]:
    """Return the numbers of the records, and in how many partitions they stand."""
    count, partitions = what.split("/")
    return range(int(count)), int(partitions)


def _lines(folder: str) -> Iterator[str]:
    for path in sorted(Path(folder).iterdir()):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield line.removesuffix("\n")


def _record(number: int) -> str:
    """Make a record of a thousand letters."""
    return f"{number:010d}" * (_LETTERS_OF_A_RECORD // 10)


def _peak(who: str, kind: str, what: str) -> Detail:
    """Run the loop in a process of its own, and say how much memory that took; ours has a goal."""
    _, peaks = watched("iterating", who, kind, what)
    text = f"{peaks.driver / 1e6:,.0f} MB in the caller"
    if who != "dstream":
        return Detail(text)
    return Detail(f"{text}, goal {_GOAL / 1e6:.0f} MB", peaks.driver <= _GOAL)


def _alone(words: Sequence[str]) -> Walk:
    """Run one contestant; the JVM has the memory that it has in the other cases."""
    who, kind, what = words
    if who == "plain":
        return _walked(_plain(kind, what))
    with ds.connect("local[2]", config={"spark.driver.memory": "4g"}, progress=False) as ctx:
        items = _ours(ctx, kind, what) if who == "dstream" else _rdd(ctx.spark.sparkContext, kind, what)
        return _walked(items)


if __name__ == "__main__":
    answering(_alone)
