"""K1: messages of Kafka into records, and records into a topic, by a broker of the tests.

The broker works beside them on the same cores, so what counts is the CPU of the process that reads or writes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from reducers import to_kafka
from sources import Range, kafka
from tests.benchmarks.harness import Bench, Row
from tests.servers.kafka_broker import missing, running_broker
from tests.servers.topics import Topic

__all__ = ["rows"]

_GOAL = 700_000


def rows(bench: Bench, runs: int) -> list[Row]:
    """Return messages of 100 bytes a second and core: read into records, and sent in either way."""
    if reason := missing():
        return [("K1", reason, "", "", "", "", "", "", "")]
    count = bench.size(1_000_000, 20_000)
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder)) as broker:
        topic, config = Topic(broker.address), {"bootstrap.servers": broker.address}
        _fill(topic, count)
        source = kafka(topic.name, config, until="latest")

        def read() -> int:
            return sum(len(items) for split in source.splits(1) for items in split.read_blocks())  # type: ignore[attr-defined]

        def sent(guarantee: str) -> Callable[[], int]:
            sink = to_kafka(Topic(broker.address).name, config, value=lambda n: b"x" * 100, guarantee=guarantee)  # type: ignore[arg-type]
            return lambda: bench.local.read(Range(0, count)).collect(sink) or count

        ways = {
            "read into records": read,
            "sent at least once": sent("at-least-once"),
            "sent once": sent("exactly-once"),
        }
        return [_row(name, way, count, runs, _GOAL if way is read else None) for name, way in ways.items()]


def _fill(topic: Topic, count: int) -> None:
    producer = Producer({**topic.config, "linger.ms": 20, "log_level": 0})
    for number in range(count):
        while True:
            try:
                producer.produce(topic.name, value=b"x" * 100, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def _row(name: str, way: Callable[[], int], count: int, runs: int, goal: int | None) -> Row:
    """Return the best of a few runs: the broker and the machine slow down the others."""
    best, wall = 0.0, 0.0
    for _ in range(runs + 1):
        cpu, start = time.process_time(), time.monotonic()
        assert way() == count
        cpu, taken = time.process_time() - cpu, time.monotonic() - start
        if count / cpu > best:
            best, wall = count / cpu, taken
    met = "" if goal is None else "yes" if best >= goal else "no"
    wanted = "" if goal is None else f"{goal:,} a CPU s"
    note = f"{best:,.0f} a CPU s, {count / wall:,.0f} a second"
    return ("K1", f"{name}, {count:,}", f"{count / best:.2f}", f"{wall:.2f}", "", "", wanted, met, note)
