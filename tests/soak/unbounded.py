"""Kill drivers of a job without an end, anywhere, until it completes: `python -m tests.soak.unbounded --runs 200`.

A round is one job: windows into two maps and, where a broker is, a topic; events into files of one epoch and of many;
rolling counts into a list, and those of processors into another one. Its drivers are killed at a moment of chance or at
a point of the loop; some are stopped until another has taken over, and go on then; some have a second one that waits;
on Spark some lose workers or the Java process. When the job has completed, every sink is compared with plain Python.
The program ends with 1 if one of them lost, doubled or tore something.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.jobs.unbounded.clocked_events import expected
from tests.jobs.unbounded.driver_process import DriverProcess, any_runs
from tests.jobs.unbounded.killed_windows import NAME, POINTS, TAKEN_OVER, Terms, connected
from tests.servers.kafka_broker import missing, running_broker
from tests.servers.topics import Topic
from tests.soak._ending import end_in_order

__all__ = ["Round", "problems_of", "run"]

_KEYS = 20
_LIVES = {"local": 0.8, "spark": 3.0}
"""Seconds that a driver may live, at most, after it has published an epoch."""
_SECONDS = {"local": 25.0, "spark": 150.0}
"""For how long the source of a round gives events."""
_RATES = {"local": 250.0, "spark": 60.0}
"""Events of a partition in a second."""
_FAULTS = {
    "local": {"kill": 8, "point": 9, "frozen": 2, "standby": 1},
    "spark": {"kill": 8, "point": 9, "frozen": 2, "standby": 1, "workers": 6, "java": 2},
}
"""How often each comes, in proportion."""
_WORKER, _JAVA = "a Python worker", "Java"
_RECOVERED = 120.0
"""Seconds in which a driver must have published epochs again after it lost a worker or Java."""
_STOPPED = 20.0
"""Seconds for which a driver is stopped, at most."""
_PASSES = {
    "local": {"claimed": 1, "removing": 60, "between": 100, "staged": 25, "committed": 25, "published": 25},
    "spark": {"claimed": 1, "between": 12, "staged": 3, "committed": 3, "published": 3},
}
"""The points at which drivers are killed, and how often a driver reaches one before that, at most. On Spark no driver
lives so long that it removes old records."""


class Round:
    """One job, from its first driver to its completion.

    Args:
        terms: of its drivers.
        chance: decides.
        faults: which there are, and how often each comes; those of the engine if nothing is said.

    Attributes:
        were: how many faults there were of each kind.
        recovered: for each kind of process that a driver lost, the seconds until it had published two epochs.
    """

    def __init__(self, terms: Terms, chance: random.Random, faults: Mapping[str, int] | None = None) -> None:
        self.were = Counter[str]()
        self.recovered: dict[str, list[float]] = {_WORKER: [], _JAVA: []}
        self._terms = terms
        self._faults = dict(faults or _FAULTS[terms.engine])
        self._chance = chance
        self._drivers: list[DriverProcess] = []

    def run(self, most: int) -> None:
        """Inject one fault after the other until the job has completed; at most a number of them.

        Raises:
            RuntimeError: a driver failed, or does not end.
        """
        try:
            while self.were.total() < most and not self._has_completed_after(self._fault()):
                pass
            while self.driver().ended() != 0:
                self._close()
        finally:
            self._close()

    def _fault(self) -> str:
        faults = self._faults
        # Who waits while the job completes would begin afresh.
        if time.time() - self._terms.born > 0.6 * self._terms.count / self._terms.rate:
            faults = {name: share for name, share in faults.items() if name not in ("frozen", "standby")} or {"kill": 1}
        return self._chance.choices(list(faults), list(faults.values()))[0]

    def _has_completed_after(self, fault: str) -> bool:
        try:
            return bool(getattr(self, fault)())
        finally:
            self._close()

    def driver(self, **changes: Any) -> DriverProcess:
        """Start a driver on these terms, with some changes; it is killed with the round."""
        self._drivers.append(DriverProcess(dataclasses.replace(self._terms, **changes)))
        return self._drivers[-1]

    def _close(self) -> None:
        while self._drivers:
            self._drivers.pop().close()

    def _live(self) -> None:
        time.sleep(self._chance.uniform(0, _LIVES[self._terms.engine]))

    def _killed(self, driver: DriverProcess, name: str = "driver at any time") -> bool:
        """Kill a driver; say whether it had completed the job before."""
        driver.send(signal.SIGKILL)
        code = driver.ended()
        self.were[name] += code == -signal.SIGKILL
        return code == 0

    # -------------------------------------------------------------------------------------------------------- faults

    def kill(self) -> bool:
        """Kill a driver at any time. As all faults, it says whether the job has completed before."""
        driver = self.driver()
        if self._chance.random() < 0.8:
            driver.runs()
        self._live()
        return self._killed(driver)

    def point(self) -> bool:
        """Kill a driver by itself."""
        point = self._chance.choice(list(_PASSES[self._terms.engine]))
        code = self.driver(point=point, passes=self._passes(point)).ended()
        self.were[f"driver at {point!r}"] += code == -signal.SIGKILL
        return code == 0

    def _passes(self, point: str) -> int:
        return self._chance.randrange(_PASSES[self._terms.engine].get(point, 1))

    def frozen(self, point: str = "") -> bool:
        """Stop a driver, let another take over, let the first one go on, and kill the other.

        A driver that is stopped while it has the lock of the files keeps the other one waiting, for a minute at most.
        """
        point = point or self._chance.choice((*POINTS[1:5], "any time"))
        first = self.driver(point=point, passes=self._passes(point), signal=signal.SIGSTOP)
        if point == "any time":
            first.runs()
            self._live()
            first.send(signal.SIGSTOP)
        if not first.is_stopped():
            return first.ended() == 0
        second = self.driver()
        second.runs(within=_STOPPED)
        first.send(signal.SIGCONT)
        if first.ended() != TAKEN_OVER:
            raise RuntimeError(f"a driver that was stopped at {point!r} believes that the job is its own")
        self.were[f"driver stopped at {point!r} until another had the job"] += 1
        second.runs()
        self._live()
        return self._killed(second)

    def standby(self) -> bool:
        """Start two at once, and kill both, one a while after the other."""
        pair = [self.driver(), self.driver()]
        any_runs(pair)
        has_completed = False
        for each in self._chance.sample(pair, 2):
            self._live()
            has_completed |= self._killed(each, "driver of two")
        return has_completed

    def workers(self) -> bool:
        """Kill some Python workers, and then the driver."""
        driver = self.driver()
        driver.runs()
        for _ in range(5):
            self._live()
            self._lose(_WORKER, driver, driver.started("worker_daemon")[1:])
        return self._killed(driver)

    def java(self) -> bool:
        """Kill the Java process, see the driver go on with another one, and kill the driver."""
        driver = self.driver()
        driver.runs()
        self._live()
        self._lose(_JAVA, driver, driver.started("org.apache.spark.deploy.SparkSubmit"))
        self._live()
        return self._killed(driver)

    def _lose(self, name: str, driver: DriverProcess, found: list[psutil.Process]) -> None:
        """Kill one of some processes of a driver, and wait until the driver has recovered, or has ended."""
        before = self._epoch()
        if not found:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            self._chance.choice(found).kill()
            self.were[name] += 1
            began = time.monotonic()
            while driver.lives() and self._epoch() < before + 2:
                if time.monotonic() > began + _RECOVERED:
                    raise RuntimeError(f"a driver that lost {name} does not go on\n{driver.told()}")
                time.sleep(0.05)
            self.recovered[name].append(time.monotonic() - began)

    def _epoch(self) -> int:
        """Return how many epochs the job has published."""
        with connected(dataclasses.replace(self._terms, engine="local")) as ctx:
            job = ctx.job(NAME)
            return 0 if job is None else job.epoch


def problems_of(terms: Terms, topic: Topic | None = None) -> list[str]:
    """Say which sinks of a job that has completed hold something else than they must."""
    wanted = expected(terms.count, terms.keys)
    with connected(dataclasses.replace(terms, engine="local")) as ctx:
        rolling, processed = ([tuple(each) for each in ctx.get_list(name)] for name in ("rolling", "processed"))
        found = [
            _differing("windows", ctx.get_map("windows").copy().items(), wanted.windows.items()),
            _differing("totals", ctx.get_map("totals").copy().items(), wanted.totals.items()),
            _differing("rolling", rolling, wanted.rolling),
            _differing("processed", processed, wanted.rolling),
            _differing("files", _lines(Path(terms.folder, "files")), wanted.places),
            _differing("joined", _lines(Path(terms.folder, "joined")), wanted.places),
        ]
    if topic is not None:
        sent = [(key.decode(), int(value)) for _, key, value in topic.content()]
        found.append(_differing("topic", sent, wanted.windows.items()))
    for name, counts in (("rolling", rolling), ("processed", processed)):
        if any(_disordered(counts)):
            found.append(f"{name}: not in order")
    return [each for each in found if each]


def _disordered(rolling: Iterable[tuple[str, int]]) -> Iterator[bool]:
    seen = Counter[str]()
    for key, number in rolling:
        yield number != seen[key] + 1
        seen[key] = number


def _lines(folder: Path) -> list[str]:
    """Return what files hold, of which there are those that the list of them names and no others."""
    paths = sorted(folder.glob("part-*"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def _differing(name: str, found: Iterable[Any], wanted: Iterable[Any]) -> str:
    counts, right = Counter(found), Counter(wanted)
    lost, doubled = right - counts, counts - right
    if not lost and not doubled:
        return ""
    return f"{name}: {lost.total()} lost {list(lost)[:5]}, {doubled.total()} too many {list(doubled)[:5]}"


def run(
    engine: str,
    runs: int,
    seed: int,
    address: str | None = None,
    seconds: float | None = None,
    faults: Mapping[str, int] | None = None,
) -> bool:
    """Kill so many processes in as many rounds as that takes; say whether all sinks were whole."""
    chance, were, began, rounds = random.Random(seed), Counter[str](), time.monotonic(), 0
    recovered: dict[str, list[float]] = {_WORKER: [], _JAVA: []}
    while were.total() < runs:
        with tempfile.TemporaryDirectory() as folder:
            topic = None if address is None else Topic(address, 2)
            given = None if address is None or topic is None else (address, topic.name)
            rate = _RATES[engine]
            count = int(rate * (seconds or _SECONDS[engine]))
            terms = Terms(folder, count, _KEYS, rate, time.time(), engine, given)
            job = Round(terms, chance, faults)
            job.run(runs - were.total())
            problems, rounds, were = problems_of(terms, topic), rounds + 1, were + job.were
            recovered = {name: recovered[name] + each for name, each in job.recovered.items()}
            print(f"round {rounds}: {job.were.total()} faults, {'; '.join(problems) or 'whole'}", flush=True)
        if problems:
            print(f"seed {seed}, {dict(job.were)}")
            return False
    print("\n".join(f"{count} times: {what}" for what, count in sorted(were.items())))
    print("".join(f"{_recoveries(name, each)}\n" for name, each in recovered.items() if each), end="")
    sinks = 5 if address is None else 6
    print(f"{were.total()} faults in {rounds} jobs on {engine}, {sinks} sinks whole, {time.monotonic() - began:.0f} s")
    return True


def _recoveries(name: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"{name} lost: two epochs later after {ordered[len(ordered) // 2]:.1f} s, at most {ordered[-1]:.1f} s"


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="how many processes are killed or stopped")
    parser.add_argument("--engine", choices=sorted(_LIVES), default="local")
    parser.add_argument("--seconds", type=float, help="for how long the source of each job gives events")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", nargs="+", choices=sorted(_FAULTS["spark"]), help="kinds of faults; all by default")
    given = parser.parse_args()
    end_in_order()
    faults = _FAULTS[given.engine]
    faults = {name: faults[name] for name in given.only or faults}
    if missing():
        return 0 if run(given.engine, given.runs, given.seed, None, given.seconds, faults) else 1
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        return 0 if run(given.engine, given.runs, given.seed, broker.address, given.seconds, faults) else 1


if __name__ == "__main__":
    sys.exit(main())
