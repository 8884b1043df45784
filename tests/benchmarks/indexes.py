"""E6: an indexed look-up in a map of a million entries, and what the journal that it needs costs a bulk write."""

from __future__ import annotations

import atexit
import itertools
import shutil
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import dstream as ds
from dstream import IStreamMap, where
from reducers import to_imap
from tests.benchmarks.harness import Bench, Case, Contestant, Detail

__all__ = ["cases"]

_ENTRIES = 1_000_000
_WRITTEN = 200_000
_LOOK_UPS = 1_000
_MICROSECONDS = 100


def cases(bench: Bench) -> list[Case]:
    """Return the look-ups, then the bulk write."""
    folder = bench.folder / "indexes"
    shutil.rmtree(folder, ignore_errors=True)
    context = ds.connect(engine="local", storage=folder / "lake")
    atexit.register(context.close)
    return [_look_ups(context, bench.size(_ENTRIES, 5_000)), _bulk_write(context, bench.size(_WRITTEN, 2_000))]


def _name(number: int) -> str:
    return f"name-{number:07d}"


def _look_ups(context: ds.Context, count: int) -> Case:
    people: IStreamMap[int, str] = context.get_map("people", key_type=int, value_type=str, journal=True)
    context.stream(range(count)).collect(to_imap("people", lambda n: n, _name))
    began = time.perf_counter()
    people.add_index("this")
    made = time.perf_counter() - began
    database = _database(count)
    numbers = itertools.cycle(range(0, count, 7))

    def by_index() -> list[str]:
        return people.select(where("this") == _name(next(numbers)))

    def by_sqlite() -> list[Any]:
        return database.execute("SELECT value FROM m WHERE value = ?", (_name(next(numbers)),)).fetchall()

    ours = _many("select by an index", by_index, f"the index was made in {made:.1f} s", _MICROSECONDS)
    return Case(
        "E6", f"a look-up, {count:,} entries", ours, [_many("SQLite with an index", by_sqlite, "in memory", None)]
    )


def _many(name: str, look_up: Callable[[], list[Any]], note: str, most: int | None) -> Contestant:
    """Return a contestant that looks many values up, one after another, and says how long one takes."""

    def run() -> int:
        return sum(len(look_up()) for _ in range(_LOOK_UPS))

    def detail() -> Detail:
        run()  # the first look-up reads the buckets
        began = time.perf_counter()
        run()
        each = (time.perf_counter() - began) / _LOOK_UPS * 1e6
        return Detail(f"{each:.0f} µs each; {note}", None if most is None else each < most)

    return Contestant(name, run, uses_spark=False, detail=detail)


def _database(count: int) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE m (key INTEGER PRIMARY KEY, value TEXT)")
    database.executemany("INSERT INTO m VALUES (?, ?)", ((n, _name(n)) for n in range(count)))
    database.execute("CREATE INDEX by_value ON m (value)")
    return database


def _bulk_write(context: ds.Context, count: int) -> Case:
    numbers = itertools.count()

    def written(journal: bool) -> int:
        target = context.get_map(f"written-{next(numbers)}", key_type=int, value_type=str, journal=journal)
        context.stream(range(count)).collect(to_imap(target.name, lambda n: n, _name))
        size = target.size()
        target.destroy()
        return size

    ours = Contestant("with a journal, as an index needs", lambda: written(True), uses_spark=False)
    plain = Contestant("without", lambda: written(False), goal=1.4, uses_spark=False)
    return Case("E6", f"bulk write, {count:,} entries", ours, [plain])
