"""A stage that a job carries apart from its plan, so that Spark plans nothing anew for it."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dstream.engine.worker.stage import run, search_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CARRIED", "MOST_CARRIED", "carried", "run_carried"]

CARRIED = "dstream.stage"
"""The property of a job that holds its stage, for each of its tasks."""
MOST_CARRIED = 32 * 1024
"""So many bytes may a stage have, which travels with each task as text, where a plan would have it once."""


def carried(stage: bytes) -> str:
    """Return a pickled stage as the text that a job carries, with the places where this process finds modules."""
    return base64.b64encode(pickle.dumps((stage, search_path()), protocol=5)).decode()


def run_carried(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the stage that the job of this task carries."""
    from pyspark import TaskContext

    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(CARRIED)
    assert text is not None, "who runs the plan sets the property"
    stage, path = pickle.loads(base64.b64decode(text))
    return run(stage, path, batches)
