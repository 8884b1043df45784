"""Jobs count their items, and what they read stands in columns all the same: on Spark, in epochs too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import dstream as ds
from collectors import summing
from dstream.errors import ColumnsDifferError
from dstream.spi import ArrowRows
from dstream.testing.engines import MASTER, SETTINGS
from dstream.windows import tumbling
from reducers import to_ilist
from tests.jobs.unbounded.streams import Feed, eventually

SOON = ds.JobConfig(epoch_length=0.05)


@dataclass(frozen=True)
class _InColumns:
    """Numbers that nobody may ask for one by one."""

    numbers: tuple[int, ...]

    ordered = True
    bounded = True
    in_caller = False
    has_columns = True

    def splits(self, parallelism: int) -> list[_InColumns]:
        return [_InColumns(self.numbers[::2]), _InColumns(self.numbers[1::2])]

    def read(self) -> Iterator[int]:
        raise AssertionError("asked for its items")
        yield

    def arrow_rows(self) -> Iterator[ArrowRows]:
        array = pa.array(self.numbers, pa.int64())
        parts = {"": lambda: array}
        yield ArrowRows(len(array), parts, frozenset(), lambda at: ArrowRows.chosen(array, at).to_pylist(), 100)


class _FeedInColumns(Feed):
    """A feed whose ranges are in columns."""

    def split(self, partition: str, start: int | None, stop: int) -> Any:
        return _InColumns(tuple(self.partitions[partition][start or 0 : stop]))


@pytest.fixture(params=["auto", "verify"])
def columns(request: pytest.FixtureRequest) -> Literal["auto", "verify"]:
    """How functions run that are read."""
    mode: Literal["auto", "verify"] = request.param
    return mode


class _Lying(_InColumns):
    """Numbers in tuples, whose columns have others."""

    def splits(self, parallelism: int) -> list[_InColumns]:
        return [self]

    def arrow_rows(self) -> Iterator[ArrowRows]:
        (rows,) = super().arrow_rows()
        items = rows.items
        at_places: frozenset[Literal["place"]] = frozenset({"place"})
        yield replace(rows, reached_by=at_places, items=lambda at: [(number + 1,) for number in items(at)])


def _numbers(job: Any) -> dict[str, tuple[int | None, int | None]]:
    return {name: (stage.items_in, stage.items_out) for name, stage in job.metrics().stages.items()}


def test_a_job_that_counts_its_items_reads_columns(
    columns: Any, spark_context: ds.Context, data: Path, tmp_path: Path
) -> None:
    """Each stage counts what a loop over items counts, up to a collector and up to a sink."""
    pipeline = ds.Pipeline()
    even = pipeline.read_from(_InColumns(tuple(range(100)))).filter(lambda n: n % 2 == 0)
    some = even.map(lambda n: n * 3).filter(lambda n: n > 150)
    some.aggregate(summing(lambda n: n + 1)).write_to(to_ilist(tmp_path.name))
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns=columns) as ctx:
        job = ctx.new_job(pipeline)
        job.join(240)

        expected = [n * 3 for n in range(0, 100, 2) if n * 3 > 150]
        assert ctx.get_list(tmp_path.name).copy() == [sum(expected) + len(expected)]
        assert _numbers(job) == {
            "read_from": (None, 100),
            "filter": (100, 50),
            "map": (50, 50),
            "filter-2": (50, len(expected)),
            "aggregate": (len(expected), None),
            "write_to": (None, 1),
        }


def test_epochs_read_columns(columns: Any, spark_context: ds.Context, data: Path, tmp_path: Path) -> None:
    """The numbers of all epochs are added up."""
    feed = _FeedInColumns({"0": list(range(10)), "1": [100, 101]})
    pipeline = ds.Pipeline()
    odd = pipeline.read_from(feed).filter(lambda n: n % 2 == 1)
    odd.map(lambda n: (n, n * n)).write_to(to_ilist(tmp_path.name))
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns=columns) as ctx:
        job = ctx.new_job(pipeline, config=SOON)
        eventually(lambda: job.epoch == 1)
        feed.give(11, 12, 13)
        feed.end()
        job.join(240)

        assert ctx.get_list(tmp_path.name).copy() == [(n, n * n) for n in (1, 3, 5, 7, 9, 101, 11, 13)]
        assert _numbers(job) == {"read_from": (None, 15), "filter": (15, 8), "map": (8, 8), "write_to": (8, 8)}


def test_windows_of_epochs_are_grouped_in_columns(
    columns: Any, spark_context: ds.Context, data: Path, tmp_path: Path
) -> None:
    """Also behind steps that take items with their timestamps; each stage counts its items."""
    feed = _FeedInColumns({"0": list(range(10)), "1": [3, 11]})
    pipeline = ds.Pipeline()
    odd = pipeline.read_from(feed).add_timestamps(lambda n: n - 5, 2).filter(lambda n: n % 2 == 1)
    windows = odd.map(lambda n: (n % 3, n)).grouping_key(lambda pair: pair[0]).window(tumbling(4))
    windows.aggregate(summing(lambda pair: pair[1]), lambda *window: window).write_to(to_ilist(tmp_path.name))
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns=columns) as ctx:
        job = ctx.new_job(pipeline, config=SOON)
        eventually(lambda: job.epoch == 1)
        feed.give(13, 15)
        feed.end()
        job.join(240)

        expected = {(start, start + 4, n % 3) for n in _ODD for start in ((n - 5) // 4 * 4,)}
        sums = {each: sum(n for n in _ODD if (n % 3 == each[2] and each[0] <= n - 5 < each[1])) for each in expected}
        assert sorted(ctx.get_list(tmp_path.name)) == sorted((*each, total) for each, total in sums.items())
        assert _numbers(job)["filter"] == (14, len(_ODD))


_ODD = (1, 3, 5, 7, 9, 3, 11, 13, 15)


def test_a_job_whose_columns_differ_fails_for_good(spark_context: ds.Context, data: Path, tmp_path: Path) -> None:
    """To start it again would find the same; the message has the item, and what to do."""
    pipeline = ds.Pipeline()
    numbers: Any = pipeline.read_from(_Lying((5, 6)))
    numbers.map(lambda row: row[0] * 2).write_to(to_ilist(tmp_path.name))
    with ds.connect(MASTER, config=SETTINGS, storage=data, columns="verify") as ctx:
        job = ctx.new_job(pipeline, config=ds.JobConfig(auto_restart=(2, 0.1)))
        with pytest.raises(ColumnsDifferError, match=r"columns give 10 where Python gives 12 for \(6,\)") as caught:
            job.join(240)

        assert "report the difference" in caught.value.__notes__[-1]
        assert job.metrics().runs <= 1
