"""Checkpoints: a log summed up to one version, so that opening it need not read every commit."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from dstream.storage.lake.actions import DataFile, data_file
from dstream.storage.lake.files import Folder

__all__ = ["CHECKPOINT_EVERY", "Checkpoint", "read_checkpoint", "write_checkpoint"]

CHECKPOINT_EVERY = 1000
"""Commits between checkpoints: one costs 100 to 200 ms, and 1,000 entries take 50 ms to read."""


_log = logging.getLogger(__name__)

_is_forked = False


def _note_fork() -> None:
    """Remember that `deltalake` was loaded before a fork: its runtime panics in the child (1.6)."""
    global _is_forked
    _is_forked = _is_forked or "deltalake" in sys.modules


os.register_at_fork(after_in_child=_note_fork)


class Checkpoint(NamedTuple):
    """What a log amounts to at one version."""

    version: int
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any] | None
    transactions: frozenset[str]
    adds: tuple[DataFile, ...]


def read_checkpoint(log: Folder) -> Checkpoint | None:
    """Return the newest checkpoint of a log folder, None if there is none that can be read.

    The log itself is whole, so it is read from the start then.
    """
    try:
        pointer = json.loads(log.read("_last_checkpoint"))
        if pointer.get("parts") or pointer.get("v2Checkpoint"):
            return None  # another program's
        return _read(log, pointer["version"])
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, AttributeError, OSError) as error:  # pyarrow's are ValueErrors or OSErrors
        _log.warning("%s: a checkpoint is torn and is not used: %s", log.title, error)
        return None


def _read(log: Folder, version: int) -> Checkpoint:
    import pyarrow.parquet as parquet

    columns = ["add", "txn", "metaData", "protocol"]
    rows = parquet.ParquetFile(log.open(f"{version:020d}.checkpoint.parquet")).read(columns, use_threads=False)
    present = {name: [row for row in rows.column(name).to_pylist() if row is not None] for name in columns}
    return Checkpoint(
        version,
        present["protocol"][0],
        _metadata(present["metaData"][0]) if present["metaData"] else None,
        frozenset(row["appId"] for row in present["txn"] if row["version"] >= 1),
        tuple(map(data_file, present["add"])),
    )


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    options = dict(row["format"]["options"])
    return {**row, "format": {**row["format"], "options": options}, "configuration": dict(row["configuration"])}


def write_checkpoint(folder: Folder) -> None:
    """Sum up the log of a collection as it is now. A forked process leaves that to others."""
    if _is_forked:
        return
    from deltalake import DeltaTable

    url = folder.url
    DeltaTable(os.path.abspath(url) if "://" not in url else url).create_checkpoint()
