"""E4: rows of CSV and lines of JSON into dataclasses, beside what one would write by hand.

One file each. By hand is strict about nothing: it takes `1_0` for a number, and names no line when one does not fit.
"""

from __future__ import annotations

import csv
import datetime
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors import summing
from sources import csv_rows, json_lines
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

_DAY = datetime.date(2020, 1, 1)


@dataclass
class Order:
    """What a row becomes."""

    id: int
    customer: str
    amount: float
    day: datetime.date
    note: str | None


def cases(bench: Bench) -> list[Case]:
    """Return the cases of a small file, of which a job on Spark is a good part, and of a large one."""
    return [
        each for count in (bench.size(300_000, 20_000), bench.size(2_000_000, 40_000)) for each in _of(bench, count)
    ]


def _of(bench: Bench, count: int) -> list[Case]:
    """Return the cases of so many orders: CSV, and JSON with and without a class."""
    rows, lines = _files(bench.folder, count)

    def on_local(source: Any, ids: Callable[[Any], int]) -> Callable[[], int]:
        return lambda: bench.local.read(source).collect(summing(ids))

    def on_spark(source: Any, ids: Callable[[Any], int]) -> Callable[[], int]:
        return lambda: bench.ctx.read(source).collect(summing(ids))

    def csv_by_hand() -> int:
        with open(rows, encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            next(reader)
            return sum(_order(row).id for row in reader)

    def json_by_hand() -> int:
        with open(lines, encoding="utf-8") as file:
            return sum(map(_id_of_dictionary, map(json.loads, file)))

    def orders_by_hand() -> int:
        with open(lines, encoding="utf-8") as file:
            return sum(_order_of(json.loads(line)).id for line in file)

    def case(title: str, source: Any, ids: Callable[[Any], int], rival: Contestant) -> Case:
        ours = Contestant("dstream, local engine", on_local(source, ids), uses_spark=False)
        also = Contestant("dstream on Spark", on_spark(source, ids))
        return Case("E4", f"{title}, {count / 1e6:g} M", ours, [rival], [also])

    return [
        case(
            "CSV into a dataclass",
            csv_rows(rows, Order),
            _id_of_order,
            Contestant("csv and the constructor", csv_by_hand, goal=1.3, uses_spark=False),
        ),
        case(
            "JSON lines",
            json_lines(lines),
            _id_of_dictionary,
            Contestant("json.loads", json_by_hand, goal=1.0, uses_spark=False),
        ),
        case(
            "JSON lines into a dataclass",
            json_lines(lines, Order),
            _id_of_order,
            Contestant("json.loads and the constructor", orders_by_hand, goal=1.3, uses_spark=False),
        ),
    ]


def _id_of_order(order: Order) -> int:
    return order.id


def _id_of_dictionary(order: dict[str, Any]) -> int:
    found: int = order["id"]
    return found


def _order(row: list[str]) -> Order:
    return Order(int(row[0]), row[1], float(row[2]), datetime.date.fromisoformat(row[3]), row[4] or None)


def _order_of(found: dict[str, Any]) -> Order:
    day = datetime.date.fromisoformat(found["day"])
    return Order(found["id"], found["customer"], found["amount"], day, found["note"])


def _files(folder: Path, count: int) -> tuple[Path, Path]:
    """Return the same orders as CSV and as JSON lines, made once."""
    rows, lines = folder / f"orders-{count}.csv", folder / f"orders-{count}.jsonl"
    if not lines.exists():
        orders = list(_orders(count))
        with open(rows, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([list(orders[0]), *(order.values() for order in orders)])
        with open(lines, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(order) + "\n" for order in orders)
    return rows, lines


def _orders(count: int) -> Iterable[dict[str, Any]]:
    chosen = random.Random(4)
    for number in range(count):
        yield {
            "id": number,
            "customer": f"customer-{chosen.randrange(1000)}",
            "amount": chosen.randrange(100_000) / 100,
            "day": str(_DAY + datetime.timedelta(chosen.randrange(1000))),
            "note": None if number % 2 else 'sea, "open"',
        }
