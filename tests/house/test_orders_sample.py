"""The sample of orders on files and a PostgreSQL, against what plain Python makes of the same."""

from __future__ import annotations

import csv
import random
import sys
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal

import psycopg
import pytest

from sources import parquet_rows
from tests.house.test_samples import sample, stored

CUSTOMERS = {"A1": "Ada", "B2": "Zoë O'Hara", "D4": 'Grace "G" Hopper'}
BAD = {17: "12 EUR", 18: "", 60: "1,5"}
"""Amounts that are none, by the number of the order."""


@pytest.fixture
def shop(postgresql):
    """The URL of a database whose table of customers has not all of those who order."""
    with psycopg.connect(host=postgresql.rpartition("=")[2], user="postgres", autocommit=True) as connection:
        connection.execute("CREATE TABLE customers (id VARCHAR(5) PRIMARY KEY, name TEXT NOT NULL, since TIMESTAMPTZ)")
        connection.cursor().executemany("INSERT INTO customers VALUES (%s, %s, now())", list(CUSTOMERS.items()))
        yield postgresql
        connection.execute("DROP TABLE customers")


def orders():
    """Return rows of two years, each with a note that may hold what separates others; a few have bad amounts."""
    chance = random.Random(17)
    for number in range(200):
        amount = BAD.get(number, f"{Decimal(chance.randrange(10**6)) / 100:.2f}")
        day = date(2025, 1, 1) + timedelta(chance.randrange(730))
        customer, note = chance.choice(["A1", "B2", "C3", "D4"]), chance.choice(["", "a, b", 'say "é"\nagain'])
        yield [number, customer, amount, day, note]


def test_the_sample_of_orders_finds_what_plain_python_does(output_of, shop, tmp_path, monkeypatch):
    """Two files with a mark of UTF-8, bad lines, customers that are unknown; sums in Parquet, the best in a map."""
    rows = list(orders())
    for name, some in ("a", rows[:90]), ("b", rows[90:]):
        with (tmp_path / f"{name}.csv").open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows([["id", "customer", "amount", "day", "note"], *some])
    output = output_of("orders.py", "*.csv", shop, folder=tmp_path)

    spent = Counter[tuple[str, str]]()
    for number, customer, amount, day, _ in rows:
        if number not in BAD:
            spent[f"{day:%Y-%m}", CUSTOMERS.get(customer, customer)] += Decimal(amount)
    best = {month: max((s, name) for (m, name), s in spent.items() if m == month) for month, _ in spent}
    with stored(tmp_path) as ctx:
        found = ctx.read(parquet_rows(tmp_path / "spent")).to_list()
        assert {(row["month"], row["name"]): row["amount"] for row in found} == dict(spent)
        monkeypatch.setattr(sys.modules["__main__"], "Spent", sample("orders.py")["Spent"], raising=False)
        assert {month: (each.amount, each.name) for month, each in ctx.get_map("best").items()} == best
        letters = [letter.item.text for letter in ctx.get_list("bad-orders")]
    assert sorted(int(text.partition(",")[0]) for text in letters) == sorted(BAD)
    assert [line for line in output.splitlines() if "spent" in line] == [
        f"{month}: {name} spent {amount:.2f}" for month, (amount, name) in sorted(best.items())
    ]
