"""Run pipelines without an end by chance, and compare with plain Python: `python -m tests.soak.epochs --programs 5000`.

Each program has windows, sessions, joins in time, states and merges behind each other, random events, lags, policies,
borders of epochs, partitions, and drivers that die. `--only sessions join_within` runs programs of some kinds, and
`--seed 17 --programs 1` runs one again that has been printed. The program ends with 1 if one of them differs.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import dstream as ds
from dstream.engine.inprocess.engine import InProcessEngine
from dstream.testing.engines import MASTER, SETTINGS
from tests.differential.endless_definition import Expected, expected
from tests.differential.endless_pipelines import differences
from tests.differential.endless_programs import KINDS, Program, program
from tests.soak._ending import end_in_order

__all__ = ["run"]

_EACH = {"local": 1000, "inprocess": 1000, "spark": 10}
"""How often to say how far it is."""
_SHOWN = 5
"""Of so many programs that differ, all is printed."""


def run(programs: int, seed: int, engine: str, only: Sequence[str] = (), folder: str = "") -> bool:
    """Run programs, print those that differ, and say whether none did.

    Args:
        programs: how many.
        seed: of the first one.
        engine: runs them.
        only: kinds of steps; all by default.
        folder: where the state is that workers of Spark reach; locally it is in memory.
    """
    began, steps, results, late, bad = time.monotonic(), Counter[str](), 0, 0, 0
    local: dict[str, Any] = {"engine": "local", "storage": "memory:"}
    where = {"master": MASTER, "config": SETTINGS, "storage": folder} if engine == "spark" else local
    with ds.connect(**where, progress=False) as context:
        if engine == "inprocess":  # The graphs of Spark in this process, whose sources may have columns.
            context._engine, context._engine_name = InProcessEngine(512 * 2**20), engine
        for number in range(seed, seed + programs):
            made = program(number, only)
            wanted = expected(made)
            found = _differences(made, wanted, context)
            steps.update(step.kind for step in made.steps)
            results += sum(len(each) for step in made.written for each in wanted.results[step.number])
            late += sum(len(each) for some in wanted.late.values() for each in some)
            if (number - seed) % _EACH[engine] == _EACH[engine] - 1:
                print(f"{number - seed + 1:,} programs after {time.monotonic() - began:.0f} s", flush=True)
            if found:
                bad += 1
                print(f"{made}\n" + "\n".join(found) if bad <= _SHOWN else f"seed {number} differs", flush=True)
    print("".join(f"{count:7,}  {kind}\n" for kind, count in sorted(steps.items())), end="")
    seconds = time.monotonic() - began
    print(f"{programs:,} programs from seed {seed} on {engine}, {results:,} results, {late:,} late items: {bad} differ")
    print(f"{seconds:.0f} s")
    return not bad


def _differences(made: Program, wanted: Expected, context: ds.Context) -> list[str]:
    try:
        return differences(made, wanted, context)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; each has the next one")
    parser.add_argument("--engine", choices=list(_EACH), default="local")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[], help="kinds of steps; all by default")
    given = parser.parse_args()
    os.environ.setdefault("PYTHONHASHSEED", "0")
    logging.disable(logging.WARNING)
    end_in_order()
    with tempfile.TemporaryDirectory() as folder:
        is_well = run(given.programs, given.seed, given.engine, given.only, folder)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
