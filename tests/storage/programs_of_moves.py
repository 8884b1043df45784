"""A program that writes to storages, or reads what an older tree of modules has written there.

It is called with `write` or `read`, and with the mode of pickles and the URL of each storage: `trusted@URL`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import dstream as ds
from collectors import averaging, counting
from dstream.jobs import Job, JobStatus
from dstream.windows import KeyedWindowResult, tumbling
from reducers import to_ilist

VALUES = {
    "entry": ds.Entry("a", 1),
    "mixed": [ds.Entry(1, {2}), ds.Optional.of(3)],
    "read only": MappingProxyType({"a": 1}),
    "window": KeyedWindowResult(0, 10, "k", 5),
    "class": ds.Entry,
}


class Numbers:
    """A source without an end that has as many numbers as it is made with; an offset is a number of them."""

    ends = False
    label = "numbers()"

    def __init__(self, count: int) -> None:
        self.count = count

    def begin(self) -> Mapping[str, int]:
        """Start at the first number."""
        return {"0": 0}

    def reach(self, offsets: Mapping[str, int], most: int | None = None) -> Mapping[str, int]:
        """Return how many there are."""
        return {"0": self.count}

    def split(self, partition: str, start: int | None, stop: int) -> Any:
        """Return a range."""
        return Range(range(start or 0, stop))


class Range:
    """A range of the numbers."""

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def read(self) -> Iterator[int]:
        """Read it."""
        return iter(self.numbers)


def pipeline(count: int) -> ds.Pipeline:
    """Return a pipeline with state of several steps."""
    made = ds.Pipeline()
    stage = made.read_from(Numbers(count), "numbers").add_timestamps(int, 2).set_name("time")
    counted = stage.window(tumbling(10)).aggregate(averaging()).set_name("averages")
    counted.map(lambda each: (each.start, each.result)).set_name("pairs").write_to(to_ilist("windows"))
    parity = stage.grouping_key(lambda number: number % 2).rolling_aggregate(counting()).set_name("counts")
    parity.write_to(to_ilist("counts"))
    return made


def write(ctx: ds.Context) -> None:
    """Write collections, a job with state that was suspended, and a snapshot of it."""
    values: Any = ctx.get_map("values")
    values.put_all(VALUES)
    ctx.get_map("of entries", value_type=ds.Entry[str, str]).put("a", ds.Entry("b", "c"))
    ctx.get_map("by entry").put(ds.Entry("k", 1), "an entry")
    ctx.get_list("entries").add_all([ds.Entry(1, 2), ds.Entry(3, 4)])
    job = ctx.new_job(pipeline(25), name="job")
    wait(lambda: job.epoch >= 1)
    job.export_snapshot("then")
    job.suspend()
    wait(lambda: job.status is JobStatus.SUSPENDED)


def read(ctx: ds.Context) -> None:
    """Read all of it, and go on with the job and with the snapshot."""
    values: Any = ctx.get_map("values")
    assert dict(values.items()) == VALUES, dict(values.items())
    assert ctx.get_map("of entries", value_type=ds.Entry[str, str]).get("a") == ds.Entry("b", "c")
    assert ctx.get_map("by entry").get(ds.Entry("k", 1)) == "an entry"
    assert list(ctx.get_list("entries")) == [ds.Entry(1, 2), ds.Entry(3, 4)]
    windows = ctx.get_list("windows")
    assert list(windows) == [(0, 4.5), (10, 14.5)], list(windows)
    job = ctx.new_job(pipeline(35), name="job")
    job.resume()
    wait(lambda: job.epoch >= 2)
    end(job)
    other = ctx.new_job(pipeline(35), name="other", config=ds.JobConfig(initial_snapshot="then"))
    wait(lambda: other.epoch >= 1)
    end(other)
    assert list(windows)[2:] == [(20, 24.5)] * 2, list(windows)
    assert [entry.value for entry in ctx.get_list("counts")][-1] == 17


def end(job: Job) -> None:
    """Cancel a job."""
    job.cancel()
    wait(lambda: job.status is JobStatus.CANCELLED)


def wait(is_so: Any) -> None:
    """Wait until something holds."""
    from time import monotonic, sleep

    until = monotonic() + 40
    while not is_so():
        assert monotonic() < until, "it does not become so"
        sleep(0.01)


if __name__ == "__main__":
    what, *places = sys.argv[1:]
    for place in places:
        mode, _, url = place.partition("@")
        with ds.connect(engine="local", storage=url, pickle=mode) as context:  # type: ignore[arg-type]
            {"write": write, "read": read}[what](context)
    print("done")
