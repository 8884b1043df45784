"""Threads and processes ask jobs for this and that: `python -m tests.soak.requests [--runs 500] [--engine spark]`.

Each run is a job without an end on a lake that starts again by itself, whose source does not answer now and then. Two
threads of the driver and two other processes suspend, resume, restart, update and, in each third run, cancel it, at
random moments. Then the source answers, one request lets the job go on, and it reads the rest. The program ends with 1
if a job failed, does not end, has lost an item or has one twice, or goes on after a cancel.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import dstream as ds
from dstream.errors import IllegalStateError
from dstream.jobs import JobConfig, JobStatus
from dstream.jobs.handle import Job
from dstream.testing.engines import MASTER, SETTINGS
from reducers import to_ilist
from tests.jobs.unbounded.streams import Breaking, pipeline_of
from tests.soak._ending import end_in_order

__all__ = ["run"]

_SUSPENDABLE = ("suspend", "resume", "restart")
_OTHERS = 2
_ITEMS = 20
_PATIENCE = {"local": 60.0, "spark": 180.0}
"""Seconds after which a job that was let go has failed."""


def run(runs: int, seed: int, engine: str) -> bool:
    """Ask `runs` jobs at random; say whether all came to what they were asked for."""
    spawning = multiprocessing.get_context("spawn")
    counts: Counter[str] = Counter()
    bad, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        pipes = [spawning.Pipe() for _ in range(_OTHERS)]
        others = [spawning.Process(target=_ask_elsewhere, args=(folder, far), daemon=True) for _, far in pipes]
        for each in others:
            each.start()
        where: dict[str, Any] = {"engine": "local"} if engine == "local" else {"master": MASTER, "config": SETTINGS}
        with ds.connect(**where, storage=folder, progress=False) as ctx:
            for number in range(seed, seed + runs):
                asked = _Asked(ctx, number, [near for near, _ in pipes], _PATIENCE[engine])
                if problem := asked.problem():
                    bad += 1
                    print(f"seed {number}: {problem}", flush=True)
                counts += asked.counts
        for near, _ in pipes:
            near.send(None)
        for each in others:
            each.join(20)
    print("| jobs | requests that were taken | not taken | job had ended | s | wrong |")
    print("|---|---|---|---|---|---|")
    seconds = f"{time.monotonic() - began:.0f}"
    print("| " + " | ".join(map(str, [runs, counts[_TAKEN], counts[_NOT], counts[_ENDED], seconds, bad])) + " |")
    return not bad


_TAKEN, _NOT, _ENDED = "taken", "not taken", "ended"


class _Asked:
    """One job, and those who ask it."""

    def __init__(self, ctx: ds.Context, seed: int, pipes: list[Any], patience: float) -> None:
        self._ctx, self._seed, self._pipes, self._patience = ctx, seed, pipes, patience
        self._chosen = random.Random(seed)
        self._feed = Breaking()
        self._name = f"asked-{seed}"
        self._cancels = seed % 3 == 0
        self.counts: Counter[str] = Counter()

    def problem(self) -> str:
        """Run the job to its end, and say what is wrong with it."""
        config = JobConfig(auto_restart=(1_000, 0.01))
        job = self._ctx.new_job(pipeline_of(self._feed, to_ilist(self._name)), name=self._name, config=config)
        self._meet(job)
        self._feed.is_down = False
        if not self._cancels:
            request(job, "restart")  # Also if it is, or is about to be, suspended, or waits for a restart.
        self._feed.give(*range(3, _ITEMS + 1))
        self._feed.end()
        try:
            job.wait_for(JobStatus.CANCELLED if self._cancels else JobStatus.COMPLETED, timeout=self._patience)
        except Exception as error:
            job.cancel()
            return f"{job.status}: {error!r}"
        found = self._ctx.get_list(self._name).copy()
        wanted = list(range(1, _ITEMS + 1))
        if found == wanted or (self._cancels and found == wanted[: len(found)]):
            return ""
        return f"{job.status} with {found}"

    def _meet(self, job: Job) -> None:
        """Send all requests at once, with the source down in between."""
        for place, pipe in enumerate(self._pipes):
            pipe.send((self._name, self._seed * 100 + place, self._cancels and place == 0))
        threads = [threading.Thread(target=self._ask, args=(job, -self._seed - place)) for place in range(2)]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            self._feed.is_down = self._chosen.random() < 0.3
            time.sleep(self._chosen.uniform(0, 0.05))
        for each in threads:
            each.join()
        for pipe in self._pipes:
            self.counts += pipe.recv()

    def _ask(self, job: Job, seed: int) -> None:
        def update() -> bool:
            job.update(pipeline_of(self._feed, to_ilist(self._name)))
            return True

        self.counts += _ask_at_random(job, random.Random(seed), {"update": update})


def request(job: Job, name: str) -> str:
    """Ask a job for something, and return what became of it."""
    try:
        return _TAKEN if getattr(job, name)() else _NOT
    except IllegalStateError:
        return _ENDED


def _ask_at_random(
    job: Job, chosen: random.Random, more: dict[str, Callable[[], bool]], times: int = 12
) -> Counter[str]:
    counts: Counter[str] = Counter()
    for _ in range(times):
        name = chosen.choice([*_SUSPENDABLE, *more])
        if name in more:
            try:
                counts[_TAKEN if more[name]() else _NOT] += 1
            except IllegalStateError:
                counts[_ENDED] += 1
        else:
            counts[request(job, name)] += 1
        time.sleep(chosen.choice([0, 0, 0.001, 0.01, 0.05]))
    return counts


def _ask_elsewhere(folder: str, pipe: Any) -> None:
    """Ask the jobs whose names come through a pipe, in a process of its own."""
    with ds.connect(engine="local", storage=folder, progress=False) as ctx:
        while (given := pipe.recv()) is not None:
            name, seed, cancels = given
            job, chosen = ctx.job(name), random.Random(seed)
            assert job is not None, name
            counts = _ask_at_random(job, chosen, {}, times=4)  # Each waits for an answer of the driver.
            if cancels:
                counts[request(job, "cancel")] += 1
            pipe.send(counts)


def main() -> int:
    """Run as the command line says."""
    end_in_order()
    logging.disable(logging.WARNING)  # Of each restart.
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    return 0 if run(given.runs, given.seed, given.engine) else 1


if __name__ == "__main__":
    sys.exit(main())
