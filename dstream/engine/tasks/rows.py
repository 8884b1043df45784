"""Rows: the one schema of items between stages, in memory or in files, with watermarks, failures and counts.

A row is a batch of pickled items with its routing: `target`, the partition it is sent to;
`source` and `sequence`, its origin, which determine the order; `channel`, the kind of its content; `size`, the number
of items.

The rows of a shuffle through the driver are small in most epochs, and are sent unchanged. Larger output is written into
a file of the task, from which the tasks that receive the rows read it.

Watermarks and failures are sent to every target of the shuffle after the task, so that a task that reads any of its
items reads them too.

In an epoch, each task sends a final control row to every target: the number of rows that it sent to it. A target that
misses a row, or a control row, raises. A sink with its own control rows declares that in `counts_rows`.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from dstream.base.pickling import dumps
from dstream.base.records import record
from dstream.errors import EngineError, SerializationError
from dstream.failures import Failure, attach
from dstream.failures.transport import as_text
from dstream.operators.rows.batches import loads
from dstream.operators.rows.operations import Watermarks
from dstream.plan.steps import Step

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "COUNTS",
    "FAILED",
    "ITEMS",
    "LARGEST",
    "LAST",
    "SAMPLE",
    "STOPPED",
    "STORED",
    "SUMMARY",
    "WAITING",
    "WATERMARKS",
    "ExpectedRows",
    "Row",
    "Storing",
    "arrow_schema",
    "bounded",
    "check_arrived",
    "counting_sent",
    "counts_itself",
    "from_record_batch",
    "handed_on",
    "is_stored",
    "not_written",
    "rows_of_failure",
    "rows_of_watermarks",
    "size_of",
    "targets_of",
    "to_record_batch",
    "too_large_for_java",
    "whole",
]


ITEMS = 0
"""The channel of the items themselves. Channels above it carry the items that a `peek` step saw."""

SAMPLE = -1
"""The channel of the sample from which `sorted` chooses its ranges."""

STOPPED = -2
"""The channel of the mark that a prefix ended in this partition."""

SUMMARY = -3
"""The channel of the summary of a partition that a gatherer over several partitions needs, in addition to the items."""

COLUMNS = -4
"""The channel of the schemas of a task's columns."""

WAITING = -5
"""The channel of how many parts of a partition wait where they were written; `sequence` has their bytes."""

WATERMARKS = -6
"""The channel of the watermarks of a task, after its items: those of the partitions that it has read."""

FAILED = -7
"""The channel of an exception that ended a task, where exceptions are results."""

COUNTS = -8
"""The channel of the number of rows that a task has sent to a target, after all of them; only epochs use it."""

STORED = -9
"""The channel of a row whose own channel is in its payload, with the position of its payload in a file."""

LARGEST = 2**31 - 2**20
"""The most bytes that a payload may have in any memory: Arrow and Java count less than 2 GiB in an array."""


class Row(NamedTuple):
    """One batch in transit."""

    target: int
    source: int
    sequence: int
    channel: int
    size: int
    payload: Any


def bounded(rows: Iterable[Row], most: int, step: Step | None) -> Iterator[Row]:
    """Yield rows as long as Java can take each of them.

    Java copies a row several times. If it runs out of memory, it exits without an exception that names the item.

    Args:
        rows: the rows of a task.
        most: the largest number of bytes of a payload.
        step: the call that the rows are for.

    Raises:
        SerializationError: a row has more.
    """
    for row in rows:
        # In bytes: the length of a buffer would count elements.
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
        step: the call that the bytes belong to.
        advice: an alternative to more memory for Java.
    """
    error = SerializationError(
        f"{what} {size:,} bytes when pickled, and Spark's Java process, by its memory, takes {most:,} at once"
    )
    more = "connect(config={'spark.driver.memory': '8g'})"
    advice = f"{advice}; or give Java more with {more}, on a cluster 'spark.executor.memory' too"
    attach(error, Failure(step, advice=advice))
    return error


def to_record_batch(row: Row) -> pa.RecordBatch:
    """Return the Arrow form of one row; each row is a separate batch, so that none waits for another.

    The payload is not copied. `pa.array` would load pandas into each worker (pyarrow 26), which takes it 0.3 s.
    """
    import pyarrow as pa

    schema, payload = arrow_schema(), pa.py_buffer(row.payload)
    numbers = zip(schema.types, _FORMS, row[:-1], strict=False)
    arrays = [pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(form.pack(value))]) for kind, form, value in numbers]
    borders = pa.py_buffer(_BORDERS.pack(0, payload.size))
    arrays.append(pa.Array.from_buffers(schema.types[-1], 1, [None, borders, payload]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_INT, _LONG, _BORDERS = Struct("=i"), Struct("=q"), Struct("=ii")
_FORMS = (_INT, _INT, _LONG, _INT, _INT)


def from_record_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of an Arrow batch; payloads are views, not copies."""
    numbers = zip(*(batch.column(name).to_pylist() for name in Row._fields[:-1]), strict=True)
    for (target, source, sequence, channel, size), payload in zip(numbers, batch.column("payload"), strict=True):
        yield Row(target, source, sequence, channel, size, payload.as_buffer())


