"""Rows that a task writes behind its items: the watermarks that it knows, and the exception that ended it.

Both go to every target of the shuffle behind the task: whoever reads any of its items reads them too. So do the rows of
`dstream.engine.worker.counted_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dstream.engine.kernels.watermarks import Watermarks
from dstream.engine.worker.exception_transport import as_text
from dstream.engine.worker.rows import FAILED, WATERMARKS, Row
from dstream.pickling import dumps

__all__ = ["LAST", "rows_of_failure", "rows_of_watermarks", "targets_of"]

LAST = 2**62
"""The `sequence` of rows behind all others of their task."""


def rows_of_watermarks(known: Watermarks, partition: int, sink: object) -> Iterator[Row]:
    """Give the watermarks that a task knows at its end, once for each target; a sink may have told them itself.

    Args:
        known: the watermarks.
        partition: the number of the task.
        sink: what has written its items. One that sends them to several targets says to how many, in `targets`.
    """
    if not known or getattr(sink, "tells_watermarks", False):
        return
    payload = dumps(known.all())
    for target in range(targets_of(sink)):
        yield Row(target, partition, LAST, WATERMARKS, 0, payload)


def rows_of_failure(error: Exception, sink: object) -> Iterator[Row]:
    """Give the exception that ended a task, once for each target."""
    payload = as_text(error).encode()
    for target in range(targets_of(sink)):
        yield Row(target, 0, LAST, FAILED, 0, payload)


def targets_of(sink: object) -> int:
    """Return to how many targets a sink sends its rows."""
    return int(getattr(sink, "targets", 1))
