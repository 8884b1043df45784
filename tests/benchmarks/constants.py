"""Measure the constants of `dstream.engine.auto.cost_model` on this machine: `python -m tests.benchmarks.constants`.

Each constant is the difference of two plans, for each item by which a large run differs from a small one. The table
shows it beside the stored one, and the ratio without the scale of this machine. `--spark` measures those of Spark, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import dstream as ds
import sources
from collectors import counting, grouping_by, summing
from dstream.engine.auto.cost_model import COSTS, MACHINE, machine_scale
from dstream.engine.inprocess import InProcessEngine
from dstream.operators.rows.batches import copies, dumps_items, loads_items
from dstream.stream.base import BaseStream

__all__ = ["main"]

SMALL, LARGE = 20_000, 120_000
_TIMES = 5

Measured = Iterator[tuple[str, float, float]]
"""The name of a constant, the measured seconds, and the stored ones."""


def called(item: Any) -> Any:
    """Return the item, in a way that is no expression."""
    while True:
        return item


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="store_true", help="measure the constants of Spark, too")
    given = parser.parse_args(arguments)
    scale = machine_scale()
    print(f"constants of {MACHINE}; this machine takes {scale:.2f} times as long")
    print(f"{'constant':<28} {'measured':>12} {'stored':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory(prefix="dstream-constants-") as folder:
        for name, seconds, stored in _all(Path(folder), with_spark=given.spark):
            ratio = seconds / scale / stored if stored else float("nan")
            print(f"{name:<28} {_shown(seconds):>12} {_shown(stored):>12} {ratio:>6.2f}", flush=True)


def _shown(seconds: float) -> str:
    return f"{seconds * 1e9:,.1f} ns" if abs(seconds) < 1e-4 else f"{seconds * 1e3:,.1f} ms"


def _all(folder: Path, *, with_spark: bool) -> Measured:
    with ds.connect(engine="local", storage="memory:") as ctx:
        ctx._engine, ctx._engine_name = InProcessEngine(2**30), InProcessEngine.name
        yield from _of_items(ctx)
        yield from _of_formats(ctx, folder)
        yield from _of_steps(ctx)
    if with_spark:
        yield from _of_spark()


Clock = Callable[[], float]
_CPU: Clock = time.process_time
"""The clock of measurements in this process: CPU time, which other programs on the machine do not change."""


def _best(run: Callable[[], Any], clock: Clock = _CPU) -> float:
    """Return the seconds of the quickest of some runs, after one that warms up."""
    run()
    gc.collect()
    gc.freeze()  # The data of the measurements would be looked through with each thousand objects that a run makes.
    return min(_once(run, clock) for _ in range(_TIMES))


def _once(run: Callable[[], Any], clock: Clock) -> float:
    start = clock()
    run()
    return clock() - start


def _each(run: Callable[[int], Any], clock: Clock = _CPU) -> float:
    """Return the seconds for each item by which a large run differs from a small one."""
    small, large = _best(lambda: run(SMALL), clock), _best(lambda: run(LARGE), clock)
    return (large - small) / (LARGE - SMALL)


def _of_items(ctx: ds.Context) -> Measured:
    def numbers(count: int) -> Any:
        return ctx.stream(range(count))

    def objects(count: int) -> Any:
        return ctx.stream([(1, "a")] * count)

    yield "plan", _best(lambda: ctx.stream([]).map(called).to_list()), COSTS.plan
    call = _each(lambda count: [called(item) for item in range(count)])
    yield "item", _each(lambda count: numbers(count).map(called).count()) - call, COSTS.item
    scalars = list(range(1000, 1000 + LARGE))
    yield "pickled_scalar", _each(lambda count: loads_items(dumps_items(scalars[:count]))), COSTS.pickled_scalar
    rows = [{"a": number, "b": str(number)} for number in range(LARGE)]
    yield "pickled_object", _each(lambda count: loads_items(dumps_items(rows[:count]))), COSTS.pickled_object
    yield "copied", _each(lambda count: copies(rows[:count])), COSTS.copied
    inlined = _each(lambda count: _mapped(objects(count), lambda pair: (pair[0], pair[1]), 5).map(called).count())
    inlined -= _each(lambda count: objects(count).map(called).count())
    yield "inlined", inlined / 5 / 3, COSTS.inlined
    columnar = _each(lambda count: _mapped(numbers(50 * count), lambda n: n * 2 + 1, 4).collect(summing(lambda n: n)))
    columnar -= _each(lambda count: numbers(50 * count).collect(summing(lambda n: n)))
    yield "columnar", columnar / 50 / 4 / 2, COSTS.columnar


def _mapped(stream: BaseStream[Any], fn: Callable[[Any], Any], times: int) -> Any:
    found: Any = stream
    for _ in range(times):
        found = found.map(fn)
    return found


# ------------------------------------------------------------------------------------------------------------- formats


def _of_formats(ctx: ds.Context, folder: Path) -> Measured:
    """Yield the cost of a byte and of an item of each format."""
    for maker, write in _WRITERS.items():
        paths = {count: folder / f"{maker}-{count}" for count in (SMALL, LARGE)}
        for count, path in paths.items():
            write(path, count)

        def read(count: int, maker: str = maker, paths: dict[int, Path] = paths) -> Any:
            return ctx.read(getattr(sources, maker)(str(paths[count])))

        stored = COSTS.formats[maker]
        item_bytes = paths[LARGE].stat().st_size / LARGE
        one_by_one = _each(lambda count, read=read: read(count).map(called).count())
        yield f"{maker}, an item of {item_bytes:.0f} bytes", one_by_one, stored.byte * item_bytes + stored.item
        if maker in _COLUMN:
            keep = _COLUMN[maker]
            # Of the large file alone: the small one may be read item by item.
            in_columns = _best(lambda read=read, keep=keep: read(LARGE).filter(keep).count()) / LARGE
            yield f"{maker}.column_byte", in_columns / item_bytes, stored.column_byte
        if maker == "parquet_rows":
            by_text = _each(lambda count, read=read: read(count).collect(grouping_by(lambda row: row["c"], counting())))
            yield "text_key", by_text - in_columns, COSTS.text_key


_COLUMN: dict[str, Callable[[Any], Any]] = {
    "text_files": lambda line: line != "",
    "csv_rows": lambda row: row["a"] != "3",
    "json_lines": lambda row: row["a"] != 3,
    "parquet_rows": lambda row: row["a"] != 3,
}
_ROW = "the quick brown fox jumps over the lazy dog, and then it runs\n"


def _rows(count: int) -> Iterator[dict[str, Any]]:
    return ({"a": number, "b": number * 0.5, "c": f"name{number % 100}"} for number in range(count))


def _write_text(path: Path, count: int) -> None:
    path.write_text(_ROW * count)


def _write_csv(path: Path, count: int) -> None:
    path.write_text("a,b,c\n" + "".join(f"{row['a']},{row['b']},{row['c']}\n" for row in _rows(count)))


def _write_json(path: Path, count: int) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in _rows(count)))


def _write_parquet(path: Path, count: int) -> None:
    pq.write_table(pa.Table.from_pylist(list(_rows(count))), path)


def _write_avro(path: Path, count: int) -> None:
    fields = [{"name": name, "type": kind} for name, kind in {"a": "long", "b": "double", "c": "string"}.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, _rows(count))


_WRITERS: dict[str, Callable[[Path, int], None]] = {
    "text_files": _write_text,
    "csv_rows": _write_csv,
    "json_lines": _write_json,
    "parquet_rows": _write_parquet,
    "avro_records": _write_avro,
}


# --------------------------------------------------------------------------------------------------------------- steps


def _of_steps(ctx: ds.Context) -> Measured:
    """Yield the cost of operations that look beyond one item: of objects, and where they take columns, of these."""
    pairs = [(number % 5_000, str(number)) for number in range(LARGE)]

    def objects(count: int) -> Any:
        return ctx.stream(pairs[:count])

    def numbers(count: int) -> Any:
        return ctx.stream(range(count))

    plain, in_columns = (
        _each(lambda count: objects(count).map(called).count()),
        _each(lambda count: numbers(count).count()),
    )
    for name, (apply, in_columns_too) in _STEPS.items():
        stored = COSTS.steps[name]
        yield (
            f"{name}.item",
            _each(lambda count, apply=apply: apply(objects(count), objects(count))) - plain,
            stored.item,
        )
        if in_columns_too is not None:
            taken = _each(lambda count, apply=in_columns_too: apply(numbers(count), numbers(count))) - in_columns
            yield f"{name}.columnar", taken, stored.columnar


_Step = Callable[[Any, Any], Any]
_STEPS: dict[str, tuple[_Step, _Step | None]] = {
    "Sorted": (
        lambda left, right: left.sorted(key=lambda pair: called(pair)[1]).map(called).count(),
        lambda left, right: left.sorted(key=lambda n: -n).count(),
    ),
    "Distinct": (
        lambda left, right: left.distinct().map(called).count(),
        lambda left, right: left.distinct().count(),
    ),
    "Collect": (
        lambda left, right: left.map(called).collect(grouping_by(lambda pair: pair[0], counting())),
        lambda left, right: left.collect(grouping_by(lambda n: n % 5_000, counting())),
    ),
    "Zip": (lambda left, right: left.zip(right).map(called).count(), None),
    "Join": (lambda left, right: left.join(right, on=lambda pair: pair[1]).map(called).count(), None),
}


# --------------------------------------------------------------------------------------------------------------- Spark


def _of_spark() -> Measured:
    wall = time.perf_counter
    yield "start", _start_seconds(), COSTS.start
    with ds.connect("local[2]", storage="memory:") as ctx:

        def objects(count: int) -> Any:
            return ctx.stream([(1, "a")] * count, 2).map(called)

        for _ in range(20):
            objects(10).distinct().count()
        job = _best(lambda: objects(10).count(), wall)
        yield "job", job, COSTS.job
        yield "stage", (_best(lambda: objects(10).distinct().count(), wall) - job) / 2, COSTS.stage
        counted = _each(lambda count: objects(count).count(), wall)
        yield (
            "returned",
            _each(lambda count: objects(count).to_list(), wall) - counted - COSTS.pickled_object,
            COSTS.returned,
        )
        moved = _each(lambda count: objects(count).partition_by(2, key=called).count(), wall) - counted
        yield "shuffled", moved - COSTS.pickled_object, COSTS.shuffled


_FIRST_JOB = """
import time
import dstream as ds
start = time.perf_counter()
with ds.connect("local[2]") as ctx:
    assert ctx.stream(range(3)).map(str).to_list() == ["0", "1", "2"]
    print(time.perf_counter() - start)
"""


def _start_seconds() -> float:
    """Return the seconds from `connect` to the first result on Spark, in a program of its own."""
    return float(subprocess.run([sys.executable, "-c", _FIRST_JOB], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
