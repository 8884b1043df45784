"""Run programs by chance in columns and in plain Python, and compare: `python -m tests.soak.columns --programs 200000`.

Numbers, texts, rows of files and collections, several operators behind each other, counted steps, single operators:
each kind is a module of `tests/differential`. What is compared is value, type, order, failure, and the item blamed.
`--kinds text wide` runs some, `--seed 17 --programs 1` runs one again that has been printed. The program ends with 1 if
one of them differs.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context

from tests.soak._ending import end_in_order

__all__ = ["run"]

_MODULES = {
    "number": "column_programs",
    "text": "text_programs",
    "record": "record_programs",
    "wide": "wide_programs",
    "counting": "counting_programs",
    "operator": "column_operators",
    "reader": "reader_programs",
}
_SHARES = {"number": 6, "text": 5, "record": 2, "wide": 2, "counting": 2, "operator": 3, "reader": 2}
"""How many of 22 programs are of a kind."""
_CHUNK = 500
"""So many run in a process before it says how they went."""
_MEMORY = 6 * 2**30


def run(programs: int, seed: int, kinds: Sequence[str], processes: int) -> bool:
    """Run programs, print those that differ, and say whether none did.

    Args:
        programs: how many of all kinds together; at least one of each.
        seed: of the first one of each kind.
        kinds: of `number`, `text`, `record`, `wide`, `counting`, `operator`, `reader`.
        processes: how many run at the same time.
    """
    began, counts = time.monotonic(), {kind: Counter[str]() for kind in kinds}
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin) as pool:
        running = [pool.submit(_ran, *chunk) for chunk in _chunks(programs, seed, kinds)]
        for future in as_completed(running):
            kind, found = future.result()
            counts[kind] += found
    for kind in kinds:
        print(f"{counts[kind]['programs']:7,}  {kind}, {counts[kind]['DIFFERS']} differ")
    seconds, bad = time.monotonic() - began, sum(each["DIFFERS"] for each in counts.values())
    total = sum(each["programs"] for each in counts.values())
    print(f"{total:,} programs from seed {seed}: {bad} differ\n{seconds:.0f} s")
    return not bad


def _chunks(programs: int, seed: int, kinds: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Give kinds with the first seed of a few programs, and the one behind the last."""
    whole = sum(_SHARES[kind] for kind in kinds)
    for kind in kinds:
        end = seed + max(1, programs * _SHARES[kind] // whole)
        for first in range(seed, end, _CHUNK):
            yield kind, first, min(first + _CHUNK, end)


def _begin() -> None:
    """Let a process take what programs by chance are made of, as long numbers, and let none take all memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore", SyntaxWarning)
    sys.set_int_max_str_digits(0)


def _ran(kind: str, first: int, last: int) -> tuple[str, Counter[str]]:
    return kind, import_module(f"tests.differential.{_MODULES[kind]}").main(first, last)


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--programs", type=int, default=2000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the first program of each kind")
    parser.add_argument("--kinds", nargs="+", choices=_MODULES, default=list(_MODULES), help="all by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="one for each core by default")
    given = parser.parse_args()
    os.environ.setdefault("PYTHONHASHSEED", "0")  # Of the processes that run them.
    end_in_order()
    return 0 if run(given.programs, given.seed, given.kinds, given.processes) else 1


if __name__ == "__main__":
    sys.exit(main())
