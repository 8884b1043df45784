"""A database of this machine under Spark: workers read it, stage beside it, and one transaction takes all in."""

from __future__ import annotations

import operator

import dstream as ds
from collectors import counting
from reducers import grouping_by_to_imap, to_ilist, to_imap


def test_spark_writes_and_reads_a_database(spark_context, tmp_path):
    """Entries are combined, merged with those that are there, and read by several tasks; lists keep their order."""
    spark_context.running_engine()  # started there, so that this one only shares it
    with ds.connect(engine="spark", storage=f"sqlite:{tmp_path}/data.db") as ctx:
        ctx.get_map("sums")[0] = 1000
        numbers = ctx.stream(range(1000), partitions=3)
        merged = to_imap("sums", lambda n: n % 7, lambda n: n, operator.add, on_existing="merge")
        sums = numbers.collect(merged)
        counts = numbers.collect(grouping_by_to_imap("counts", lambda n: n % 3, counting()))
        squares = numbers.map(lambda n: n * n).collect(to_ilist("squares"))

        expected = {k: sum(range(k, 1000, 7)) + (1000 if k == 0 else 0) for k in range(7)}
        assert dict(sums) == {entry.key: entry.value for entry in sums.stream().to_list()} == expected
        assert dict(counts) == {0: 334, 1: 333, 2: 333}
        assert squares.stream().to_list() == [n * n for n in range(1000)]
    assert not list((tmp_path / "data.db-files" / "staged").rglob("*-*"))
