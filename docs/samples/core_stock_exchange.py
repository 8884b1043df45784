"""Sum the trades of each share over windows that slide, with a graph: time travels among the items, as watermarks.

The trades are generated, and end; some are up to 50 ms late. `stock_exchange.py` does the same without an end.

python docs/samples/core_stock_exchange.py
"""

from __future__ import annotations

import operator
import os
import random

import dstream as ds
from collectors import summing
from dstream.core import DAG, Edge, processors
from dstream.windows import KeyedWindowResult, emit_by_frame, limiting_lag, sliding
from reducers import replacing, to_imap
from sources import items

TICKERS = ["PQD", "RCL", "TWN"]
Trade = tuple[int, str, int]
"""When it was made in milliseconds, of which company, and how many shares."""
MADE, TICKER, SHARES = map(operator.itemgetter, range(3))
WINDOW = sliding(1_000, by=200)


def exchange(trades: list[Trade]) -> DAG:
    """Return a graph that writes the volume of each window into the map `volumes`, by (ticker, end)."""
    dag = DAG()
    volume = summing(SHARES)
    # One processor reads, and one puts the time in: the watermark follows the trades in the order in which they came.
    source = dag.new_vertex("trades", processors.read(items(*trades))).local_parallelism(1)
    inserted = processors.insert_watermarks(timestamps=MADE, policy=limiting_lag(100), emission=emit_by_frame(WINDOW))
    timed = dag.new_vertex("timed", inserted).local_parallelism(1)
    framed = processors.accumulate_by_frame(keys=[TICKER], timestamps=[MADE], window=WINDOW, operation=volume)
    frames = dag.new_vertex("frames", framed)
    windows = dag.new_vertex("windows", processors.combine_to_sliding_window(window=WINDOW, operation=volume))
    named = dag.new_vertex("named", processors.map(by_ticker_and_end))
    sink = dag.new_vertex("sink", processors.write(replacing(to_imap("volumes"))))
    dag.edge(Edge.between(source, timed).isolated())
    dag.edge(Edge.between(timed, frames).partitioned(TICKER))
    dag.edge(Edge.between(frames, windows).distributed().partitioned(operator.attrgetter("key")))
    dag.edge(Edge.between(windows, named))
    return dag.edge(Edge.between(named, sink))


def by_ticker_and_end(found: KeyedWindowResult[str, int]) -> tuple[tuple[str, int], int]:
    """Return what the map is to have of a result."""
    return (found.key, found.end), found.result


def generated(count: int = 3_000) -> list[Trade]:
    """Return trades of three seconds, not quite in the order of their times."""
    chance = random.Random(7)
    return [(n + chance.randint(-50, 50), chance.choice(TICKERS), chance.randint(1, 100)) for n in range(count)]


def main() -> None:
    """Run the graph as a job; print the volumes of the first and the last three whole windows."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.new_job(exchange(generated()), name="core-stock-exchange").join()
        volumes = ctx.get_map("volumes")
        print(f"{len(volumes)} results; shares traded in the second before")
        print("        ms " + "".join(f"{ticker:>8}" for ticker in TICKERS))
        for end in (1_000, 1_200, 1_400, 2_600, 2_800, 3_000):
            print(f"{end:>10} " + "".join(f"{volumes[ticker, end]:>8,}" for ticker in TICKERS))


if __name__ == "__main__":
    main()
