"""Processes take from queues of the lake, and are killed: `python -m tests.soak.queues [--processes 4] [--runs 10000]`.

One queue is leased from, another one is taken from, while a third process puts. The program prints what happened and
ends with 1 if an item was lost, or given to two who both ended well. A process that is killed may lose the item that it
took a moment before, and others see what it had leased once more: no more of these than there were kills.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import dstream as ds

__all__ = ["run"]

_WORK = 0.005
"""Seconds that a leased item is worked on, so that kills meet leases."""

_PATIENCE = 120.0
"""Seconds without any item after which a run has failed."""


def run(processes: int, items: int, kills: int, seed: int = 0, lease: float = 3.0) -> bool:
    """Put `items` into each queue while `kills` of those who take them are killed; say whether all is right."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        killed = _Workers(Path(folder), processes, random.Random(seed), lease).work(items, kills)
        return _report(Path(folder), items, killed, time.monotonic() - start)


class _Workers:
    """Processes that take items; where one was killed, another one begins."""

    def __init__(self, folder: Path, processes: int, chosen: random.Random, lease: float) -> None:
        self._folder, self._chosen, self._lease = folder, chosen, lease
        self._spawning = multiprocessing.get_context("spawn")
        self._started = 0
        self._running = [self._start() for _ in range(processes)]

    def _start(self) -> Any:
        self._started += 1
        process = self._spawning.Process(target=_take, args=(str(self._folder), self._started, self._lease))
        process.start()
        return process

    def work(self, items: int, kills: int) -> int:
        """Kill one process after another while items are put and taken; return how many were killed."""
        putting = self._spawning.Process(target=_put, args=(str(self._folder), items))
        putting.start()
        killed, seen, since = 0, 0, time.monotonic()
        try:
            while not self._is_done(items) and time.monotonic() - since < _PATIENCE:
                time.sleep(self._chosen.uniform(0.01, 0.1))
                if killed < kills and _lines(self._folder) >= 2 * items * killed // kills:
                    self._kill_one()
                    killed += 1
                if _lines(self._folder) > seen:
                    seen, since = _lines(self._folder), time.monotonic()
        finally:
            for process in [putting, *self._running]:
                process.kill()
                process.join()
        return killed

    def _kill_one(self) -> None:
        place = self._chosen.randrange(len(self._running))
        self._running[place].kill()
        self._running[place].join()
        self._running[place] = self._start()

    def _is_done(self, items: int) -> bool:
        with ds.connect(engine="local", storage=self._folder / "lake") as ctx:
            put = ctx.get_counter("put").get()
            return put == items and ctx.get_queue("leased").is_empty() and ctx.get_queue("taken").is_empty()


def _put(folder: str, items: int) -> None:
    with ds.connect(engine="local", storage=f"{folder}/lake") as ctx:
        leased, taken, put = ctx.get_queue("leased"), ctx.get_queue("taken"), ctx.get_counter("put")
        for item in range(items):
            leased.put(item)
            taken.put(item)
            put.add()


def _take(folder: str, number: int, lease: float) -> None:
    """Take and lease, and write down what came, each line with one call of the system."""
    with ds.connect(engine="local", storage=f"{folder}/lake") as ctx, open(f"{folder}/{number}.log", "ab", 0) as log:
        leased, taken = ctx.get_queue("leased"), ctx.get_queue("taken")
        while True:
            with contextlib.suppress(TimeoutError):
                with leased.lease(lease, timeout=0.05) as item:
                    log.write(b"leased %d\n" % item)
                    time.sleep(_WORK)
                log.write(b"ended %d\n" % item)
            with contextlib.suppress(TimeoutError):
                log.write(b"taken %d\n" % taken.take(timeout=0.05))


def _lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.log"))


def _report(folder: Path, items: int, killed: int, seconds: float) -> bool:
    """Print what was written down; say whether it is right."""
    lines = [line for path in folder.glob("*.log") for line in path.read_text().splitlines()]
    counts = {what: Counter(line.split()[1] for line in lines if line.startswith(what)) for what in _KINDS}
    leased, ended, taken = (counts[what] for what in _KINDS)
    again, lost = sum(leased.values()) - len(leased), items - len(taken)
    twice = sum(count > 1 for count in [*ended.values(), *taken.values()])
    is_right = len(leased) == items and twice == 0 and lost <= killed and again <= killed
    print("| items | killed | s | lost | leased again | twice | taken by a killed one | right |")
    print("|---|---|---|---|---|---|---|---|")
    figures = [
        2 * items,
        killed,
        f"{seconds:.0f}",
        items - len(leased),
        again,
        twice,
        lost,
        "yes" if is_right else "no",
    ]
    print("| " + " | ".join(map(str, figures)) + " |", flush=True)
    return is_right


_KINDS = ("leased", "ended", "taken")


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=10_000, help="items, half of them in each queue")
    parser.add_argument("--kills", type=int, default=None, help="unset, one for each 50 items")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kills = given.runs // 50 if given.kills is None else given.kills
    return 0 if run(given.processes, given.runs // 2, kills, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
