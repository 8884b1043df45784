"""Sort a map into a list, and filter another list out of that one: lists keep the order in which items come.

python docs/samples/sort_and_filter.py
"""

from __future__ import annotations

import os
import random

import dstream as ds
from reducers import replacing, to_ilist


def readings(count: int = 1_000) -> dict[str, int]:
    """Return a temperature for each of so many sensors."""
    chance = random.Random(7)
    return {f"sensor-{number}": chance.randint(-200, 400) for number in range(count)}


def main() -> None:
    """Write the lists `sorted` and `frost`; print their ends."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        temperatures = ctx.get_map("temperatures", key_type=str, value_type=int)
        temperatures.put_all(readings())

        coldest_first = temperatures.stream().map(lambda entry: entry.value).sorted()
        in_order = coldest_first.collect(replacing(to_ilist("sorted")))
        print(f"{len(in_order):,} readings, from {in_order[0] / 10} to {in_order[-1] / 10} degrees")

        # A list is a stream in its order, so what is left over is in order too, without sorting again.
        frost = in_order.stream().filter(lambda tenths: tenths < 0).collect(replacing(to_ilist("frost")))
        print(f"{len(frost):,} below zero, the mildest of them: {[tenths / 10 for tenths in frost[-3:]]}")

        # What has no order keeps none: say `sorted` where it matters.
        hot = temperatures.stream().filter(lambda entry: entry.value > 395).sorted(key=lambda entry: entry.key)
        hot.for_each(lambda entry: print(f"{entry.key} reads {entry.value / 10} degrees"))


if __name__ == "__main__":
    main()
