"""A driver of a job without an end that is killed: `python killed_endless.py STORAGE FOLDER`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dstream as ds
from dstream.jobs import Job
from reducers import to_ilist
from tests.jobs.unbounded.summing import FrameSums, Lagging
from tests.jobs.unbounded.timed_plans import summing_plan

__all__ = ["MOST", "submitted"]

MOST = 2000
"""Numbers of the source, which are their own timestamps."""
_PER_REACH = 7


@dataclass(frozen=True)
class _Numbers:
    first: int
    stop: int

    def read(self) -> Iterator[int]:
        return iter(range(self.first, self.stop))


@dataclass(frozen=True)
class Counting:
    """The numbers up to `MOST`, a few more each time that somebody asks."""

    most: int
    label = "counting()"
    ends = True

    def begin(self) -> Mapping[str, int]:
        """Begin with 0."""
        return {"0": 0}

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Give a few."""
        reached = {name: min(self.most, offset + _PER_REACH) for name, offset in offsets.items()}
        return {name: there for name, there in reached.items() if there > offsets[name]}

    def split(self, partition: str, start: int | None, stop: int) -> _Numbers:
        """Return a range."""
        return _Numbers(start or 0, stop)


def submitted(ctx: ds.Context, most: int = MOST) -> Job:
    """Submit the job: sums of frames of ten numbers into a list."""
    config: Any = ds.JobConfig(epoch_length=0.001)
    return ctx.new_job(summing_plan(Counting(most), Lagging, FrameSums(), to_ilist("sums")), name="sums", config=config)


def main() -> None:
    """Say when some epochs are there, and go on."""
    with ds.connect(engine="local", storage=sys.argv[1]) as ctx:
        job = submitted(ctx)
        while job.epoch < 5:
            time.sleep(0.001)
        print("five", flush=True)
        job.join()


if __name__ == "__main__":
    main()
