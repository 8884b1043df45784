"""Add to each trade, as it comes, what is known of its company: from a list that is read first, and from a map.

The hash join reads all companies, and holds them where the trades are. The map is asked for the tickers that come: the
price limit that somebody changes while the job runs holds for the trades that come after.

python docs/samples/stream_enrichment.py
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

import dstream as ds
from dstream import Pipeline
from dstream.jobs import Job
from reducers import to_ilist
from sources import imap_journal, items

COMPANIES = [("PQD", "Pequod Whaling"), ("RCL", "Rachel Shipping")]


class Known(NamedTuple):
    """A trade with the name of its company."""

    ticker: str
    price: int
    company: str


def enrichment() -> Pipeline:
    """Return a pipeline from the journal of `deals` to the list `described`."""
    pipeline = Pipeline()
    trades = pipeline.read_from(imap_journal("deals", projection=lambda event: event.new_value))
    companies = pipeline.read_from(items(*COMPANIES))
    keys = (lambda trade: trade[0], lambda company: company[0])
    known = trades.hash_join(
        companies, on=keys, to=lambda trade, found: Known(trade[0], trade[1], found[1] if found else "?")
    )
    checked = known.map_using_imap("limits", lambda trade: trade.ticker, described)
    checked.write_to(to_ilist("described"))
    return pipeline


def described(trade: Known, limit: int | None) -> str:
    """Say whether the price is above the limit, if there is one."""
    is_dear = limit is not None and trade.price > limit
    return f"{trade.company} at {trade.price}{', above the limit' if is_dear else ''}"


def wait_for(count: int, described: ds.IStreamList[str], job: Job) -> None:
    """Return when so many trades have been described."""
    while len(described) < count:
        with suppress(TimeoutError):
            job.join(timeout=0.1)  # It raises what the job failed with, if it did.


def main() -> None:
    """Trade, change a limit, and trade again."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        trades, limits, found = ctx.get_map("deals", journal=True), ctx.get_map("limits"), ctx.get_list("described")
        limits.put_all({"PQD": 100, "RCL": 50})
        before = len(found)
        job = ctx.new_job(enrichment(), name="enrichment")
        trades.put_all({1: ("PQD", 90), 2: ("RCL", 60), 3: ("XXX", 10)})
        wait_for(before + 3, found, job)
        limits["PQD"] = 80
        trades[4] = ("PQD", 90)
        wait_for(before + 4, found, job)
        job.cancel()
        for text in found.copy()[before:]:
            print(text)


if __name__ == "__main__":
    main()
