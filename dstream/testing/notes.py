"""Notes: what processes of one machine tell the test that waits for them, through files in a folder of its own."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dstream.by_value import dumps_by_value

__all__ = ["folder_for", "note", "notes", "task_name"]

_DRIVER = "driver"


def folder_for(owner: object) -> str:
    """Make a temporary folder that is removed when `owner` is no longer used."""
    folder = tempfile.mkdtemp(prefix="dstream-testing-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


def note(folder: str, name: str, value: Any) -> None:
    """Append a value to the notes of that name, in one write."""
    data = dumps_by_value(value)
    with open(os.path.join(folder, name), "ab", buffering=0) as file:
        file.write(data)


def notes(folder: str) -> Iterator[tuple[str, Any]]:
    """Give (name, value) of all notes, name by name, each in the order in which it was written."""
    for path in sorted(Path(folder).iterdir(), key=lambda path: (path.name != _DRIVER, path.name)):
        with path.open("rb") as file:
            while file.peek(1):
                yield path.name, pickle.load(file)


def task_name() -> str:
    """Name the Spark task that runs here, as stage-partition-attempt, or this process outside of any."""
    module = sys.modules.get("pyspark.taskcontext")
    task = None if module is None else module.TaskContext.get()
    if task is None:
        return _DRIVER
    return f"{task.stageId():08}-{task.partitionId():08}-{task.attemptNumber():04}"
