"""P1 to P4: what pipelines and jobs cost beside streams that do the same, and co-groups beside those of RDDs.

Their storage is a lake in a folder of the local disk. What is written replaces what the run before wrote.
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import operator
import os
import shutil
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dstream as ds
from collectors import collecting_and_then, counting, frequencies, mapping, to_bags
from dstream import Entry, Pipeline
from reducers import grouping_by_to_imap, replacing, to_ilist, to_imap, to_nothing
from sources import Range, items, text_files
from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Case, Contestant, Detail

__all__ = [
    "co_groups",
    "context_of",
    "documents",
    "forks",
    "inverted_index",
    "scores",
    "small_pipelines",
    "tf_idf",
    "words",
]

_DOCUMENTS = 100
_Scores = list[tuple[float, str]]


def tf_idf(bench: Bench) -> list[Case]:
    """Return P1: the inverted index of a hundred documents, by a pipeline and by the shortest way of streams."""
    megabytes = bench.size(100, 2)
    paths = documents(bench.folder, megabytes)
    ctx = context_of(bench, "tf-idf", on_spark=True)

    def pipeline() -> None:
        ctx.new_job(inverted_index(paths)).join()

    def stream() -> None:
        lines = ctx.read(text_files(paths, with_path=True))
        scored = collecting_and_then(
            mapping(operator.itemgetter(0), frequencies()), functools.partial(scores, len(paths))
        )
        lines.flat_map(words).collect(replacing(grouping_by_to_imap("index", operator.itemgetter(1), scored)))

    def some() -> list[Any]:
        index = ctx.get_map("index")
        found = sorted(index.keys())
        return [len(found), [(word, index[word]) for word in found[:: max(len(found) // 50, 1)]]]

    return [
        Case(
            "P1",
            f"TF-IDF, {megabytes} MB in {len(paths)} documents",
            Contestant("dstream pipeline", pipeline, check=some),
            [Contestant("dstream stream, grouping_by_to_imap()", stream, goal=1.3, check=some)],
        )
    ]


def inverted_index(paths: list[str]) -> Pipeline:
    """Return a pipeline that writes the scored documents of each word."""
    pipeline = Pipeline()
    total = pipeline.read_from(items(*paths)).aggregate(counting())
    holding = (
        pipeline.read_from(text_files(paths, with_path=True))
        .flat_map(words)
        .grouping_key(operator.itemgetter(1))
        .aggregate(mapping(operator.itemgetter(0), frequencies()))
    )
    one = (lambda entry: 0, lambda count: 0)
    scored = holding.hash_join(total, on=one, to=lambda entry, count: Entry(entry.key, scores(count, entry.value)))
    scored.write_to(replacing(to_imap("index")))
    return pipeline


def words(line: tuple[str, str]) -> list[tuple[str, str]]:
    """Return (document, word) for each word of a line."""
    document, text = line
    return [(document, word) for word in text.split()]


def scores(total: int, occurrences: dict[str, int]) -> _Scores:
    """Return (score, document) for the documents of a word, best first."""
    weight = math.log(total / len(occurrences))
    return sorted(((count * weight, document) for document, count in occurrences.items()), reverse=True)


def documents(folder: Path, megabytes: int) -> list[str]:
    """Return the corpus cut into files of about equal size."""
    below = folder / f"documents-{megabytes}mb"
    if not below.exists():
        unfinished = below.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        lines = corpus(folder, megabytes).read_text(encoding="ascii").splitlines(keepends=True)
        step = -(-len(lines) // _DOCUMENTS)
        for number, start in enumerate(range(0, len(lines), step)):
            (unfinished / f"{number:03d}.txt").write_text("".join(lines[start : start + step]), encoding="ascii")
        unfinished.rename(below)
    return [str(path) for path in sorted(below.glob("*.txt"))]


def forks(bench: Bench) -> list[Case]:
    """Return P2: two sinks that hang on one parsed log, beside one of them."""
    count = bench.size(1_000_000, 20_000)
    logs = {lines: _log(bench.folder, lines) for lines in (count, min(count, 100_000))}
    ctx = context_of(bench, "forks", on_spark=True)
    calls = bench.folder / "parsed.bin"

    def run(sinks: int, note: Path | None = None, lines: int = count) -> None:
        ctx.new_job(_log_with_sinks(sinks, logs[lines], note)).join()

    def failed() -> list[Any]:
        return list(ctx.get_list("failed"))

    return [
        Case(
            "P2",
            f"{count / 1e6:g} M lines of JSON",
            Contestant(
                "dstream, two sinks on one fork",
                functools.partial(run, 2),
                check=failed,
                detail=lambda: _called(functools.partial(run, 2), calls, min(count, 100_000)),
            ),
            [Contestant("dstream, one of the sinks", functools.partial(run, 1), goal=1.15, check=failed)],
        )
    ]


def _log_with_sinks(sinks: int, log: Path, note: Path | None) -> Pipeline:
    pipeline = Pipeline()
    parsed = pipeline.read_from(text_files(log)).map(functools.partial(_parsed, note))
    parsed.filter(lambda request: request["status"] >= 500).write_to(replacing(to_ilist("failed")))
    if sinks > 1:
        parsed.filter(lambda request: request["ms"] > 1000).write_to(replacing(to_ilist("slow")))
    return pipeline


def _parsed(note: Path | None, line: str) -> dict[str, Any]:
    if note is not None:
        with note.open("ab") as file:
            file.write(b".")
    request: dict[str, Any] = json.loads(line)
    return request


def _log(folder: Path, lines: int) -> Path:
    """Return a log of requests, made if it is not there yet: one in a hundred failed or was slow."""
    path = folder / f"requests-{lines}.jsonl"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        with unfinished.open("w") as log:
            for number in range(lines):
                status = 500 if number % 97 == 0 else 200
                request = {"path": f"/page/{number % 1000}", "status": status, "ms": number % 1009, "host": "10.0.0.1"}
                log.write(json.dumps(request) + "\n")
        unfinished.rename(path)
    return path


def _called(run: Callable[..., None], note: Path, count: int) -> Detail:
    """Run once more with the shared step taking notes."""
    note.write_bytes(b"")
    run(note, count)
    calls = note.stat().st_size
    os.remove(note)
    return Detail(f"the shared step was called {calls:,} times for {count:,} items", calls == count)


def co_groups(bench: Bench) -> list[Case]:
    """Return P3: all items of each key of three inputs; they end on the workers, as those of a join in B5."""
    count = bench.size(1_000_000, 20_000)
    ctx = context_of(bench, "co-groups", on_spark=True)
    context = bench.spark.sparkContext

    def pipeline(size: int, sink: Any) -> None:
        made = Pipeline()
        first, *others = [
            made.read_from(Range(0, size)).map(functools.partial(_pair, name)).grouping_key(operator.itemgetter(0))
            for name in "abc"
        ]
        first.co_aggregate(*others, op=to_bags(3)).write_to(sink)
        ctx.new_job(made).join()

    def rdd(size: int) -> Any:
        first, *others = [context.range(size).map(functools.partial(_pair, name)) for name in "abc"]
        return first.groupWith(*others)

    def checked() -> list[Any]:
        pipeline(1000, replacing(to_ilist("groups")))
        return sorted(
            (entry.key, *([value for _, value in bag] for bag in entry.value)) for entry in ctx.get_list("groups")
        )

    return [
        Case(
            "P3",
            f"co-group of 3 x {count / 1e6:g} M",
            Contestant("dstream co_aggregate(op=to_bags(3))", lambda: pipeline(count, to_nothing()), check=checked),
            [
                Contestant(
                    "RDD groupWith",
                    lambda: rdd(count).foreachPartition(_walk),
                    goal=0.5,
                    check=lambda: sorted((key, *map(list, bags)) for key, bags in rdd(1000).collect()),
                )
            ],
        )
    ]


def _pair(name: str, number: int) -> tuple[int, str]:
    return number * 2_654_435_761 % 2**32, f"{name}-{number}"


def _walk(groups: Iterable[Any]) -> None:
    deque(groups, maxlen=0)


def small_pipelines(bench: Bench) -> list[Case]:
    """Return P4: what submitting a job of a thousand items costs beside the terminal operation of the same stream."""
    return [
        _submitting(bench, "Spark", bench.size(20, 2), on_spark=True),
        _submitting(bench, "local engine", bench.size(100, 5), on_spark=False),
    ]


_SMALL = list(range(1000))
_MORE = 0.010
"""How many seconds a job may take beyond the stream."""


def _submitting(bench: Bench, where: str, jobs: int, *, on_spark: bool) -> Case:
    ctx = context_of(bench, f"small-{'spark' if on_spark else 'local'}", on_spark=on_spark)

    def job() -> None:
        pipeline = Pipeline()
        stage = pipeline.read_from(items(*_SMALL)).map(lambda n: n + 1).filter(lambda n: n % 2 == 0)
        stage.write_to(replacing(to_ilist("small")))
        ctx.new_job(pipeline).join()

    def stream() -> None:
        ctx.stream(_SMALL).map(lambda n: n + 1).filter(lambda n: n % 2 == 0).collect(replacing(to_ilist("small")))

    def written() -> list[int]:
        return list(ctx.get_list("small"))

    return Case(
        "P4",
        f"a job of 1,000 items, {where}",
        Contestant(
            "dstream new_job().join()",
            job,
            jobs=jobs,
            uses_spark=on_spark,
            check=written,
            detail=lambda: _later(job, stream, jobs),
        ),
        [Contestant("dstream collect()", stream, jobs=jobs, uses_spark=on_spark, check=written)],
    )


def _later(job: Callable[[], None], stream: Callable[[], None], rounds: int) -> Detail:
    """Run both in turns; say how much later a job is done."""
    stream()
    differences = [_seconds(job) - _seconds(stream) for _ in range(rounds)]
    middle = statistics.median(differences)
    return Detail(f"{middle * 1000:.1f} ms later on the clock, goal {_MORE * 1000:.0f} ms", middle <= _MORE)


def _seconds(run: Callable[[], None]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def context_of(bench: Bench, name: str, *, on_spark: bool) -> ds.Context:
    """Return a context with a lake of its own, which is empty."""
    folder = bench.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    ctx = ds.connect(engine="spark" if on_spark else "local", storage=folder)
    atexit.register(ctx.close)
    return ctx
