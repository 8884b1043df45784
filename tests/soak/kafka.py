"""Drivers that copy a topic of Kafka into another, killed anywhere: no message may be missing or there twice.

python -m tests.soak.kafka --runs 60

Each driver takes a few offsets of every partition as an epoch, stages it, keeps offsets and receipts in a file that
replaces the one before, and commits. The next driver begins with the commit that the file names.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dstream as ds
from dstream.engine.local import LocalEngine
from dstream.plan import Read, rewrite
from dstream.stream.writing import writing
from reducers import to_kafka
from sources import kafka
from tests.servers.kafka_broker import missing, running_broker
from tests.servers.topics import Topic
from tests.soak._ending import end_in_order

_PARTITIONS = 3
_STEP = 12
_LIFE = (1.6, 2.6)


@dataclass(frozen=True)
class Ranges:
    """The ranges of an epoch, as a source."""

    parts: list[Any]
    ordered = bounded = True
    in_caller = False

    def splits(self, parallelism: int) -> list[Any]:
        """Return them."""
        return self.parts


def drive(address: str, read: str, written: str, folder: str) -> None:
    """Copy until nothing is left."""
    config = {"bootstrap.servers": address}
    source, sink = kafka(read, config), to_kafka(written, config, value=lambda record: record.value)
    target = sink.open(ds.connect(engine="local", storage=folder))
    kept = Path(folder, "kept")
    epoch, offsets, receipts = ast.literal_eval(kept.read_text()) if kept.exists() else (0, dict(source.begin()), None)
    while True:
        if receipts is not None:
            target.begin("copy", epoch).commit(receipts)
        reached = dict(source.reach(offsets, most=_STEP))
        if reached == offsets:
            return
        epoch += 1
        job = target.begin("copy", epoch)
        ranges = Ranges([source.split(name, offsets[name], reached[name]) for name in offsets])
        end = writing(Read(ranges), sink, job.writer)
        offsets, receipts = reached, list(LocalEngine(2**20).submit(rewrite(end)).result())
        _keep(kept, repr((epoch, offsets, receipts)))


def _keep(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def copied(runs: int, seed: int) -> tuple[int, int, int]:
    """Kill drivers until one comes to the end; return how many, and how many messages are missing and there twice."""
    chance, killed = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        read, written = Topic(broker.address, _PARTITIONS), Topic(broker.address, 2)
        count = 150 * max(runs, 1)
        for partition in range(_PARTITIONS):
            read.send([f"{partition}.{number}" for number in range(count)], partition)
            read.send([f"no.{partition}"], partition, commit=False)
        command = [sys.executable, "-m", "tests.soak.kafka", "--drive", broker.address, read.name, written.name]
        while True:
            driver = subprocess.Popen([*command, str(Path(folder, "storage"))])
            time.sleep(chance.uniform(*_LIFE) if killed < runs else 0)
            if killed >= runs or driver.poll() is not None:
                break
            driver.kill()
            driver.wait()
            killed += 1
        if driver.wait():
            raise SystemExit(f"a driver failed after {killed} were killed; seed {seed}")
        found = Counter(value.decode() for _, _, value in written.content())
        wanted = {f"{partition}.{number}" for partition in range(_PARTITIONS) for number in range(count)}
        return killed, len(wanted ^ found.keys()), sum(number - 1 for number in found.values())


def main() -> int:
    """Run it, print what was found, and say with the exit code whether anything was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3, help="how many drivers are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--drive", nargs=4, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.drive:
        drive(*wanted.drive)
        return 0
    end_in_order()
    if reason := missing():
        print(reason)
        return 0
    killed, wrong, twice = copied(wanted.runs, wanted.seed)
    print(f"{killed} drivers killed: {wrong} messages missing or foreign, {twice} there twice; seed {wanted.seed}")
    return 1 if wrong or twice else 0


if __name__ == "__main__":
    sys.exit(main())
