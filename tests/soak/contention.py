"""Several processes write into one map of the lake: `python -m tests.soak.contention [--processes 4] [--runs 200]`.

On one hot key each process adds 1 to what is there; on different keys each puts its own. The program prints how long
that took beside the goals, which are for 4 processes on a quiet machine of as many cores, and ends with 1 if a change
was lost.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import tempfile
import time
from typing import Any

import dstream as ds

__all__ = ["run"]

_HOT_GOAL, _PUTS_GOAL = 3.0, 8.0
_PUTS_FOR_EACH = 2.5
"""So many puts stand against one change of the hot key: 2,000 against 800."""


def run(processes: int, times: int) -> bool:
    """Measure both cases; say whether nothing was lost."""
    puts = int(times * _PUTS_FOR_EACH)
    print("| case | s | goal s | longest s | right |\n|---|---|---|---|---|")
    hot = _case(f"{processes * times:,} changes of one key", processes, times, True, _HOT_GOAL)
    return _case(f"{processes * puts:,} puts of different keys", processes, puts, False, _PUTS_GOAL) and hot


def _case(title: str, processes: int, times: int, is_hot: bool, goal: float) -> bool:
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        together, answers = spawning.Barrier(processes), spawning.Queue()
        running = [
            spawning.Process(target=_write, args=(folder, number, times, is_hot, together, answers))
            for number in range(processes)
        ]
        for process in running:
            process.start()
        for process in running:
            process.join()
        if any(process.exitcode for process in running):
            print(f"| {title} | | {goal:.0f} | | no: a process failed |")
            return False
        measured = [answers.get() for _ in running]
        is_right = _is_right(folder, processes, times, is_hot)
    wall, longest = (max(values) for values in zip(*measured, strict=True))
    print(f"| {title} | {wall:.1f} | {goal:.0f} | {longest:.2f} | {'yes' if is_right else 'no'} |", flush=True)
    return is_right


def _write(folder: str, number: int, times: int, is_hot: bool, together: Any, answers: Any) -> None:
    """Write `times` times, when all processes are ready; tell the seconds in all and those of the longest change."""
    with ds.connect(engine="local", storage=folder) as ctx:
        made = ctx.get_map("map")
        made[f"ready-{number}"] = 1
        together.wait()
        ends = [time.perf_counter()]
        for each in range(times):
            if is_hot:
                made.execute_on_key("hot", _add_one)
            else:
                made[f"{number}-{each}"] = each
            ends.append(time.perf_counter())
    answers.put((ends[-1] - ends[0], max(end - start for start, end in itertools.pairwise(ends))))


def _add_one(entry: Any) -> None:
    entry.set_value((entry.value or 0) + 1)


def _is_right(folder: str, processes: int, times: int, is_hot: bool) -> bool:
    with ds.connect(engine="local", storage=folder) as ctx:
        made = ctx.get_map("map")
        if is_hot:
            return bool(made["hot"] == processes * times)
        return len(made) == processes * (times + 1)


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--runs", type=int, default=200, help="changes of the hot key by each process")
    given = parser.parse_args()
    return 0 if run(given.processes, given.runs) else 1


if __name__ == "__main__":
    sys.exit(main())
