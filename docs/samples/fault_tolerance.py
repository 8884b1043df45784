"""Kill a job in the middle, under each of the three guarantees, and see what its output holds once it has gone on.

Each job reads 600 measurements, keeps what each sensor has measured so far, and writes the average of that for each
measurement. Its driver is a process of its own, which is killed while an epoch runs and is started again, as `dstream
submit --restart always` or a cluster would do. Lost: measurements without an average. Twice: those with more than one.

python docs/samples/fault_tolerance.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from tempfile import mkdtemp
from typing import Any

import dstream as ds
from dstream import JobConfig, Pipeline
from reducers import to_ilist
from sources import stream_of

COUNT = 600
GUARANTEES = ("none", "at-least-once", "exactly-once")


def averages(output: str, *, is_to_die: bool) -> Pipeline:
    """Return a pipeline that writes (number of the measurement, its sensor, average so far) into a list."""
    pipeline = Pipeline()
    numbers = pipeline.read_from(stream_of(range(COUNT), partitions=2)).map(lambda number: measured(number, is_to_die))
    averages = numbers.grouping_key(lambda number: number % 10).map_stateful(list, average).set_name("averages")
    averages.write_to(to_ilist(output))
    return pipeline


def measured(number: int, is_to_die: bool) -> int:
    """Give a measurement on; in the middle of them, wait to be killed."""
    if is_to_die and number == COUNT // 2:
        time.sleep(3600)
    return number


def average(seen: list[int], sensor: int, number: int) -> tuple[int, int, float]:
    """Add what a sensor has measured to what it has, and return the average."""
    seen.append(number % 7)
    return number, sensor, sum(seen) / len(seen)


def drive(guarantee: Any, storage: str, *deadly: str) -> None:
    """Submit the job, or go on with it: this is what the process does that is killed."""
    config = JobConfig(guarantee=guarantee, epoch_length=0.1, max_items=50)
    with ds.connect(engine="local", storage=storage) as ctx:
        ctx.new_job(averages(guarantee, is_to_die=bool(deadly)), name=guarantee, config=config).join()


def main() -> None:
    """Kill each job once a third of its output is there, let it go on, and print what is lost and what is twice."""
    storage = mkdtemp()
    for guarantee in GUARANTEES:
        command = [sys.executable, __file__, guarantee, storage]
        with ds.connect(engine="local", storage=storage) as ctx:
            output = ctx.get_list(guarantee)
            with subprocess.Popen([*command, "deadly"]) as driver:
                while driver.poll() is None and len(output) < COUNT // 3:
                    time.sleep(0.05)
                driver.kill()
            subprocess.run(command, check=True)
            found = Counter(number for number, _, _ in output)
        twice = sum(times > 1 for times in found.values())
        print(f"{guarantee:>13}: {COUNT - len(found):>3} lost, {twice:>4} twice")


if __name__ == "__main__":
    drive(*sys.argv[1:]) if sys.argv[1:] else main()
