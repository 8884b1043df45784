"""The entries of a log: a file of JSON lines for each commit, an action on each line."""

from __future__ import annotations

import json
from typing import Any

from dstream.errors import IllegalStateError
from dstream.storage.lake.files import Folder

__all__ = ["LOG", "entry_path", "read_entry"]

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
    path = entry_path(version)
    data = folder.read(path)
    try:
        actions = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    except ValueError:
        actions = []
    if not actions or not all(isinstance(action, dict) for action in actions):
        raise IllegalStateError(
            f"{folder.title} is damaged: {folder.url}/{path} is no whole log entry; something else than "
            "dstream has written it, or the machine failed; restore the file from a backup"
        )
    return actions
