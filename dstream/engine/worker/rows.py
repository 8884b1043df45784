"""Rows: the one schema in which items travel between stages and to the driver.

A row is a batch of pickled items and where it belongs: `target`, the partition it is sent to;
`source` and `sequence`, where it came from, which is what order is restored from; `channel`, what
it carries; `size`, how many items.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from dstream.errors import SerializationError
from dstream.failures import Failure, attach

if TYPE_CHECKING:
    import pyarrow as pa

    from dstream.plan.steps import Step

__all__ = [
    "COLUMNS",
    "COUNTS",
    "FAILED",
    "ITEMS",
    "LARGEST",
    "SAMPLE",
    "STOPPED",
    "STORED",
    "SUMMARY",
    "WAITING",
    "WATERMARKS",
    "Row",
    "arrow_schema",
    "bounded",
    "from_record_batch",
    "to_record_batch",
    "too_large_for_java",
]

ITEMS = 0
"""The channel of the items themselves. Channels above it carry the items that a `peek` step saw."""

SAMPLE = -1
"""The channel of the sample from which `sorted` chooses its ranges."""

STOPPED = -2
"""The channel of the mark that a prefix ended in this partition."""

SUMMARY = -3
"""The channel of the summary of a partition that a gatherer over several partitions needs, beside the items."""

COLUMNS = -4
"""The channel of the schemas of a task's columns."""

WAITING = -5
"""The channel of how many parts of a partition wait where they were written; `sequence` has their bytes."""

WATERMARKS = -6
"""The channel of the watermarks that a task knows, behind its items: those of the partitions that it has read."""

FAILED = -7
"""The channel of an exception that ended a task, where exceptions are results."""

COUNTS = -8
"""The channel of how many rows a task has sent to a target, behind all of them; only epochs have it."""

STORED = -9
"""The channel of a row whose own channel is in its payload, with the place in a file where its own payload stands."""

LARGEST = 2**31 - 2**20
"""The most bytes that a payload may have in any memory: Arrow and Java count less than 2 GiB in an array."""


class Row(NamedTuple):
    """One batch on its way."""

    target: int
    source: int
    sequence: int
    channel: int
    size: int
    payload: Any


def bounded(rows: Iterable[Row], most: int, step: Step | None) -> Iterator[Row]:
    """Give rows as long as Java can take each of them.

    Java copies a row several times on its way. Where its memory ends, it ends, and no exception says of which item.

    Args:
        rows: those of a task.
        most: how many bytes the payload of a row may have.
        step: the call that the rows are for.

    Raises:
        SerializationError: a row has more.
    """
    for row in rows:
        size = memoryview(row.payload).nbytes
        if size > most:
            raise _too_large(row, size, most, step)
        yield row


def _too_large(row: Row, size: int, most: int, step: Step | None) -> SerializationError:
    items = "an item has" if row.size <= 1 else f"{row.size:,} items that travel together have"
    return too_large_for_java(items, size, most, step, "divide the item; or let each task write its items itself")


def too_large_for_java(what: str, size: int, most: int, step: Step | None, advice: str) -> SerializationError:
    """Return the error of items that are larger than Java can take.

    Args:
        what: subject and verb.
        size: their bytes.
        most: how many they may have.
        step: the call that they are for.
        advice: what to do, beside giving Java more memory.
    """
    error = SerializationError(
        f"{what} {size:,} bytes when pickled, and Spark's Java process, by its memory, takes {most:,} at once"
    )
    more = "connect(config={'spark.driver.memory': '8g'})"
    advice = f"{advice}; or give Java more with {more}, on a cluster 'spark.executor.memory' too"
    attach(error, Failure(step, advice=advice))
    return error


def to_record_batch(row: Row) -> pa.RecordBatch:
    """Return the Arrow form of one row; each row is a batch of its own, so that none waits for another.

    The payload is not copied. `pa.array` would load pandas into each worker (pyarrow 26), which takes it 0.3 s.
    """
    import pyarrow as pa

    schema, payload = arrow_schema(), pa.py_buffer(row.payload)
    places = zip(schema.types, _FORMS, row[:-1], strict=False)
    arrays = [pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(form.pack(value))]) for kind, form, value in places]
    borders = pa.py_buffer(_BORDERS.pack(0, payload.size))
    arrays.append(pa.Array.from_buffers(schema.types[-1], 1, [None, borders, payload]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_INT, _LONG, _BORDERS = Struct("=i"), Struct("=q"), Struct("=ii")
_FORMS = (_INT, _INT, _LONG, _INT, _INT)


def from_record_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """Give the rows of an Arrow batch; payloads are views, not copies."""
    places = zip(*(batch.column(name).to_pylist() for name in Row._fields[:-1]), strict=True)
    for (target, source, sequence, channel, size), payload in zip(places, batch.column("payload"), strict=True):
        yield Row(target, source, sequence, channel, size, payload.as_buffer())


def from_record_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Give the rows of Arrow batches, one after another."""
    for batch in batches:
        yield from from_record_batch(batch)


@functools.cache
def arrow_schema() -> pa.Schema:
    """Return the columns of rows."""
    import pyarrow as pa

    kinds = (pa.int32(), pa.int32(), pa.int64(), pa.int32(), pa.int32(), pa.binary())
    return pa.schema(list(zip(Row._fields, kinds, strict=True)))
