"""Find the shares whose price rises and falls fastest: windows over the results of windows.

A window of ten seconds that moves by one gives the trend of each share, and a result has the time of the last instant
of its window. So windows of one second hold the trends of all shares at one moment, and the best of them are chosen.

python docs/samples/top_stocks.py
"""

from __future__ import annotations

import os
import random
from typing import NamedTuple

import dstream as ds
from collectors import all_of, bottom_n, linear_trend, top_n
from dstream import Pipeline
from dstream.windows import KeyedWindowResult, sliding, tumbling
from reducers import to_imap
from sources import stream_of

SECOND = 1_000
Trend = KeyedWindowResult[str, float]


class Trade(NamedTuple):
    """Somebody paid a price for a share."""

    time: int
    ticker: str
    price: float


def ranking(trades: list[Trade]) -> Pipeline:
    """Return a pipeline that writes into the map `ranking` the two that rise and the one that falls most, by second."""
    pipeline = Pipeline()
    timed = pipeline.read_from(stream_of(trades)).add_timestamps(lambda trade: trade.time)
    of_share = timed.grouping_key(lambda trade: trade.ticker).window(sliding(10 * SECOND, by=SECOND))
    trends = of_share.aggregate(linear_trend(lambda trade: trade.time / SECOND, lambda trade: trade.price))
    known = trends.filter(lambda trend: trend.result == trend.result)  # One trade alone has no trend: NaN.
    best = known.window(tumbling(SECOND)).aggregate(all_of(top_n(2, slope), bottom_n(1, slope)))
    best.write_to(to_imap("ranking", lambda found: found.end, lambda found: found.result))
    return pipeline


def slope(trend: Trend) -> float:
    """Return what is compared: the change of the price in a second."""
    return trend.result


def generated(seconds: int = 60) -> list[Trade]:
    """Return trades of five shares, each of which goes its own way."""
    chance = random.Random(7)
    prices = dict.fromkeys(("PQD", "RCL", "TWN", "AHB", "ISH"), 100.0)
    trades = []
    for time in range(0, seconds * SECOND, 250):
        for ticker in chance.sample(sorted(prices), 3):
            prices[ticker] += chance.uniform(-1, 1)
            trades.append(Trade(time, ticker, round(prices[ticker], 2)))
    return trades


def main() -> None:
    """Print the ranking of some seconds; the job ends, because the list of trades does."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(ranking(generated()), name="top-stocks").join()
        ranked = sorted(ctx.get_map("ranking").items())
        for end, (rising, falling) in ranked[10::10]:
            shown = ", ".join(f"{trend.key} {trend.result:+.2f}" for trend in [*rising, *falling])
            print(f"at {end // SECOND:>2} s: {shown}")


if __name__ == "__main__":
    main()
