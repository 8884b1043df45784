"""Cut what people do on a web site into sessions: a visit ends when nothing comes from somebody for 30 minutes.

python docs/samples/sessions.py
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import dstream as ds
from collectors import all_of, counting, filtering, mapping, to_set
from dstream import Pipeline
from dstream.windows import session
from reducers import to_ilist
from sources import stream_of


class Click(NamedTuple):
    """Somebody looked at a page, or bought what it shows."""

    at: datetime
    user: str
    page: str
    is_purchase: bool


def visits(clicks: list[Click]) -> Pipeline:
    """Return a pipeline that writes (user, start, end, clicks, purchases, pages) of each visit into a list."""
    pipeline = Pipeline()
    timed = pipeline.read_from(stream_of(clicks)).add_timestamps(lambda click: click.at, timedelta(minutes=5))
    of_user = timed.grouping_key(lambda click: click.user).window(session(timedelta(minutes=30)))
    bought = filtering(lambda click: click.is_purchase, counting())
    seen = of_user.aggregate(all_of(counting(), bought, mapping(page_of, to_set())))
    rows = seen.map(lambda visit: (visit.key, visit.start, visit.end, *visit.result))
    rows.write_to(to_ilist("visits"))
    return pipeline


def page_of(click: Click) -> str:
    """Return what was looked at."""
    return click.page


def generated(count: int = 400) -> list[Click]:
    """Return the clicks of a day, up to five minutes out of order."""
    chance, day = random.Random(7), datetime(2026, 10, 10, tzinfo=UTC)
    clicks = []
    for _ in range(count // 8):
        begin, user = day + timedelta(minutes=chance.uniform(0, 20 * 60)), chance.choice("abc")
        for _ in range(8):
            begin += timedelta(minutes=chance.expovariate(1 / 5))
            clicks.append(Click(begin, user, chance.choice(["hats", "boots", "cart"]), chance.random() < 0.1))
    return sorted(clicks, key=lambda click: click.at + timedelta(minutes=chance.uniform(0, 5)))


def main() -> None:
    """Print the longest visits of the day."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(visits(generated()), name="sessions").join()
        found = ctx.get_list("visits").copy()
        print(f"{len(found)} visits")
        for user, start, end, clicks, bought, pages in sorted(found, key=lambda visit: visit[1] - visit[2])[:5]:
            minutes = (end - start) // 60_000 - 30  # A session lasts until its timeout has passed.
            print(f"{user}: {minutes:>3} minutes, {clicks:>2} clicks, {bought} purchases, {', '.join(sorted(pages))}")


if __name__ == "__main__":
    main()
