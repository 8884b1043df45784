"""Drivers of a job that reads a topic of Kafka and writes two, killed anywhere: nothing may be missing or there twice.

python -m tests.soak.kafka --runs 60
python -m tests.soak.kafka --runs 30 --engine spark

One topic gets the messages as they are, the other how many there are in each window; both in every epoch. A driver that
is killed is followed by another one with the same job.
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
from typing import Any

import dstream as ds
from collectors import counting
from dstream.windows import tumbling
from reducers import to_kafka
from sources import kafka
from tests.servers.kafka_broker import missing, running_broker
from tests.servers.topics import Topic
from tests.soak._ending import end_in_order

_PARTITIONS = 3
_FRAME = 10
_LIFE = {"local": (1.0, 3.0), "spark": (8.0, 16.0)}
"""Seconds that a driver has."""
_STEP = {"local": 6, "spark": 40}
"""Messages of a partition in an epoch."""
_PATIENCE = 300.0
"""Seconds that the last driver has."""


def pipeline_of(address: str, read: str, copied: str, counted: str) -> ds.Pipeline:
    """Return the job: messages are `partition.number`, and the number is their time."""
    config, pipeline = {"bootstrap.servers": address}, ds.Pipeline()
    values = pipeline.read_from(kafka(read, config, value=bytes.decode)).map(lambda record: record.value)
    values.write_to(to_kafka(copied, config, value=str))
    counts = values.add_timestamps(_number, idle_timeout=3600).window(tumbling(_FRAME)).aggregate(counting())
    counts.write_to(to_kafka(counted, config, value=lambda each: f"{each.start}: {each.result}"))
    return pipeline


def _number(value: str) -> int:
    return int(value.partition(".")[2])


def drive(address: str, read: str, copied: str, counted: str, folder: str, engine: str) -> None:
    """Run the job until somebody ends it."""
    config = ds.JobConfig(epoch_length=0.05, max_items=_STEP[engine], auto_restart=(1000, 0.1))
    place = f"{folder}/storage"
    with (
        ds.connect(engine="local", storage=place)
        if engine == "local"
        else ds.connect("local[2,4]", storage=place, progress=False)
    ) as ctx:
        ctx.new_job(pipeline_of(address, read, copied, counted), name="copy", config=config).join()


def copied(runs: int, seed: int, engine: str) -> tuple[int, int, int]:
    """Kill drivers; return how many, how many messages are missing or foreign, and how many are there again."""
    chance, killed = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        read, copy, counts = (Topic(broker.address, partitions) for partitions in (_PARTITIONS, 2, 1))
        count = _FRAME * 15 * max(runs, 1)
        for partition in range(_PARTITIONS):
            read.send([f"{partition}.{number}" for number in range(count)], partition)
            read.send([f"no.{partition}"], partition, commit=False)
            read.send([f"{partition}.{count}"], partition)  # It closes the last window.
        names = [broker.address, read.name, copy.name, counts.name, folder, engine]
        command = [sys.executable, "-m", "tests.soak.kafka", "--drive", *names]
        while killed < runs:
            driver = subprocess.Popen(command)
            time.sleep(chance.uniform(*_LIFE[engine]))
            if driver.poll() is not None:
                raise SystemExit(f"a driver ended after {killed} were killed; seed {seed}")
            driver.kill()
            driver.wait()
            killed += 1
        messages = Counter(f"{partition}.{number}" for partition in range(_PARTITIONS) for number in range(count + 1))
        frames = Counter(f"{start}: {_FRAME * _PARTITIONS}" for start in range(0, count, _FRAME))
        driver = subprocess.Popen(command)
        last = time.monotonic() + _PATIENCE
        while driver.poll() is None and time.monotonic() < last:
            if sum(map(_size, (copy, counts))) >= messages.total() + frames.total():
                break
            time.sleep(0.5)
        time.sleep(2)  # What is there twice may come late.
        driver.kill()
        driver.wait()
        found = [Counter(value.decode() for _, _, value in topic.content()) for topic in (copy, counts)]
        wrong = sum(len(one.keys() ^ other.keys()) for one, other in zip(found, (messages, frames), strict=True))
        return killed, wrong, sum(number - 1 for each in found for number in each.values())


def _size(topic: Topic) -> int:
    return len(topic.content())


def main() -> int:
    """Run it, print what was found, and say with the exit code whether anything was wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3, help="how many drivers are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--drive", nargs=6, help=argparse.SUPPRESS)
    wanted: Any = parser.parse_args()
    if wanted.drive:
        drive(*wanted.drive)
        return 0
    end_in_order()
    if reason := missing():
        print(reason)
        return 0
    killed, wrong, again = copied(wanted.runs, wanted.seed, wanted.engine)
    print(f"{killed} drivers killed: {wrong} messages missing or foreign, {again} there again; seed {wanted.seed}")
    return 1 if wrong or again else 0


if __name__ == "__main__":
    sys.exit(main())
