"""W1 to W10: the work that users write most, beside plain Python, a native DataFrame, Polars and DuckDB.

Each contestant is written as its own users would write it. Ours runs by `connect()` in a new process, as a script does,
with the CPU of its work alone in the note; on a Spark that runs; and in the process of the rivals, as warm as they are.
Results are compared, floats to nine digits. `python -m tests.benchmarks.usual` measures the last of these alone.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import heapq
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import dstream as ds
from collectors import all_of, averaging, counting, frequencies, grouping_by, summing
from dstream.windows import tumbling
from reducers import replacing, to_files
from sources import csv_rows, json_lines, parquet_rows, text_files
from tests.benchmarks.corpus import SCHEMA, Order, usual_file
from tests.benchmarks.harness import Bench, Case, Contestant, Detail
from tests.benchmarks.process_tree import cpu_seconds

# Rivals are loaded where they run: a new process of ours has no use for them.
if TYPE_CHECKING:
    import polars as pl

__all__ = ["CODES", "cases"]


def _words(ctx: ds.Context, data: Data) -> Any:
    words = ctx.read(text_files(data.path)).flat_map(lambda line: re.findall(r"\w+", line.lower()))
    return words.collect(frequencies())


def _words_by_hand(data: Data) -> Any:
    found: Counter[str] = Counter()
    with data.path.open(encoding="utf-8") as lines:
        for line in lines:
            found.update(re.findall(r"\w+", line.lower()))
    return found


def _words_by_polars(table: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    words = pl.col("value").str.to_lowercase().str.extract_all(r"\w+").explode()
    return table.select(words).group_by("value").len()


def _narrow(ctx: ds.Context, data: Data) -> Any:
    return ctx.stream(range(data.size)).map(lambda x: x * 3 + 1).filter(lambda x: x % 2 == 0).collect(summing())


def _averages(ctx: ds.Context, data: Data) -> Any:
    records = ctx.stream(range(data.size)).map(lambda n: (n * 7919 % 50_000, n % 1000))
    return records.collect(grouping_by(lambda record: record[0], averaging(lambda record: record[1])))


def _sums(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    sums: dict[Any, list[Any]] = defaultdict(lambda: [0, 0])
    for key, value in pairs:
        total = sums[key]
        total[0] += 1
        total[1] += value
    return sums


def _means(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, float]:
    return {key: total / count for key, (count, total) in _sums(pairs).items()}


def _sorted(ctx: ds.Context, data: Data) -> Any:
    return ctx.stream(range(data.size)).sorted(key=lambda n: n * 2_654_435_761 % 2**32).to_list()


def _first(ctx: ds.Context, data: Data) -> Any:
    return ctx.stream(range(data.size)).sorted(key=lambda n: n * 2_654_435_761 % 2**32).limit(10).to_list()


def _joined(ctx: ds.Context, data: Data) -> Any:
    left, right = (ctx.stream(range(data.size)).map(lambda n: (n * 2_654_435_761 % 2**32, n)) for _ in range(2))
    return left.join(right).map(lambda entry: entry.value[0] + entry.value[1]).collect(summing())


def _joined_by_hand(data: Data) -> int:
    held = {n * 2_654_435_761 % 2**32: n for n in range(data.size)}
    others = ((n * 2_654_435_761 % 2**32, n) for n in range(data.size))
    return sum(held[key] + n for key, n in others if key in held)


def _joined_rows(ctx: ds.Context, data: Data) -> Any:
    left, right = (ctx.read(parquet_rows(data.path)) for _ in range(2))
    both = left.join(right.filter(lambda row: row["shop"] > 0), on=lambda row: row["customer"])
    return both.map(lambda entry: entry.value[0]["amount"] + entry.value[1]["amount"]).collect(summing())


def _joined_rows_by_hand(data: Data) -> int:
    left, right = (pq.read_table(data.path, columns=["customer", "shop", "amount"]).to_pylist() for _ in range(2))
    held = {row["customer"]: row for row in right if row["shop"] > 0}
    return sum(row["amount"] + held[row["customer"]]["amount"] for row in left if row["customer"] in held)


def _report(ctx: ds.Context, data: Data) -> Any:
    source = csv_rows(data.path, Order) if data.path.suffix == ".csv" else parquet_rows(data.path, Order)
    pairs = ctx.read(source).filter(lambda order: order.amount >= 100).map(lambda order: (order.shop, order.price))
    entries = pairs.aggregate_by_key(all_of(counting(), averaging()))
    rows = entries.map(lambda entry: {"shop": entry.key, "n": entry.value[0], "price": entry.value[1]})
    paths = rows.collect(replacing(to_files(data.path.with_name("usual-ours"), format="parquet")))
    # Not by `read_table`, which loads pandas: reading the result is no part of the work, and rivals do not.
    written = pa.concat_tables([pq.ParquetFile(path).read(["shop", "n", "price"]) for path in paths])
    return _result(zip(*(column.to_pylist() for column in written.columns), strict=True))


def _report_by_hand(data: Data) -> Any:
    found = _sums((order.shop, order.price) for order in _orders_by_hand(data) if order.amount >= 100)
    rows = {key: (n, total / n) for key, (n, total) in found.items()}
    pq.write_table(
        pa.Table.from_pylist([{"shop": key, "n": n, "price": mean} for key, (n, mean) in rows.items()]), data.out
    )
    return rows


def _orders_by_hand(data: Data) -> Iterator[Order]:
    if data.path.suffix == ".parquet":
        yield from (Order(**row) for row in pq.read_table(data.path).to_pylist())
        return
    with data.path.open(newline="") as file:
        for row in csv.DictReader(file):
            yield Order(int(row["id"]), int(row["shop"]), row["customer"], int(row["amount"]), float(row["price"]))


def _requests(ctx: ds.Context, data: Data) -> Any:
    shops = ctx.read(json_lines(data.path)).map(lambda row: re.search(r"/(\w+)/item/", row["request"]).group(1))  # type: ignore[union-attr]
    return shops.collect(grouping_by(lambda shop: shop, counting()))


def _requests_by_hand(data: Data) -> Any:
    with data.path.open() as lines:
        return Counter(re.search(r"/(\w+)/item/", json.loads(line)["request"]).group(1) for line in lines)  # type: ignore[union-attr]


def _requests_by_polars(table: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    return table.group_by(pl.col("request").str.extract(r"/(\w+)/item/", 1)).len()


def _tumbling(ctx: ds.Context, data: Data) -> Any:
    events = ctx.stream(range(data.size)).map(lambda n: (n * 37 % 50, n * 20))
    windows = events.aggregate_by_window(tumbling(10_000), counting(), timestamp=itemgetter(1), key=itemgetter(0))
    return {each.start // 200 + each.key: each.result for each in windows}


def _lines(data: Data) -> Iterator[str]:
    with data.path.open(encoding="utf-8") as lines:
        yield from (line.removesuffix("\n") for line in lines)


def _skewed(ctx: ds.Context, data: Data) -> Any:
    rows = ctx.read(parquet_rows(data.path))
    values = all_of(counting(), averaging(lambda row: row["amount"]))
    return rows.collect(grouping_by(lambda row: row["shop"], values))


def _skewed_averages(ctx: ds.Context, data: Data) -> Any:
    rows = ctx.read(parquet_rows(data.path))
    return rows.collect(grouping_by(lambda row: row["shop"], averaging(lambda row: row["amount"])))


def _rows_by_hand(data: Data) -> list[dict[str, Any]]:
    return pq.read_table(data.path, columns=["shop", "amount"]).to_pylist()


def _skewed_by_hand(data: Data) -> dict[int, tuple[int, float]]:
    sums = _sums((row["shop"], row["amount"]) for row in _rows_by_hand(data))
    return {key: (n, total / n) for key, (n, total) in sums.items()}


@dataclass(frozen=True)
class Data:
    """The data of some work: numbers up to a size, or a file."""

    path: Path
    size: int

    @property
    def out(self) -> Path:
        """A file for results."""
        return self.path.with_name("usual-out.parquet")


@dataclass(frozen=True)
class _Work:
    """Some work; in SQL its file is the table `data`, and its numbers are `{numbers}`.

    Attributes:
        full: the size at a scale of 1.
        kind: the name of its file, if it has one.
        polars: takes the table; None: Polars runs the SQL too.
    """

    code: str
    title: str
    full: int
    kind: str
    ours: Callable[[ds.Context, Data], Any]
    plain: Callable[[Data], Any]
    sql: str
    polars: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None

    def by_spark(self, spark: Any, data: Data) -> Any:
        """Run the SQL on Spark."""
        readers = {".txt": spark.read.text, ".parquet": spark.read.parquet, ".jsonl": spark.read.json}
        readers[".csv"] = functools.partial(spark.read.csv, header=True, schema=SCHEMA)
        if self.kind:
            readers[data.path.suffix](str(data.path)).createOrReplaceTempView("data")
        query = self.sql.format(numbers=f"range(0, {data.size})", raw="r", unnest="explode")
        return self._finished(spark.sql(query).toArrow(), data)

    def by_polars(self, data: Data) -> Any:
        """Run the SQL, or expressions, in Polars."""
        import polars as pl

        readers: dict[str, Any] = {".parquet": pl.scan_parquet, ".jsonl": pl.scan_ndjson, ".csv": pl.scan_csv}
        lines = {"has_header": False, "new_columns": ["value"], "separator": "\t", "quote_char": None}
        readers[".txt"] = functools.partial(pl.scan_csv, **lines)
        table = readers[data.path.suffix](data.path) if self.kind else pl.select(id=pl.int_range(data.size)).lazy()
        sql = pl.SQLContext(data=table, numbers=table)
        query = sql.execute(self.sql.format(numbers="numbers")) if self.polars is None else self.polars(table)
        return self._finished(query.collect().to_arrow(), data)

    def by_duckdb(self, data: Data) -> Any:
        """Run the SQL in DuckDB."""
        import duckdb

        connection = duckdb.connect()
        if self.kind:
            lines = "columns={'value': 'VARCHAR'}, delim='\t', quote='', escape='', header=false"
            source = f"read_csv('{data.path}', {lines})" if data.path.suffix == ".txt" else f"'{data.path}'"
            connection.execute(f"CREATE VIEW data AS FROM {source}")
        query = self.sql.format(numbers=f"range({data.size}) t(id)", raw="", unnest="unnest")
        return self._finished(connection.sql(query).to_arrow_table(), data)

    def _finished(self, table: pa.Table, data: Data) -> Any:
        if self.ours is _report:
            pq.write_table(table, data.out)
        return _result(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _result(rows: Iterable[Any]) -> Any:
    """Return the only value of rows, the values of their only column, or a dict by the first one."""
    found = [tuple(row) for row in rows]
    if len(found[0]) == 1:
        return found[0][0] if len(found) == 1 else [value for (value,) in found]
    return {row[0]: row[1] if len(row) == 2 else row[1:] for row in found}


# One line for each contestant shows them beside each other.
# fmt: off
_BY_HASH = "ORDER BY id * 2654435761 % 4294967296"
_SIDE = "SELECT id * 2654435761 % 4294967296 AS k, id AS v FROM {numbers}"
_REPORTED = "SELECT shop, count(*) AS n, avg(price) AS price FROM data WHERE amount >= 100 GROUP BY shop"
_WORKS = [
    _Work("W1", "words of text, MB", 30, "words.txt", _words, _words_by_hand,
          "SELECT word, count(*) FROM (SELECT {unnest}(regexp_extract_all(lower(value), {raw}'[\\pL\\pN_]+', 0)) "
          "AS word FROM data) GROUP BY word", _words_by_polars),
    _Work("W2", "narrow ints", 10_000_000, "", _narrow,
          lambda data: sum(x for x in (n * 3 + 1 for n in range(data.size)) if x % 2 == 0),
          "SELECT sum(id * 3 + 1) FROM {numbers} WHERE (id * 3 + 1) % 2 = 0"),
    _Work("W3", "average by key of objects", 2_500_000, "", _averages,
          lambda data: _means((n * 7919 % 50_000, n % 1000) for n in range(data.size)),
          "SELECT k, avg(v) FROM (SELECT id * 7919 % 50000 AS k, id % 1000 AS v FROM {numbers}) GROUP BY k"),
    _Work("W4", "sort by a key", 1_000_000, "", _sorted,
          lambda data: sorted(range(data.size), key=lambda n: n * 2_654_435_761 % 2**32),
          f"SELECT id FROM {{numbers}} {_BY_HASH}"),
    _Work("W4", "first ten by a key", 1_000_000, "", _first,
          lambda data: heapq.nsmallest(10, range(data.size), key=lambda n: n * 2_654_435_761 % 2**32),
          f"SELECT id FROM {{numbers}} {_BY_HASH} LIMIT 10"),
    _Work("W5", "join of ints, sum", 500_000, "", _joined, _joined_by_hand,
          f"SELECT sum(l.v + r.v) FROM ({_SIDE}) AS l JOIN ({_SIDE}) AS r ON l.k = r.k"),
    _Work("W5p", "join of Parquet rows on a text, sum", 500_000, "orders.parquet", _joined_rows, _joined_rows_by_hand,
          "SELECT sum(l.amount + r.amount) FROM data AS l JOIN (SELECT * FROM data WHERE shop > 0) AS r "
          "ON l.customer = r.customer"),
    _Work("W6", "CSV, filter, two aggregates, Parquet", 500_000, "orders.csv", _report, _report_by_hand, _REPORTED),
    _Work("W6p", "Parquet, filter, two aggregates", 500_000, "orders.parquet", _report, _report_by_hand, _REPORTED),
    _Work("W7", "JSON lines, a regex, group", 125_000, "requests.jsonl", _requests, _requests_by_hand,
          "SELECT k, count(*) FROM (SELECT regexp_extract(request, {raw}'/(\\w+)/item/', 1) AS k FROM data) GROUP BY k",
          _requests_by_polars),
    _Work("W8", "events, tumbling count by key", 500_000, "", _tumbling,
          lambda data: Counter(t // 10_000 * 50 + k for k, t in ((n * 37 % 50, n * 20) for n in range(data.size))),
          "SELECT k, count(*) FROM "
          "(SELECT CAST((id - id % 500) / 10 AS BIGINT) + id * 37 % 50 AS k FROM {numbers}) GROUP BY k"),
    _Work("W9", "distinct texts", 1_000_000, "users.txt",
          lambda ctx, data: ctx.read(text_files(data.path)).distinct().to_list(),
          lambda data: list(dict.fromkeys(_lines(data))),
          "SELECT DISTINCT value FROM data"),
    _Work("W9", "frequencies of texts", 1_000_000, "users.txt",
          lambda ctx, data: ctx.read(text_files(data.path)).collect(frequencies()), lambda data: Counter(_lines(data)),
          "SELECT value, count(*) FROM data GROUP BY value"),
    _Work("W10", "skewed keys, count and average", 1_250_000, "orders.parquet", _skewed, _skewed_by_hand,
          "SELECT shop, count(*), avg(amount) FROM data GROUP BY shop"),
    _Work("W10", "skewed keys, average", 1_250_000, "orders.parquet", _skewed_averages,
          lambda data: _means((row["shop"], row["amount"]) for row in _rows_by_hand(data)),
          "SELECT shop, avg(amount) FROM data GROUP BY shop"),
]
# fmt: on
CODES = tuple(dict.fromkeys(work.code for work in _WORKS))


def cases(code: str) -> Callable[[Bench], list[Case]]:
    """Return the cases of a code."""
    return lambda bench: [_case(number, bench) for number, work in enumerate(_WORKS) if work.code == code]


def _case(number: int, bench: Bench) -> Case:
    work = _WORKS[number]
    size = bench.size(work.full, work.full // 30) * bench.scale
    data = Data(usual_file(bench.folder, work.kind, size), size)
    alone = functools.partial(_in_new_process, number, data)
    rivals: list[tuple[str, float, Callable[[], Any]]] = [
        ("plain Python", 1.0, functools.partial(work.plain, data)),
        ("native DataFrame", 1.2, functools.partial(work.by_spark, bench.spark, data)),
        ("Polars", 4.0, functools.partial(work.by_polars, data)),
        ("DuckDB", 4.0, functools.partial(work.by_duckdb, data)),
    ]
    ours: list[tuple[str, Callable[[], Any]]] = [
        ("dstream, warm Spark", functools.partial(work.ours, bench.ctx, data)),
        ("dstream, this process, warm", functools.partial(work.ours, bench.inprocess, data)),
    ]
    return Case(
        work.code,
        f"{work.title}, {size:,}",
        Contestant(
            "dstream, new process",
            alone,
            check=lambda: alone()[1],
            detail=lambda: Detail(f"{alone()[0]:.2f} s behind the imports"),
        ),
        [
            Contestant(name, run, goal, uses_spark=name == "native DataFrame", check=_digested(run), warm_ups=2)
            for name, goal, run in rivals
        ],
        also=[
            Contestant(name, run, uses_spark=name == "dstream, warm Spark", check=_digested(run), warm_ups=2)
            for name, run in ours
        ],
    )


def _digested(run: Callable[[], Any]) -> Callable[[], str]:
    return lambda: _digest(run())


def _digest(found: Any) -> str:
    """Return a hash of a result: lists of texts have no order in SQL, and sums of floats none anywhere."""
    if isinstance(found, dict):
        found = sorted((key, _rounded(value)) for key, value in found.items())
    elif isinstance(found, list):
        found = found if isinstance(found[0], int) else sorted(found)
    else:
        found = int(found)  # DuckDB sums ints to a float, or a Decimal.
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _rounded(value: Any) -> Any:
    return tuple(map(_rounded, value)) if isinstance(value, tuple) else float(f"{value:.9g}")


def _in_new_process(number: int, data: Data) -> list[Any]:
    """Return the CPU seconds of our work, and the hash of its result, in a process that ends with it."""
    command = [sys.executable, "-m", __name__, str(number), str(data.path), str(data.size)]
    found: list[Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def _main(number: str, path: str, size: str) -> None:
    """Run one of ours, and print what `_in_new_process` returns."""
    before = cpu_seconds()
    with ds.connect() as ctx:
        found = _WORKS[int(number)].ours(ctx, Data(Path(path), int(size)))
    print(json.dumps([cpu_seconds() - before, _digest(found)]))


def _warm(runs: int = 3) -> None:
    """Print the CPU seconds of each work in this process: ours, plain Python, Polars, in turns, the medians of runs."""
    folder = Path(tempfile.gettempdir()) / "dstream-benchmarks"
    folder.mkdir(exist_ok=True)
    with ds.connect(local_limit=math.inf) as ctx:
        for work in _WORKS:
            data = Data(usual_file(folder, work.kind, work.full), work.full)
            contestants = [functools.partial(work.ours, ctx, data), functools.partial(work.plain, data)]
            contestants.append(functools.partial(work.by_polars, data))
            turns = [[_seconds(each) for each in contestants] for _ in range(runs + 1)]
            print(work.code, work.title, *(f"{statistics.median(each):.3f}" for each in zip(*turns[1:], strict=True)))


def _seconds(run: Callable[[], Any]) -> float:
    before = cpu_seconds(with_jvm=False)
    run()
    return cpu_seconds(with_jvm=False) - before


if __name__ == "__main__":
    _main(*sys.argv[1:]) if sys.argv[1:] else _warm()
