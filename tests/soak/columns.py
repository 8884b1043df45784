"""Run programs by chance in columns and in plain Python, and compare: `python -m tests.soak.columns --programs 200000`.

Numbers, texts, rows of files and collections, several operators behind each other, counted steps, single operators:
each kind is a module of `tests/differential`. What is compared is value, type, order, failure, and the item blamed.
`--kinds text wide` runs some, `--seed 17 --programs 1` runs one again that has been printed. The program ends with 1 if
one of them differs.

`--log FILE` makes a long series one that may be stopped: each line of the file is a range of seeds that has run, and on
which commit. The same command runs what is left of it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, as_completed
from importlib import import_module
from itertools import product
from multiprocessing import get_context
from pathlib import Path

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
_ROUND = 50
"""Times its share: how many programs of a kind run in a process before it reports what became of them."""
_MEMORY = 6 * 2**30


_Chunk = tuple[str, int, int]
"""A kind, the first seed of some programs, and the one behind the last."""


def run(programs: int, seed: int, kinds: Sequence[str], processes: int, log: Path | None = None) -> bool:
    """Run programs, print those that differ, and say whether none did.

    Args:
        programs: how many of all kinds together; at least one of each.
        seed: of the first one of each kind.
        kinds: of `number`, `text`, `record`, `wide`, `counting`, `operator`, `reader`.
        processes: how many run at the same time.
        log: what has run, in lines; what has on this commit is counted, and not run again.
    """
    began, counts = time.monotonic(), {kind: Counter[str]() for kind in kinds}
    chunks, series = list(_chunks(programs, seed, kinds)), _Series(log)
    before = {chunk: series.found[chunk] for chunk in chunks if chunk in series.found}
    for (kind, *_), found in before.items():
        counts[kind] += found
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin) as pool:
        running = {pool.submit(_ran, *chunk): chunk for chunk in chunks if chunk not in before}
        for future in as_completed(running):
            found = _ended(future, running[future])
            counts[running[future][0]] += found
            if not found["FAILED"]:
                series.add(running[future], found)
    for kind in kinds:
        print(f"{counts[kind]['programs']:7,}  {kind}, {counts[kind]['DIFFERS']} differ")
    seconds, bad = time.monotonic() - began, sum(each["DIFFERS"] + each["FAILED"] for each in counts.values())
    total = sum(each["programs"] for each in counts.values())
    print(f"{total:,} programs from seed {seed}: {bad} differ\n{seconds:.0f} s")
    return not bad


def _ended(future: Future[Counter[str]], chunk: _Chunk) -> Counter[str]:
    """Return what became of a chunk; one that has failed by itself, as without space on the disk, ends no series.

    Raises:
        BrokenExecutor: the process of this one and of all others is dead.
    """
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception:
        print(f"{chunk} FAILED:\n{traceback.format_exc()}", flush=True)
        return Counter(FAILED=1)


def _chunks(programs: int, seed: int, kinds: Sequence[str]) -> Iterator[_Chunk]:
    """Give some programs of each kind, then the next of each, so that what has run at any time has all kinds."""
    whole = sum(_SHARES[kind] for kind in kinds)
    most = {kind: max(1, programs * _SHARES[kind] // whole) for kind in kinds}
    rounds = max(-(-most[kind] // (_SHARES[kind] * _ROUND)) for kind in kinds)
    for number, kind in product(range(rounds), kinds):
        first, size = number * _SHARES[kind] * _ROUND, _SHARES[kind] * _ROUND
        if first < most[kind]:
            yield kind, seed + first, seed + min(first + size, most[kind])


class _Series:
    """Programs that run one after another on one commit, perhaps in several runs of this script.

    Attributes:
        found: what became of each chunk that has run.
    """

    def __init__(self, log: Path | None) -> None:
        self._log, self._commit = log, _commit() if log is not None else ""
        lines = log.read_text().splitlines() if log is not None and log.exists() else []
        ran = [each for each in map(json.loads, lines) if each["commit"] == self._commit]
        self.found = {tuple(each["chunk"]): Counter[str](each["counts"]) for each in ran}

    def add(self, chunk: _Chunk, counts: Counter[str]) -> None:
        """Keep what became of a chunk."""
        if self._log is not None:
            with self._log.open("a") as lines:
                print(json.dumps({"commit": self._commit, "chunk": chunk, "counts": counts}), file=lines)


def _commit() -> str:
    """Return the commit of which the programs run.

    Raises:
        SystemExit: files of the repository have changed since.
    """
    changed, commit = (
        subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()
        for words in (("status", "--porcelain", "--untracked-files=no"), ("rev-parse", "HEAD"))
    )
    if changed:
        raise SystemExit(f"a series is of one commit, and these files have changed:\n{changed}")
    return commit


def _begin() -> None:
    """Configure a process for random programs: long numbers, and a bound of its memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore", SyntaxWarning)
    sys.set_int_max_str_digits(0)
    for module in _MODULES.values():
        import_module(f"tests.differential.{module}")
    # Most objects of a program are gone with it: a search for cycles, through all modules, finds few.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _ran(kind: str, first: int, last: int) -> Counter[str]:
    counts: Counter[str] = import_module(f"tests.differential.{_MODULES[kind]}").main(first, last)
    return counts


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--programs", type=int, default=2000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the first program of each kind")
    parser.add_argument("--kinds", nargs="+", choices=_MODULES, default=list(_MODULES), help="all by default")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="one for each core by default")
    parser.add_argument("--log", type=Path, help="a file of what has run, in lines; the rest of the series is run")
    given = parser.parse_args()
    os.environ.setdefault("PYTHONHASHSEED", "0")  # Of the processes that run them.
    end_in_order()
    return 0 if run(given.programs, given.seed, given.kinds, given.processes, given.log) else 1


if __name__ == "__main__":
    sys.exit(main())
