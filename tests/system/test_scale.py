"""Ten million items flow through each shape of pipeline, a million meet a million: no worker holds over 512 MB."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.system.conftest import environment

MEGABYTE = 2**20
BOUND = 512 * MEGABYTE
SECONDS = 600
NOTICED = 0.05

# A prime to ten million multiplies to a permutation of it, so every result has a closed form.
SHAPES = """
    import json, sys, time
    import dstream as ds
    from collectors import counting, grouping_by

    N = 10_000_000

    def scattered(n):
        return n * 7_654_321 % N

    def rises_by_one(items):
        last = -1
        for item in items:
            if item != last + 1:
                return False
            last = item
        return last == N - 1

    def shapes(numbers):
        yield "map", lambda: numbers.map_to_int(lambda n: n * 3 + 1).sum()
        yield "filter", lambda: numbers.map(scattered).filter(lambda n: n % 3 == 0).count()
        yield "sorted", lambda: rises_by_one(numbers.map(scattered).sorted())
        yield "distinct", lambda: numbers.map(lambda n: scattered(n) // 2).distinct().map_to_int(int).sum()
        yield "grouping_by", lambda: counts(numbers.collect(grouping_by(lambda n: scattered(n) // 50, counting())))

    MILLION = 1_000_000

    def joins(numbers, names):
        left = numbers.map(lambda n: (n, f"{n:0100}"))
        right = numbers.map(lambda n: n * 765_431 % MILLION).map(lambda n: (n, f"{n:0100}"))
        hot, named = numbers.map(lambda n: (zipf(n), f"{n:0100}")), names.map(lambda n: (n, f"{n:0300}"))
        yield "join", lambda: summed(left.join(right), lambda entry: entry.value[0] == entry.value[1])
        yield "skewed join", lambda: summed(named.join(hot, how="full"), lambda entry: entry.key == int(entry.value[0]))

    def zipf(n):
        return min(MILLION // (MILLION - n), 20_000) - 1

    def summed(entries, agrees):
        return entries.filter(agrees).map_to_long(lambda entry: entry.key + (entry.value[1] is not None)).sum()

    def counts(groups):
        return len(groups), sorted(set(groups.values()))

    config = {"spark.driver.memory": "1g"}
    with ds.connect("local[2]", worker_memory="384m", config=config) as ctx:
        ctx.stream([0], 1).to_list()
        print("started", flush=True)
        millions, names = ctx.stream(range(MILLION), 8), ctx.stream(range(20_000), 4)
        for name, run in [*shapes(ctx.stream(range(N), 8)), *joins(millions, names)]:
            start = time.perf_counter()
            result = run()
            print(json.dumps([name, result, time.perf_counter() - start]), flush=True)
"""


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result and the seconds of each shape, and the most bytes that a worker and the driver held."""
    file = Path(tmp_path_factory.mktemp("scale"), "script.py")
    file.write_text("\n".join(line.removeprefix("    ") for line in SHAPES.splitlines()))
    with subprocess.Popen(
        [sys.executable, str(file)], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        most = {"driver": 0, "worker": 0}
        while running.poll() is None:
            for role, size in _sizes(running.pid):
                most[role] = max(most[role], size)
            time.sleep(NOTICED)
        out, err = running.communicate()
    assert err == ""
    told = [json.loads(line) for line in out.splitlines()[1:]]
    return {"results": {name: result for name, result, _ in told}, "seconds": {n: s for n, _, s in told}, "most": most}


def _sizes(pid: int) -> Iterator[tuple[str, int]]:
    """Give the role and the resident bytes of each Python process below `pid`, and of that itself."""
    driver = psutil.Process(pid)
    for process in [driver, *driver.children(recursive=True)]:
        try:
            # Not its name: what Java is about to start has that of a thread of Java's, and all of its memory.
            if "java" not in process.exe():
                yield "driver" if process.pid == pid else "worker", process.memory_info().rss
        except psutil.Error:
            continue


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ("map", 149_999_995_000_000),
        ("filter", 3_333_334),
        ("sorted", True),
        ("distinct", 12_499_997_500_000),
        ("grouping_by", [200_000, [50]]),
        ("join", 500_000_500_000),
        ("skewed join", 206_957_467),
    ],
)
def test_ten_million_items_give_the_exact_result(scale: dict[str, Any], shape: str, result: Any) -> None:
    """The result is what the closed form says.

    Every second item of the skewed join has the same key, and all of them are held while few names pass by.
    """
    assert scale["results"][shape] == result


def test_no_worker_exceeds_its_memory(scale: dict[str, Any]) -> None:
    """No Python worker is ever seen with more than 512 MB resident, sorting, grouping and joining more than that."""
    assert 0 < scale["most"]["worker"] < BOUND


def test_the_driver_stays_small(scale: dict[str, Any]) -> None:
    """The driver streams ten million sorted items and counts the rest, without holding them."""
    assert 0 < scale["most"]["driver"] < BOUND


def test_the_shapes_take_minutes_at_most(scale: dict[str, Any]) -> None:
    """All shapes together end within ten minutes, also on two busy cores."""
    assert sum(scale["seconds"].values()) < SECONDS, scale["seconds"]
