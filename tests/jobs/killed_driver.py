"""A driver that stops at a point of its job and waits to be killed: `python killed_driver.py STORAGE POINT`.

It is run by tests and by the soak of jobs, which submit the same pipeline again and look at the sinks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import dstream as ds
from dstream.jobs import Job
from dstream.jobs.lease import Lease
from dstream.jobs.records import EpochRecord
from reducers import to_ilist
from tests.jobs.planned import Interrupted, plan_of

__all__ = ["NAME", "POINTS", "submitted"]

NAME = "sales"
POINTS = ("reading", "written", "decided", "between", "published")
ITEMS = range(100)


def submitted(ctx: ds.Context, at: Callable[[str], object] = bool) -> Job:
    """Submit the job; `at` is told each point that it reaches."""

    def reading(item: int) -> int:
        if item == 50:
            at("reading")
        return item

    stream = ctx.stream(ITEMS).map(reading)
    decided, between = Interrupted(lambda _: at("decided")), Interrupted(lambda _: at("between"), "third")
    return ctx.new_job(plan_of(stream, decided, to_ilist("second"), between), name=NAME)


def main() -> None:
    """Wait at the point."""
    storage, point = sys.argv[1:]

    def at(reached: str) -> None:
        if reached == point:
            print(reached, flush=True)
            time.sleep(3600)

    _tell(EpochRecord, "commit", lambda *given: at("written"))
    _tell(Lease, "end", lambda lease, status: at("published"))
    with ds.connect(engine="local", storage=storage) as ctx:
        submitted(ctx, at).join()


def _tell(kind: Any, name: str, before: Callable[..., object]) -> None:
    method = getattr(kind, name)

    def told(self: Any, *given: Any) -> Any:
        before(self, *given)
        return method(self, *given)

    setattr(kind, name, told)


if __name__ == "__main__":
    main()
