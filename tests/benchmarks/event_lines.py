"""U8: events in lines of JSON, counted by key in tumbling windows, beside engines of streams with equal results.

Ours runs by `connect()` in a new process: as a job that watches a folder, which has two files, and as a stream of these
files that ends. Structured Streaming reads the same lines in ten files, of which a batch has two. The last event of
each file is hours later and has a key of its own: it moves the watermark behind all windows of the others.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import dstream as ds
from collectors import counting
from dstream.windows import tumbling
from reducers import to_ilist
from sources import json_lines, watch_files
from tests.benchmarks import stateful_rivals as rivals
from tests.benchmarks.event_files import LAG
from tests.benchmarks.harness import Bench, Case, Contestant, Detail
from tests.benchmarks.process_tree import cpu_seconds

__all__ = ["cases"]

_SIZE, _KEYS, _FILES, _PIECES = 10_000, 1_000, 2, 10
_FIRST, _PER_SECOND = 1_700_000_000_000, 10_000
_LAST = "last"
_PATIENCE = 10
"""Of Bytewax so many times the lag: its watermarks go on with the clock of the machine, which may be busy."""
_LAST_EVENT = (_FIRST + 10_000_000, _LAST, 0)

Counts = Counter[tuple[int, str]]
"""How many events there are, by the start of the window and the key."""


def cases(bench: Bench) -> list[Case]:
    """Return the tumbling count of two million events."""
    count = bench.size(2_000_000, 60_000)
    folder = _written(bench.folder, count)
    expected = cache(lambda: _counted(folder))

    def ours(kind: str) -> Contestant:
        run = partial(_in_new_process, kind, folder)
        detail = cache(lambda: run(len(expected())))
        return Contestant(
            f"dstream, {kind}",
            lambda: run(len(expected())),
            check=lambda: detail()[1],
            detail=lambda: Detail(f"{count / detail()[0]:,.0f} events a CPU s behind the imports"),
        )

    spark = bench.spark.newSession()
    return [
        Case(
            "U8",
            f"tumbling count of JSON lines, {_KEYS:,} keys, {count:,} events",
            ours("a job"),
            [
                _rival("Structured Streaming, SQL window", 0.5, lambda: _by_spark(spark, folder), uses_spark=True),
                *([_rival("Bytewax", 0.5, lambda: _by_bytewax(folder))] if _has_bytewax() else []),
                _rival("plain Python", None, lambda: _counted(folder)),
            ],
            also=[ours("a stream that ends")],
        )
    ]


def _rival(name: str, goal: float | None, run: Callable[[], Counts], *, uses_spark: bool = False) -> Contestant:
    return Contestant(name, run, goal, uses_spark=uses_spark, check=lambda: _digest(run()))


def _digest(counts: Counts) -> int:
    """Return a number that tells counts from others."""
    return sum(start // 1000 * count + sum(map(ord, key)) * count * count for (start, key), count in counts.items())


def _written(below: Path, count: int) -> Path:
    """Return a folder with the events as two files, and as ten; it is made if it is not there yet."""
    folder = below / f"event-lines-{count}"
    if folder.exists():
        return folder
    unfinished, lines, last = Path(mkdtemp(dir=below)), list(map(_line, _events(count))), _line(_LAST_EVENT)
    share = count // _PIECES
    for number in range(_FILES):
        _write(unfinished / "whole" / f"{number}.jsonl", [*lines[number::_FILES], last])
    for number in range(_PIECES):
        piece = lines[number * share : (number + 1) * share]
        _write(unfinished / "pieces" / f"{number}.jsonl", piece if number < _PIECES - 2 else [*piece, last])
    unfinished.rename(folder)
    return folder


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines))


def _events(count: int) -> Iterator[tuple[int, str, int]]:
    """Give events in the order of the clock, each up to half of the lag late."""
    chance = random.Random(7)
    for number in range(count):
        due = _FIRST + number * 1000 // _PER_SECOND
        yield due - chance.randrange(LAG // 2), f"k{chance.randrange(_KEYS)}", chance.randrange(1000)


def _line(event: tuple[int, str, int]) -> str:
    return json.dumps(dict(zip(("ts", "key", "value"), event, strict=True))) + "\n"


def _lines(folder: Path) -> Iterator[str]:
    for path in sorted((folder / "whole").iterdir()):
        with path.open() as file:
            yield from file


def _in_turns(folder: Path) -> Iterator[str]:
    """Give a line of each file in turns: as partitions, Bytewax reads one ahead, and drops events of the other one."""
    files = [path.read_text().splitlines() for path in sorted((folder / "whole").iterdir())]
    return chain.from_iterable(zip(*files, strict=True))


def _counted(folder: Path) -> Counts:
    """Count in a loop."""
    events = map(json.loads, _lines(folder))
    counts = Counter((event["ts"] // _SIZE * _SIZE, event["key"]) for event in events)
    return _without_the_last(counts)


def _without_the_last(counts: Counts) -> Counts:
    return Counter({place: count for place, count in counts.items() if place[1] != _LAST})


def _by_spark(spark: Any, folder: Path) -> Counts:
    """Run a query over the pieces, two in a batch."""
    from pyspark.sql import functions as F

    results = Path(mkdtemp(dir=folder.parent))
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    read = spark.readStream.schema("ts long, key string, value long").option("maxFilesPerTrigger", 2)
    stream = read.json(str(folder / "pieces")).withColumn("time", F.timestamp_millis("ts"))
    windows = rivals.native_counts(_SIZE)(stream.withWatermark("time", f"{LAG} milliseconds")).writeStream
    query = windows.format("parquet").outputMode("append").trigger(availableNow=True)
    query.option("checkpointLocation", f"{results}-log").start(str(results)).awaitTermination()
    rows = spark.read.parquet(str(results)).collect()
    for path in (results, Path(f"{results}-log")):
        shutil.rmtree(path, ignore_errors=True)
    return _without_the_last(Counter({(row["start"], row["key"]): int(row["result"]) for row in rows}))


def _has_bytewax() -> bool:
    """Say whether Bytewax is installed, which has no wheels for each Python."""
    try:
        import bytewax  # noqa: F401
    except ImportError:
        return False
    return True


def _by_bytewax(folder: Path) -> Counts:
    """Run a dataflow over both files."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators.windowing import EventClock, TumblingWindower, count_window
    from bytewax.testing import TestingSink, TestingSource, run_main

    zero, found = datetime(1970, 1, 1, tzinfo=UTC), list[Any]()
    flow = Dataflow("counts")
    events = op.map("events", op.input("lines", flow, TestingSource(_in_turns(folder), 1_000)), json.loads)
    clock = EventClock(
        lambda event: zero + timedelta(milliseconds=event["ts"]), timedelta(milliseconds=_PATIENCE * LAG)
    )
    windower = TumblingWindower(timedelta(milliseconds=_SIZE), zero)
    counted = count_window("counted", events, clock, windower, lambda event: event["key"])
    op.output("found", counted.down, TestingSink(found))
    run_main(flow)
    return _without_the_last(Counter({(window * _SIZE, key): count for key, (window, count) in found}))


