"""The storage of one machine: maps, lists and caches in one SQLite file, which any program that reads SQLite opens.

- `database` has the tables and the connection, `rows` the cells of keys and values, and the splits that tasks read.
- `catalog` finds collections by name; `maps` and `lists` are the stores and the jobs that write to them, `collection`
  has what both share, and `staging` the files that tasks write.
"""

from __future__ import annotations

import os

from dstream.errors import SetupError
from dstream.spi.store import Settings
from dstream.storage.codec.pickles import Pickles
from dstream.storage.sqlite.catalog import SqliteStorage
from dstream.storage.sqlite.database import DatabaseLocation

__all__ = ["open_sqlite"]


def open_sqlite(url: str, settings: Settings) -> SqliteStorage:
    """Open the storage in a file; nothing is made before the first collection is.

    Args:
        url: `sqlite:` and a path, relative or absolute.
        settings: which pickled values are loaded; unset, all of them where only this user can write, otherwise those
            of plain and allowed types. How durable an acknowledged change is.

    Raises:
        ValueError: the URL has no path, or one that other programs understand in several ways.
        SetupError: the path is that of a folder.
    """
    path = url.removeprefix("sqlite:")
    if not path or path.startswith("//") or path == ":memory:":
        raise ValueError(
            f"{url!r} names no file: write sqlite:data.db or sqlite:/path/to/data.db; memory: is the storage of one "
            "process"
        )
    path = os.path.realpath(os.path.expanduser(path))
    if os.path.isdir(path):
        raise SetupError(f"storage in SQLite is a file, and {path} is a folder")
    place = DatabaseLocation(path, settings.durability == "power")
    return SqliteStorage(place, Pickles(settings.pickle or "trusted", settings.allowed), settings.pickle is None)