def from_record_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of Arrow batches, one after another."""
    for batch in batches:
        yield from from_record_batch(batch)


@functools.cache
def arrow_schema() -> pa.Schema:
    """Return the columns of rows."""
    import pyarrow as pa

    kinds = (pa.int32(), pa.int32(), pa.int64(), pa.int32(), pa.int32(), pa.binary())
    return pa.schema(list(zip(Row._fields, kinds, strict=True)))


class _FileRange(NamedTuple):
    """The location of the payload of a row."""

    path: str
    start: int
    size: int

    def read(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                file.seek(self.start)
                found = file.read(self.size)
        except OSError as error:
            raise EngineError(f"rows on their way between two tasks cannot be read: {error}") from error
        if len(found) < self.size:
            raise EngineError(f"rows on their way between two tasks are cut off, in {self.path}")
        return found


@record
class Storing:
    """Writer of large parts of a task's rows into a file.

    Attributes:
        folder: of such files; it exists as long as they are needed.
        most: how many bytes of a task are sent with its rows.
    """

    folder: str
    most: int

    def stored(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows, or instead of them the locations of their payloads.

        Raises:
            EngineError: the disk is full, or cannot be written to.
        """
        room, file = self.most, None
        with ExitStack() as stack:
            for row in rows:
                size = memoryview(row.payload).nbytes
                if size <= room:
                    room -= size
                    yield row
                    continue
                if file is None:
                    file = self._opened()
                    stack.callback(_close, file)
                location = _FileRange(file.name, file.tell(), size)
                self._write(file, row.payload)
                # The channel is inside: it may be one of any step, and this one decides how to read the payload.
                yield row._replace(channel=STORED, payload=dumps((row.channel, location)))
            # A full disk is detected here at the latest, while the task can still fail.
            if file is not None:
                self._write(file, b"", is_last=True)

    def _opened(self) -> BinaryIO:
        try:
            # Two attempts of a task may run at once, so each has its own file.
            return open(os.path.join(self.folder, uuid.uuid4().hex), "xb")
        except OSError as error:
            raise not_written(self.folder, error) from error

    def _write(self, file: BinaryIO, payload: bytes, *, is_last: bool = False) -> None:
        try:
            file.write(payload)
            if is_last:
                file.flush()
        except OSError as error:
            raise not_written(self.folder, error) from error


def not_written(folder: str, error: OSError) -> EngineError:
    """Return the error of rows that could not be written."""
    return EngineError(f"rows on their way between two tasks cannot be written into {folder}: {error}")


def _close(file: BinaryIO) -> None:
    """Close a file: an error of its writing has been reported before."""
    with suppress(OSError):
        file.close()


def handed_on(row: Row) -> Row:
    """Return a row as the driver hands it on: with its own channel, and its payload or the location of that."""
    if row.channel != STORED:
        return row._replace(payload=bytes(row.payload))
    channel, location = loads(row.payload)
    # The bytes remain in the file, from which the receiving task reads them: see `whole`.
    return row._replace(channel=channel, payload=location)


def is_stored(row: Row) -> bool:
    """Return whether the payload of a row that was handed on is in a file."""
    return isinstance(row.payload, _FileRange)


