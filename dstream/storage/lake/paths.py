"""The names of files: those that the lake makes, reads and removes, and those of others that it reads."""

from __future__ import annotations

import os
import re
from typing import Any

__all__ = ["ENTRY", "LOG", "checked_path", "is_removable", "is_temporary", "new_path", "temporary_name"]

LOG = "_delta_log"
"""The folder of the log in the folder of a collection."""
ENTRY = re.compile(LOG + r"/[0-9]{20}\.json")
"""The entries of the log."""

_TEMPORARY = ".tmp_"
_DATA = re.compile(r"(?:[0-9a-f]{32}-)?[0-9a-f]{32}\.parquet")
# `OPTIMIZE` of delta-rs folds files of a partition; the names of the columns are those of `Actions.partitions`.
_OPTIMIZED = re.compile(r"(?:_[bvi]=[0-9]+/){1,3}part-[0-9A-Za-z.-]+\.parquet")
_PREPARED = re.compile(rf"(?:{LOG}/)?\{_TEMPORARY}[0-9a-f]{{32}}")


def new_path(prefix: str) -> str:
    """Return the name of a new data file; `prefix` is empty, or that of a job."""
    return f"{prefix}{_random()}.parquet"


def temporary_name() -> str:
    """Return the name under which a small file is prepared."""
    return f"{_TEMPORARY}{_random()}"


def _random() -> str:
    """Return 32 hexadecimal digits that nobody else has; those of a UUID cost four times as much."""
    return os.urandom(16).hex()


def checked_path(data: Any) -> str:
    """Return the path of a data file as the log names it, if the lake or `OPTIMIZE` could have made it.

    Raises:
        ValueError: they could not: the path may lead out of the collection.
    """
    if not isinstance(data, str) or not (_DATA.fullmatch(data) or _OPTIMIZED.fullmatch(data)):
        raise ValueError(f"no file of the lake has the path {data!r:.200}")
    return data


def is_temporary(path: str) -> bool:
    """Say whether a path is that of a file that was prepared, and has no name yet."""
    return bool(_PREPARED.fullmatch(path))


def is_removable(path: str) -> bool:
    """Say whether a path in the folder of a collection is that of a data file, or of a file that was prepared."""
    return bool(_DATA.fullmatch(path)) or is_temporary(path)
