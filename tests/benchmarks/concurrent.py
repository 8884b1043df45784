"""How long calls to a slow service take: 1,000 of 50 ms by two tasks with 50 in flight each. Prints the figures.

Run it with `python -m tests.benchmarks.concurrent`. One after the other they would take 50 seconds; half a second is
what the waiting alone takes. The goal is less than two.
"""

from __future__ import annotations

import statistics
import time

import dstream as ds
from dstream.gatherers import map_concurrent
from tests.stream.test_calling_services import Service, asynchronous, plain

__all__: list[str] = []

_CALLS = 1000
_ROUNDS = 5


def main() -> None:
    """Warm the workers up, then run each kind of function a few times."""
    with ds.connect("local[2]", progress=False) as ctx, Service(pause=0.05) as service:
        for kind in (plain, asynchronous):
            ask = kind(service.server_port)
            ctx.stream(range(4), 2).gather(map_concurrent(2, ask)).to_list()
            seconds = [_seconds(ctx, ask) for _ in range(_ROUNDS)]
            print(f"{kind.__name__}: {statistics.median(seconds):.2f} s (of {min(seconds):.2f} to {max(seconds):.2f})")


def _seconds(ctx: ds.Context, ask: object) -> float:
    started = time.perf_counter()
    answers = ctx.stream(range(_CALLS), 2).gather(map_concurrent(50, ask)).to_list()  # type: ignore[call-overload]
    assert answers == list(range(_CALLS))
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
