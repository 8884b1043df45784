"""B14: filter, arithmetic and the average by key, over columns that are there: of Parquet, and of a map of the lake.

The native DataFrame reads the same files. Half of the columns of the Parquet file are ones that nobody asks for. The
amounts are ints, so that all averages agree to the last bit; the result is a dictionary in the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Column
from pyspark.sql import functions as F

import dstream as ds
from collectors import averaging, grouping_by
from sources import imap, parquet_rows
from tests.benchmarks.harness import Bench, Case, Contestant

__all__ = ["Sale", "cases"]

_FACTOR = 2_654_435_761
_MODULUS = 2**32
_KEYS = 50_000


@dataclass
class Sale:
    """What the map holds, and what rows of the file may become."""

    shop: int
    amount: int
    price: float


def cases(bench: Bench) -> list[Case]:
    """Return the cases: rows as dictionaries and as objects, and the values of a map."""
    count, entries = bench.size(5_000_000, 100_000), bench.size(1_000_000, 20_000)
    path = _file(bench.folder, count)

    def of_file() -> dict[int, float]:
        return _averages(bench.spark.read.parquet(str(path)), F.col("shop"), F.col("amount"))

    def dictionaries() -> dict[int, float]:
        rows = bench.ctx.read(parquet_rows(path)).filter(lambda row: row["amount"] % 3 != 0)
        return rows.collect(grouping_by(lambda row: row["shop"], averaging(lambda row: row["amount"] * 3 + 1)))

    def objects() -> dict[int, float]:
        sales = bench.ctx.read(parquet_rows(path, Sale)).filter(lambda sale: sale.amount % 3 != 0)
        return sales.collect(grouping_by(lambda sale: sale.shop, averaging(lambda sale: sale.amount * 3 + 1)))

    name, lake = f"sales-{entries}", str(bench.folder / "lake")
    files = _files_of_map(name, lake, entries)

    def values() -> dict[int, float]:
        chosen = bench.ctx.read(imap(name, storage=lake)).filter(lambda entry: entry.value.amount % 3 != 0)
        return chosen.collect(
            grouping_by(lambda entry: entry.value.shop, averaging(lambda entry: entry.value.amount * 3 + 1))
        )

    def of_map() -> dict[int, float]:
        return _averages(bench.spark.read.parquet(*files), F.col("value.shop"), F.col("value.amount"))

    return [
        _case(f"Parquet, {count / 1e6:g} M rows as dictionaries", dictionaries, of_file),
        _case(f"Parquet, {count / 1e6:g} M rows as objects", objects, of_file),
        _case(f"a map of {entries / 1e6:g} M objects", values, of_map),
    ]


def _case(title: str, ours: Callable[[], Any], native: Callable[[], Any]) -> Case:
    return Case(
        "B14",
        f"average by key, {title}",
        Contestant("dstream filter, grouping_by(key, averaging(value))", ours),
        [Contestant("native DataFrame where, groupBy.avg", native, goal=1.2, warm_ups=3)],
    )


def _averages(read: Any, shop: Column, amount: Column) -> dict[int, float]:
    chosen = read.where(amount % 3 != 0).select(shop.alias("shop"), (amount * 3 + 1).alias("value"))
    averages = chosen.groupBy("shop").avg("value").toArrow()
    return dict(zip(*(column.to_pylist() for column in averages.columns), strict=True))


def _file(folder: Path, count: int) -> Path:
    path = folder / f"sales-{count}.parquet"
    if not path.exists():
        numbers = np.arange(count)
        amounts = numbers % 1000
        columns = {
            "shop": numbers * _FACTOR % _MODULUS % _KEYS,
            "amount": amounts,
            "price": amounts / 4,
            "name": pa.array([f"name {number}" for number in range(1000)]).take(pa.array(amounts)),
        }
        pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=count // 20)
    return path


def _files_of_map(name: str, lake: str, count: int) -> list[str]:
    """Return the files that a map consists of, each of whose rows is an entry; it is made once."""
    with ds.connect(engine="local", storage=lake) as ctx:
        sales: ds.IStreamMap[int, Sale] = ctx.get_map(name)
        if len(sales) != count:
            sales.update({number: _sale(number) for number in range(count)})
        splits: Any = [reader.split for reader in sales.source.splits(1)]  # type: ignore[attr-defined]
        found = [(split.folder.url, file) for split in splits for bucket in split.buckets for file in bucket]
        assert sum(file.rows for _, file in found) == count, "no row has been replaced"
        return [f"{url}/{file.path}" for url, file in found]


def _sale(number: int) -> Sale:
    amount = number % 1000
    return Sale(number * _FACTOR % _MODULUS % _KEYS, amount, amount / 4)
