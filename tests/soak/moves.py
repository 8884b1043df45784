"""Kill drivers and workers of runs that move to Spark: `python -m tests.soak.moves [--drivers 50] [--workers 20]`.

Each program returns the sorted lines of files, writes the lines into a folder under the name of a job, and runs a job
with three sinks, of sorted lines in every other program. Its runs begin in the driver's process and move to Spark at a
random piece. Drivers are killed at a point of such a run, and with a driver that lives on, workers of Spark are killed
after a move. Each program runs again, moves again, and its results are compared with the lines. The soak ends with 1 if
a line was lost, doubled or out of order, or if a process or a temporary folder is left.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import dstream as ds
from dstream.base.environment import inside_a_worker
from dstream.engine.auto import placement
from dstream.engine.auto.border import SparkBorder, SparkStart
from dstream.engine.runs.splits import ListedSplits
from dstream.engine.spark.run.remote import RemoteTasks
from dstream.errors import EngineError
from dstream.jobs.lease import Lease
from dstream.jobs.records import EpochRecord
from dstream.testing.engines import SETTINGS
from reducers import to_files
from tests.jobs.planned import Interrupted, plan_of
from tests.servers.kafka_broker import dies_with_its_parent
from tests.soak._ending import end_in_order

__all__ = ["Terms", "drive", "run"]

_ROOT = Path(__file__).parents[2]
_DRIVER = "from tests.soak.moves import drive; drive()"
_PIECES, _LINES = 8, 40
_COLD = ("listing", "between tasks", "starting")
"""The points before Spark runs."""
_WARM = ("moved", "handed over", "rows", "renamed", "written", "decided", "between sinks", "published")
_END = "the end"
_PASSES = {"handed over": 40, "rows": 40, "renamed": 12, "decided": 1, "listing": 3, "between tasks": 3}
"""How often a driver reaches a point before it is killed there, at most."""
_LONGEST_START = 4.0
_LONGEST_LIFE = 1.0
_LONGEST = 300.0
_LAST_WORDS = 30.0
"""Seconds in which the processes of a killed driver end."""


@dataclass(frozen=True)
class Terms:
    """The work of one driver.

    Attributes:
        folder: has the lines, the storage, the sinks and the temporary files.
        again: the numbers of programs that were killed, which run again first.
        workers: the numbers of programs of which a worker is killed before each runs again.
        number: that of the last program, which reaches the point.
        point: where the driver waits to be killed; empty: it ends in order.
        passes: how often it gets there before.
        seed: decides at which pieces runs move.
    """

    folder: str
    again: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    number: int = 0
    point: str = ""
    passes: int = 0
    seed: int = 0


# ------------------------------------------------------------------------------------------------- in the driver


def drive() -> None:
    """Run programs as the terms say, and report what is wrong; wait at the point, or end."""
    terms = Terms(**json.loads(sys.argv[1]))
    chance, moves = random.Random(terms.seed), itertools.count()
    reached = _Point()
    _move_at_random(chance, reached, moves)
    with ds.connect(
        "local[2]", "auto", SETTINGS, storage=f"{terms.folder}/storage", progress=False, job=ds.JobConfig(keep=3600)
    ) as ctx:
        for number in terms.workers:
            Path(terms.folder, f"kill-{number}").touch()
            with contextlib.suppress(EngineError):
                _program(ctx, terms.folder, number, reached)
            _report(f"{number}: no worker was killed" if Path(terms.folder, f"kill-{number}").exists() else "")
        for number in (*terms.workers, *terms.again):
            before = next(moves)
            found = _program(ctx, terms.folder, number, reached)
            _report(_problem(ctx, terms.folder, number, found))
            _report("" if next(moves) > before + 1 else f"{number}: no run moved")
        if terms.point:
            reached.arm(terms)
            _program(ctx, terms.folder, terms.number, reached)
            reached.end()


def _report(problem: str) -> None:
    if problem:
        print(f"problem: program {problem}", flush=True)


class _Point:
    """The point at which this driver waits to be killed."""

    def __init__(self) -> None:
        self._wanted = ""
        self._passes = 0

    def arm(self, terms: Terms) -> None:
        """Wait at the point of the terms from now on."""
        self._wanted, self._passes = terms.point, terms.passes

    def __call__(self, point: str) -> None:
        """Wait if this is the point."""
        if point != self._wanted:
            return
        self._passes -= 1
        if self._passes < 0:
            self._wait(point)

    def end(self) -> None:
        """Wait behind the last program, which had fewer passes, or was done before its time."""
        self._wait(_END)

    def _wait(self, point: str) -> None:
        print(point, flush=True)
        time.sleep(_LONGEST)

    def soon(self, point: str, seconds: float) -> None:
        """Reach a point in a thread, after some seconds."""
        timer = threading.Timer(seconds, self, (point,))
        timer.daemon = True
        timer.start()


def _move_at_random(chance: random.Random, at: _Point, moves: Iterator[int]) -> None:
    """Move each run at a random piece, and report the points that it reaches."""
    places: dict[int, int] = {}

    def is_crossed(border: Any, splits: Any, each: Any, piece: int) -> bool:
        if piece > 0:
            at("between tasks")
        return piece >= places.setdefault(id(border), chance.randrange(_PIECES))

    def moving(remote: Any, run: Any) -> None:
        next(moves)
        at.soon("moved", chance.uniform(0, _LONGEST_LIFE))
        begin(remote, run)

    begin = RemoteTasks.__init__
    changed: Any = RemoteTasks
    changed.__init__ = moving
    placing: Any = placement
    placing._surely_ends_here = placing._is_little = lambda *_: False
    placing._sooner = lambda estimate, *_: placement.Placement("inprocess", "every plan begins here", estimate)
    border: Any = SparkBorder
    border.is_crossed = is_crossed
    _before(SparkStart, "offer", lambda *_: at.soon("starting", chance.uniform(0, _LONGEST_START)))
    _before(ListedSplits, "pieces", lambda *_: at("listing"))
    _before(EpochRecord, "commit", lambda *_: at("written"))
    _before(Lease, "end", lambda *_: at("published"))
    _after_each(RemoteTasks, "rows_to_hand_on", lambda: at("handed over"))
    _after_each(RemoteTasks, "rows", lambda: at("rows"))
    renamed: Any = os.replace

    def replacing(old: Any, new: Any) -> None:
        renamed(old, new)
        at("renamed")

    patched: Any = os
    patched.replace = replacing


def _before(owner: Any, name: str, told: Callable[..., object]) -> None:
    inner = getattr(owner, name)

    def telling(*given: Any, **named: Any) -> Any:
        told(*given)
        return inner(*given, **named)

    setattr(owner, name, telling)


def _after_each(owner: Any, name: str, told: Callable[[], object]) -> None:
    inner = getattr(owner, name)

    def telling(*given: Any) -> Iterator[Any]:
        for each in inner(*given):
            yield each
            told()

    setattr(owner, name, telling)


@dataclass(frozen=True)
class _LinesOfFile:
    path: str

    def read(self) -> Iterator[str]:
        return iter(Path(self.path).read_text().splitlines())


@dataclass(frozen=True)
class _LinesOfFiles:
    """Lines of files, each of which is a piece, however small: a run has as many places at which it may move."""

    folder: str
    ordered: bool = True
    bounded: bool = True
    in_caller: bool = False

    def splits(self, parallelism: int) -> Iterator[_LinesOfFile]:
        return (_LinesOfFile(str(path)) for path in sorted(Path(self.folder).iterdir()))


def _program(ctx: ds.Context, folder: str, number: int, at: _Point) -> list[str]:
    """Sort the lines, write them, and run a job with three sinks that writes them; return them."""
    mark = f"{folder}/kill-{number}"

    def read(line: str) -> str:
        if line.startswith(_FATAL) and inside_a_worker():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(mark)
                os.kill(os.getpid(), signal.SIGKILL)
        return line

    stream = ctx.read(_LinesOfFiles(f"{folder}/lines")).map(read)
    found = stream.sorted().to_list()
    stream.collect(to_files(f"{folder}/direct-{number}", job="direct"))
    sinks: tuple[Any, ...] = (
        to_files(f"{folder}/files-{number}"),
        Interrupted(lambda _: at("decided"), f"first-{number}"),
        Interrupted(lambda _: at("between sinks"), f"second-{number}"),
    )
    before = ctx.job(f"job-{number}")
    if before is None or before.status is not ds.JobStatus.COMPLETED:
        lines = stream.sorted() if number % 2 else stream
        ctx.new_job(plan_of(lines, *sinks), name=f"job-{number}").join(_LONGEST)
    return found


_FATAL = f"{_PIECES * _LINES - 9:06}"
"""The line whose task kills its worker: it is in the last piece, which every run reads on Spark."""


def _expected() -> list[str]:
    return [f"{number:06} {'x' * 40}" for number in range(_PIECES * _LINES)]


def _problem(ctx: ds.Context, folder: str, number: int, found: list[str]) -> str:
    """Return the differences between the results of a program and the lines; empty if there are none."""
    lines = _expected()
    pieces = [line for piece in range(_PIECES) for line in lines[piece::_PIECES]]
    of_job = lines if number % 2 else pieces
    results = [
        ("the returned list", found, lines),
        ("direct", _lines(Path(folder, f"direct-{number}")), pieces),
        ("files", _lines(Path(folder, f"files-{number}")), of_job),
        ("first", ctx.get_list(f"first-{number}").copy(), of_job),
        ("second", ctx.get_list(f"second-{number}").copy(), of_job),
    ]
    return "; ".join(
        f"{number}: {name} has {len(has)} lines, of which {len(set(lines) & set(has))} are right"
        for name, has, wanted in results
        if has != wanted
    )


def _lines(folder: Path) -> list[str]:
    """Return the lines of the files that a folder lists; there are no others but in `.dstream`, which is not read."""
    listed = json.loads((folder / "_SUCCESS").read_text())["files"]
    assert listed == sorted(path.name for path in folder.glob("part-*"))
    return [line for name in listed for line in (folder / name).read_text().splitlines()]


# --------------------------------------------------------------------------------------------------- in the soak


def run(drivers: int, workers: int, seed: int) -> bool:
    """Kill drivers and workers; say whether all results were right, and nothing is left."""
    chance, were = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="m") as folder:
        _prepare(folder)
        pending: tuple[int, ...] = ()
        for number in range(drivers):
            point = chance.choice(_COLD if len(pending) < 3 else _WARM)
            passes = chance.randrange(_PASSES.get(point, 1))
            terms = Terms(folder, () if point in _COLD else pending, (), number, point, passes, chance.randrange(10**6))
            reached, problems = _killed(terms)
            pending = (*pending, number) if point in _COLD else (number,)
            were[reached] += 1
            if problems:
                return _failed(problems, seed)
        killed = tuple(range(drivers, drivers + workers))
        _age(folder)
        problems = _ended(Terms(folder, pending, killed, seed=seed)) or _left(folder)
        if problems:
            return _failed(problems, seed)
    print("\n".join(f"{count} drivers killed at {point!r}" for point, count in sorted(were.items())))
    print(f"{workers} workers killed; all results right, nothing left")
    return True


def _failed(problems: list[str], seed: int) -> bool:
    print(*problems, f"seed {seed}", sep="\n", flush=True)
    return False


def _prepare(folder: str) -> None:
    for name in ("lines", "t"):
        Path(folder, name).mkdir()
    lines = _expected()
    for piece in range(_PIECES):
        # Each file has every eighth line, so that sorting moves rows between all tasks.
        path = Path(folder, "lines", f"{piece}.txt")
        path.write_text("".join(f"{line}\n" for line in lines[piece::_PIECES]))


def _killed(terms: Terms) -> tuple[str, list[str]]:
    """Start a driver, kill it at its point, and return where it was, and what is wrong, also with what it leaves."""
    with _started(terms) as driver:
        assert driver.stdout is not None
        problems, reached = [], ""
        while not reached and (line := driver.stdout.readline().strip()):
            if line in (terms.point, _END):
                reached = line
            else:
                problems.append(line)
        if not reached:
            problems.append(f"program {terms.number}: the driver ended before {terms.point!r}: {_told(terms)}")
        driver.kill()
        driver.wait()
        return reached, problems + _processes_left(driver.pid)


def _ended(terms: Terms) -> list[str]:
    """Run a driver to its end, and return what is wrong, also with what it leaves."""
    with _started(terms) as driver:
        assert driver.stdout is not None
        problems = [line.strip() for line in driver.stdout]
        code = driver.wait()
        problems += [f"the last driver ended with {code}: {_told(terms)}"] if code else []
        return problems + _processes_left(driver.pid)


def _started(terms: Terms) -> subprocess.Popen[str]:
    with Path(terms.folder, "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _DRIVER, json.dumps(dataclasses.asdict(terms))],
            cwd=_ROOT,
            env={
                **os.environ,
                "TMPDIR": f"{terms.folder}/t",
                "DSTREAM_CONFIG": "",
                # Java starts fast so, and little of it runs long enough to be worth compiling well.
                "SPARK_SUBMIT_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={terms.folder}/t",
            },
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            preexec_fn=dies_with_its_parent,
        )


def _told(terms: Terms) -> str:
    return Path(terms.folder, "log").read_text()[-4000:]


def _processes_left(session: int) -> list[str]:
    """Return the processes of a session that do not end, and kill them."""
    last = time.monotonic() + _LAST_WORDS
    while (found := list(_processes_of(session))) and time.monotonic() < last:
        time.sleep(0.1)
    problems = [f"left: the process {' '.join(each.cmdline())[:200]}" for each in found]
    for each in found:
        each.kill()
    return problems


def _processes_of(session: int) -> Iterator[psutil.Process]:
    for each in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(each.pid) == session and each.status() != psutil.STATUS_ZOMBIE:
                yield each


def _age(folder: str) -> None:
    """Make temporary folders so old that the next driver removes those of killed ones."""
    for path in Path(folder, "t").glob("*dstream*"):
        os.utime(path, (0, 0))


def _left(folder: str) -> list[str]:
    """Return the temporary files that are left; one that PySpark makes while it launches Java is not counted."""
    return [f"left: {path.name}" for path in sorted(Path(folder, "t").iterdir()) if not path.name.startswith("tmp")]


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--drivers", type=int, default=50, help="how many drivers are killed")
    parser.add_argument("--workers", type=int, default=20, help="how many workers of Spark are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    end_in_order()
    return 0 if run(given.drivers, given.workers, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
