"""E5: items into files of text, Parquet and CSV, beside plain Python and pyarrow that write them in one process.

The items stand in the memory of the caller, and what is written replaces the files of the run before. The same on Spark
is for information: its tasks make the items themselves.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from reducers import replacing, to_files
from sources import Range
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["cases"]

Format = Literal["text", "parquet", "csv"]
_GOAL = 1.2
_COUNTRIES = ("NO", "SE", "DK", "FI", "IS")


@dataclass
class Order:
    """What is written."""

    id: int
    customer: str
    amount: float
    country: str
    paid: bool


def _order(number: int) -> Order:
    return Order(number, f"customer {number % 10_007}", number / 8, _COUNTRIES[number % 5], number % 3 == 0)


_NAMES = ("id", "customer", "amount", "country", "paid")


def cases(bench: Bench) -> list[Case]:
    """Return a case for each format."""
    count = bench.size(1_000_000, 20_000)
    orders = [_order(number) for number in range(count)]
    folder = bench.folder / "files-out"
    folder.mkdir(exist_ok=True)
    formats: list[tuple[Format, Callable[[Iterable[Order], Path], None], float | None]] = [
        ("text", _plain_text, _GOAL),
        ("parquet", _plain_parquet, _GOAL),
        ("csv", _plain_csv, None),
    ]
    return [_case(bench, format, orders, folder, plain, goal) for format, plain, goal in formats]


def _case(
    bench: Bench,
    format: Format,
    orders: list[Order],
    folder: Path,
    plain: Callable[[list[Order], Path], None],
    goal: float | None,
) -> Case:
    sink = replacing(_sink(folder / format, format))
    path = folder / f"plain.{format}"
    size = len(orders)

    def ours() -> None:
        bench.local.stream(orders).collect(sink)

    def on_spark() -> None:
        bench.ctx.read(Range(0, size)).map(_order).collect(sink)

    def content() -> list[Any]:
        return [row for part in sorted((folder / format).glob("part*")) for row in _read(part, format)]

    def theirs() -> None:
        plain(orders, path)

    return Case(
        "E5",
        f"{size / 1e6:g} M items as {format}",
        Contestant("dstream to_files, local engine", ours, uses_spark=False, check=content),
        [
            Contestant(_PLAIN[format], theirs, goal, uses_spark=False, check=lambda: _read(path, format)),
            Contestant("dstream to_files, Spark makes the items", on_spark, check=content),
        ],
    )


_PLAIN = {"text": "plain Python, a write for each", "parquet": "pyarrow write_table", "csv": "csv.writer"}


def _sink(folder: Path, format: Format) -> Any:
    if format == "text":
        return to_files(folder, to_string=_line)
    return to_files(folder, format="csv") if format == "csv" else to_files(folder, format="parquet")


def _line(order: Order) -> str:
    return f"{order.id} {order.customer} {order.amount}"


def _plain_text(orders: Iterable[Order], path: Path) -> None:
    with path.open("w") as file:
        for order in orders:
            file.write(f"{_line(order)}\n")


def _plain_parquet(orders: Iterable[Order], path: Path) -> None:
    table = pa.table({name: [getattr(order, name) for order in orders] for name in _NAMES})
    pq.write_table(table, path)


def _plain_csv(orders: Iterable[Order], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_NAMES)
        writer.writerows(map(attrgetter(*_NAMES), orders))


def _read(path: Path, format: Format) -> list[Any]:
    """Return what stands in a file, the truth values of CSV as Python writes them."""
    if format == "text":
        return path.read_text().splitlines()
    if format == "parquet":
        return list(pq.read_table(path).to_pylist())
    with path.open(newline="") as file:
        return [{**row, "paid": row["paid"].capitalize()} for row in csv.DictReader(file)]
