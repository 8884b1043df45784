"""Read orders from CSV with bad lines, and find who spent most in each month.

python docs/samples/orders.py
python docs/samples/orders.py "orders/*.csv"
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import dstream as ds
from collectors import grouping_by, summing
from reducers import replacing, to_files, to_ilist, to_imap
from sources import csv_rows

EXAMPLE = """\
\ufeffid,customer,amount,day,note
1,A1,12.50,2026-01-03,
2,B2,40.00,2026-01-09,"tea, green"
3,A1,4 EUR,2026-01-10,
4,A1,30.25,2026-01-31,
5,B2,7.10,2026-02-01
6,C3,19.90,2026-02-14,gift
"""
NAMES = {"A1": "Ada", "B2": "Grace"}


@dataclass
class Order:
    """A row, of which the other columns are left out."""

    customer: str
    amount: Decimal
    day: date


class Spent(NamedTuple):
    """What a customer spent in a month."""

    month: str
    name: str
    amount: float


def main(paths: list[str]) -> None:
    """Print a small report, and leave the sums in files and in a map."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        orders = ctx.read(csv_rows(paths, kind=Order, into=replacing(to_ilist("bad-orders"))))
        sums = orders.collect(
            grouping_by(lambda order: f"{order.day:%Y-%m} {order.customer}", summing(lambda order: order.amount))
        )
        spent = (
            ctx.stream(sums.items())
            .map(lambda pair: Spent(pair[0][:7], NAMES.get(pair[0][8:], pair[0][8:]), float(pair[1])))
            .cache()
        )

        spent.collect(replacing(to_files("spent", format="json")))
        best = spent.collect(replacing(to_imap("best", lambda each: each.month, lambda each: each, more)))
        for month, each in sorted(best.items()):
            print(f"{month}: {each.name} spent {each.amount:.2f}")
        for letter in ctx.get_list("bad-orders"):
            print(f"line {letter.item.line} is left out: {letter.item.text}")


def more(one: Spent, other: Spent) -> Spent:
    """Return the one who spent more."""
    return max(one, other, key=lambda each: each.amount)


def example() -> str:
    """Write the example to a file and return its path."""
    path = Path(tempfile.mkdtemp()) / "orders.csv"
    path.write_text(EXAMPLE, encoding="utf-8")
    return str(path)


if __name__ == "__main__":
    main(sys.argv[1:] or [example()])
