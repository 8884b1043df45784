"""Kill drivers of a job with three sinks, and submit it again: `python -m tests.soak.jobs [--runs 50]`.

Half of the drivers are killed at a point of the job that it is known to have reached, the others after a random time.
Each job is submitted again in this process, and what its sinks hold is compared with what they must. The program ends
with 1 if an item was lost or doubled.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import dstream as ds
from tests.jobs.killed_driver import ITEMS, NAME, POINTS, submitted

__all__ = ["run"]

_ROOT = Path(__file__).parents[2]
_LISTS = ("interrupted", "second", "third")
_LONGEST_LIFE = 1.5
_DRIVER = "from tests.jobs.killed_driver import main; main()"


def run(times: int, seed: int) -> bool:
    """Kill so many drivers; say whether all sinks were whole."""
    chance, were = random.Random(seed), Counter[str]()
    for number in range(times):
        point = chance.choice(POINTS) if number % 2 else "any time"
        with tempfile.TemporaryDirectory() as folder:
            _kill(folder, point, chance.uniform(0, _LONGEST_LIFE))
            problem = _problem(folder)
        were[point] += 1
        if problem:
            print(f"driver {number}, killed at {point}: {problem} (seed {seed})")
            return False
    print("\n".join(f"{count} drivers killed at {point}: all sinks whole, one copy" for point, count in were.items()))
    return True


def _kill(folder: str, point: str, life: float) -> None:
    command = [sys.executable, "-c", _DRIVER, folder, point]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        if point == "any time":
            time.sleep(life)
        elif not driver.stdout.readline():
            raise AssertionError(f"the driver ended before {point}")
        driver.kill()


def _problem(folder: str) -> str:
    """Submit the job again; say what is wrong with its sinks, or nothing."""
    with ds.connect(engine="local", storage=folder) as ctx:
        before = ctx.job(NAME)
        has_completed = before is not None and before.status is ds.JobStatus.COMPLETED
        job = before if before is not None and has_completed else submitted(ctx)
        job.join(60)
        held = {name: ctx.get_list(name).copy() for name in _LISTS}
        wrong = [f"{name} holds {len(items)} items" for name, items in held.items() if items != list(ITEMS)]
        return "; ".join(wrong)


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="how many drivers are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    return 0 if run(given.runs, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
