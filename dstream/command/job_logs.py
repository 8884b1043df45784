"""Logs of drivers that `dstream submit` starts: where they are, and which files are some.

A job's record says where its log is, and a record is input: whoever wrote the storage may have named any file of this
user's. So each log leaves its name in a folder of the user's own, and no other file is shown.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import quote

__all__ = ["is_log", "log_of", "noted"]


def log_of(name: str) -> Path:
    """Return a new file for the log of a job, among those that belong to this user's programs."""
    return _folder() / f"{_file_name(name)}.log"


def noted(name: str, log: Path) -> None:
    """Remember that a file is the log of a job, wherever it is.

    Raises:
        OSError: this user's folder cannot be written.
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if log.parent.resolve() != folder.resolve():
        (folder / f"{_file_name(name)}.at").symlink_to(log)


def is_log(path: Path) -> bool:
    """Say whether this user's `dstream submit` has made a file, which is no device and no pipe."""
    folder, found = _folder(), path.resolve()
    try:
        is_one = found.parent == folder.resolve() or any(each.resolve() == found for each in folder.glob("*.at"))
    except (OSError, RuntimeError):  # A link that leads to itself is a RuntimeError.
        return False
    return is_one and (found.is_file() or not found.exists())


def _folder() -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "dstream" / "jobs"


def _file_name(name: str) -> str:
    return f"{quote(name, safe=' ')[:100]}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
