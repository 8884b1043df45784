"""What the second core of this machine is worth to programs that share nothing: plain Python, alone and twice at once.

Cores share caches, memory and often more. What two programs that know nothing of each other lose at the same time is no
matter of theirs, so B11 shows it beside its own figures.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.corpus import corpus
from tests.benchmarks.harness import Bench, Row, seconds
from tests.benchmarks.separate import Program, answering, started
from tests.benchmarks.word_count import count_plainly

__all__ = ["row"]


def row(bench: Bench, runs: int) -> Row:
    """Count a text in one program, then in two at once, each all of it; return a row of the table."""
    megabytes = 2 if bench.quick else 60
    path = corpus(bench.folder, megabytes)
    with ExitStack() as stack:
        both = [stack.enter_context(started("second_core")) for _ in range(2)]
        _counted(both, path)
        alone, together = zip(*((_counted(both[:1], path), _counted(both, path)) for _ in range(runs)), strict=True)
    worth = statistics.median(2 * one.wall / two.wall for one, two in zip(alone, together, strict=True))
    dearer = statistics.median(two.cpu / 2 / one.cpu for one, two in zip(alone, together, strict=True))
    return (
        "",
        f"plain Python, {megabytes} MB, two programs at once",
        seconds([each.cpu for each in together]),
        seconds([each.wall for each in together]),
        "",
        "",
        "",
        "",
        f"the second core is worth {worth:.2f}: each program takes {dearer:.2f} times the CPU that it takes alone",
    )


class _Counted(NamedTuple):
    """The seconds that some programs took, counting at the same time."""

    cpu: float
    wall: float


def _counted(programs: Sequence[Program], path: Path) -> _Counted:
    start = time.perf_counter()
    with ThreadPoolExecutor(len(programs)) as threads:
        cpu = sum(threads.map(lambda program: float(program.ask(path)), programs))
    return _Counted(cpu, time.perf_counter() - start)


def _answer(words: Sequence[str]) -> float:
    start = time.process_time()
    count_plainly(Path(words[0]))
    return time.process_time() - start


if __name__ == "__main__":
    answering(_answer)
