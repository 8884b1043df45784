"""Bring three kinds of events of one user together, minute by minute: what was seen, put into the cart, and paid.

A window closes when the time of all three has passed it, so a source that is behind makes the others wait.

python docs/samples/windowed_co_group.py
"""

from __future__ import annotations

import os
import random
from typing import NamedTuple

import dstream as ds
from collectors import co_operation, counting, summing
from dstream import Pipeline
from dstream.pipeline import KeyedStreamStage
from dstream.windows import tumbling
from reducers import to_ilist
from sources import stream_of

MINUTE = 60_000
KINDS = ("visit", "cart", "payment")


class Event(NamedTuple):
    """What a user did, and what it is worth."""

    time: int
    user: int
    amount: int


def minutes(events: dict[str, list[Event]]) -> Pipeline:
    """Return a pipeline that writes (minute, user, visits, things in the cart, paid) into the list `minutes`."""
    pipeline = Pipeline()

    def of(kind: str) -> KeyedStreamStage[int, Event]:
        read = pipeline.read_from(stream_of(events[kind])).set_name(kind)
        return read.add_timestamps(lambda event: event.time).grouping_key(lambda event: event.user)

    visits, carts, payments = map(of, KINDS)
    together = visits.window(tumbling(MINUTE)).co_aggregate(
        carts, payments, op=co_operation(counting(), counting(), summing(amount_of))
    )
    rows = together.map(lambda found: (found.start // MINUTE, found.key, *found.result))
    rows.write_to(to_ilist("minutes"))
    return pipeline


def amount_of(event: Event) -> int:
    """Return what is summed."""
    return event.amount


def generated(count: int = 500) -> dict[str, list[Event]]:
    """Return the events of ten minutes, by their kind, each in the order of time."""
    chance = random.Random(7)
    events: dict[str, list[Event]] = {kind: [] for kind in KINDS}
    for time in sorted(chance.randrange(10 * MINUTE) for _ in range(count)):
        [kind] = chance.choices(KINDS, [6, 3, 1])
        events[kind].append(Event(time, chance.randrange(5), chance.randint(1, 99)))
    return events


def main() -> None:
    """Print what one user did, minute by minute."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(minutes(generated()), name="windowed-co-group").join()
        for minute, user, visits, carts, paid in sorted(ctx.get_list("minutes")):
            if user == 1:
                print(f"minute {minute}: {visits} visits, {carts} things in the cart, {paid} paid")


if __name__ == "__main__":
    main()
