"""Small programs on the Spark of this environment: `python -m tests.soak._spark_smoke`. Spark starts once.

Each program compares its result with that of plain Python. The last line printed is the version and the seconds.
"""

from __future__ import annotations

import itertools
import operator
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any

import dstream as ds
from collectors import averaging, counting, grouping_by, mapping, summing, to_list
from dstream.engine.versions import version
from dstream.pipeline import Pipeline
from reducers import grouping_by_to_imap, to_files, to_ilist, to_imap
from sources import text_files

WORDS = ["the", "whale", "and", "the", "sea", "and", "the", "ship", "of", "the", "whale"]
NUMBERS = [n * 7919 % 1009 for n in range(2000)]


def main() -> int:
    """Run the programs; the exit code is 1 if one of them gave something else."""
    started, wrong = time.monotonic(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        ds.connect("local[2]", storage=Path(folder) / "data", progress=False) as ctx,
    ):
        for program in (streams, groups, sorts, joins, placed, frames, collections, failures, cancelled, files, jobs):
            try:
                is_right = program(ctx, Path(folder))
            except Exception as error:
                is_right = False
                print(f"{program.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
            wrong += [] if is_right else [program.__name__]
    found = f"wrong: {', '.join(wrong)}" if wrong else "all right"
    print(f"Spark {version()}: {found}, {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


def streams(ctx: ds.Context, folder: Path) -> bool:
    """Steps, an order, short circuits, positions, windows."""
    numbers = ctx.stream(NUMBERS, 5)
    return (
        numbers.map(lambda n: n + 1).filter(lambda n: n % 2).to_list() == [n + 1 for n in NUMBERS if not n % 2]
        and numbers.flat_map(lambda n: [n] * (n % 3)).count() == sum(n % 3 for n in NUMBERS)
        and numbers.find_first().get() == NUMBERS[0]
        and numbers.limit(7).to_list() == NUMBERS[:7]
        and numbers.zip(ctx.stream(NUMBERS, 3)).all_match(lambda pair: pair[0] == pair[1])
        and list(numbers) == NUMBERS
    )


def groups(ctx: ds.Context, folder: Path) -> bool:
    """Groups with collectors, distinct items, and text counted."""
    by_rest = grouping_by(lambda n: n % 7, mapping(lambda n: n * 2, to_list()))
    expected = {rest: [n * 2 for n in NUMBERS if n % 7 == rest] for rest in range(7)}
    return (
        ctx.stream(NUMBERS, 4).collect(by_rest) == expected
        and ctx.stream(WORDS, 3).collect(grouping_by(str.upper, counting())) == Counter(map(str.upper, WORDS))
        and ctx.stream(WORDS, 3).distinct().to_list() == list(dict.fromkeys(WORDS))
        and ctx.stream(NUMBERS, 3).collect(summing(lambda n: n)) == sum(NUMBERS)
        and ctx.stream([1, 2, 3, 6], 3).collect(averaging(lambda n: n)) == 3.0
    )


def sorts(ctx: ds.Context, folder: Path) -> bool:
    """Stable sorts by a key, both ways, and of text."""
    return (
        ctx.stream(NUMBERS, 5).sorted().to_list() == sorted(NUMBERS)
        and ctx.stream(NUMBERS, 5).sorted(key=lambda n: n % 10).to_list() == sorted(NUMBERS, key=lambda n: n % 10)
        and ctx.stream(WORDS, 4).sorted(key=len, reverse=True).to_list() == sorted(WORDS, key=len, reverse=True)
    )


def joins(ctx: ds.Context, folder: Path) -> bool:
    """Inner joins through a shuffle."""
    left, right = [(n % 50, n) for n in NUMBERS[:300]], [(n, str(n)) for n in range(40)]
    joined = ctx.stream(left, 3).join(ctx.stream(right, 4))
    expected = [(one[0], (one[1], two[1])) for one, two in itertools.product(left, right) if one[0] == two[0]]
    return sorted((key, tuple(pair)) for key, pair in joined.to_list()) == sorted(expected)


def placed(ctx: ds.Context, folder: Path) -> bool:
    """Each key in one partition, whose items keep their order, for several numbers of partitions."""
    for count in (1, 2, 17):
        parts = [list(part) for part in ctx.stream(NUMBERS, 3).partition_by(count, key=lambda n: n % 20).partitions()]
        keys = [key for part in parts for key in {n % 20 for n in part}]
        if (
            len(parts) != count
            or sorted(keys) != list(range(20))
            or Counter(itertools.chain(*parts)) != Counter(NUMBERS)
        ):
            return False
    return True


def frames(ctx: ds.Context, folder: Path) -> bool:
    """Rows of a DataFrame, as rows and in columns, and back."""
    frame = ctx.spark.createDataFrame(
        [(1, "a", [1.5], {"k": b"v"}), (2, None, [], {})], "n int, s string, f array<double>, m map<string, binary>"
    )
    rows: list[Any] = ctx.from_df(frame).to_list()
    back = ctx.stream([(1, "x"), (2, "y")], 2).map(lambda pair: {"n": pair[0], "s": pair[1]}).to_df()
    return (
        [(row.n, row["s"], row.f, row.m) for row in rows] == [(1, "a", [1.5], {"k": b"v"}), (2, None, [], {})]
        and ctx.from_df(frame).map_to_int(lambda row: row.n).sum() == 3
        and sorted(map(tuple, back.collect())) == [(1, "x"), (2, "y")]
    )


def collections(ctx: ds.Context, folder: Path) -> bool:
    """Maps and lists that are written, read and streamed."""
    counts: Any = ctx.stream(WORDS, 3).collect(to_imap("counts", lambda w: w, lambda w: 1, operator.add))
    lengths: Any = ctx.stream(WORDS, 3).collect(grouping_by_to_imap("lengths", len, counting()))
    words: Any = ctx.stream(WORDS, 3).collect(to_ilist("words"))
    return (
        dict(counts.stream().map(lambda entry: (entry.key, entry.value)).to_list()) == Counter(WORDS)
        and lengths[5] == Counter(map(len, WORDS))[5]
        and words.copy() == WORDS
    )


def failures(ctx: ds.Context, folder: Path) -> bool:
    """The user's own exception, with the item to blame."""
    try:
        ctx.stream([4, 2, 0], 3).map(lambda n: 8 // n).to_list()
    except ZeroDivisionError as error:
        failure = ds.failure(error)
        return failure is not None and failure.item == 0
    return False


def cancelled(ctx: ds.Context, folder: Path) -> bool:
    """A job that runs on workers and would take ten minutes."""
    pipeline = Pipeline()
    pipeline.read_from(text_files(str(Path(__file__)))).map(_slow).write_to(to_ilist("never"))
    started = time.monotonic()
    job = ctx.new_job(pipeline, name="slow")
    job.wait_for(ds.JobStatus.RUNNING, timeout=60)
    job.cancel()
    with suppress(CancelledError):
        job.join(60)
    return job.status is ds.JobStatus.CANCELLED and time.monotonic() - started < 60


def _slow(line: str) -> str:
    time.sleep(5)
    return line


def files(ctx: ds.Context, folder: Path) -> bool:
    """Text that is written and read in parts."""
    ctx.stream(map(str, NUMBERS), 3).collect(to_files(folder / "numbers"))
    return Counter(ctx.read(text_files(str(folder / "numbers" / "*"))).to_list()) == Counter(map(str, NUMBERS))


def jobs(ctx: ds.Context, folder: Path) -> bool:
    """A job with a join of two sources and two sinks."""
    pipeline = Pipeline()
    numbers = pipeline.read_from(text_files(str(folder / "numbers" / "*"))).map(int)
    numbers.grouping_key(lambda n: n % 5).aggregate(counting()).write_to(to_imap("by-rest"))
    numbers.write_to(to_ilist("numbers"))
    ctx.new_job(pipeline, name="numbers").join()
    return dict(ctx.get_map("by-rest").items()) == Counter(n % 5 for n in NUMBERS) and sorted(
        ctx.get_list("numbers").copy()
    ) == sorted(NUMBERS)


if __name__ == "__main__":
    sys.exit(main())
