"""Add to each trade the company that it is about, in three ways: a hash join, a service, a map of the storage.

A hash join reads the other data once and brings all of them to each task. A service is made where the items are, such
as a connection to a database. A map is asked for the keys that come, many at a time; it may be larger than any memory.

python docs/samples/enrichment.py
"""

from __future__ import annotations

import os
import sqlite3
from typing import NamedTuple

import dstream as ds
from dstream import JoinClause, Pipeline, Service
from dstream.pipeline import BatchStage
from reducers import replacing, to_ilist
from sources import items


class Trade(NamedTuple):
    """Somebody bought or sold shares."""

    ticker: str
    shares: int


TRADES = [Trade("PQD", 100), Trade("RCL", 50), Trade("PQD", 70), Trade("XXX", 10)]
COMPANIES = {"PQD": "Pequod Whaling", "RCL": "Rachel Shipping"}
DATABASE = os.path.abspath("companies.db")


def described(trade: Trade, company: str | None) -> str:
    """Say what is known of a trade."""
    return f"{trade.shares} of {company or 'an unknown company'}"


def by_hash_join(trades: BatchStage[Trade]) -> BatchStage[str]:
    """Join the companies, which the pipeline reads as it reads the trades."""
    companies = trades.pipeline.read_from(items(*COMPANIES.items()))
    return trades.hash_join(companies, on=JoinClause.join_map_entries(lambda trade: trade.ticker), to=described)


def by_service(trades: BatchStage[Trade]) -> BatchStage[str]:
    """Ask a database: each task opens a connection before its first trade, and closes it behind the last one."""
    connections = Service(lambda: sqlite3.connect(DATABASE), sqlite3.Connection.close, shared=False)
    return trades.map_using(connections, asked)


def asked(connection: sqlite3.Connection, trade: Trade) -> str:
    """Describe a trade by what the database says."""
    row = connection.execute("select name from companies where ticker = ?", [trade.ticker]).fetchone()
    return described(trade, row and row[0])


def by_map(trades: BatchStage[Trade]) -> BatchStage[str]:
    """Look into the distributed map `companies`."""
    return trades.map_using_imap("companies", lambda trade: trade.ticker, described)


def main() -> None:
    """Fill the database and the map; print the trades once for each way."""
    with sqlite3.connect(DATABASE) as database:
        database.execute("create table if not exists companies (ticker primary key, name)")
        database.executemany("insert or replace into companies values (?, ?)", COMPANIES.items())
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        ctx.get_map("companies").put_all(COMPANIES)
        for way in (by_hash_join, by_service, by_map):
            pipeline = Pipeline()
            pipeline.read_from(items(*TRADES)).apply(way).write_to(replacing(to_ilist(way.__name__)))
            ctx.new_job(pipeline).join()
            print(f"{way.__name__}: {', '.join(ctx.get_list(way.__name__))}")


if __name__ == "__main__":
    main()
