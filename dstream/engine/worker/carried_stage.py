"""A stage that a job carries apart from its plan, so that Spark plans nothing anew for it."""

from __future__ import annotations

import base64

__all__ = ["CARRIED", "MOST_CARRIED", "carried", "carried_stage"]

CARRIED = "dstream.stage"
"""The property of a job that holds its stage, for each of its tasks."""
MOST_CARRIED = 32 * 1024
"""So many bytes may a stage have, which travels with each task as text, where a plan would have it once."""


def carried(stage: bytes) -> str:
    """Return a pickled stage as the text that a job carries."""
    return base64.b64encode(stage).decode()


def carried_stage() -> bytes:
    """Return the pickled stage that the job of this task carries."""
    from pyspark import TaskContext

    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(CARRIED)
    assert text is not None, "who runs the plan sets the property"
    return base64.b64decode(text)
