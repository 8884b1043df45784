"""Watch trades as they are written into a map: how much of each share changed hands in the last second, all the time.

The journal of the map has every trade and never ends. A window of a second slides over it in steps of 200 ms, by the
time in the trades, some of which come up to 50 ms too early or too late. The job is cancelled once it has seen all.

python docs/samples/stock_exchange.py
"""

from __future__ import annotations

import os
import random
from contextlib import suppress

import dstream as ds
from collectors import summing
from dstream import Pipeline
from dstream.windows import sliding
from reducers import to_imap
from sources import imap_journal

TICKERS = ["PQD", "RCL", "TWN"]
Trade = tuple[int, str, int]
"""When it was made in milliseconds, of which company, and how many shares."""


def exchange() -> Pipeline:
    """Return a pipeline that writes the volume of each window into the map `volumes`, by (ticker, end)."""
    pipeline = Pipeline()
    trades = pipeline.read_from(imap_journal("trades", projection=lambda event: event.new_value))
    of_tickers = trades.add_timestamps(lambda trade: trade[0], allowed_lag=150).grouping_key(lambda trade: trade[1])
    volumes = of_tickers.window(sliding(1_000, by=200)).aggregate(summing(lambda trade: trade[2]))
    volumes.write_to(to_imap("volumes", lambda found: (found.key, found.end), lambda found: found.result))
    return pipeline


def generated(count: int = 3_000) -> list[Trade]:
    """Return trades of three seconds, not quite in the order of their times."""
    chance = random.Random(7)
    return [(n + chance.randint(-50, 50), chance.choice(TICKERS), chance.randint(1, 100)) for n in range(count)]


def main() -> None:
    """Publish the trades while the job runs; print the results of the windows for the last second."""
    trades = generated()
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        book = ctx.get_map("trades", journal=True)
        job = ctx.new_job(exchange(), name="stock-exchange")
        for first in range(0, len(trades), 25):  # What is put at once comes in any order.
            book.put_all({n: trades[n] for n in range(first, first + 25)})
        seen = max(trades)[0] - 150  # Windows that end later may still get a trade.
        while (job.clock or 0) < seen:
            with suppress(TimeoutError):
                job.join(timeout=0.1)  # It raises what the job failed with, if it did.
        job.cancel()
        volumes = ctx.get_map("volumes")
        last = max(end for _, end in volumes if end <= seen)
        print(f"{job.metrics().stages['aggregate'].items_out} results until {seen} ms")
        for ticker in TICKERS:
            print(f"{ticker}: {volumes[ticker, last]:>6,} shares in the second before {last} ms")


if __name__ == "__main__":
    main()
