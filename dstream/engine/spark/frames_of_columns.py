"""DataFrames for the user, in columns: of what rows carry, and of what splits read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dstream.engine.spark.cluster import Cluster
from dstream.engine.spark.frame_columns import columns_of_spark
from dstream.engine.spark.shipped_splits import packed_split
from dstream.engine.worker.stage import read_columns, read_tables, search_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["frame_of_rows", "frame_of_splits"]


def frame_of_rows(frame: DataFrame, schema: pa.Schema, cluster: Cluster) -> DataFrame:
    """Return a DataFrame of the Arrow batches that the payloads of `frame` hold, in the columns of `schema`."""
    columns, path = columns_of_spark(schema), search_path()

    def dstream_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_columns(schema, path, batches)

    return cluster.port.mapped(frame, dstream_columns, columns)


def frame_of_splits(splits: Sequence[Any], schema: pa.Schema, cluster: Cluster) -> DataFrame:
    """Return a DataFrame of the Arrow batches that splits read, one task for each."""
    columns, path = columns_of_spark(schema), search_path()
    pickled = [packed_split(split, "this collection") for split in splits]

    def dstream_table(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_tables(pickled, path, batches)

    return cluster.port.mapped(cluster.numbers(len(pickled)), dstream_table, columns)
