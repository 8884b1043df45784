"""Millions of items through each shape of pipeline: `python -m tests.soak.scale [--items 10000000] [shape ...]`.

The shapes run one after another in one program, with two tasks and `worker_memory="384m"`, while the resident memory of
the program and of every Python worker is sampled. Every result has a closed form. This program ends with 1 if one of
them is wrong, or if the program or a worker took more than 512 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dstream as ds
from collectors import counting, grouping_by
from dstream import Stream
from tests.benchmarks.separate import Peaks

__all__ = ["BOUND", "SHAPES", "Scale", "measured"]

BOUND = 512 * 2**20
"""The most bytes that the program or a worker may hold."""
_ROOT = Path(__file__).parents[2]
_SAMPLE_EVERY = 0.05
_ALONE = "--alone"
_MEETING = 10
"""How many times fewer items meet others than go through a shape by themselves."""
_NAMES = 20_000

Outcome = tuple[Any, Any]
"""What came out, and what should have."""


@dataclass(frozen=True)
class Scale:
    """What came of the shapes.

    Attributes:
        results: for each shape what came out, and what should have.
        seconds: how long each took, without the start of Spark.
        peaks: the most bytes that were seen resident.
        said: what the program wrote to stderr.
    """

    results: dict[str, Outcome]
    seconds: dict[str, float]
    peaks: Peaks
    said: str

    def verdict(self, shape: str) -> str:
        """Say whether the result of a shape is right."""
        if shape not in self.results:
            return "no result"
        result, expected = self.results[shape]
        return "yes" if result == expected else f"no: {result} for {expected}"


def measured(shapes: Sequence[str], items: int, memory: str = "384m") -> Scale:
    """Run shapes with so many items, a tenth of them where items meet others."""
    command = [sys.executable, "-m", "tests.soak.scale", _ALONE, "--items", str(items), "--memory", memory, *shapes]
    environment, peaks = {**os.environ, "PYTHONPATH": str(_ROOT)}, Peaks()
    with subprocess.Popen(
        command, env=environment, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        while program.poll() is None:
            peaks.look(program.pid)
            time.sleep(_SAMPLE_EVERY)
        out, said = program.communicate()
    told = [json.loads(line) for line in out.splitlines()]
    results = {name: (result, expected) for name, result, expected, _ in told}
    return Scale(results, {name: seconds for name, _, _, seconds in told}, peaks, said)


def _alone(shapes: Sequence[str], items: int, memory: str) -> None:
    """Run the shapes here, and print a line for each."""
    with ds.connect("local[2]", worker_memory=memory, config={"spark.driver.memory": "1g"}) as ctx:
        ctx.stream([0], 1).to_list()
        for name in shapes:
            start = time.perf_counter()
            result, expected = SHAPES[name](ctx, items)
            print(json.dumps([name, result, expected, time.perf_counter() - start]), flush=True)


def _map(ctx: ds.Context, items: int) -> Outcome:
    total = _numbers(ctx, items).map_to_int(lambda n: n * 3 + 1).sum()
    return total, 3 * items * (items - 1) // 2 + items


def _filter(ctx: ds.Context, items: int) -> Outcome:
    count = _numbers(ctx, items).map(lambda n: n * 7_654_321 % items).filter(lambda n: n % 3 == 0).count()
    return count, (items + 2) // 3


def _sorted(ctx: ds.Context, items: int) -> Outcome:
    """Read the sorted items here, as they come."""
    count = 0
    for item in _numbers(ctx, items).map(lambda n: n * 7_654_321 % items).sorted():
        if item != count:
            break
        count += 1
    return count, items


def _distinct(ctx: ds.Context, items: int) -> Outcome:
    halves = _numbers(ctx, items).map(lambda n: n * 7_654_321 % items // 2).distinct()
    return halves.map_to_int(int).sum(), items // 2 * (items // 2 - 1) // 2


def _grouping(ctx: ds.Context, items: int) -> Outcome:
    groups = _numbers(ctx, items).collect(grouping_by(lambda n: n * 7_654_321 % items // 50, counting()))
    return [len(groups), sorted(set(groups.values()))], [items // 50, [50]]


def _join(ctx: ds.Context, items: int) -> Outcome:
    """Join each item with one other."""
    count = items // _MEETING
    left = _numbers(ctx, count).map(lambda n: (n, f"{n:0100}"))
    right = _numbers(ctx, count).map(lambda n: n * 765_431 % count).map(lambda n: (n, f"{n:0100}"))
    joined = left.join(right).filter(lambda entry: entry.value[0] == entry.value[1])
    return joined.map_to_long(lambda entry: entry.key + 1).sum(), count * (count + 1) // 2


def _skewed(ctx: ds.Context, items: int) -> Outcome:
    """Use the same key for every second item: all of them are buffered while a few names are read."""
    count = items // _MEETING

    def zipf(n: int) -> int:
        return min(count // (count - n), _NAMES) - 1

    hot = _numbers(ctx, count).map(lambda n: (zipf(n), f"{n:0100}"))
    named = ctx.stream(range(_NAMES), 4).map(lambda n: (n, f"{n:0300}"))
    joined = named.join(hot, how="full").filter(lambda entry: entry.key == int(entry.value[0]))
    found = joined.map_to_long(lambda entry: entry.key + (entry.value[1] is not None)).sum()
    keys = [zipf(n) for n in range(count)]
    return found, sum(keys) + count + sum(set(range(_NAMES)).difference(keys))


def _numbers(ctx: ds.Context, count: int) -> Stream[int]:
    """Return numbers in eight partitions; times a prime to their count and modulo it they are the same, scattered."""
    return ctx.stream(range(count), 8)


SHAPES: dict[str, Callable[[ds.Context, int], Outcome]] = {
    "map": _map,
    "filter": _filter,
    "sorted": _sorted,
    "distinct": _distinct,
    "grouping_by": _grouping,
    "join": _join,
    "skewed join": _skewed,
}
"""What the items go through, by name; how many there are is a power of ten."""


def run(shapes: Sequence[str], items: int, memory: str) -> bool:
    """Run some shapes, print how long each took, and say whether all was well."""
    scale, largest = measured(shapes, items, memory), 0
    print(f"| {items:,} items | s | right |\n|---|---|---|")
    for name in shapes:
        print(f"| {name} | {scale.seconds.get(name, 0):.1f} | {scale.verdict(name)} |")
    for role, size in (("driver", scale.peaks.driver), ("largest worker", scale.peaks.worker)):
        print(f"{role}: {size / 2**20:,.0f} MB")
        largest = max(largest, size)
    print(scale.said, end="")
    return all(scale.verdict(name) == "yes" for name in shapes) and largest < BOUND


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--items", type=int, default=10_000_000, help="how many items; a power of ten")
    parser.add_argument("--memory", default="384m", help="what a worker may hold")
    parser.add_argument(_ALONE, action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        _alone(given.shapes, given.items, given.memory)
        return 0
    return 0 if run(given.shapes, given.items, given.memory) else 1


if __name__ == "__main__":
    sys.exit(main())