def whole(row: Row) -> Row:
    """Return a row that was handed on with its payload."""
    return row._replace(payload=row.payload.read()) if is_stored(row) else row


def size_of(row: Row) -> int:
    """Return how many bytes the payload of a row has, also of one that was handed on without it."""
    return row.payload.size if is_stored(row) else memoryview(row.payload).nbytes


LAST = 2**62
"""The `sequence` of rows after all others of their task."""


def rows_of_watermarks(known: Watermarks, partition: int, sink: object) -> Iterator[Row]:
    """Yield the watermarks that a task has at its end, once for each target; a sink may have sent them itself.

    Args:
        known: the watermarks.
        partition: the number of the task.
        sink: what has written its items. One that sends them to several targets has their number in `targets`.
    """
    if not known or getattr(sink, "tells_watermarks", False):
        return
    payload = dumps(known.all())
    for target in range(targets_of(sink)):
        yield Row(target, partition, LAST, WATERMARKS, 0, payload)


def rows_of_failure(error: Exception | SystemExit, sink: object, secret: bytes) -> Iterator[Row]:
    """Yield the exception that ended a task, once for each target."""
    payload = as_text(error, secret).encode()
    for target in range(targets_of(sink)):
        yield Row(target, 0, LAST, FAILED, 0, payload)


def targets_of(sink: object) -> int:
    """Return to how many targets a sink sends its rows."""
    return int(getattr(sink, "targets", 1))


def counts_itself(sink: object) -> bool:
    """Return whether a sink counts its rows, so that their reader checks that all of them have arrived."""
    return bool(getattr(sink, "counts_rows", False))


def counting_sent(rows: Iterator[Row], task: int, sink: object) -> Iterator[Row]:
    """Yield the rows of a task, and then their number for each target.

    What may be left out of the rows before they move, such as all of a channel, is counted apart.

    Args:
        rows: all that the task writes.
        task: its number.
        sink: what writes its items.
    """
    targets = targets_of(sink)
    sent: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for row in rows:
        # There may be more buckets than tasks that read them: a target above the last one counts round.
        sent[row.target % targets][row.source, row.channel] += 1
        yield row
    for target in range(targets):
        yield Row(target, task, LAST, COUNTS, 0, dumps(dict(sent[target])))


@record(slots=False)
class ExpectedRows:
    """The check of the numbers of rows by the tasks that read a shuffle.

    Attributes:
        tasks: the number of senders.
        channels: the channels whose rows are expected, among those of items and their counts.
        has_beside: whether side rows are expected.
        step: the operation downstream of the shuffle.
    """

    tasks: int
    channels: frozenset[int]
    has_beside: bool
    step: Step

    def arriving(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows of a target; at the end, compare their number with that of the senders.

        Raises:
            EngineError: they differ: the epoch must be retried.
        """
        reported, sent, arrived = 0, Counter[int](), Counter[int]()
        for row in rows:
            if row.channel != COUNTS:
                arrived[row.source] += self.has_beside or row.channel <= ITEMS
                yield row
                continue
            reported += 1
            for (source, channel), number in loads(row.payload).items():
                sent[source] += number if self._is_expected(channel) else 0
        check_arrived(reported, self.tasks, sent, arrived, self.step)

    def _is_expected(self, channel: int) -> bool:
        return self.has_beside if channel > ITEMS else channel in self.channels


def check_arrived(reported: int, tasks: int, sent: Mapping[int, int], arrived: Mapping[int, int], step: Step) -> None:
    """Compare the rows that arrived at a target with the rows sent there.

    Args:
        reported: the number of tasks that have reported their numbers of rows.
        tasks: the number of senders.
        sent: the number of rows sent, by source.
        arrived: the number of rows that arrived, by source.
        step: the operation downstream of the shuffle.

    Raises:
        EngineError: they differ: the epoch has to run again.
    """
    if reported != tasks:
        raise EngineError(f"the shuffle before {step} lost rows: {reported} of {tasks} tasks were heard of")
    # Also sources that have reported nothing: rows which were not sent are as wrong as missing ones.
    for source in sorted({*sent, *arrived}):
        number, came = sent.get(source, 0), arrived.get(source, 0)
        if came != number:
            raise EngineError(f"the shuffle before {step} lost rows: task {source} sent {number}, and {came} arrived")
