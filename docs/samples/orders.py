"""Read orders from CSV with bad lines, add names from a database, and find the best customer of each month.

pip install 'dstream-spark[sql]'
python docs/samples/orders.py
python docs/samples/orders.py "orders/*.csv" postgresql://user@host/shop
"""

from __future__ import annotations

import operator
import os
import sqlite3
import sys
import tempfile
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import dstream as ds
from reducers import replacing, to_files, to_ilist, to_imap
from sources import csv_rows, sql_rows

EXAMPLE = """\
\ufeffid,customer,amount,day,note
1,A1,12.50,2026-01-03,
2,B2,40.00,2026-01-09,"tea, green"
3,A1,4 EUR,2026-01-10,
4,A1,30.25,2026-01-31,
5,B2,7.10,2026-02-01
6,C3,19.90,2026-02-14,gift
"""


class Order(NamedTuple):
    """A row, of which the other columns are left out."""

    customer: str
    amount: Decimal
    day: date


class Spent(NamedTuple):
    """What a customer spent in a month; of one month, more is greater."""

    month: str
    amount: Decimal
    name: str


def main(orders: str, shop: str) -> None:
    """Print a small report, and leave the sums in Parquet and the best customers in a map."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        rows = ctx.read(csv_rows(orders, kind=Order, into=replacing(to_ilist("bad-orders"))))
        names = ctx.read(sql_rows(shop, "SELECT id, name FROM customers"))
        named = rows.join(names, on=(lambda order: order.customer, lambda row: row.id), how="left").values()
        sums = named.starmap(lambda buy, row: ((str(buy.day)[:7], row.name if row else buy.customer), buy.amount))
        spent = sums.reduce_by_key(operator.add).map(lambda e: Spent(e.key[0], e.value, e.key[1])).cache()
        spent.collect(replacing(to_files("spent", format="parquet")))
        best = spent.collect(replacing(to_imap("best", lambda each: each.month, lambda each: each, max)))
        for month, each in sorted(best.items()):
            print(f"{month}: {each.name} spent {each.amount:.2f}")
        for bad in ctx.get_list("bad-orders").stream().map(lambda letter: letter.item):
            print(f"line {bad.line} is left out: {bad.text}")


def example() -> tuple[str, str]:
    """Write the example into a file and a database; return the path and the URL."""
    folder = Path(tempfile.mkdtemp())
    (folder / "orders.csv").write_text(EXAMPLE, encoding="utf-8")
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.execute("CREATE TABLE customers (id TEXT, name TEXT)")
        shop.executemany("INSERT INTO customers VALUES (?, ?)", [("A1", "Ada"), ("B2", "Grace")])
    shop.close()
    return str(folder / "orders.csv"), f"sqlite:///{folder / 'shop.db'}"


if __name__ == "__main__":
    main(*(sys.argv[1:] or example()))
