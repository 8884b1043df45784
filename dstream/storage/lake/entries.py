"""The entries of a log: a file of JSON lines for each commit, an action on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from dstream.errors import IllegalStateError
from dstream.storage.lake.files import Folder

__all__ = ["LOG", "entries_from", "entry_path", "read_entry"]

LOG = "_delta_log"


def entry_path(version: int) -> str:
    """Return where the commit of a version stands."""
    return f"{LOG}/{version:020d}.json"


def read_entry(folder: Folder, version: int) -> list[dict[str, Any]]:
    """Read the actions of a commit.

    Raises:
        FileNotFoundError: there is no such commit.
        IllegalStateError: the file is torn; no commit is empty.
    """
    return _actions(folder, version, folder.read(entry_path(version)))


def entries_from(folder: Folder, version: int) -> Iterator[list[dict[str, Any]]]:
    """Give the actions of each commit from a version on; errors as for `read_entry`."""
    for number, data in enumerate(folder.read_run(map(entry_path, count(version))), version):
        yield _actions(folder, number, data)


def _actions(folder: Folder, version: int, data: bytes) -> list[dict[str, Any]]:
    try:
        actions = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    except ValueError:
        actions = []
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise IllegalStateError(
            f"{folder.title} is damaged: {folder.url}/{entry_path(version)} is no whole log entry; something else than "
            "dstream has written it, or the machine failed; restore the file from a backup"
        )
    return actions
