"""DataFrames of Spark for the caller: of the columns that a job has written, or of splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dstream.engine.runs.splits import packed_split
from dstream.engine.spark.run.backend import SparkBackend
from dstream.engine.tasks.stage import read_columns, read_tables, search_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["columns_of_spark", "frame_of_rows", "frame_of_splits"]


_LONGEST_DECIMAL = 38
"""The most digits of a Decimal of Spark."""


def columns_of_spark(schema: pa.Schema) -> StructType:
    """Return the types that Spark has for columns of Arrow.

    Raises:
        TypeError: it has none for one of them. Times of day it has, and refuses in most of what a DataFrame does (4.3).
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    for field in schema:
        waiting = [field.type]
        while waiting:
            kind = waiting.pop()
            if isinstance(kind, pa.BaseExtensionType) or pa.types.is_time(kind):
                raise TypeError(_refusal(field.name, kind, "str"))
            if pa.types.is_decimal(kind) and kind.precision > _LONGEST_DECIMAL:
                digits = f"str, or to Decimals of {_LONGEST_DECIMAL} digits at most"
                raise TypeError(_refusal(field.name, kind, digits))
            waiting += (kind.field(place).type for place in range(kind.num_fields))
    return from_arrow_schema(schema)


def _refusal(column: str, kind: pa.DataType, instead: str) -> str:
    return (
        f"column {column!r} holds {kind}, and DataFrames of Spark have no such type: map() it before, as to {instead}"
    )


def frame_of_rows(frame: DataFrame, schema: pa.Schema, backend: SparkBackend) -> DataFrame:
    """Return a DataFrame of the Arrow batches that the payloads of `frame` hold, in the columns of `schema`."""
    columns, path = columns_of_spark(schema), search_path()

    def dstream_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_columns(schema, path, batches)

    return backend.port.mapped(frame, dstream_columns, columns)


def frame_of_splits(splits: Sequence[Any], schema: pa.Schema, backend: SparkBackend) -> DataFrame:
    """Return a DataFrame of the Arrow batches that splits read, one task for each."""
    columns, path = columns_of_spark(schema), search_path()
    pickled = [packed_split(split, "this collection") for split in splits]

    def dstream_table(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read_tables(pickled, path, batches)

    return backend.port.mapped(backend.numbers(len(pickled)), dstream_table, columns)