def _in_new_process(kind: str, folder: Path, results: int) -> tuple[float, int]:
    """Return the CPU seconds of our work, and a number that tells its results, in a process that ends with it.

    It keeps byte code, as processes of users do: to compile our modules takes as long as to count.
    """
    command = [sys.executable, "-m", __name__, kind, str(folder), str(results)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder.parent / "byte-code")
    ran = subprocess.run(command, check=True, capture_output=True, env=environment)
    seconds, digest = json.loads(ran.stdout)
    return seconds, digest


def _as_a_job(folder: Path, results: int) -> Counts:
    """Run a job until it has found all windows, and the two that are open for ever."""
    storage = mkdtemp(dir=folder.parent)
    with ds.connect(storage=storage) as ctx:
        pipeline = ds.Pipeline()
        events = pipeline.read_from(watch_files(folder / "whole", format="json"))
        windows = events.add_timestamps(lambda event: event["ts"], LAG).grouping_key(lambda event: event["key"])
        counts = windows.window(tumbling(_SIZE)).aggregate(counting(), lambda *window: window)
        counts.write_to(to_ilist("counts"))
        job = ctx.new_job(pipeline)
        while not job.status.has_ended and len(ctx.get_list("counts")) < results:
            time.sleep(0.1)
        job.cancel()
        found = ctx.get_list("counts").copy()
    shutil.rmtree(storage)
    return Counter({(start, key): count for start, _, key, count in found})


def _as_a_stream(folder: Path, results: int) -> Counts:
    """Read both files once."""
    with ds.connect() as ctx:
        events = ctx.read(json_lines(folder / "whole"))
        of_event = {"timestamp": lambda event: event["ts"], "key": lambda event: event["key"]}
        windows = events.aggregate_by_window(tumbling(_SIZE), counting(), **of_event)
        return _without_the_last(Counter({(each.start, each.key): each.result for each in windows}))


_OURS = {"a job": _as_a_job, "a stream that ends": _as_a_stream}


def _main(kind: str, folder: str, results: str) -> None:
    """Run one of ours, and print what `_in_new_process` returns."""
    before = cpu_seconds()
    found = _OURS[kind](Path(folder), int(results))
    print(json.dumps([cpu_seconds() - before, _digest(found)]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
